"""Who reads the outputs: whoever waits for some, or a thread while nobody does.

    who waits       there is no reader:   he reads, for all, until his own gate is open;
                                          then he opens another's, who reads next
                    there is one:         he waits at his gate
    zerohop-outputs reads while nobody has waited for a moment; rests once somebody has
    a signal's      in the thread that reads: nobody can read before it is done, so it reads
    handler

So one request after the other costs no switch of threads. An interrupt (Ctrl-C) may come between
any two calls of Python, also where one reads: the reader is therefore known by his gate, which his
own way out, and whoever gives up for him, may take away once more; and a successor who was not told
looks after a second.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time

import zerohop as zmq

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Gate", "Readers"]

_LOOK_EVERY = 1.0  # seconds: a signal that comes just before a wait does not end it
_REST = 0.05  # seconds without anybody who waits, after which the thread reads
_NUDGES = "inproc://nudges"


class Gate:
    """What one thread waits at, until another one opens it.

    Attributes:
        is_waited: a thread is there.
        thread: its ident, where it may read.
    """

    __slots__ = ("_lock", "is_waited", "thread")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self.is_waited = False
        self.thread = 0

    @property
    def is_open(self) -> bool:
        """Whether one may pass."""
        return not self._lock.locked()

    def open(self) -> None:
        """Let one thread pass, now or when it comes."""
        with contextlib.suppress(RuntimeError):  # it is open
            self._lock.release()

    def wait(self, seconds: float) -> bool:
        """Wait for that; return whether it was so within the time."""
        return self._lock.acquire(timeout=seconds)


class Readers:
    """All who may read one PULL.

    Args:
        context: of the PULL alone: to wait for one socket, and drive it, is cheap.
        pull: see there.
        take: takes what it has, and opens gates; called by one thread at a time.

    Attributes:
        nudge: a message that is none, and only ends a wait for messages.
    """

    def __init__(self, context: zmq.Context, pull: zmq.Socket, take: Callable[[], None]) -> None:
        self.nudge = os.urandom(16)
        self._pull, self._take = pull, take
        self._waiting: dict[Gate, None] = {}
        self._reader: dict[str, Gate] = {}  # one at most: to be the first in it takes one step
        self._visits = 0  # of who reads
        self._is_wanted = False  # by somebody, while the thread reads
        self._is_over = threading.Event()
        pull.bind(_NUDGES)
        self._nudges = context.socket(zmq.PUSH)
        self._nudges.connect(_NUDGES)

    def open(self, gate: Gate) -> None:
        """Open a gate; who reads meanwhile looks at his own."""
        gate.open()
        if self._reader.get("") is gate and threading.get_ident() != gate.thread:
            with contextlib.suppress(zmq.ZMQError):
                self._nudges.send(self.nudge, zmq.DONTWAIT)

    def wait(self, gate: Gate, over: float | None = None) -> bool:
        """Wait until a gate is opened, or for a second: the caller looks whether it is so.

        Args:
            gate: whose thread this is.
            over: until then, at most.

        Returns:
            Whether there is time left.

        Raises:
            ZMQError: the PULL is closed.
        """
        try:
            return self._wait(gate, over)
        except BaseException:
            self.forget(gate)  # an interrupt of his way out has left him there
            raise

    def _wait(self, gate: Gate, over: float | None) -> bool:
        left = _LOOK_EVERY if over is None else min(over - time.monotonic(), _LOOK_EVERY)
        if left <= 0:
            return gate.wait(0)
        gate.thread = threading.get_ident()
        self._waiting[gate] = None  # before it is looked who reads, or he might not see it
        try:
            reader = self._reader.setdefault("", gate)
            if reader is gate:
                self._visits += 1
                self._read(gate, left)
            elif reader.thread == gate.thread:  # it goes on when this handler is done
                self._reader[""] = gate
                try:
                    self._read(gate, left)
                finally:
                    self._reader[""] = reader
            else:
                self._is_wanted = True
                return gate.wait(left) or over is None or time.monotonic() < over
            return gate.wait(0) or over is None or time.monotonic() < over
        finally:
            self.forget(gate)

    def forget(self, gate: Gate) -> None:
        """Nobody waits at it any more; once more is no fault."""
        self._waiting.pop(gate, None)
        if self._reader.get("") is gate:
            del self._reader[""]
            for other in list(self._waiting)[:1]:
                other.open()

    def _read(self, gate: Gate, seconds: float) -> None:
        """Read until the gate is open, or so long."""
        until = time.monotonic() + seconds
        while not gate.is_open and (left := until - time.monotonic()) > 0:
            if self._pull.poll(left * 1000):
                self._take()

    def run(self) -> None:
        """Read while nobody else does, until the end: what the thread does.

        Raises:
            ZMQError: the PULL is closed.
        """
        gate = Gate()
        gate.thread = threading.get_ident()
        while not self._is_over.is_set():
            if self._reader.setdefault("", gate) is gate:
                self._is_wanted = False
                try:
                    while not self._is_wanted:
                        self._pull.poll()
                        self._take()
                finally:
                    self.forget(gate)
            seen = -1
            while (seen != self._visits or self._reader) and not self._is_over.is_set():
                seen = self._visits
                self._is_over.wait(_REST)

    def end(self) -> None:
        """Have the thread rest no more. Where it reads it ends with the PULL."""
        self._is_over.set()
