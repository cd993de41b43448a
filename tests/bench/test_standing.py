"""What was required, where others are ahead, what a message costs."""

import pytest

from bench.cases import all_cases
from bench.cases.imports import MEMORY
from bench.required import Measured, Verdict
from bench.rounds import Round
from bench.standing import behind, processor_section, required_section
from bench.summary import rows_of

PUSHPULL = all_cases()["pushpull-64"]
REQREP = all_cases()["reqrep-64"]
IMPORT = all_cases()["import"]


def played(case, lineup, value, number=1, **rest):
    receiver = {"cpu_s": 1.0, "messages": 1_000_000, "memory_mib": 20.0, **rest}
    error = "" if value is not None else "it hung"
    roles = {"receiver": receiver} if value is not None else {}
    return Round(case.name, case.transports[0], lineup, number, value, roles, error)


def test_required_figures_have_a_plain_yes_or_no_and_their_aims():
    text = "\n".join(
        required_section(
            [
                Verdict(
                    "one",
                    Measured(">= 8", 9.0, 8.5, 9.5, reached=True),
                    (Measured(">= 10", 9.0, reached=False), Measured(">= 1 x floor")),
                ),
                Verdict("two", Measured(">= 8", 7.0, 6.5, 7.5, reached=False)),
                Verdict("three", Measured(">= 8")),
                Verdict("four", None, (Measured(">= 0.9", 1.0, reached=True),)),
            ]
        )
    )
    assert "| one | >= 8 | 9 | 8.5 - 9.5 | yes | >= 10: 9, no; >= 1 x floor: not measured |" in text
    assert "| two | >= 8 | 7 | 6.5 - 7.5 | **no** |  |" in text
    assert "| three | >= 8 | - | - | not measured |  |" in text
    assert "| four | - | - | - | - | >= 0.9: 1, yes |" in text
    assert "Of 3 figures 1 not reached, 1 not measured." in text


def test_a_run_without_a_required_figure_has_no_such_section():
    assert required_section([]) == []


def behind_of(*rounds):
    cases = [PUSHPULL, REQREP, IMPORT]
    return "\n".join(behind(cases, rows_of(cases, rounds)))


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


def test_the_spread_of_the_ratio_is_said_too():
    ours = [played(PUSHPULL, "zerohop", value, number) for number, value in enumerate((10.0, 20.0))]
    theirs = [played(PUSHPULL, "pyomq", value, number) for number, value in enumerate((30.0, 30.0))]
    assert "pyomq is at 2.00 x zerohop (1.50 - 3.00)" in behind_of(*ours, *theirs)


def test_details_that_matter_are_compared_too():
    text = behind_of(
        played(IMPORT, "zerohop", 1.0, detail={MEMORY: 3.0}),
        played(IMPORT, "pyzmq", 2.0, detail={MEMORY: 1.5}),
    )
    assert "memory MiB: pyzmq is at 0.50 x zerohop" in text
    assert text.count("* ") == 1


def test_a_rival_with_losses_is_not_ahead():
    text = behind_of(played(PUSHPULL, "zerohop", 1.0), played(PUSHPULL, "pyomq", 9.0, lost=1))
    assert "Nowhere" in text


def processor_of(*rounds):
    return "\n".join(processor_section([PUSHPULL, IMPORT], rows_of([PUSHPULL, IMPORT], rounds)))


def test_what_a_million_messages_cost_is_held_beside_pyzmq():
    text = processor_of(
        played(PUSHPULL, "zerohop", 1.0, cpu_s=1.0),
        played(PUSHPULL, "pyzmq", 1.0, cpu_s=2.0),
        played(PUSHPULL, "floor", 1.0, cpu_s=0.5),
        played(PUSHPULL, "zerohop", 1.0, 2, cpu_s=1.5),
        played(PUSHPULL, "pyzmq", 1.0, 2, cpu_s=2.0),
    )
    assert "| `pushpull-64` tcp, blocking | 1.25 | 2 | - | 0.5 | 0.625 | 0.5 - 0.75 |" in text


def test_what_lost_messages_has_no_cost_to_compare():
    text = processor_of(
        played(PUSHPULL, "zerohop.asyncio", 1.0), played(PUSHPULL, "zmq.asyncio", 1.0, lost=5)
    )
    assert "| `pushpull-64` tcp, asyncio | 1 | - | - | - | - | - |" in text


def test_a_case_without_messages_costs_none():
    assert processor_of(played(IMPORT, "zerohop", 1.0, messages=0)) == ""
