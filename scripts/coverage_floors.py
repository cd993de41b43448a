"""Compare the measured branch coverage, layer by layer, with the floors it must not fall below.

Pure layers have every branch tested: there is nothing in them that a test cannot reach. Drivers
have branches for what an operating system rarely does; demanding all of them invites tests of
nothing. Run by `make cover` after the tests; reads the data that they left.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import coverage

PURE = 100.0
DRIVER = 95.0
FLOORS = {
    "constants": PURE,
    "errors": PURE,
    "wire": PURE,
    "mechanisms": PURE,
    "patterns": PURE,
    "core": PURE,
}
PACKAGE = "zerohop"


def main() -> int:
    """Print a line for each layer, and the lines missed in the layers that are too low."""
    by_layer: dict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for path, measured in sorted(_measure().items()):
        inside = Path(path).parts[Path(path).parts.index(PACKAGE) + 1 :]
        by_layer[inside[0].removesuffix(".py")].append((path, measured))
    too_low = [layer for layer, files in by_layer.items() if not _report(layer, files)]
    if too_low:
        print(f"\ncoverage is below the floor in: {', '.join(too_low)}", file=sys.stderr)
    return 1 if too_low else 0


def _measure() -> dict[str, dict[str, Any]]:
    recorder = coverage.Coverage()
    recorder.load()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "coverage.json"
        recorder.json_report(outfile=str(report))
        files: dict[str, dict[str, Any]] = json.loads(report.read_text())["files"]
    return files


def _report(layer: str, files: list[tuple[str, dict[str, Any]]]) -> bool:
    """Print one layer; return whether it reaches its floor."""
    summaries = [measured["summary"] for _, measured in files]
    wanted = sum(s["num_statements"] + s["num_branches"] for s in summaries)
    covered = sum(s["covered_lines"] + s["covered_branches"] for s in summaries)
    percent = 100.0 * covered / wanted if wanted else 100.0
    floor = FLOORS.get(layer, DRIVER)
    reached = percent >= floor
    print(f"{layer:<12} {percent:6.2f} %   floor {floor:.0f} %{'' if reached else '   TOO LOW'}")
    for path, measured in files:
        lines, branches = measured["missing_lines"], measured["missing_branches"]
        if lines or branches:
            print(f"    {path}: lines {lines}, branches {branches}")
    return reached


if __name__ == "__main__":
    sys.exit(main())
