"""Who may sit in the reactor's seat: callers that have to wait, and the helper thread.

See :mod:`zerohop.io.reactor` for the rules. Here is how each of them sleeps and is woken.
"""

from __future__ import annotations

import sys
import threading
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from zerohop.io.lookout import Lookout
    from zerohop.io.reactor import Reactor

FOREVER = float("inf")
# Seconds between two looks of the helper whether callers still come and go. Each wake-up costs a
# busy or a sparing program 100 us: so they are the rarer the oftener they were in vain, and short
# beside a heartbeat, or the patience of a user.
REST = 0.01
LONGEST_REST = 0.1
_LOOKS = 8  # during one call that waits; then it sleeps until that has left
_GRACE = 0.005  # for what a caller will most likely do by itself: timers, before it is here
_LONG = 10 * LONGEST_REST  # without callers: what was learned of them is forgotten
# A signal that comes just before the system call that sleeps, or to another thread, is noted by the
# interpreter and interrupts no sleep: its handler runs when the main thread looks up. Windows
# cannot interrupt a wait for a lock or a socket at all.
LONGEST_NAP = 0.05 if sys.platform == "win32" else 1.0


def take_back(lock: Any) -> None:
    """Acquire a lock that was released for a sleep, when ``lock.acquire()`` has raised.

    A signal handler raises inside ``acquire`` or right after it: only the lock itself knows which.
    It must be ours before the exception goes on, because a ``with`` up there will release it.
    """
    while not lock._is_owned():
        try:
            lock.acquire()
        except BaseException:  # noqa: BLE001, S112 - the first one is on its way
            continue


def held_twice(lock: Any) -> bool:
    """Whether a lock that is ours was ours before: we are in a signal handler, in a callback."""
    if hasattr(lock, "_recursion_count"):  # CPython from 3.11.5 on
        return bool(lock._recursion_count() > 1)
    return " count=1 " not in repr(lock)


class Waiter:
    """One blocked call. Whoever makes true what it waits for calls :meth:`wake`, lock held.

    Args:
        reactor: on which it waits.
        lookout: looks for a moment before the call sleeps in the seat; None: it sleeps at once.

    Attributes:
        done: it was woken; :meth:`Reactor.wait` returns.
        sleeps: it is without the lock: an exception that ends this finds nothing half done.
        lookout: as above.
        thread: the call's; known since it was parked for the first time.
    """

    __slots__ = ("_gate", "_reactor", "done", "lookout", "sleeps", "thread")

    def __init__(self, reactor: Reactor, lookout: Lookout | None = None) -> None:
        self._reactor = reactor
        self.lookout = lookout
        self._gate: threading.Lock | None = None
        self.done = False
        self.sleeps = False
        self.thread = 0

    def wake(self) -> None:
        """Let the call go on; a second time changes nothing."""
        if not self.done:
            self.done = True
            if not self.offer():
                self._reactor.ring()  # it may be the one that sleeps in the seat

    def offer(self) -> bool:
        """Wake the call if it is parked, so that it takes the seat; return whether it was."""
        gate, self._gate = self._gate, None
        if gate is None:
            return False
        gate.release()
        return True

    def park(self, lock: Any, seconds: float) -> None:
        """Sleep without the lock until woken, offered the seat, or ``seconds`` later."""
        gate = self._gate = threading.Lock()
        gate.acquire()
        self.thread = threading.get_ident()
        self.sleeps = True
        try:
            lock.release()
            gate.acquire(timeout=-1 if seconds == FOREVER else seconds)
        finally:
            try:
                lock.acquire()
            except BaseException:
                take_back(lock)
                raise
            finally:
                self._gate = None
        self.sleeps = False


