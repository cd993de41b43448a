"""Rounds to rows: medians, spread, and how one contender compares with another. Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.case import Case
from bench.rounds import Round


@dataclass(frozen=True)
class Row:
    """One contender in one case over one transport.

    Attributes:
        values: round number -> value, for the rounds that gave one.
        tried: rounds that were played.
        median, lowest, highest: of ``values``; None when every round failed.
        cpu_s: role -> median CPU seconds, all threads, over the measured stretch.
        memory_mib: role -> median of the peak memory.
        cpu_us: median CPU microseconds of all roles for one message.
        detail: what else the case reports, medians.
        lost: messages of all rounds that were sent and never delivered.
        delivered: messages of all rounds that were.
        errors: why rounds failed, each reason once.
        late: roles that did not end by themselves, each once.
    """

    case: str
    transport: str
    lineup: str
    unit: str
    values: dict[int, float]
    tried: int
    median: float | None
    lowest: float | None
    highest: float | None
    cpu_s: dict[str, float] = field(default_factory=dict)
    memory_mib: dict[str, float] = field(default_factory=dict)
    cpu_us: float | None = None
    detail: dict[str, float] = field(default_factory=dict)
    lost: int = 0
    delivered: int = 0
    errors: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Ratio:
    """How many times one row's value another's is.

    Attributes:
        of_medians: the ratio of the two medians.
        lowest, highest: of the ratios within one round, whose turns were seconds apart.
    """

    of_medians: float
    lowest: float
    highest: float


def medians_of(rounds: Iterable[Round], pick: Callable[[dict[str, Any]], Any]) -> dict[str, float]:
    """Role -> median of what ``pick`` finds, over the roles and rounds where it finds something."""
    found: dict[str, list[float]] = {}
    for played in rounds:
        for role, result in played.roles.items():
            if (value := pick(result)) is not None:
                found.setdefault(role, []).append(value)
    return {role: median(values) for role, values in found.items()}


def cpu_us_of(played: Round) -> float | None:
    """CPU microseconds that all roles of a round used for one message."""
    messages = sum(result.get("messages", 0) for result in played.roles.values())
    cpu_s = sum(result["cpu_s"] for result in played.roles.values())
    return 1e6 * cpu_s / messages if messages else None


def row_of(case: Case, rounds: Sequence[Round]) -> Row:
    """The rounds of one contender in one case over one transport, as one row."""
    good = [played for played in rounds if played.value is not None]
    values = {played.number: played.value for played in good if played.value is not None}
    details: dict[str, list[float]] = {}
    for played in good:
        for result in played.roles.values():
            for name, value in result.get("detail", {}).items():
                details.setdefault(name, []).append(value)
    per_message = [used for played in good if (used := cpu_us_of(played)) is not None]
    results = [result for played in good for result in played.roles.values()]
    return Row(
        case=case.name,
        transport=rounds[0].transport,
        lineup=rounds[0].lineup,
        unit=case.unit,
        values=values,
        tried=len(rounds),
        median=median(values.values()) if values else None,
        lowest=min(values.values(), default=None),
        highest=max(values.values(), default=None),
        cpu_s=medians_of(good, lambda result: result.get("cpu_s")),
        memory_mib=medians_of(good, lambda result: result.get("memory_mib")),
        cpu_us=median(per_message) if per_message else None,
        detail={name: median(found) for name, found in details.items()},
        lost=sum(result.get("lost", 0) for result in results),
        delivered=sum(result.get("messages", 0) for result in results),
        errors=list(dict.fromkeys(played.error for played in rounds if played.error)),
        late=list(dict.fromkeys(role for played in good for role in played.late)),
    )


def rows_of(cases: Sequence[Case], rounds: Sequence[Round]) -> list[Row]:
    """All rows, in the order of the cases, and of the contenders' first turns."""
    rows: list[Row] = []
    for case in cases:
        grouped: dict[tuple[str, str], list[Round]] = {}
        for played in rounds:
            if played.case == case.name:
                grouped.setdefault((played.transport, played.lineup), []).append(played)
        rows += [row_of(case, group) for group in grouped.values()]
    return rows


def find_row(rows: Iterable[Row], case: str, lineup: str, transport: str = "") -> Row | None:
    """The row of a contender, over any transport if none is given; None if it has no value."""
    for row in rows:
        wanted = row.case == case and row.lineup == lineup and transport in ("", row.transport)
        if wanted and row.median is not None:
            return row
    return None


def ratio(ours: Row, theirs: Row) -> Ratio:
    """Compare two rows that both have values."""
    assert ours.median is not None
    assert theirs.median is not None
    of_medians = ours.median / theirs.median
    both = ours.values.keys() & theirs.values.keys()
    paired = [ours.values[number] / theirs.values[number] for number in both] or [of_medians]
    return Ratio(of_medians, min(paired), max(paired))
