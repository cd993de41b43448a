"""A run as a Markdown page. Pure.

First what was required, then where Zerohop is behind, then what a message costs, then every case in
full: a reader should not have to look for the bad news.
"""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from bench.busy import DISTURBED
from bench.case import Case
from bench.contenders import BY_NAME, REFERENCE
from bench.markdown import number, span, table
from bench.plan import duration
from bench.required import Verdict
from bench.standing import behind, processor_section, required_section
from bench.summary import CPU, Row, find_row, ratio


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
    head += [CPU] if per_message else []
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
        busy = f", {row.busy} busy" if row.busy else ""
        cells += [f"{len(row.values)}/{row.tried}{busy}"]
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
            said.append(f"* {row.lineup}: it lost messages; its figure is not comparable")
        if row.late:
            said.append(f"* {row.lineup}: did not end by itself: {', '.join(row.late)}")
    return [*said, ""] if said else []


def taken(about: dict[str, Any]) -> list[str]:
    """How long the run took, and how much of that time the machine had other work."""
    longest, seconds = max(about["entries"].items(), key=itemgetter(1), default=("", 0.0))
    said = f"{about['rounds']} rounds in {duration(about['seconds'])}"
    said += f", the longest case {longest} in {duration(seconds)}." if longest else "."
    if about["busy"]:
        said += (
            f" In {about['busy']} of them other programs, or other guests of the host, took more "
            f"than {DISTURBED:.0%} of the cores' time: such rounds count like the others, and each "
            "row says how many it had."
        )
    return [said, ""]


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
        f"{machine['cpu']}, {machine['cores']} cores{' (virtual)' if machine['virtual'] else ''}, "
        f"{machine['memory_gib']} GiB; "
        f"{machine['system']}; {machine['python']}; commit {machine['commit'] or 'unknown'}; "
        f"load {machine['load_before']} before, {machine['load_after']} after.",
        "",
        f"{versions or 'No library was installed'}. Loop: {machine['loop']}.",
        "",
        f"{settings['rounds']} round(s) of {settings['measure_s']:g} s after "
        f"{settings['warm_up_s']:g} s of warm-up, contenders taking turns, fresh processes each "
        "time, no pinning; the figures are medians. All contenders with their defaults: high-water "
        "marks of 1000, copying sends and receives; what a case sets instead, it sets for all. "
        "Every message is compared with the one due.",
        "",
        *taken(about["taken"]),
        *(f"* skipped: {name}: {reason}" for name, reason in about["skipped"].items()),
        *([""] if about["skipped"] else []),
        *required_section(verdicts),
        *(behind(cases, rows) if any(row.lineup.startswith("zerohop") for row in rows) else []),
        *processor_section(cases, rows),
        *(f"![{picture}]({picture})\n" for picture in pictures),
        "## Cases",
        "",
    ]
    for case in cases:
        mine = [row for row in rows if row.case == case.name]
        for transport in dict.fromkeys(row.transport for row in mine):
            lines += case_section(case, transport, [r for r in mine if r.transport == transport])
    return "\n".join(lines).rstrip() + "\n"
