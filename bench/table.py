"""A run as a Markdown page. Pure.

First what was required, then where Zerohop is behind, then every case in full: a reader should not
have to look for the bad news.
"""

from collections.abc import Sequence
from typing import Any

from bench.case import Case
from bench.contenders import BY_NAME, REFERENCE
from bench.required import Verdict
from bench.summary import Row, find_row, ratio


def number(value: float | None) -> str:
    """Three significant digits, or whole thousands with separators; a dash for nothing."""
    if value is None:
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def span(lowest: float | None, highest: float | None) -> str:
    """From the lowest to the highest; a dash for nothing."""
    return "-" if lowest is None else f"{number(lowest)} - {number(highest)}"


def line(cells: Sequence[str]) -> str:
    """One line of a table."""
    return "| " + " | ".join(cells) + " |"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table whose first column is text and whose others are numbers."""
    rule = line([":--", *["--:"] * (len(head) - 1)])
    return [line(head), rule, *map(line, rows), ""]


def reference_row(row: Row, rows: Sequence[Row]) -> Row | None:
    """The row of pyzmq in the same style, case and transport; None for a pair of two libraries."""
    contender = BY_NAME.get(row.lineup)
    if contender is None:
        return None
    return find_row(rows, row.case, REFERENCE[contender.style], row.transport)


def case_section(case: Case, transport: str, rows: Sequence[Row]) -> list[str]:
    """One case over one transport."""
    details = list(dict.fromkeys(name for row in rows for name in row.detail))
    roles = list(dict.fromkeys(role for row in rows for role in row.cpu_s))
    per_message = any(row.cpu_us is not None for row in rows)
    lossy = any(row.lost for row in rows)
    head = ["contender", case.unit, "lowest - highest", "x pyzmq", *details]
    head += ["CPU µs a message"] if per_message else []
    head += [f"CPU s, {role}" for role in roles]
    head += [f"MiB, {role}" for role in roles if any(role in row.memory_mib for row in rows)]
    head += ["lost"] if lossy else []
    head += ["rounds"]
    lines = []
    for row in rows:
        theirs = reference_row(row, rows)
        comparable = theirs and row.median is not None and not row.lost
        compared = ratio(row, theirs).of_medians if theirs and comparable else None
        cells = [row.lineup, number(row.median)]
        cells += [span(row.lowest, row.highest)]
        cells += [number(compared), *(number(row.detail.get(name)) for name in details)]
        cells += [number(row.cpu_us)] if per_message else []
        cells += [number(row.cpu_s.get(role)) for role in roles]
        cells += [number(row.memory_mib.get(role)) for role in roles if f"MiB, {role}" in head]
        cells += [share(row.lost, row.lost + row.delivered)] if lossy else []
        cells += [f"{len(row.values)}/{row.tried}"]
        lines.append(cells)
    where = f" ({transport})" if transport else ""
    better = "higher" if case.higher_is_better else "lower"
    heading = f"### {case.title}{where}"
    return [
        heading,
        "",
        f"`{case.name}`, {better} is better.",
        "",
        *table(head, lines),
        *notes(rows),
    ]


def share(part: int, whole: int) -> str:
    """A part in percent."""
    return f"{100 * part / whole:.1f} %" if part else "0"


def notes(rows: Sequence[Row]) -> list[str]:
    """What a number cannot say: failures, and processes that had to be ended."""
    said = []
    for row in rows:
        failed = row.tried - len(row.values)
        if row.errors:
            said.append(f"* {row.lineup}: {failed} of {row.tried} failed: {'; '.join(row.errors)}")
        if row.lost:
            said.append(f"* {row.lineup}: its publisher dropped; its rate is not comparable")
        if row.late:
            said.append(f"* {row.lineup}: did not end by itself: {', '.join(row.late)}")
    return [*said, ""] if said else []


def required_section(verdicts: Sequence[Verdict]) -> list[str]:
    """The required figures."""
    words = {True: "yes", False: "**no**", None: "not measured"}
    lines = [
        [
            verdict.title,
            verdict.must,
            number(verdict.measured),
            span(verdict.lowest, verdict.highest),
            words[verdict.reached],
        ]
        for verdict in verdicts
    ]
    head = ["figure", "must", "measured", "over the rounds", "reached"]
    return ["## Required", "", *table(head, lines)] if lines else []


def rivals(ours: Row, rows: Sequence[Row]) -> list[Row]:
    """Other libraries' rows in the same case, transport, style and loop; without losses."""
    mine = BY_NAME[ours.lineup]
    found = []
    for row in rows:
        other = BY_NAME.get(row.lineup)
        if other is None or other.family in ("zerohop", "floor"):
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
            if ours.case != case.name or contender is None or contender.family != "zerohop":
                continue
            where = f"{case.title}{f' ({ours.transport})' if ours.transport else ''}"
            if len(ours.values) < ours.tried:
                said.append(
                    f"* {where}: {ours.lineup} failed {ours.tried - len(ours.values)} times"
                )
            if ours.lost:
                said.append(f"* {where}: {ours.lineup} lost {ours.lost:,} messages")
            for theirs in rivals(ours, rows) if ours.median is not None else []:
                times = ratio(theirs, ours).of_medians
                if times != 1 and (times > 1) == case.higher_is_better:
                    said.append(f"* {where}: {theirs.lineup} is at {times:.2f} x {ours.lineup}")
    heading = ["## Where Zerohop is behind", ""]
    return [*heading, *(said or ["Nowhere among the cases of this run."]), ""]


def page(
    about: dict[str, Any],
    cases: Sequence[Case],
    rows: Sequence[Row],
    verdicts: Sequence[Verdict],
    pictures: Sequence[str] = (),
) -> str:
    """The whole page; ``about`` is the head of the JSON document."""
    machine, settings = about["machine"], about["settings"]
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    lines = [
        f"# Benchmark: {about['name']}, {about['date']}",
        "",
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB; "
        f"{machine['system']}; {machine['python']}; commit {machine['commit'] or 'unknown'}; "
        f"load {machine['load_before']} before, {machine['load_after']} after.",
        "",
        f"{versions or 'No library was installed'}. Loop: {machine['loop']}.",
        "",
        f"{settings['rounds']} round(s) of {settings['measure_s']:g} s after "
        f"{settings['warm_up_s']:g} s of warm-up, contenders taking turns, fresh processes each "
        "time, no pinning; the figures are medians. All contenders with their defaults: high-water "
        "marks of 1000, copying sends and receives. Every message is compared with the one due.",
        "",
        *(f"* skipped: {name}: {reason}" for name, reason in about["skipped"].items()),
        *([""] if about["skipped"] else []),
        *required_section(verdicts),
        *(behind(cases, rows) if any(row.lineup.startswith("zerohop") for row in rows) else []),
        *(f"![{picture}]({picture})\n" for picture in pictures),
        "## Cases",
        "",
    ]
    for case in cases:
        mine = [row for row in rows if row.case == case.name]
        for transport in dict.fromkeys(row.transport for row in mine):
            lines += case_section(case, transport, [r for r in mine if r.transport == transport])
    return "\n".join(lines).rstrip() + "\n"
