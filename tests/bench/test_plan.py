"""Who plays what, and whether it fits the time that a run may take."""

from pathlib import Path

import pytest

from bench.case import Settings
from bench.cases import all_cases
from bench.contenders import BY_NAME, CONTENDERS
from bench.plan import ENTRY_S, WHOLE_RUN_S, duration, entries, estimate_s, lineups

ROOT = Path(__file__).parent.parent.parent
EVERYTHING = entries(list(all_cases().values()), CONTENDERS)


def names_of(case, contenders=CONTENDERS, *, by_name=False):
    return [lineup.name for lineup in lineups(all_cases()[case], contenders, by_name=by_name)]


def places_of(case, *transports):
    return [entry.transport for entry in entries([all_cases()[case]], CONTENDERS, transports)]


def test_everything_fits_into_twenty_minutes_with_one_to_spare():
    assert estimate_s(EVERYTHING, Settings()) < WHOLE_RUN_S - 60


@pytest.mark.parametrize("entry", EVERYTHING, ids=lambda e: f"{e.case.name} {e.transport}".strip())
def test_a_case_over_one_transport_fits_into_a_minute(entry):
    assert entry.estimate_s(Settings()) < ENTRY_S


def test_the_page_on_benchmarks_says_what_a_run_of_everything_takes():
    page = (ROOT / "docs" / "explanation" / "benchmarks.md").read_text()
    contenders = sum(len(entry.lineups) for entry in EVERYTHING)
    minutes = estimate_s(EVERYTHING, Settings()) / 60
    assert f"| **all** | {contenders} | | **{minutes:.1f} min** |" in page


def test_an_estimate_is_rounds_times_contenders_times_a_round():
    [entry] = entries([all_cases()["reconnect"]], [BY_NAME["pyzmq"], BY_NAME["pyomq"]])
    assert entry.estimate_s(Settings(rounds=3)) == 3 * 2 * entry.case.round_s


def test_a_longer_measurement_is_a_longer_estimate():
    [entry] = entries([all_cases()["pushpull-16"]], [BY_NAME["pyzmq"]])
    short, long = (entry.estimate_s(Settings(1, 0.0, seconds)) for seconds in (1.0, 3.0))
    assert long - short == pytest.approx(2.0)


def test_some_cases_are_played_over_ipc_too_in_a_run_of_everything():
    assert places_of("pushpull-64") == ["tcp", "ipc"]
    assert places_of("pushpull-16k") == ["tcp"]


def test_transports_that_are_asked_for_are_those_of_every_case_that_has_them():
    assert places_of("pushpull-16k", "ipc") == ["ipc"]
    assert places_of("pushpull-64", "tcp") == ["tcp"]
    assert places_of("inproc-loop", "ipc") == ["inproc"]
    assert places_of("import", "tcp") == [""]


def test_uvloop_plays_over_one_transport_or_where_it_is_asked_by_name():
    contenders = [BY_NAME["zmq.asyncio"], BY_NAME["zmq.asyncio+uvloop"]]
    planned = entries([all_cases()["pushpull-64"]], contenders)
    assert [len(entry.lineups) for entry in planned] == [2, 1]
    planned = entries([all_cases()["pushpull-64"]], contenders, by_name=True)
    assert [len(entry.lineups) for entry in planned] == [2, 2]


def test_a_case_that_nobody_here_can_play_is_left_out():
    assert entries([all_cases()["ticker"]], [BY_NAME["pyzmq"]]) == []


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (99, "99 s"), (1045, "17 min")])
def test_durations_are_in_seconds_and_from_then_on_in_minutes(seconds, text):
    assert duration(seconds) == text


def test_every_case_has_a_name_of_its_own_and_a_contender():
    modules = [case for case in all_cases().values() if names_of(case.name)]
    assert len(modules) == len(all_cases()) >= 13


def test_blocking_and_asyncio_cases_have_their_own_contenders():
    assert names_of("inproc-threads") == ["zerohop", "pyzmq", "pyomq", "floor"]
    assert names_of("inproc-loop") == ["zerohop.asyncio", "zmq.asyncio", "pyomq.asyncio"]


def test_uvloop_plays_where_the_case_says_so_or_when_asked_by_name():
    uvloop = [BY_NAME["zmq.asyncio+uvloop"]]
    assert names_of("pushpull-64", uvloop) == ["zmq.asyncio+uvloop"]
    assert names_of("pushpull-1k", uvloop) == []
    assert names_of("pushpull-1k", uvloop, by_name=True) == ["zmq.asyncio+uvloop"]


def test_crossed_pairs_are_ours_and_pyzmq_both_ways_in_one_style():
    assert names_of("crossed-pushpull-64") == [
        "zerohop -> pyzmq",
        "pyzmq -> zerohop",
        "zerohop.asyncio -> zmq.asyncio",
        "zmq.asyncio -> zerohop.asyncio",
    ]


def test_without_ours_the_others_are_crossed_with_pyzmq():
    assert names_of("crossed-pushpull-64", [BY_NAME["pyzmq"], BY_NAME["pyomq"]]) == [
        "pyomq -> pyzmq",
        "pyzmq -> pyomq",
    ]


def test_each_role_of_a_pair_uses_its_own_library():
    pair = lineups(
        all_cases()["crossed-pushpull-64"], [BY_NAME["zerohop"], BY_NAME["pyzmq"]], by_name=False
    )[0]
    assert pair.contender("sender").name == "zerohop"
    assert pair.contender("receiver").name == "pyzmq"
