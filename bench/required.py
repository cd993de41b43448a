"""The figures that Zerohop must reach and those it aims at, as data; and what a run says. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from bench.cases.connections import MEMORY as CONNECTION_MEMORY
from bench.cases.imports import MEMORY as IMPORT_MEMORY
from bench.contenders import REFERENCE, Style
from bench.summary import Row, find_row, ratio


@dataclass(frozen=True)
class Goal:
    """A bound, for a figure of ours or for its ratio to someone's.

    Attributes:
        bound: at least this; at most this where lower is better.
        theirs: whose figure ours is divided by; empty for a figure of its own.
        case: where theirs is measured, if not in the same case.
    """

    bound: float
    theirs: str = ""
    case: str = ""


@dataclass(frozen=True)
class Required:
    """One figure of ours.

    Attributes:
        title: which, without the bounds.
        case: where it is measured, over ``transport`` (any, if empty).
        ours: our contender.
        must: what it must reach; None where there is only an aim.
        aims: what it would be good to reach.
        at_most: whether lower is better.
        detail: which of the case's details is meant; its value, if empty.
    """

    title: str
    case: str
    ours: str
    must: Goal | None
    aims: tuple[Goal, ...] = ()
    at_most: bool = False
    transport: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Measured:
    """What a run says about a goal.

    Attributes:
        goal: as text.
        value: the figure or the ratio; None when it was not measured, or theirs had losses.
        lowest, highest: over the rounds; for a ratio, of the ratios within one round.
        reached: None when it was not measured.
    """

    goal: str
    value: float | None = None
    lowest: float | None = None
    highest: float | None = None
    reached: bool | None = None


@dataclass(frozen=True)
class Verdict:
    """What a run says about a required figure."""

    title: str
    must: Measured | None
    aims: tuple[Measured, ...] = ()


BLOCKING, ASYNCIO = "zerohop", "zerohop.asyncio"
STYLES: dict[str, Style] = {BLOCKING: "blocking", ASYNCIO: "asyncio"}
PYOMQ: dict[Style, str] = {"blocking": "pyomq", "asyncio": "pyomq.asyncio"}
FLOOR: dict[Style, str] = {"blocking": "floor", "asyncio": "floor.asyncio"}


def pyzmq(ours: str, bound: float) -> Goal:
    """A multiple of pyzmq, called in the same style."""
    return Goal(bound, REFERENCE[STYLES[ours]])


def pyomq(ours: str, bound: float) -> Goal:
    """A multiple of pyomq, called in the same style."""
    return Goal(bound, PYOMQ[STYLES[ours]])


def floor(ours: str, bound: float) -> Goal:
    """A multiple of plain sockets or a bare asyncio Protocol."""
    return Goal(bound, FLOOR[STYLES[ours]])


def streams() -> Iterator[Required]:
    """PUSH to PULL."""
    for text, name in (("64 B", "pushpull-64"), ("1 KiB", "pushpull-1k")):
        for transport in ("tcp", "ipc"):
            yield Required(
                f"blocking PUSH/PULL {text} over {transport}", name, BLOCKING,
                pyzmq(BLOCKING, 1.2), (pyomq(BLOCKING, 1.0),), transport=transport,
            )  # fmt: skip
        yield Required(
            f"asyncio PUSH/PULL {text}", name, ASYNCIO,
            pyzmq(ASYNCIO, 12.0), (pyzmq(ASYNCIO, 25.0),), transport="tcp",
        )  # fmt: skip
    yield Required(
        "asyncio PUSH/PULL 64 B, beside pyomq", "pushpull-64", ASYNCIO,
        pyomq(ASYNCIO, 1.5), (pyomq(ASYNCIO, 3.0),), transport="tcp",
    )  # fmt: skip
    for ours, bound in ((BLOCKING, 2.0), (ASYNCIO, 4.0)):
        yield Required(
            f"{STYLES[ours]} PUSH/PULL, five frames of 64 B", "multipart", ours,
            pyzmq(ours, bound), (pyomq(ours, 1.0),), transport="tcp",
        )  # fmt: skip
    for text, name in (
        ("16 KiB", "pushpull-16k"),
        ("256 KiB", "pushpull-256k"),
        ("4 MiB", "pushpull-4m"),
    ):
        for ours in STYLES:
            yield Required(
                f"{STYLES[ours]} PUSH/PULL {text}", name, ours,
                pyzmq(ours, 1.0), (floor(ours, 0.8),), transport="tcp",
            )  # fmt: skip


def round_trips() -> Iterator[Required]:
    """REQ and REP, ROUTER and DEALER."""
    for transport in ("tcp", "ipc"):
        yield Required(
            f"blocking REQ/REP p50 over {transport}", "reqrep-64", BLOCKING,
            pyzmq(BLOCKING, 0.7), (pyzmq(BLOCKING, 0.5), floor(BLOCKING, 1.5)),
            at_most=True, transport=transport,
        )  # fmt: skip
    yield Required(
        "asyncio REQ/REP p50", "reqrep-64", ASYNCIO,
        pyzmq(ASYNCIO, 0.6), (floor(ASYNCIO, 1.3),), at_most=True, transport="tcp",
    )  # fmt: skip
    for ours, bound in ((BLOCKING, 1.0), (ASYNCIO, 3.0)):
        yield Required(
            f"{STYLES[ours]} ROUTER echo to 8 DEALERs", "router-8", ours,
            pyzmq(ours, bound), transport="tcp",
        )  # fmt: skip


def fan_out() -> Iterator[Required]:
    """PUB and SUB."""
    for ours, bound in ((BLOCKING, 1.0), (ASYNCIO, 5.0)):
        for count, name in (("1 SUB", "pubsub-1"), ("8 SUBs", "pubsub-8")):
            yield Required(
                f"{STYLES[ours]} PUB to {count}, delivered", name, ours,
                pyzmq(ours, bound), transport="tcp",
            )  # fmt: skip
        yield Required(
            f"{STYLES[ours]} PUB with 1,000 topics", "topics-1k", ours,
            pyzmq(ours, bound), transport="tcp",
        )  # fmt: skip
        yield Required(
            f"{STYLES[ours]} PUB with 10,000 topics, beside 1,000", "topics-10k", ours,
            None, (Goal(SAME, ours, "topics-1k"),), transport="tcp",
        )  # fmt: skip


def the_rest() -> Iterator[Required]:
    """What is not a rate over the network."""
    for ours, where, name in (
        (BLOCKING, "threads", "inproc-threads"),
        (ASYNCIO, "within one loop", "inproc-loop"),
    ):
        yield Required(f"inproc PUSH/PULL, {where}", name, ours, pyzmq(ours, 2.0))
    for ours in STYLES:
        for what, detail in (("time", ""), ("memory", CONNECTION_MEMORY)):
            yield Required(
                f"{STYLES[ours]}, 1,000 connections: {what}", "connections", ours,
                pyzmq(ours, 1.5), (pyzmq(ours, 1.0),),
                at_most=True, transport="tcp", detail=detail,
            )  # fmt: skip
    for ours in STYLES:
        for what, detail in (("time", ""), ("memory", IMPORT_MEMORY)):
            yield Required(
                f"import {what}, {STYLES[ours]}", "import", ours,
                pyzmq(ours, 1.0), at_most=True, detail=detail,
            )  # fmt: skip
    yield Required(
        "1 ms ticker beside a flooded socket, ticks/s", "ticker", ASYNCIO,
        Goal(500.0), transport="tcp",
    )  # fmt: skip


SAME = 0.9  # "costs the same a message", as a ratio of rates: what rounds differ by anyway

REQUIRED = (*streams(), *round_trips(), *fan_out(), *the_rest())


def measure(goal: Goal, required: Required, rows: Sequence[Row]) -> Measured:
    """Hold one goal against the rows of a run."""
    sign = "<=" if required.at_most else ">="
    relative = f" x {goal.theirs}" if goal.theirs else ""
    where = f" in {goal.case}" if goal.case else ""
    unmeasured = Measured(f"{sign} {goal.bound:g}{relative}{where}")
    ours = find_row(rows, required.case, required.ours, required.transport, required.detail)
    theirs = find_row(
        rows,
        goal.case or required.case,
        goal.theirs or required.ours,
        required.transport,
        required.detail,
    )
    if ours is None or theirs is None or (theirs.lost and theirs is not ours):
        return unmeasured
    if goal.theirs:
        compared = ratio(ours, theirs, required.detail)
        value, lowest, highest = compared.of_medians, compared.lowest, compared.highest
    else:
        values = ours.figures(required.detail).values()
        value, lowest, highest = median(values), min(values), max(values)
    reached = not ours.lost and (value <= goal.bound if required.at_most else value >= goal.bound)
    return replace(unmeasured, value=value, lowest=lowest, highest=highest, reached=reached)


def judge(required: Required, rows: Sequence[Row]) -> Verdict:
    """Hold one figure against the rows of a run."""
    must = measure(required.must, required, rows) if required.must else None
    return Verdict(
        required.title, must, tuple(measure(goal, required, rows) for goal in required.aims)
    )


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """Every required figure whose case was played at all, over its transport."""
    played = {(row.case, transport) for row in rows for transport in ("", row.transport)}
    return [judge(each, rows) for each in REQUIRED if (each.case, each.transport) in played]
