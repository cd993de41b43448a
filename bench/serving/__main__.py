"""``python -m bench.serving PART [--quick] [--json FILE]``: measure a part, print its figures."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from bench import machine
from bench.document import as_json

PARTS = ("kv", "engine")


def main(arguments: list[str]) -> int:
    """Return 1 if a figure is not what it has to be."""
    parser = argparse.ArgumentParser(prog="python -m bench.serving")
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--quick", action="store_true", help="to see that it runs: no figures")
    parser.add_argument("--json", type=Path, help="where to keep the figures")
    options = parser.parse_args(arguments)
    about = machine.describe() | {"date": datetime.now(UTC).date().isoformat()}
    rows = import_module(f"bench.serving.{options.part}").run(options.quick)
    for row in rows:
        print(" ".join(f"{name}={value}" for name, value in row.items()))
    if options.json is not None:
        about["load_after"] = machine.load()
        options.json.write_text(as_json({"about": about, "results": rows}))
    return any(row.get("met") is False for row in rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
