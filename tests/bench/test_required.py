"""The required figures, held against rows."""

import pytest

from bench.cases import all_cases
from bench.contenders import BY_NAME
from bench.required import REQUIRED, Required, judge, verdicts
from bench.rounds import Round
from bench.summary import rows_of

AT_LEAST = Required("fast", "pushpull-64", "zerohop", "pyzmq", 0.5, transport="tcp")
AT_MOST = Required("small", "import", "zerohop", "pyzmq", 1.0, at_most=True)
ALONE = Required("lively", "ticker", "zerohop.asyncio", "", 500.0)


def rows(case, **values):
    transport = all_cases()[case].transports[0]
    played = [
        Round(case, transport, name.replace("_", "."), number, value, {})
        for name, series in values.items()
        for number, value in enumerate(series)
    ]
    return rows_of([all_cases()[case]], played)


@pytest.mark.parametrize(("ours", "reached"), [(49.0, False), (50.0, True), (51.0, True)])
def test_at_least_a_share_of_theirs(ours, reached):
    verdict = judge(AT_LEAST, rows("pushpull-64", zerohop=[ours], pyzmq=[100.0]))
    assert (verdict.must, verdict.measured, verdict.reached) == (
        ">= 0.5 x pyzmq",
        ours / 100,
        reached,
    )


@pytest.mark.parametrize(("ours", "reached"), [(9.0, True), (10.0, True), (10.1, False)])
def test_at_most_theirs(ours, reached):
    verdict = judge(AT_MOST, rows("import", zerohop=[ours], pyzmq=[10.0]))
    assert (verdict.must, verdict.reached) == ("<= 1 x pyzmq", reached)


def test_a_figure_of_its_own_has_the_spread_of_its_rounds():
    verdict = judge(ALONE, rows("ticker", zerohop_asyncio=[400.0, 600.0, 700.0]))
    assert (verdict.must, verdict.measured, verdict.reached) == (">= 500", 600.0, True)
    assert (verdict.lowest, verdict.highest) == (400.0, 700.0)


@pytest.mark.parametrize("present", [{"zerohop": [1.0]}, {"pyzmq": [1.0]}])
def test_what_was_not_measured_is_neither_reached_nor_missed(present):
    verdict = judge(AT_LEAST, rows("pushpull-64", **present))
    assert (verdict.measured, verdict.reached) == (None, None)


def test_only_the_cases_of_the_run_are_judged():
    judged = verdicts(rows("ticker", zerohop_asyncio=[900.0]))
    assert [verdict.title for verdict in judged] == ["1 ms ticker beside a flooded socket, ticks/s"]


@pytest.mark.parametrize("required", REQUIRED, ids=lambda required: required.title)
def test_every_required_figure_is_one_that_a_case_measures(required):
    case = all_cases()[required.case]
    assert case.plays(BY_NAME[required.ours])
    assert not required.theirs or case.plays(BY_NAME[required.theirs])
    assert not required.transport or required.transport in case.transports
    assert required.at_most is not case.higher_is_better
