"""The program that measures the engine channel runs, compares what came, and keeps its figures."""

import json
import subprocess
import sys

import pytest


@pytest.mark.timeout(120)
def test_all_sides_are_measured_and_what_came_is_what_was_asked_for(tmp_path):
    kept = tmp_path / "engine.json"
    command = [sys.executable, "-m", "bench.serving", "engine", "--quick", "--json", str(kept)]
    subprocess.run(command, check=False, timeout=110)  # few and on a busy machine: figures may miss
    found = json.loads(kept.read_text())
    rows = found["results"]
    round_trips = ["zerohop", "asyncio", "blocking", "zerohop-blocking"]
    tokens = ["zerohop", "asyncio", "merging"]
    assert [row["side"] for row in rows] == [
        *round_trips, *tokens, *tokens, *("zerohop", "asyncio"),
    ]  # fmt: skip
    assert all(row["measured"] for row in rows)
    assert rows[0]["p50"] > 0
    assert rows[4]["value"] > 0
