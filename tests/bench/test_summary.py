"""Rounds become rows; rows are compared."""

import math
from dataclasses import replace

import pytest

from bench.case import Case
from bench.rounds import Round
from bench.summary import CPU, find_row, quotient, ratio, row_of, rows_of

CASE = Case("c", "A case", "msg/s")


def played(number, value, lineup="pyzmq", transport="tcp", error="", late=(), **receiver):
    roles = {}
    if value is not None:
        sender = {"cpu_s": 1.0, "memory_mib": 20.0}
        roles = {"receiver": {"cpu_s": 0.5, "messages": 1000, **receiver}, "sender": sender}
    return Round("c", transport, lineup, number, value, roles, error, list(late))


def test_a_row_has_the_median_and_both_ends():
    row = row_of(CASE, [played(1, 30.0), played(2, 10.0), played(3, 20.0)])
    assert (row.median, row.lowest, row.highest, row.tried) == (20.0, 10.0, 30.0, 3)
    assert row.values == {1: 30.0, 2: 10.0, 3: 20.0}


def test_the_processor_time_of_both_processes_is_divided_by_the_messages():
    row = row_of(CASE, [played(1, 1.0)])
    assert row.cpu_s == {"receiver": 0.5, "sender": 1.0}
    assert row.cpu_us == 1500.0


def test_a_failed_round_has_no_value_and_is_not_forgotten():
    row = row_of(
        CASE, [played(1, 5.0), played(2, None, error="stuck"), played(3, None, error="stuck")]
    )
    assert (row.median, row.tried, row.errors) == (5.0, 3, ["stuck"])


def test_a_contender_that_never_finished_has_a_row_without_figures():
    row = row_of(CASE, [played(1, None, error="no")])
    assert (row.median, row.lowest, row.highest, row.cpu_us, row.values) == (None,) * 4 + ({},)


def test_losses_are_summed_over_the_rounds():
    row = row_of(CASE, [played(1, 1.0, lost=3), played(2, 1.0, lost=4)])
    assert (row.lost, row.delivered) == (7, 2000)


def test_details_are_medians_too():
    row = row_of(CASE, [played(n, 1.0, detail={"p99 µs": float(n)}) for n in (1, 2, 9)])
    assert row.detail == {"p99 µs": 2.0}


def test_a_process_that_had_to_be_ended_is_named_once():
    row = row_of(CASE, [played(1, 1.0, late=["sender"]), played(2, 1.0, late=["sender"])])
    assert row.late == ["sender"]


def test_rows_keep_transports_and_lineups_apart():
    rounds = [played(1, 1.0), played(1, 2.0, transport="ipc"), played(1, 3.0, lineup="pyomq")]
    rows = rows_of([CASE], rounds)
    assert [(row.lineup, row.transport, row.median) for row in rows] == [
        ("pyzmq", "tcp", 1.0),
        ("pyzmq", "ipc", 2.0),
        ("pyomq", "tcp", 3.0),
    ]


def test_a_row_without_a_value_is_not_found():
    rows = rows_of([CASE], [played(1, None, error="no"), played(1, 2.0, transport="ipc")])
    found = find_row(rows, "c", "pyzmq")
    assert found is not None
    assert found.transport == "ipc"
    assert find_row(rows, "c", "pyzmq", "tcp") is None


def test_a_ratio_compares_medians_and_shows_the_rounds():
    ours = row_of(CASE, [played(1, 10.0), played(2, 30.0), played(3, 20.0)])
    theirs = row_of(CASE, [played(1, 10.0), played(2, 10.0), played(3, 5.0)])
    compared = ratio(ours, theirs)
    assert (compared.of_medians, compared.lowest, compared.highest) == (2.0, 1.0, 4.0)


def test_a_ratio_pairs_only_rounds_that_both_finished():
    ours = row_of(CASE, [played(1, 10.0), played(2, 99.0)])
    theirs = row_of(CASE, [played(1, 5.0), played(2, None, error="no")])
    assert ratio(ours, theirs).highest == 2.0


def test_details_and_processor_time_are_compared_round_by_round_too():
    ours = row_of(CASE, [played(1, 1.0, detail={"x": 2.0}), played(2, 1.0, detail={"x": 8.0})])
    theirs = row_of(CASE, [played(1, 1.0, detail={"x": 1.0}), played(2, 1.0, detail={"x": 1.0})])
    compared = ratio(ours, theirs, "x")
    assert (compared.of_medians, compared.lowest, compared.highest) == (5.0, 2.0, 8.0)
    assert ratio(ours, theirs, CPU).of_medians == 1.0


def test_a_row_is_found_only_with_the_figure_that_is_asked_for():
    rows = rows_of([CASE], [played(1, 1.0, detail={"x": 2.0})])
    assert find_row(rows, "c", "pyzmq", figure="x") is rows[0]
    assert find_row(rows, "c", "pyzmq", figure="y") is None


def test_rounds_on_a_busy_machine_are_counted_and_kept():
    quiet, busy = played(1, 1.0), replace(played(2, 3.0), busy={"others": 0.2, "stolen": 0.0})
    row = row_of(CASE, [quiet, busy])
    assert (row.busy, row.median) == (1, 2.0)


@pytest.mark.parametrize(
    ("mine", "other", "expected"), [(1.0, 2.0, 0.5), (0.0, 0.0, 1.0), (1.0, 0.0, math.inf)]
)
def test_a_ratio_to_nothing_is_infinite(mine, other, expected):
    assert quotient(mine, other) == expected
