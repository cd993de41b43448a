"""The page: bad news first, and nothing left out."""

import pytest

from bench.cases import all_cases
from bench.required import Verdict
from bench.rounds import Round
from bench.summary import rows_of
from bench.table import behind, number, page

ABOUT = {
    "name": "test",
    "date": "2026-01-02",
    "machine": {
        "cpu": "A CPU",
        "cores": 2,
        "memory_gib": 4.0,
        "system": "Linux",
        "python": "CPython 3.11.7",
        "loop": "a loop",
        "commit": "abc",
        "load_before": 0.1,
        "load_after": 0.2,
    },
    "versions": {"pyzmq": "27.3.0"},
    "settings": {"rounds": 1, "warm_up_s": 0.2, "measure_s": 1.0},
    "skipped": {"pyomq": "not there"},
}
PUSHPULL = all_cases()["pushpull-64"]
REQREP = all_cases()["reqrep-64"]


def played(case, lineup, value, **rest):
    receiver = {"cpu_s": 1.0, "messages": 1000, "memory_mib": 20.0, **rest}
    error = "" if value is not None else "it hung"
    roles = {"receiver": receiver} if value is not None else {}
    return Round(case.name, "tcp", lineup, 1, value, roles, error)


def page_of(*rounds, verdicts=(), cases=(PUSHPULL, REQREP)):
    return page(ABOUT, cases, rows_of(cases, rounds), verdicts)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (1234567.8, "1,234,568"),
        (123.4, "123"),
        (12.34, "12.3"),
        (0.01234, "0.0123"),
        (0.0, "0"),
    ],
)
def test_numbers_have_three_digits_or_whole_thousands(value, text):
    assert number(value) == text


def test_the_page_says_where_how_and_who_was_missing():
    text = page_of(played(PUSHPULL, "pyzmq", 1000.0))
    for said in ("A CPU, 2 cores", "CPython 3.11.7", "pyzmq 27.3.0", "* skipped: pyomq: not there"):
        assert said in text


def test_a_row_is_divided_by_pyzmq_in_the_same_style():
    text = page_of(
        played(PUSHPULL, "pyzmq", 1000.0),
        played(PUSHPULL, "zerohop", 2500.0),
        played(PUSHPULL, "zmq.asyncio", 100.0),
        played(PUSHPULL, "zerohop.asyncio", 800.0),
    )
    assert "| zerohop | 2,500 | 2,500 - 2,500 | 2.5 |" in text
    assert "| zerohop.asyncio | 800 | 800 - 800 | 8 |" in text


def test_a_failure_is_a_row_and_a_note():
    text = page_of(played(PUSHPULL, "pyomq", None))
    assert "| pyomq | - | - |" in text
    assert "* pyomq: 1 of 1 failed: it hung" in text


def test_a_rate_with_losses_is_not_compared():
    text = page_of(played(PUSHPULL, "pyzmq", 10.0), played(PUSHPULL, "pyomq", 90.0, lost=3000))
    assert "| pyomq | 90 | 90 - 90 | - |" in text
    assert "75.0 %" in text
    assert "its rate is not comparable" in text


def test_a_pair_of_two_libraries_is_not_compared():
    text = page_of(played(PUSHPULL, "zerohop -> pyzmq", 10.0), played(PUSHPULL, "pyzmq", 10.0))
    assert "| zerohop -> pyzmq | 10 | 10 - 10 | - |" in text


def test_required_figures_come_first_with_a_plain_yes_or_no():
    verdicts = [
        Verdict("one", ">= 8", 9.0, 8.5, 9.5, reached=True),
        Verdict("two", ">= 8", 7.0, 6.5, 7.5, reached=False),
        Verdict("three", ">= 8"),
    ]
    text = page_of(played(PUSHPULL, "pyzmq", 1.0), verdicts=verdicts)
    assert text.index("## Required") < text.index("## Cases")
    assert "| one | >= 8 | 9 | 8.5 - 9.5 | yes |" in text
    assert "| two | >= 8 | 7 | 6.5 - 7.5 | **no** |" in text
    assert "| three | >= 8 | - | - | not measured |" in text


def behind_of(*rounds):
    return "\n".join(behind([PUSHPULL, REQREP], rows_of([PUSHPULL, REQREP], rounds)))


@pytest.mark.parametrize(
    ("case", "ours", "theirs", "said"),
    [
        (PUSHPULL, 100.0, 150.0, "pyomq is at 1.50 x zerohop"),
        (PUSHPULL, 150.0, 100.0, "Nowhere"),
        (PUSHPULL, 100.0, 100.0, "Nowhere"),
        (REQREP, 100.0, 50.0, "pyomq is at 0.50 x zerohop"),
        (REQREP, 50.0, 100.0, "Nowhere"),
    ],
)
def test_where_another_library_is_better_it_is_said(case, ours, theirs, said):
    assert said in behind_of(played(case, "zerohop", ours), played(case, "pyomq", theirs))


def test_only_the_same_style_and_loop_compete():
    text = behind_of(
        played(PUSHPULL, "zerohop.asyncio", 100.0),
        played(PUSHPULL, "pyzmq", 900.0),
        played(PUSHPULL, "zmq.asyncio+uvloop", 900.0),
        played(PUSHPULL, "floor.asyncio", 900.0),
    )
    assert "Nowhere" in text


def test_our_own_failures_and_losses_are_said():
    text = behind_of(
        played(PUSHPULL, "zerohop", None), played(REQREP, "zerohop.asyncio", 5.0, lost=7)
    )
    assert "zerohop failed 1 times" in text
    assert "zerohop.asyncio lost 7 messages" in text