class Helper:
    """The thread that drives while no caller does. Started when there is first something to do.

    Its day::

        driving  ── a caller comes ──►  resting  ── nobody came for a whole rest ──►  driving
                                           │  ▲
        one call waits for many rests ─────▼  │ the last caller leaves
                                      resting for good

    It is not told when callers leave and come, for to wake it costs more than a message: it looks,
    after ``REST``, twice that, and so on up to ``LONGEST_REST``. A program that comes back within
    that time finds the seat free; one that computes is driven for after two of them at most. Only
    timers that are due and that nobody has seen to bring it sooner.

    Nor does it wake for each answer while the program makes connection after connection: it would
    take the interpreter several times for each. It does what there is every ``REST``, until no more
    have been begun.

    Attributes:
        started: the thread runs.
        drives: it has the seat.
        looks_at: when it sees by itself whether somebody is here, on the clock of the reactor; 0:
            it is awake; infinity: it has to be called.
    """

    def __init__(self, reactor: Reactor) -> None:
        self._reactor = reactor
        self._thread: threading.Thread | None = None
        self._gates: list[threading.Lock] = []  # at most one; a list, because pop() is atomic
        self._stopping = False
        self._pause = REST
        self.drives = False
        self.looks_at = FOREVER

    @property
    def started(self) -> bool:
        """Whether the thread exists."""
        return self._thread is not None

    def call(self) -> None:
        """There is work and nobody in the seat: come at once. Any thread, with or without lock."""
        if self._thread is None:
            self._start()
            return
        # It takes its gate away itself when it has woken. (A gate that is popped here would be
        # lost, and the helper asleep for ever, if a signal handler raised before it is opened.)
        for gate in self._gates:
            if gate.locked():
                try:
                    gate.release()
                except RuntimeError:  # another thread has been quicker
                    continue

    def call_before(self, when: float) -> None:
        """As :meth:`call`, unless it looks soon after ``when`` by itself."""
        if self.looks_at > when + _GRACE:
            self.call()

    def stir(self) -> None:
        """The last caller leaves: if the helper rests for good, let it look again."""
        if self.looks_at == FOREVER and (self._thread is not None or self._reactor.has_work):
            self.call()

    def stop(self) -> None:
        """End the thread and wait for its end. Without the lock."""
        self._stopping = True
        with self._reactor.lock:
            self._reactor.ring()
            thread = self._thread
            if thread is not None:
                self.call()
        # While the interpreter shuts down a daemon thread never runs again, and would never end.
        if thread not in (None, threading.current_thread()) and not sys.is_finalizing():
            thread.join()

    def _start(self) -> None:
        with self._reactor.lock:
            if self._thread is not None or self._stopping or self._reactor.closed:
                return
            thread = threading.Thread(target=self._run, name="zerohop", daemon=True)
            self._thread = thread
            try:
                thread.start()
            except BaseException as error:
                # No thread can be had, most likely because the interpreter is shutting down. The
                # callers still drive while they wait, and the next call tries again. Or a signal
                # handler has raised: then it may run, and ends when it sees that it is not meant.
                self._thread = None
                if not isinstance(error, RuntimeError):
                    raise
            self.looks_at = 0.0

    def _run(self) -> None:
        reactor = self._reactor
        with reactor.lock:
            seen, looks, since, connects = reactor.visits, 0, 0.0, reactor.connects
            while not self._stopping and self._thread is threading.current_thread():
                came = reactor.visits != seen
                seen = reactor.visits
                if came:
                    looks = 0
                if not reactor.occupied and (not came or reactor.has_calls or self._late()):
                    since = since or monotonic()
                    if reactor.connects == connects:
                        self._drive(FOREVER)
                    else:
                        connects = reactor.connects
                        self._drive(0.0)
                        self._rest(REST)
                    if came:
                        seen = -1  # that was for once
                    continue
                if since and monotonic() - since > _LONG:
                    self._pause = REST
                since = 0.0
                looks += 1
                if looks > _LOOKS:
                    self._rest(FOREVER)
                    seen = -1  # first see whether the caller that left comes back
                else:
                    self._rest(self._pause)
                    self._pause = min(2 * self._pause, LONGEST_REST)

    def _late(self) -> bool:
        """Whether a timer is due, and no caller has come for it."""
        return self._reactor.due() < monotonic() - _GRACE / 5

    def _drive(self, seconds: float) -> None:
        self.drives = True
        try:
            self._reactor.turn(seconds)
        finally:
            self.drives = False
        self._reactor.leave()

    def _rest(self, seconds: float) -> None:
        """Sleep until called, at most ``seconds``, and not far beyond the next timer."""
        if seconds != FOREVER:
            seconds = min(seconds, max(self._reactor.due() - monotonic(), 0.0) + _GRACE)
        gate = threading.Lock()
        gate.acquire()
        self._gates.append(gate)
        self.looks_at = monotonic() + seconds
        lock = self._reactor.lock
        lock.release()
        # What was appended without the lock before the gate stood here has called nobody.
        if not self._stopping and not (self._reactor.has_calls and not self._reactor.occupied):
            gate.acquire(timeout=-1 if seconds == FOREVER else seconds)
        lock.acquire()
        self.looks_at = 0.0
        self._gates.clear()
