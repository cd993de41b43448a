"""Print the interop matrix of the last test run into docs/interop.md.

``pytest tests/interop`` leaves its results in pytest's cache; this script turns them into tables
between two marks of the page. If a cell is red or was not run it fails and writes nothing: a table
that stands in the documentation is a whole one.

    python -m pytest tests/interop && python scripts/interop_table.py
"""

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / ".pytest_cache" / "v" / "interop" / "results"
PAGE = ROOT / "docs" / "interop.md"
BEGIN, END = "<!-- table: scripts/interop_table.py -->", "<!-- end of the table -->"

DRIVERS = ("asyncio", "uvloop", "blocking")
TRANSPORTS = ("tcp", "ipc")
BINDERS = ("ours", "theirs")
GREEN, RED, MISSING = "✓", "✗", "not run"


def main() -> int:
    """Rewrite the page's table; return 1 and leave it alone if a cell is not green."""
    if not RESULTS.exists():
        print(f"no results in {RESULTS}; run: python -m pytest tests/interop", file=sys.stderr)
        return 1
    run = json.loads(RESULTS.read_text())
    if bad := bad_cells(run):
        for cell in bad[:20]:
            print(f"not green: {cell}", file=sys.stderr)
        print(f"{len(bad)} of {len(expected(run))} cells are not green", file=sys.stderr)
        return 1
    tables = [table(run, transport) for transport in TRANSPORTS]
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    parts = [before.rstrip(), "", BEGIN, "", summary(run), "", *tables, END]
    PAGE.write_text("\n".join(parts) + after)
    print(f"{len(expected(run))} cells green; wrote {PAGE}")
    return 0


def expected(run: dict[str, Any]) -> list[str]:
    """Return the key of every cell that a whole run has."""
    return [
        f"{driver}|{transport}|{pair}|{binder}"
        for driver in DRIVERS
        for transport in TRANSPORTS
        for pair in run["pairs"]
        for binder in BINDERS
    ]


def bad_cells(run: dict[str, Any]) -> list[str]:
    """Return the keys of the cells that failed or were not run."""
    return [key for key in expected(run) if not run["cells"].get(key)]


def summary(run: dict[str, Any]) -> str:
    """Return the line that says which versions met, and when."""
    versions = run["versions"]
    green = len(expected(run)) - len(bad_cells(run))
    return (
        f"**{green} of {len(expected(run))} cells green** on {run['date']}: "
        f"zerohop {versions['zerohop']} and libzmq {versions['libzmq']} "
        f"(pyzmq {versions['pyzmq']}), CPython {versions['python']}, {versions['platform']}."
    )


def table(run: dict[str, Any], transport: str) -> str:
    """Return the table of one transport: a row for two types, a column for driver and binder."""
    columns = [(driver, binder) for driver in DRIVERS for binder in BINDERS]
    head = " | ".join(f"{driver}, {_binds(binder)}" for driver, binder in columns)
    lines = [
        f"### {transport}",
        "",
        f"| zerohop - libzmq | {head} |",
        "|---|" + ":-:|" * len(columns),
    ]
    for pair in run["pairs"]:
        marks = " | ".join(
            _mark(run["cells"].get(f"{driver}|{transport}|{pair}|{binder}"))
            for driver, binder in columns
        )
        lines.append(f"| {pair} | {marks} |")
    return "\n".join([*lines, ""])


def _binds(binder: str) -> str:
    return "zerohop binds" if binder == "ours" else "libzmq binds"


def _mark(passed: bool | None) -> str:
    if passed is None:
        return MISSING
    return GREEN if passed else RED


if __name__ == "__main__":
    sys.exit(main())
