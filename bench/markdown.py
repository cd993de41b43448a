"""Numbers and tables as Markdown. Pure."""

from collections.abc import Sequence


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
