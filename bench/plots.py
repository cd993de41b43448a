"""A run as pictures: throughput over message size, and a bar a contender for each case.

matplotlib is an extra (``pip install zerohop[bench]``); a run without it has its JSON and table.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.case import Case
from bench.contenders import BY_NAME
from bench.summary import Row

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


def whiskers(row: Row) -> tuple[float, float]:
    """How far the lowest and the highest round are from the median."""
    assert row.median is not None
    assert row.lowest is not None
    assert row.highest is not None
    return row.median - row.lowest, row.highest - row.median


def by_size(axes: Any, sizes: dict[str, int], rows: Sequence[Row], transport: str) -> None:
    """Messages a second over message size, both logarithmic; one line a contender."""
    lines: dict[str, list[Row]] = {}
    for row in rows:
        if row.transport == transport:
            lines.setdefault(row.lineup, []).append(row)
    for lineup, points in lines.items():
        if len(points) < 2:
            continue
        axes.errorbar(
            [sizes[row.case] for row in points],
            [row.median for row in points],
            yerr=list(zip(*map(whiskers, points), strict=True)),
            label=lineup,
            color=colour(lineup),
            linestyle=dashes(lineup),
            marker="o",
            markersize=3,
            capsize=2,
        )
    axes.set(xscale="log", yscale="log", xlabel="message, octets", ylabel="messages a second")
    axes.set_title(f"PUSH to PULL over {transport}")
    shown = sorted({sizes[row.case] for row in rows})
    axes.set_xticks(shown, [str(size) if size < 1024 else f"{size >> 10} Ki" for size in shown])
    axes.set_xticks([], minor=True)
    axes.grid(visible=True, which="both", alpha=0.2)
    axes.legend(fontsize="x-small")


def bars(axes: Any, case: Case, rows: Sequence[Row]) -> None:
    """A bar a contender; its whisker goes from the lowest round to the highest."""
    rows = [row for row in rows if row.median is not None][::-1]
    axes.barh(
        [
            f"{row.lineup} ({row.transport})" if row.transport == "ipc" else row.lineup
            for row in rows
        ],
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
    axes.set_title(f"{case.title}\n{case.unit}, {better} is better{lossy}", fontsize="small")
    axes.tick_params(labelsize="x-small")


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

    sizes = {case.name: case.parameters["size"] for case in cases if case.name.startswith(SIZED)}
    sized = [row for row in rows if row.case in sizes and row.median is not None]
    transports = list(dict.fromkeys(row.transport for row in sized))
    if len({row.case for row in sized}) > 1:
        figure = Figure(figsize=(7 * len(transports), 5), layout="constrained")
        for place, transport in enumerate(transports, 1):
            by_size(figure.add_subplot(1, len(transports), place), sizes, sized, transport)
        save(figure, "throughput")
    measured = {row.case for row in rows if row.median is not None}
    drawable = [case for case in cases if case.name in measured]
    if drawable:
        height = (len(drawable) + 1) // 2
        figure = Figure(figsize=(12, 2.6 * height), layout="constrained")
        for place, case in enumerate(drawable, 1):
            mine = [row for row in rows if row.case == case.name]
            bars(figure.add_subplot(height, 2, place), case, mine)
        save(figure, "cases")
    return drawn
