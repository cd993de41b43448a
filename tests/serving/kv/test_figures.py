"""The program that measures KV events runs, compares what came, and keeps what it found."""

import json
import subprocess
import sys

import pytest


@pytest.mark.timeout(120)
def test_both_sides_are_measured_and_what_came_is_what_was_published(tmp_path):
    kept = tmp_path / "kv.json"
    command = [sys.executable, "-m", "bench.serving", "kv", "--quick", "--json", str(kept)]
    subprocess.run(command, check=False, timeout=110)  # few and on a busy machine: figures may miss
    found = json.loads(kept.read_text())
    rows = found["results"]
    assert [row["side"] for row in rows] == ["zerohop", "stock"] * 4
    assert all(row["measured"] for row in rows)
    ours = rows[-2]
    assert (ours["batches"], ours["end_marker"]) == (300, True)
    assert found["about"]["cores"] >= 1
