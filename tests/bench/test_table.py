"""The page: bad news first, and nothing left out."""

import pytest

from bench.cases import all_cases
from bench.markdown import number
from bench.required import Measured, Verdict
from bench.rounds import Round
from bench.summary import rows_of
from bench.table import page

ABOUT = {
    "name": "test",
    "date": "2026-01-02",
    "machine": {
        "cpu": "A CPU",
        "cores": 2,
        "virtual": True,
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
    "taken": {"rounds": 12, "seconds": 700.0, "busy": 0, "entries": {"a tcp": 30.0, "b": 40.0}},
}
PUSHPULL = all_cases()["pushpull-64"]
REQREP = all_cases()["reqrep-64"]


def played(case, lineup, value, busy=None, **rest):
    receiver = {"cpu_s": 1.0, "messages": 1000, "memory_mib": 20.0, **rest}
    error = "" if value is not None else "it hung"
    roles = {"receiver": receiver} if value is not None else {}
    return Round(case.name, "tcp", lineup, 1, value, roles, error, busy=busy or {})


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
    for said in (
        "A CPU, 2 cores (virtual), 4.0 GiB",
        "CPython 3.11.7",
        "pyzmq 27.3.0",
        "* skipped: pyomq: not there",
    ):
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
    assert "its figure is not comparable" in text


def test_a_pair_of_two_libraries_is_not_compared():
    text = page_of(played(PUSHPULL, "zerohop -> pyzmq", 10.0), played(PUSHPULL, "pyzmq", 10.0))
    assert "| zerohop -> pyzmq | 10 | 10 - 10 | - |" in text


def test_the_page_says_how_long_the_run_took_and_the_longest_case():
    text = page_of(played(PUSHPULL, "pyzmq", 1000.0))
    assert "12 rounds in 12 min, the longest case b in 40 s." in text
    assert "other programs" not in text


def test_disturbed_rounds_are_counted_in_their_row_and_for_the_run():
    about = {**ABOUT, "taken": {**ABOUT["taken"], "busy": 1}}
    rows = rows_of([PUSHPULL], [played(PUSHPULL, "pyzmq", 9.0, busy={"others": 0.4})])
    text = page(about, [PUSHPULL], rows, ())
    assert "In 1 of them other programs" in text
    assert "| 1/1, 1 busy |" in text


def test_required_figures_come_first_and_what_a_message_costs_before_the_cases():
    verdicts = [Verdict("one", Measured(">= 8", 9.0, 8.5, 9.5, reached=True))]
    text = page_of(played(PUSHPULL, "zerohop", 1.0), verdicts=verdicts)
    found = [text.index(f"## {name}") for name in ("Required", "Where", "Processor", "Cases")]
    assert found == sorted(found)
