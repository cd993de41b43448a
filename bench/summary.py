"""Rounds to rows: medians, spread, and how one contender compares with another. Pure."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from bench.busy import disturbed
from bench.case import Case
from bench.rounds import Round

CPU = "CPU µs a message"  # of all processes of a round; the CPU seconds of a million messages, too


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
        busy: rounds in which the machine had much else to do.
        series: name of a detail or ``CPU`` -> round number -> its value there.
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
    busy: int = 0
    series: dict[str, dict[int, float]] = field(default_factory=dict)

    def figures(self, name: str = "") -> dict[int, float]:
        """Round number -> the row's value, or a detail, or ``CPU``; empty if it has none."""
        return self.series.get(name, {}) if name else self.values


@dataclass(frozen=True)
class Ratio:
    """How many times one row's figure another's is.

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
    series: dict[str, dict[int, float]] = {}
    for played in good:
        if (used := cpu_us_of(played)) is not None:
            series.setdefault(CPU, {})[played.number] = used
        for result in played.roles.values():
            for name, value in result.get("detail", {}).items():
                series.setdefault(name, {})[played.number] = value
    medians = {name: median(found.values()) for name, found in series.items()}
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
        cpu_us=medians.pop(CPU, None),
        detail=medians,
        lost=sum(result.get("lost", 0) for result in results),
        delivered=sum(result.get("messages", 0) for result in results),
        errors=list(dict.fromkeys(played.error for played in rounds if played.error)),
        late=list(dict.fromkeys(role for played in good for role in played.late)),
        busy=sum(disturbed(played.busy) for played in rounds),
        series=series,
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


def find_row(
    rows: Iterable[Row], case: str, lineup: str, transport: str = "", figure: str = ""
) -> Row | None:
    """A contender's row in a case, over any transport if none is given; None without the figure."""
    for row in rows:
        wanted = row.case == case and row.lineup == lineup and transport in ("", row.transport)
        if wanted and row.figures(figure):
            return row
    return None


def ratio(ours: Row, theirs: Row, figure: str = "") -> Ratio:
    """Compare a figure that both rows have: the values, a detail, or ``CPU``."""
    mine, others = ours.figures(figure), theirs.figures(figure)
    of_medians = quotient(median(mine.values()), median(others.values()))
    both = mine.keys() & others.keys()
    paired = [quotient(mine[number], others[number]) for number in both] or [of_medians]
    return Ratio(of_medians, min(paired), max(paired))


def quotient(mine: float, other: float) -> float:
    """A ratio; infinite where the other is nought, as a detail may be."""
    if other:
        return mine / other
    return math.inf if mine else 1.0
