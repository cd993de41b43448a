"""The command in a process of its own, for what signals, pipes and terminals do to it."""

import contextlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from zerohop.serving import BlockRemoved, BlockStored

REPOSITORY = Path(__file__).parents[2]
COMMAND = [sys.executable, "-X", "dev", "-W", "error", "-m", "zerohop"]
SECONDS = 20.0  # that a command may take at most


@contextlib.contextmanager
def running(*arguments, stdout=subprocess.PIPE, **options):
    """Start ``zerohop`` with these arguments; end it if it has not ended."""
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        env=os.environ | {"PYTHONPATH": str(REPOSITORY / "src")},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def publishing(publisher, events=None):
    """Publish again and again, for readers that come whenever they come."""
    over = threading.Event()

    def publish():
        number = 0
        while not over.wait(0.01):
            publisher.publish(events or batch(number))
            number += 1

    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def wait_until(condition):
    """Ask again and again, for as long as a command may take."""
    give_up = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.05)


def is_waiting(process):
    """Whether it sleeps, and has computed nothing for a moment: it has begun whatever it does."""
    before = _state(process)
    time.sleep(0.1)
    return before[0] == "S" and before == _state(process)


def _state(process):
    """Its state, and its ticks of processor time: proc(5), Linux."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return fields[0], fields[11], fields[12]


def batch(number):
    """The events of one step: two blocks stored, and one removed that was stored before."""
    first = 2 * number
    stored = BlockStored([first, first + 1], None, list(range(32)), 16, medium="GPU")
    return [stored, BlockRemoved([first - 10], "GPU")] if number >= 5 else [stored]
