"""A run as pictures: all cases beside pyzmq, throughput over message size, a bar a contender.

matplotlib is an extra (``pip install ".[bench]"``); a run without it has its JSON and table.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.case import Case
from bench.contenders import BY_NAME, CONTENDERS, REFERENCE, Style
from bench.summary import Row, find_row, ratio

COLOURS = {"zerohop": "#d1495b", "pyzmq": "#00798c", "pyomq": "#edae49", "floor": "#8d96a3"}
OTHER = "#5c4d7d"  # pairs of two libraries
SIZED = "pushpull-"  # the cases that differ in nothing but the size


def colour(lineup: str) -> str:
    """One colour a library."""
    contender = BY_NAME.get(lineup)
    return COLOURS[contender.family] if contender else OTHER


def dashes(lineup: str) -> str:
    """Solid for blocking, dashed for asyncio, dotted for uvloop."""
    contender = BY_NAME[lineup]
    if contender.uvloop:
        return ":"
    return "-" if contender.style == "blocking" else "--"


def whiskers(row: Row, scale: float = 1.0) -> tuple[float, float]:
    """How far the lowest and the highest round are from the median."""
    assert row.median is not None
    assert row.lowest is not None
    assert row.highest is not None
    return (row.median - row.lowest) * scale, (row.highest - row.median) * scale


def in_octets(size: int) -> str:
    """``64``, ``1 Ki``, ``4 Mi``."""
    for unit, name in ((1 << 20, "Mi"), (1 << 10, "Ki")):
        if size >= unit:
            return f"{size // unit} {name}"
    return str(size)


def by_size(
    axes: Any, sizes: dict[str, int], rows: Sequence[Row], transport: str, *, octets: bool
) -> None:
    """Messages or MB a second over message size, both logarithmic; one line a contender."""
    lines: dict[str, list[Row]] = {}
    for row in rows:
        if row.transport == transport:
            lines.setdefault(row.lineup, []).append(row)
    for lineup, points in lines.items():
        if len(points) < 2:
            continue
        scales = [sizes[row.case] / 1e6 if octets else 1.0 for row in points]
        spread = [whiskers(row, scale) for row, scale in zip(points, scales, strict=True)]
        axes.errorbar(
            [sizes[row.case] for row in points],
            [(row.median or 0.0) * scale for row, scale in zip(points, scales, strict=True)],
            yerr=list(zip(*spread, strict=True)),
            label=lineup,
            color=colour(lineup),
            linestyle=dashes(lineup),
            marker="o",
            markersize=3,
            capsize=2,
        )
    unit = "MB a second" if octets else "messages a second"
    axes.set(xscale="log", yscale="log", xlabel="message, octets", ylabel=unit)
    axes.set_title(f"PUSH to PULL over {transport}")
    shown = sorted({sizes[row.case] for row in rows if row.transport == transport})
    axes.set_xticks(shown, [in_octets(size) for size in shown], fontsize="small")
    axes.set_xticks([], minor=True)
    axes.grid(visible=True, which="both", alpha=0.2)
    axes.legend(fontsize="x-small")


def bars(axes: Any, case: Case, rows: Sequence[Row]) -> None:
    """A bar a contender; its whisker goes from the lowest round to the highest."""
    rows = [row for row in rows if row.median is not None][::-1]
    axes.barh(
        [row.lineup for row in rows],
        [row.median for row in rows],
        xerr=list(zip(*map(whiskers, rows), strict=True)),
        color=[colour(row.lineup) for row in rows],
        hatch=["xx" if row.lost else "" for row in rows],
        edgecolor="white",
        linewidth=0,
        capsize=2,
    )
    better = "right" if case.higher_is_better else "left"
    lossy = " (hatched: with losses)" if any(row.lost for row in rows) else ""
    where = f" ({rows[0].transport})" if rows[0].transport else ""
    axes.set_title(f"{case.title}{where}\n{case.unit}, {better} is better{lossy}", fontsize="small")
    axes.tick_params(labelsize="x-small")
    axes.ticklabel_format(axis="x", style="plain")
    axes.locator_params(axis="x", nbins=6)


def beside_pyzmq(axes: Any, cases: Sequence[Case], rows: Sequence[Row], style: Style) -> None:
    """How many times as good as pyzmq the others are, a line a case; right is better."""
    places: list[str] = []
    others = [c for c in CONTENDERS if c.style == style and not c.uvloop]
    for case in cases:
        for transport in dict.fromkeys(row.transport for row in rows if row.case == case.name):
            theirs = find_row(rows, case.name, REFERENCE[style], transport)
            if theirs is None:
                continue
            places.append(f"{case.name} {transport}".strip())
            for contender in others:
                row = find_row(rows, case.name, contender.name, transport)
                if contender.name == REFERENCE[style] or row is None or row.lost:
                    continue
                compared = ratio(row, theirs) if case.higher_is_better else ratio(theirs, row)
                middle = compared.of_medians
                left, right = middle - compared.lowest, compared.highest - middle
                axes.errorbar(
                    [middle], [len(places) - 1],
                    xerr=[[max(0.0, left)], [max(0.0, right)]],
                    color=COLOURS[contender.family], marker="o", markersize=4, capsize=2,
                    linewidth=1, label=contender.name,
                )  # fmt: skip
    axes.axvline(1.0, color=COLOURS["pyzmq"], linewidth=1)
    axes.set(xscale="log", xlabel=f"times as good as {REFERENCE[style]} (1), right is better")
    axes.set_yticks(range(len(places)), places, fontsize="x-small")
    axes.invert_yaxis()
    axes.grid(visible=True, which="major", alpha=0.3)
    handles, labels = axes.get_legend_handles_labels()
    named = dict(zip(labels, handles, strict=True))
    if named:
        axes.legend([*named.values()], [*named], fontsize="x-small")


def draw(stem: Path, cases: Sequence[Case], rows: Sequence[Row]) -> list[Path]:
    """Write the pictures beside ``stem``; return their paths.

    Raises:
        ImportError: matplotlib is not installed.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "bench"  # the same figures give the same file
    mpl.rcParams["svg.fonttype"] = "none"  # text as text: a third of the size
    drawn: list[Path] = []

    def save(figure: Any, name: str) -> None:
        path = stem.with_name(f"{stem.name}-{name}.svg")
        figure.savefig(path, metadata={"Date": None})
        drawn.append(path)

    rows = [row for row in rows if row.median is not None]
    plain = [case for case in cases if not case.crossed]
    if compared := {row.case for row in rows if row.lineup in REFERENCE.values()}:
        among = [case for case in plain if case.name in compared]
        figure = Figure(figsize=(14, 1.5 + 0.22 * len(among)), layout="constrained")
        for place, style in enumerate(REFERENCE, 1):
            beside_pyzmq(figure.add_subplot(1, 2, place), among, rows, style)
        save(figure, "beside-pyzmq")
    sizes = {case.name: case.parameters["size"] for case in plain if case.name.startswith(SIZED)}
    sized = [row for row in rows if row.case in sizes]
    transports = list(dict.fromkeys(row.transport for row in sized))
    if len({row.case for row in sized}) > 1:
        across = len(transports)
        figure = Figure(figsize=(7 * across, 10), layout="constrained")
        for place, transport in enumerate(transports, 1):
            for below, octets in ((0, False), (across, True)):
                axes = figure.add_subplot(2, across, below + place)
                by_size(axes, sizes, sized, transport, octets=octets)
        save(figure, "throughput")
    else:
        sizes = {}  # too few for a line: a bar each
    panels = [
        (case, [row for row in rows if (row.case, row.transport) == (case.name, transport)])
        for case in cases
        if case.name not in sizes
        for transport in dict.fromkeys(row.transport for row in rows if row.case == case.name)
    ]
    if panels:
        height = (len(panels) + 1) // 2
        figure = Figure(figsize=(12, 2.2 * height), layout="constrained")
        for place, (case, mine) in enumerate(panels, 1):
            bars(figure.add_subplot(height, 2, place), case, mine)
        save(figure, "cases")
    return drawn
