"""The figures that stand in the README and on the page on benchmarks, from a result's JSON. Pure.

Each of the two has a block between two marks; the first mark names the result, and what is between
them is made from it. ``scripts/bench_pages.py`` writes the blocks, and a test holds the pages to
the results that they name.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bench.case import Case
from bench.cases import all_cases
from bench.contenders import REFERENCE, Style
from bench.markdown import number, table
from bench.required import Verdict, verdicts
from bench.rounds import Round
from bench.standing import Loss, losses
from bench.summary import Row, find_row, rows_of

BLOCK = re.compile(
    r"(?P<begin><!-- figures: (?P<result>\S+), by scripts/bench_pages\.py -->\n)"
    r"(?P<body>.*?)"
    r"(?P<end><!-- end of the figures -->\n)",
    re.DOTALL,
)
AHEAD = 1.1  # times: what a rival must be at to stand in the README; the page has everything
MOST = 6  # lines of that in the README

# What the README shows of a run: a name, the case, its transport and style.
SHOWN: tuple[tuple[str, str, str, Style], ...] = (
    ("PUSH/PULL, asyncio, msg/s", "pushpull-64", "tcp", "asyncio"),
    ("PUSH/PULL, blocking, msg/s", "pushpull-64", "tcp", "blocking"),
    ("PUSH/PULL of 256 KiB, blocking, msg/s", "pushpull-256k", "tcp", "blocking"),
    ("REQ/REP round trip, asyncio, µs", "reqrep-64", "tcp", "asyncio"),
    ("REQ/REP round trip, blocking, µs", "reqrep-64", "tcp", "blocking"),
    ("PUB to eight SUBs, asyncio, delivered/s", "pubsub-8", "tcp", "asyncio"),
    ("PUB to eight SUBs, blocking, delivered/s", "pubsub-8", "tcp", "blocking"),
    ("a 1 ms ticker beside a flooded asyncio socket, ticks/s", "ticker", "tcp", "asyncio"),
    ("1,000 connections, blocking, ms", "connections", "tcp", "blocking"),
    ("import, ms", "import", "", "blocking"),
)
OTHERS: dict[Style, tuple[str, str, str]] = {
    style: ("zerohop" + suffix, theirs, "pyomq" + suffix)
    for (style, theirs), suffix in zip(REFERENCE.items(), ("", ".asyncio"), strict=True)
}


@dataclass(frozen=True)
class Run:
    """A result: its document, and the rows of the cases that there are today."""

    document: Mapping[str, Any]
    cases: list[Case]
    rows: list[Row]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> "Run":
        """Make the rows anew from the rounds."""
        cases = list(all_cases().values())
        rounds = [Round(**played) for played in document["rounds"]]
        return cls(document, cases, rows_of(cases, rounds))

    @property
    def made(self) -> str:
        """When, on what, with which versions."""
        about, machine = self.document, self.document["machine"]
        versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
        return (
            f"{about['settings']['rounds']} rounds on {about['date']}, {machine['cpu']}, "
            f"{machine['cores']} cores, {machine['python']}; {versions}"
        )


def rewritten(page: str, block: Callable[[Run], str], run: Run, result: str) -> str:
    """The page with its block made from this run.

    Raises:
        ValueError: the page has not exactly one block.
    """
    if len(BLOCK.findall(page)) != 1:
        raise ValueError("the page must have one block of figures, between its two marks")

    def replace(found: re.Match[str]) -> str:
        begin = found["begin"].replace(found["result"], result)
        return f"{begin}\n{block(run).strip()}\n\n{found['end']}"

    return BLOCK.sub(replace, page)


def readme_block(run: Run) -> str:
    """The table of the README, and where we lose."""
    lost = sorted(worst(losses(run.cases, run.rows)), key=lambda loss: -loss.factor)
    lines = [
        f"Medians of {run.made}. Messages of 64 B over tcp on the loopback, unless it says "
        "otherwise; the best in bold:",
        "",
        *table(["", "zerohop", "pyzmq", "pyomq"], list(shown(run.rows))),
        "**Where we lose**, in the same run, by a tenth or more:",
        "",
        *table(["", "ours", "theirs", "times"], [line(loss) for loss in lost[:MOST]]),
    ]
    if len(lost) > MOST:
        rest = len(lost) - MOST
        lines += [
            f"And in {rest} more figures by less than {number(lost[MOST - 1].factor)} times; "
            "[benchmarks](docs/explanation/benchmarks.md#latest-results) has them all."
        ]
    return "\n".join(lines)


def benchmarks_block(run: Run) -> str:
    """What was not reached, and everything in which another library is ahead."""
    judged = verdicts(run.rows)
    measured = sum(
        verdict.must is not None and verdict.must.value is not None for verdict in judged
    )
    missed = list(filter(None, map(unreached, judged)))
    lines = [
        f"{run.made}; commit {run.document['machine']['commit']}.",
        "",
        f"{measured - len(missed)} of {measured} required figures were reached"
        + (". Not reached:" if missed else "."),
        "",
        *missed,
        *([""] if missed else []),
        "Where another library is ahead, whatever by, called in the same way; a detail of a case "
        "is named behind it:",
        "",
        *table(
            ["", "ours", "theirs", "times"], [line(each) for each in losses(run.cases, run.rows)]
        ),
    ]
    return "\n".join(lines)


def figure(value: float | None) -> str:
    """Three significant digits, which is more than such a figure has; a dash for nothing."""
    return number(value if value is None else float(f"{value:.3g}"))


def shown(rows: list[Row]) -> Iterable[list[str]]:
    """The lines of the README's table whose case was played."""
    for name, case, transport, style in SHOWN:
        found = [find_row(rows, case, contender, transport) for contender in OTHERS[style]]
        medians = [row.median if row and not row.lost else None for row in found]
        if medians[0] is None:
            continue
        measured = [median for median in medians if median is not None]
        best = max(measured) if all_cases()[case].higher_is_better else min(measured)
        yield [name, *(f"**{figure(m)}**" if m == best else figure(m) for m in medians)]


def worst(found: Iterable[Loss]) -> list[Loss]:
    """The losses by so much or more, each case once: to the rival that is furthest ahead."""
    by_figure: dict[tuple[str, str, str, str], Loss] = {}
    for loss in found:
        key = loss.case.name, loss.ours.transport, loss.ours.lineup, loss.figure
        if loss.factor >= AHEAD and (key not in by_figure or loss.factor > by_figure[key].factor):
            by_figure[key] = loss
    return list(by_figure.values())


def line(loss: Loss) -> list[str]:
    """One loss as a line of a table."""
    unit = "" if loss.figure else f", {loss.case.unit}"
    ours, theirs = (
        f"{row.lineup} {figure(row.detail[loss.figure] if loss.figure else row.median)}"
        for row in (loss.ours, loss.theirs)
    )
    return [f"{loss.where}{unit}", ours, theirs, f"{loss.factor:.2f}"]


def unreached(verdict: Verdict) -> str:
    """What a figure is short of; empty where it is not."""
    must = verdict.must
    if must is None or must.reached is not False:
        return ""
    return f"* {verdict.title}: {number(must.value)} where {must.goal} is asked"
