"""What the stress tests share: rounds that can be repeated, threads that end, programs beside us.

``SOAK=60`` in the environment lets each test go on for a minute, every round with a seed of its
own. ``SEED=7`` runs the round with that seed alone: a failed test has printed the seed it had.
"""

import functools
import inspect
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from tests.kit.net import PATIENCE_MS

SOAK = float(os.environ.get("SOAK", "0"))  # seconds a test; 0: a few rounds with the same seeds
SEED = os.environ.get("SEED")
SOON = PATIENCE_MS / 1000 + 4  # seconds: longer than any call waits
TRANSPORTS = ("tcp", "ipc", "inproc")

MOST = 4000  # characters of a program that are shown
ROOT = Path(__file__).parents[2]
limited = pytest.mark.timeout(45 + 2 * SOAK)


def in_rounds(count):
    """Run a test ``count`` times, or as often as SOAK has time for; its ``random`` is chance.

    After each round its threads have ended, and its contexts too.
    """

    def decorate(test):
        @functools.wraps(test)
        def run(new_context, team, **others):
            for random in _rounds(count):
                test(new_context=new_context, team=team, random=random, **others)
                team.join()
                new_context.destroy()

        parameters = inspect.signature(test).parameters.values()
        run.__signature__ = inspect.Signature([p for p in parameters if p.name != "random"])
        return run

    return decorate


def _rounds(count):
    if SEED is not None:
        yield _chance(int(SEED))
    elif not SOAK:
        yield from map(_chance, range(count))
    else:
        deadline = time.monotonic() + SOAK
        while time.monotonic() < deadline:
            yield _chance(int.from_bytes(os.urandom(4)))


def _chance(seed):
    print(f"SEED={seed}", flush=True)
    return Random(seed)


class Member:
    """A call in a thread of its own."""

    def __init__(self, call, args):
        self._call, self._args = call, args
        self.value = self.error = None
        self.joined = False  # the test has seen how it ended
        self.thread = threading.Thread(target=self._run, name=call.__name__, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            self.value = self._call(*self._args)
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            self.error = error

    def join(self, within=SOON):
        """Wait for the call; return what it returned, raise what it raised."""
        self.joined = True
        self.thread.join(within)
        if self.thread.is_alive():
            frame = sys._current_frames()[self.thread.ident]
            raise AssertionError("did not end:\n" + "".join(traceback.format_stack(frame)))
        if self.error is not None:
            raise self.error
        return self.value


class Team:
    """The threads of one test: all of them end in time, and what one raises the test raises."""

    def __init__(self):
        self._members = []

    def start(self, call, *args):
        member = Member(call, args)
        self._members.append(member)
        return member

    def join(self, within=SOON):
        """Wait for those who were not waited for; return what they returned, in their order."""
        members, self._members = [m for m in self._members if not m.joined], []
        deadline = time.monotonic() + within
        return [member.join(max(deadline - time.monotonic(), 0)) for member in members]


@contextmanager
def switching(seconds):
    """Let the interpreter take so long before it changes to another thread."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def until(condition, within=SOON):
    """Wait until a condition is true; return what it gave."""
    deadline = time.monotonic() + within
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {within} s"
        time.sleep(0.001)
    return value


def compute(seconds):
    """Do something else than call us, as an application does between its calls."""
    end, total = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        total += sum(range(500))
    return total


class Program:
    """A program in a process of its own; what it prints comes line by line."""

    PROLOGUE = "import gc, os, signal, sys, threading, time\nimport zerohop as zmq\n"

    def __init__(self, text):
        self._process = subprocess.Popen(
            [sys.executable, "-u", "-W", "error", "-c", self.PROLOGUE + textwrap.dedent(text)],
            cwd=ROOT,  # where it finds the package of tests
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid

    def line(self):
        """The next line it prints."""
        return self._process.stdout.readline().rstrip("\n")

    def tell(self, line):
        """Give it a line to read."""
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def signal(self, number):
        self._process.send_signal(number)

    def end(self, within=SOON):
        """Wait for its end; return the lines that were not read yet. It must end well and in time.

        A program that hangs is made to say where, if it has called ``faulthandler.register``.
        """
        try:
            out, err = self._process.communicate(timeout=within)
        except subprocess.TimeoutExpired:
            self.kill()
            out, err = self._process.communicate()
            raise AssertionError(f"still running; said {out[-MOST:]!r}, {err[-MOST:]!r}") from None
        code = self._process.returncode
        assert (code, err[-MOST:]) == (0, ""), (code, out[-MOST:], err[-MOST:])
        return out.splitlines()

    def end_by_signal(self, within=SOON):
        """Wait for the end that SIGINT brings; return what it said about it."""
        _, err = self._process.communicate(timeout=within)
        assert self._process.returncode == -signal.SIGINT, (self._process.returncode, err)
        return err

    def kill(self):
        self._process.kill()

    def discard(self):
        """End it, however it is."""
        if self._process.returncode is None:
            self._process.kill()
            self._process.communicate()
