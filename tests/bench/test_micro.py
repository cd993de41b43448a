"""The clocks for single layers run, and tell of everything that they promise to tell of."""

import json
import subprocess
import sys
from pathlib import Path

from bench.micro import paths

REPOSITORY = Path(__file__).parent.parent.parent


def test_every_path_is_told_of_with_both_drivers(tmp_path, capsys):
    paths.main(["--seconds", "0", "--json", str(tmp_path / "paths.json")])
    results = json.loads((tmp_path / "paths.json").read_text())["results"]
    names = [paths.ROUND_TRIP, paths.SHORT, paths.LONG, paths.SEVERAL, paths.FAN_OUT]
    assert [*results] == [f"{style} {name}" for style in ("blocking", "asyncio") for name in names]
    assert all(row["median_ns"] >= row["least_ns"] > 0 for row in results.values())
    assert all(row["calls"] > 1 for row in results.values())
    shown = capsys.readouterr().out
    assert [name for name in results if name not in shown] == []


def test_a_path_can_be_chosen_by_a_word(capsys):
    paths.main(["1 KiB", "--seconds", "0"])
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row[: len("blocking PUSH/PULL 1 KiB")].strip() for row in rows] == [
        "blocking PUSH/PULL 1 KiB",
        "asyncio PUSH/PULL 1 KiB",
    ]


def test_every_step_has_its_cost(tmp_path):
    """In a process of its own: it forks."""
    program = (
        "from bench.micro import costs; costs.STRETCHES, costs.ROUND_TRIPS = 5, 20; costs.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "--json", str(tmp_path / "costs.json")],
        capture_output=True,
        text=True,
        timeout=30,
        cwd=REPOSITORY,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads((tmp_path / "costs.json").read_text())["results"]
    assert [name for name in results if name not in done.stdout] == []
    assert len(results) == 19
    assert results["copying 1 MiB"]["least_ns"] > results["copying 64 B"]["least_ns"]
    assert results["round trip of two processes that sleep"]["median_ns"] > 1_000
