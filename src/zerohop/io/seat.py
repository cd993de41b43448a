"""Who may sit in the reactor's seat: callers that have to wait, and the helper thread.

See :mod:`zerohop.io.reactor` for the rules. Here is how each of them sleeps and is woken.
"""

from __future__ import annotations

import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from zerohop.io.lookout import Lookout
    from zerohop.io.reactor import Reactor

FOREVER = float("inf")
# Seconds. Each wake-up of the helper costs a busy or a sparing program 100 us: so long beside the
# time between messages; and short beside a heartbeat, or the patience of a user.
REST = 0.01
# Windows cannot interrupt a wait for a lock or a socket by Ctrl-C: there, look up now and then.
LONGEST_NAP = 0.05 if sys.platform == "win32" else FOREVER


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
        lookout: as above.
        thread: the call's; known since it was parked for the first time.
    """

    __slots__ = ("_gate", "_reactor", "done", "lookout", "thread")

    def __init__(self, reactor: Reactor, lookout: Lookout | None = None) -> None:
        self._reactor = reactor
        self.lookout = lookout
        self._gate: threading.Lock | None = None
        self.done = False
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


class Helper:
    """The thread that drives while no caller does. Started when there is first something to do.

    Its day::

        driving  ── a caller comes ──►  resting  ── nobody came for REST seconds ──►  driving
                                           │  ▲
              a caller waits for long ─────▼  │ the last caller leaves
                                      resting for good

    Attributes:
        started: the thread runs.
        drives: it has the seat.
        awake: it sees by itself when the last caller has left.
    """

    def __init__(self, reactor: Reactor) -> None:
        self._reactor = reactor
        self._thread: threading.Thread | None = None
        self._gates: list[threading.Lock] = []  # at most one; a list, because pop() is atomic
        self._stopping = False
        self.drives = False
        self.awake = False

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

    def stir(self) -> None:
        """The last caller leaves: if the helper rests for good, let it count the seconds again."""
        if not self.awake and (self._thread is not None or self._reactor.has_work):
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
            self.awake = True

    def _run(self) -> None:
        reactor = self._reactor
        with reactor.lock:
            seen = reactor.visits
            while not self._stopping and self._thread is threading.current_thread():
                idle = reactor.visits == seen
                seen = reactor.visits
                if reactor.occupied:
                    self._rest(FOREVER if idle else REST)
                    if idle:
                        seen = -1  # first see whether the caller that left comes back
                elif idle or reactor.has_calls:
                    self.drives = True
                    try:
                        reactor.turn(FOREVER)
                    finally:
                        self.drives = False
                    reactor.leave()
                else:
                    self._rest(REST)

    def _rest(self, seconds: float) -> None:
        gate = threading.Lock()
        gate.acquire()
        self._gates.append(gate)
        self.awake = seconds != FOREVER
        lock = self._reactor.lock
        lock.release()
        # What was appended without the lock before the gate stood here has called nobody.
        if not self._stopping and not (self._reactor.has_calls and not self._reactor.occupied):
            gate.acquire(timeout=-1 if seconds == FOREVER else seconds)
        lock.acquire()
        self.awake = True
        self._gates.clear()
