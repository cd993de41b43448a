"""Where Zerohop stands: what was required, where others are ahead, what a message costs. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bench.case import Case
from bench.contenders import BY_NAME, CONTENDERS, Contender
from bench.markdown import number, span, table
from bench.required import Measured, Verdict
from bench.summary import CPU, Ratio, Row, find_row, ratio

OURS = "zerohop"
REACHED = {True: "yes", False: "**no**", None: "not measured"}


def required_section(verdicts: Sequence[Verdict]) -> list[str]:
    """The required figures, and the aims beside them."""
    if not verdicts:
        return []
    lines = []
    for verdict in verdicts:
        must = verdict.must
        aims = "; ".join(map(aim, verdict.aims))
        if must is None:
            lines.append([verdict.title, "-", "-", "-", "-", aims])
            continue
        measured, spread = number(must.value), span(must.lowest, must.highest)
        reached = REACHED[must.reached]
        lines.append([verdict.title, must.goal, measured, spread, reached, aims])
    head = ["figure", "must", "measured", "over the rounds", "reached", "aim: measured, reached"]
    required = [verdict.must for verdict in verdicts if verdict.must]
    missed = sum(must.reached is False for must in required)
    unmeasured = sum(must.reached is None for must in required)
    summary = f"Of {len(required)} figures {missed} not reached, {unmeasured} not measured."
    return ["## Required", "", *table(head, lines), summary, ""]


def aim(measured: Measured) -> str:
    """An aim in one cell."""
    if measured.value is None:
        return f"{measured.goal}: not measured"
    return f"{measured.goal}: {number(measured.value)}, {'yes' if measured.reached else 'no'}"


def rivals(ours: Row, rows: Sequence[Row]) -> list[Row]:
    """Other libraries' rows in the same case, transport, style and loop; without losses."""
    mine = BY_NAME[ours.lineup]
    found = []
    for row in rows:
        other = BY_NAME.get(row.lineup)
        if other is None or other.family in (OURS, "floor"):
            continue
        place = (row.case, row.transport, other.style, other.uvloop)
        if place == (ours.case, ours.transport, mine.style, mine.uvloop):
            found.append(row)
    return [row for row in found if row.median is not None and not row.lost]


@dataclass(frozen=True)
class Loss:
    """A figure in which a rival is ahead of ours.

    Attributes:
        figure: the case's detail that is meant; its value, if empty.
        times: how many times theirs ours is at, as the figures are.
    """

    case: Case
    ours: Row
    theirs: Row
    figure: str
    times: Ratio

    @property
    def where(self) -> str:
        """The case, over what, and which of its figures."""
        over = f" ({self.ours.transport})" if self.ours.transport else ""
        return f"{self.case.title}{over}{f', {self.figure}' if self.figure else ''}"

    @property
    def factor(self) -> float:
        """How many times better theirs is."""
        return max(self.times.of_medians, 1 / self.times.of_medians)


def our_rows(cases: Sequence[Case], rows: Sequence[Row]) -> Iterator[tuple[Case, Row]]:
    """Rows of ours, in the order of the cases; without those that pair two libraries."""
    for case in cases:
        for row in rows:
            contender = BY_NAME.get(row.lineup)
            if row.case == case.name and contender and contender.family == OURS:
                yield case, row


def losses(cases: Sequence[Case], rows: Sequence[Row]) -> Iterator[Loss]:
    """Everything in which another library is ahead of Zerohop, called in the same way."""
    for case, ours in our_rows(cases, rows):
        for theirs in rivals(ours, rows):
            for figure in ("", *case.compared):
                if not (ours.figures(figure) and theirs.figures(figure)):
                    continue
                times = ratio(theirs, ours, figure)
                higher_is_better = case.higher_is_better and not figure
                if times.of_medians != 1 and (times.of_medians > 1) == higher_is_better:
                    yield Loss(case, ours, theirs, figure, times)


def behind(cases: Sequence[Case], rows: Sequence[Row]) -> list[str]:
    """Where we failed, where we lost messages, and where another library is ahead of Zerohop."""
    said = []
    for case, ours in our_rows(cases, rows):
        where = f"{case.title}{f' ({ours.transport})' if ours.transport else ''}"
        if len(ours.values) < ours.tried:
            said.append(f"* {where}: {ours.lineup} failed {ours.tried - len(ours.values)} times")
        if ours.lost:
            said.append(f"* {where}: {ours.lineup} lost {ours.lost:,} messages")
    said += [
        f"* {loss.where}: {loss.theirs.lineup} is at {loss.times.of_medians:.2f} x "
        f"{loss.ours.lineup} ({loss.times.lowest:.2f} - {loss.times.highest:.2f})"
        for loss in losses(cases, rows)
    ]
    heading = ["## Where Zerohop is behind", ""]
    return [*heading, *(said or ["Nowhere among the cases of this run."]), ""]


def processor_section(cases: Sequence[Case], rows: Sequence[Row]) -> list[str]:
    """CPU seconds of both processes for a million delivered messages, beside pyzmq's."""
    lines = []
    for case in cases:
        for transport in dict.fromkeys(row.transport for row in rows if row.case == case.name):
            mine = [row for row in rows if (row.case, row.transport) == (case.name, transport)]
            for contender in CONTENDERS:
                if contender.family == OURS and not case.crossed:
                    lines += processor_line(case, transport, contender, mine)
    if not lines:
        return []
    head = ["case", OURS, "pyzmq", "pyomq", "floor", "zerohop / pyzmq", "over the rounds"]
    return [
        "## Processor time",
        "",
        "CPU seconds of all processes and threads for a million delivered messages (round trips, "
        "connections); a dash where nothing was measured or messages were lost.",
        "",
        *table(head, lines),
    ]


def processor_line(
    case: Case, transport: str, ours: Contender, rows: Sequence[Row]
) -> list[list[str]]:
    """One line of the table: the contenders of one style and loop; none if ours was not there."""

    def row_of(family: str) -> Row | None:
        for other in CONTENDERS:
            if (other.family, other.style, other.uvloop) == (family, ours.style, ours.uvloop):
                row = find_row(rows, case.name, other.name, transport, CPU)
                return row if row and not row.lost else None
        return None

    mine = row_of(OURS)
    if mine is None:
        return []
    theirs = row_of("pyzmq")
    others = [theirs, row_of("pyomq"), row_of("floor")]
    style = f"{ours.style}{', uvloop' if ours.uvloop else ''}"
    where = f"{transport}, " if transport else ""
    cells = [f"`{case.name}` {where}{style}", number(mine.cpu_us)]
    cells += [number(row.cpu_us if row else None) for row in others]
    if theirs is None:
        return [[*cells, "-", "-"]]
    compared = ratio(mine, theirs, CPU)
    return [[*cells, number(compared.of_medians), span(compared.lowest, compared.highest)]]
