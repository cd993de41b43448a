"""Each example runs as its reader would run it, and says what it promises."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
EXAMPLES = sorted((REPOSITORY / "examples").glob("*.py"))

OUTPUT = {  # the line of the output that shows that it worked
    "asyncio_push_pull.py": "received 1000 numbers, their sum is 499500",
    "blocking_req_rep.py": "the server answered: HELLO",
    "cancelled_receive.py": "cancelled 20 times, received 0..9 in order",
    "control_channel.py": "block-2 is gone; blocks: 3",
    "engine_channel.py": "[4, 3, 2, 1, 0], finish: end",
    "inproc_thread_to_asyncio.py": "the thread computed [0, 1, 4, 9, 16]",
    "kv_events.py": "100 blocks; block 42: False, block 999: True",
    "migrate_from_pyzmq.py": "{'step': 2, 'loss': 0.25}",
    "monitor_events.py": "HANDSHAKE_SUCCEEDED",
    "poller_with_fd.py": "pipe: from a pipe",
    "proxy_device.py": "6 requests answered by 2 workers",
    "pub_sub.py": "weather.basel: sunny",
    "router_dealer_workers.py": "8 tasks done by 2 workers",
}


# What asyncio says in development mode of a step that has taken 100 ms: on a busy machine any does.
BUSY = re.compile(r"Executing <.*> took \d+\.\d+ seconds")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_an_example_runs(path):
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", str(path)],
        capture_output=True,
        text=True,
        timeout=30,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY / "src")},
    )
    assert done.returncode == 0, done.stderr
    assert OUTPUT[path.name] in done.stdout.splitlines()
    assert [line for line in done.stderr.splitlines() if not BUSY.fullmatch(line)] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_an_example_fits_on_one_screen(path):
    assert len(path.read_text().splitlines()) < 60


def test_every_example_is_listed():
    assert set(OUTPUT) == {path.name for path in EXAMPLES}
