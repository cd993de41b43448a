"""The figures that Zerohop must reach, as data; and whether a run reached them. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.summary import Row, find_row, ratio


@dataclass(frozen=True)
class Required:
    """One figure: ours, or ours as a multiple of theirs, against a bound.

    Attributes:
        title: what must be reached, without the bound.
        case: where it is measured, over ``transport`` (any, if empty).
        ours: our contender.
        theirs: whose value ours is divided by; empty for a figure of its own.
        bound: at least this, or at most this when ``at_most``.
    """

    title: str
    case: str
    ours: str
    theirs: str
    bound: float
    at_most: bool = False
    transport: str = ""


@dataclass(frozen=True)
class Verdict:
    """What a run says about a required figure.

    Attributes:
        must: the bound, as text.
        measured: the value or ratio; None when it was not measured.
        lowest, highest: over the rounds; for a ratio, of the ratios within one round.
        reached: None when it was not measured.
    """

    title: str
    must: str
    measured: float | None = None
    lowest: float | None = None
    highest: float | None = None
    reached: bool | None = None


REQUIRED = (
    Required(
        "asyncio PUSH/PULL 64 B over tcp",
        "pushpull-64", "zerohop.asyncio", "zmq.asyncio", 8.0, transport="tcp",
    ),
    Required(
        "asyncio REQ/REP round trip p50 over tcp",
        "reqrep-64", "zerohop.asyncio", "zmq.asyncio", 0.7, at_most=True, transport="tcp",
    ),
    Required("inproc PUSH/PULL, blocking threads", "inproc-threads", "zerohop", "pyzmq", 1.0),
    Required(
        "inproc PUSH/PULL within one loop",
        "inproc-loop", "zerohop.asyncio", "zmq.asyncio", 1.0,
    ),
    Required("import time, blocking", "import", "zerohop", "pyzmq", 1.0, at_most=True),
    Required("import time, asyncio", "import", "zerohop.asyncio", "zmq.asyncio", 1.0, at_most=True),
    Required(
        "1 ms ticker beside a flooded socket, ticks/s",
        "ticker", "zerohop.asyncio", "", 500.0, transport="tcp",
    ),
    Required(
        "blocking PUSH/PULL 64 B over tcp",
        "pushpull-64", "zerohop", "pyzmq", 0.5, transport="tcp",
    ),
)  # fmt: skip


def judge(required: Required, rows: Sequence[Row]) -> Verdict:
    """Hold one figure against the rows of a run."""
    sign = "<=" if required.at_most else ">="
    relative = f" x {required.theirs}" if required.theirs else ""
    must = f"{sign} {required.bound:g}{relative}"
    ours = find_row(rows, required.case, required.ours, required.transport)
    theirs = find_row(rows, required.case, required.theirs or required.ours, required.transport)
    if ours is None or theirs is None:
        return Verdict(required.title, must)
    assert ours.median is not None
    if required.theirs:
        compared = ratio(ours, theirs)
        measured, lowest, highest = compared.of_medians, compared.lowest, compared.highest
    else:
        values = ours.values.values()
        measured, lowest, highest = ours.median, min(values), max(values)
    reached = measured <= required.bound if required.at_most else measured >= required.bound
    return Verdict(required.title, must, measured, lowest, highest, reached)


def verdicts(rows: Sequence[Row]) -> list[Verdict]:
    """Every required figure whose case was played at all."""
    played = {row.case for row in rows}
    return [judge(required, rows) for required in REQUIRED if required.case in played]
