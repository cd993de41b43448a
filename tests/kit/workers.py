"""The processes that `make test` deals the tests out to: how each is started, what it may use.

Two of them must not take the same thing of the machine, a port that is free, at one time.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

MOST = 8  # each reads all the tests first, which takes one core ten seconds


def command() -> str:
    """Return what starts a worker: this interpreter with its flags, which pytest-xdist drops.

    ``-X dev`` and ``-bb`` would else hold in the process that runs no test.
    """
    return shlex.join([sys.executable, *subprocess._args_from_interpreter_flags()])


def count() -> int:
    """Return how many workers keep this machine busy: one more than it has cores, for who waits."""
    return min((os.cpu_count() or 1) + 1, MOST)


def share(everything: Sequence[T]) -> Sequence[T]:
    """Return what of it is this worker's alone; all of it where there are no workers."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return everything[number % workers :: workers]
