"""What else the machine did, from counters."""

import pytest

from bench.busy import Counters, disturbance, disturbed

STAT = """\
cpu  100 20 30 4000 5 6 7 {stolen} 0 0
cpu0 50 10 15 2000 2 3 3 4 0 0
cpu1 50 10 15 2000 3 3 4 4 0 0
intr 12345
"""


def counters(at, worked, ours, stolen=0.0, cores=2):
    return Counters(at, worked, stolen, ours, cores)


def test_the_kernel_s_counters_are_read_in_seconds(tmp_path, monkeypatch):
    monkeypatch.setattr("os.sysconf", {"SC_CLK_TCK": 100}.__getitem__)
    (tmp_path / "stat").write_text(STAT.format(stolen=8))
    found = Counters.now(str(tmp_path / "stat"))
    assert (found.worked, found.stolen, found.cores) == (1.5, 0.08, 2)
    assert found.ours > 0


def test_where_nothing_is_counted_nothing_is_said(tmp_path):
    found = Counters.now(str(tmp_path / "none"))
    assert found.cores == 0
    assert disturbance(found, found) == {}
    assert not disturbed({})


def test_what_we_did_not_do_is_others():
    before, after = counters(10.0, 100.0, 5.0), counters(12.0, 103.0, 7.0, stolen=0.4)
    assert disturbance(before, after) == {"others": 0.25, "stolen": 0.1}


def test_accounting_that_is_a_little_off_is_nothing():
    assert disturbance(counters(0.0, 1.0, 1.0), counters(1.0, 2.0, 2.1))["others"] == 0.0


@pytest.mark.parametrize(
    ("others", "stolen", "marked"), [(0.04, 0.05, False), (0.08, 0.03, True), (0.0, 0.5, True)]
)
def test_a_tenth_of_the_cores_is_enough_to_mark_a_round(others, stolen, marked):
    assert disturbed({"others": others, "stolen": stolen}) is marked
