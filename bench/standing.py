"""Where Zerohop stands: what was required, where others are ahead, what a message costs. Pure."""

from collections.abc import Sequence

from bench.case import Case
from bench.contenders import BY_NAME, CONTENDERS, Contender
from bench.markdown import number, span, table
from bench.required import Measured, Verdict
from bench.summary import CPU, Row, find_row, ratio

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


def behind(cases: Sequence[Case], rows: Sequence[Row]) -> list[str]:
    """Where another library is ahead of Zerohop, where we failed, and where we lost messages."""
    said = []
    for case in cases:
        for ours in rows:
            contender = BY_NAME.get(ours.lineup)
            if ours.case != case.name or contender is None or contender.family != OURS:
                continue
            where = f"{case.title}{f' ({ours.transport})' if ours.transport else ''}"
            if len(ours.values) < ours.tried:
                said.append(
                    f"* {where}: {ours.lineup} failed {ours.tried - len(ours.values)} times"
                )
            if ours.lost:
                said.append(f"* {where}: {ours.lineup} lost {ours.lost:,} messages")
            for theirs in rivals(ours, rows):
                said += ahead(case, where, ours, theirs)
    heading = ["## Where Zerohop is behind", ""]
    return [*heading, *(said or ["Nowhere among the cases of this run."]), ""]


def ahead(case: Case, where: str, ours: Row, theirs: Row) -> list[str]:
    """The figures in which a rival is ahead of ours, with the spread of the ratio."""
    said = []
    for figure in ("", *case.compared):
        if not (ours.figures(figure) and theirs.figures(figure)):
            continue
        times = ratio(theirs, ours, figure)
        higher_is_better = case.higher_is_better and not figure
        if times.of_medians != 1 and (times.of_medians > 1) == higher_is_better:
            said.append(
                f"* {where}{f', {figure}' if figure else ''}: {theirs.lineup} is at "
                f"{times.of_medians:.2f} x {ours.lineup} ({times.lowest:.2f} - {times.highest:.2f})"
            )
    return said


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
