"""The required figures, held against rows."""

from dataclasses import replace

import pytest

from bench.cases import all_cases
from bench.cases.imports import MEMORY
from bench.contenders import BY_NAME
from bench.required import REQUIRED, Goal, Required, judge, verdicts
from bench.rounds import Round
from bench.summary import rows_of

AT_LEAST = Required(
    "fast", "pushpull-64", "zerohop", Goal(0.5, "pyzmq"), (Goal(2.0, "pyomq"),), transport="tcp"
)
AT_MOST = Required("small", "import", "zerohop", Goal(1.0, "pyzmq"), at_most=True)
LIGHT = Required("light", "import", "zerohop", Goal(1.0, "pyzmq"), at_most=True, detail=MEMORY)
ALONE = Required("lively", "ticker", "zerohop.asyncio", Goal(500.0))


def rows(case, details=None, lost=None, **values):
    transport = all_cases()[case].transports[0]
    played = []
    for name, series in values.items():
        result = {"cpu_s": 1.0, "lost": (lost or {}).get(name, 0)}
        if details:
            result["detail"] = {MEMORY: details[name]}
        played += [
            Round(case, transport, name.replace("_", "."), number, value, {"both": result})
            for number, value in enumerate(series)
        ]
    return rows_of([all_cases()[case]], played)


@pytest.mark.parametrize(("ours", "reached"), [(49.0, False), (50.0, True), (51.0, True)])
def test_at_least_a_share_of_theirs(ours, reached):
    must = judge(AT_LEAST, rows("pushpull-64", zerohop=[ours], pyzmq=[100.0])).must
    assert (must.goal, must.value, must.reached) == (">= 0.5 x pyzmq", ours / 100, reached)


@pytest.mark.parametrize(("ours", "reached"), [(9.0, True), (10.0, True), (10.1, False)])
def test_at_most_theirs(ours, reached):
    must = judge(AT_MOST, rows("import", zerohop=[ours], pyzmq=[10.0])).must
    assert (must.goal, must.reached) == ("<= 1 x pyzmq", reached)


def test_an_aim_is_held_beside_what_must_be_and_may_be_anothers():
    verdict = judge(AT_LEAST, rows("pushpull-64", zerohop=[100.0], pyzmq=[100.0], pyomq=[40.0]))
    assert [(aim.goal, aim.value, aim.reached) for aim in verdict.aims] == [
        (">= 2 x pyomq", 2.5, True)
    ]


def test_a_figure_of_its_own_has_the_spread_of_its_rounds():
    must = judge(ALONE, rows("ticker", zerohop_asyncio=[400.0, 600.0, 700.0])).must
    assert (must.goal, must.value, must.reached) == (">= 500", 600.0, True)
    assert (must.lowest, must.highest) == (400.0, 700.0)


def test_a_detail_is_judged_instead_of_the_value():
    found = rows("import", details={"zerohop": 3.0, "pyzmq": 4.0}, zerohop=[9.0], pyzmq=[1.0])
    must = judge(LIGHT, found).must
    assert (must.value, must.reached) == (0.75, True)


def test_a_goal_may_lie_in_another_case():
    here = Required("same", "topics-10k", "zerohop", None, (Goal(0.9, "zerohop", "topics-1k"),))
    found = [*rows("topics-10k", zerohop=[95.0]), *rows("topics-1k", zerohop=[100.0])]
    verdict = judge(here, found)
    assert verdict.must is None
    assert (verdict.aims[0].goal, verdict.aims[0].value) == (
        ">= 0.9 x zerohop in topics-1k",
        0.95,
    )


@pytest.mark.parametrize("present", [{"zerohop": [1.0]}, {"pyzmq": [1.0]}])
def test_what_was_not_measured_is_neither_reached_nor_missed(present):
    must = judge(AT_LEAST, rows("pushpull-64", **present)).must
    assert (must.value, must.reached) == (None, None)


def test_a_figure_with_losses_is_not_reached():
    found = rows("pushpull-64", lost={"zerohop": 1}, zerohop=[900.0], pyzmq=[1.0])
    assert judge(AT_LEAST, found).must.reached is False


def test_beside_a_rival_with_losses_nothing_is_measured():
    found = rows("pushpull-64", lost={"pyzmq": 1}, zerohop=[900.0], pyzmq=[1.0])
    assert judge(AT_LEAST, found).must.value is None


def test_only_the_cases_of_the_run_are_judged():
    judged = verdicts(rows("ticker", zerohop_asyncio=[900.0]))
    assert [verdict.title for verdict in judged] == ["1 ms ticker beside a flooded socket, ticks/s"]


def test_only_the_transports_of_the_run_are_judged():
    over_ipc = [replace(row, transport="ipc") for row in rows("reqrep-64", zerohop=[1.0])]
    assert [verdict.title for verdict in verdicts(over_ipc)] == ["blocking REQ/REP p50 over ipc"]


@pytest.mark.parametrize("required", REQUIRED, ids=lambda required: required.title)
def test_every_required_figure_is_one_that_a_case_measures(required):
    case = all_cases()[required.case]
    assert case.plays(BY_NAME[required.ours])
    assert not required.transport or required.transport in case.planned()
    assert required.at_most is (not case.higher_is_better or bool(required.detail))
    assert not required.detail or required.detail in case.compared
    for goal in (*((required.must,) if required.must else ()), *required.aims):
        assert not goal.theirs or all_cases()[goal.case or case.name].plays(BY_NAME[goal.theirs])


def test_the_titles_differ():
    titles = [required.title for required in REQUIRED]
    assert len(set(titles)) == len(titles)
