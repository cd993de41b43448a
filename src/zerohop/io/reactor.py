"""The loop of the blocking sockets: who waits, drives.

One reactor per Context. It has the face of an asyncio loop as far as ``zerohop.io`` needs one
(``time``, ``call_soon``, ``call_at``, ``add_reader``, ...), but no thread of its own turns it when
somebody else can: a background thread costs a blocked caller two thread switches a message.

There is one *seat*; whoever has it waits for descriptors and runs the callbacks::

    a caller that has to wait    seat free:   takes it, turns until what it waits for has come
    (Reactor.wait)               seat taken:  parks on a lock of its own, until it is woken or
                                              the seat becomes free and is offered to it
    the helper, a daemon thread  takes the seat when no caller was here for a moment: handshakes,
                                 heartbeats, reconnects and flushing go on while the application
                                 computes; leaves it as soon as a caller comes

The helper does not take the seat each time a caller leaves (a program that sends and receives
leaves it 50,000 times a second), and is not told of it; it looks now and then whether callers still
come and go (:class:`Helper`), sleeps for good while one waits for long, and is called at once for
what was left in ``call_soon`` by a thread that went away.

Everything here happens under the Context's lock, an RLock, except the waiting itself. Callbacks run
with it held. What is watched may change while somebody sleeps.
"""

from __future__ import annotations

import os
import weakref
from collections import deque
from functools import partial
from threading import get_ident
from time import monotonic

from zerohop.io.callbacks import Descriptors, Handle, Timers
from zerohop.io.lookout import disturb, moment
from zerohop.io.readiness import READ, WRITE
from zerohop.io.seat import FOREVER, LONGEST_NAP, Helper, Waiter, held_twice, take_back

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from zerohop.io.context import ContextIO

    class Unwritten(Protocol):
        """Somebody who keeps messages back for a moment, to write more of them at once."""

        def write_out(self) -> object:
            """Write what there is now. Lock held."""


_reactors: weakref.WeakSet[Reactor] = weakref.WeakSet()


class Reactor:
    """The seat, the descriptors, the callbacks to come.

    Args:
        lock: the Context's. The caller of every method holds it once, but for ``time``,
            ``call_soon_threadsafe`` and ``stop``, which need it not.

    Attributes:
        lock: as above.
        closed: stopped, or a child process's copy of its parent's. Registers nothing any more.
        visits: how many callers ever came, to wait or to poll.
        connects: how many connect()s its sockets have begun.
        running: the call whose thread runs the callbacks just now; None: a call that does not
            wait, the helper, or nobody.
        unwritten: sockets that have left messages to be written when a caller waits.
        on_interruption: called when an exception (a signal handler's) breaks into a call that does
            not just sleep.
        moment: seconds for which callers may look before they sleep (:mod:`zerohop.io.lookout`).
    """

    def __init__(self, lock: Any) -> None:  # an RLock, which is no type to annotate with
        self.lock = lock
        self.closed = False
        self.visits = 0
        self.connects = 0
        self.running: Waiter | None = None
        self.unwritten: dict[Unwritten, None] = {}
        self.on_interruption: Callable[[], object] = self.mend
        self.moment = moment()
        self._descriptors = Descriptors()
        self._timers = Timers()
        self._ready: deque[Handle] = deque()
        self._driver = 0  # the thread that has the seat; 0: it is free
        self._asleep = False  # whoever has the seat waits for descriptors
        self._inside = 0  # callers in wait()
        self._parked: deque[Waiter] = deque()
        self._stopping = False
        self._helper = Helper(self)
        _reactors.add(self)

    # The face of a loop

    time = staticmethod(monotonic)
    """Seconds on the monotonic clock."""

    def call_soon(self, callback: Callable[..., object], *args: Any) -> Handle:
        """Run a callback in the next turn, whoever turns."""
        handle = Handle(callback, args, 0.0)
        self._ready.append(handle)
        self._rouse()
        return handle

    # Appending is atomic, and _rouse() reads flags that the other side sets before it looks at what
    # was appended: no lock.
    call_soon_threadsafe = call_soon

    def call_at(self, when: float, callback: Callable[..., object], *args: Any) -> Handle:
        """Run a callback at ``when`` on the clock of :meth:`time`, or as soon after as may be."""
        handle = Handle(callback, args, when)
        if self._timers.add(handle):
            self._rouse()  # whoever sleeps has counted on a later time
        return handle

    def call_by(self, when: float, callback: Callable[..., object]) -> None:
        """As :meth:`call_at`, for what a caller will most likely have done by then.

        No helper is woken for it that looks in time by itself: it will see it a few milliseconds
        later.
        """
        if self._timers.add(Handle(callback, (), when)):
            if self._asleep:
                self.ring()
            elif not self._driver and not self._inside:
                self._helper.call_before(when)

    def add_reader(self, fd: int, callback: Callable[..., object], *args: Any) -> None:
        """Run a callback in every turn in which ``fd`` has something to read, or is broken."""
        if not self.closed:
            self._descriptors.watch(fd, reader=partial(callback, *args) if args else callback)
            self._watch_changed()

    def add_writer(self, fd: int, callback: Callable[..., object], *args: Any) -> None:
        """Run a callback in every turn in which ``fd`` can be written to, or is broken."""
        if not self.closed:
            self._descriptors.watch(fd, writer=partial(callback, *args) if args else callback)
            self._watch_changed()

    def remove_reader(self, fd: int) -> bool:
        """Undo :meth:`add_reader`; return whether there was anything to undo."""
        return not self.closed and self._descriptors.unwatch(fd, READ)

    def remove_writer(self, fd: int) -> bool:
        """Undo :meth:`add_writer`; return whether there was anything to undo."""
        return not self.closed and self._descriptors.unwatch(fd, WRITE)

    def _watch_changed(self) -> None:
        if self._asleep:
            if not self._descriptors.sees_changes:
                self.ring()
        elif not self._helper.started:
            self._rouse()  # from now on somebody must watch

    # The seat

    def wait(self, waiter: Waiter, deadline: float) -> bool:
        """Drive, or sleep while somebody else drives, until ``waiter`` is woken.

        Args:
            waiter: see :class:`Waiter`.
            deadline: when to give up, on the clock of :meth:`time`; infinity: never.

        Returns:
            Whether it was woken; False: the deadline has passed.

        Raises:
            KeyboardInterrupt: or whatever a signal handler raises, at once.
        """
        self._inside += 1
        self.visits += 1
        waiter.sleeps = False
        try:
            try:
                if self.unwritten:
                    self._write_out()
                while not waiter.done:
                    left = deadline - monotonic() if deadline != FOREVER else FOREVER
                    if left <= 0:
                        return False
                    if left > LONGEST_NAP:
                        left = LONGEST_NAP
                    # A signal handler may call us in the middle of our own sleep: drive as well.
                    if not self._driver or self._driver == get_ident():
                        self.turn(left, waiter)
                    elif not held_twice(self.lock):
                        self._park(waiter, left)
                    else:
                        # It interrupts our work with the lock, without which whoever is in the
                        # seat cannot go on: drive beside it.
                        self.turn(left, waiter)
                return True
            finally:
                self._inside -= 1
                # As long as it looks now and then the helper sees by itself that nobody is here.
                if self._parked or self._ready or self._helper.looks_at == FOREVER:
                    self.leave()
        except BaseException:
            if not waiter.sleeps:
                self.on_interruption()
            raise

    def poll(self) -> None:
        """Do what can be done without waiting.

        For calls that must not block: what has come is there when they return, and a program that
        only polls gets its I/O done by its polls.
        """
        self.visits += 1
        try:
            if self.unwritten:
                self._write_out()
            if not self._driver:
                self.turn(0)
                self.leave()
            else:
                self._look_beside()
        except BaseException:
            self.on_interruption()
            raise

    def _look_beside(self) -> None:
        """Read what has come, for somebody sleeps in the seat, and needs the lock to wake."""
        serial = self._descriptors.serial
        events = self._descriptors.wait(0)
        if events:
            self._descriptors.dispatch(events, serial)
        if events or self._helper.drives:
            # It may be he for whom something came, or we have heard the bell that was for him. The
            # helper leaves the seat: what comes next is for the next poll.
            self._asleep = False
            self._descriptors.ring()

    def _write_out(self) -> None:
        for outflow in list(self.unwritten):
            outflow.write_out()

    def _park(self, waiter: Waiter, seconds: float) -> None:
        parked, me = self._parked, get_ident()
        # The call that a signal handler interrupts, in which we are, cannot take the seat before
        # the handler returns: it shall not be offered to it meanwhile.
        below = [each for each in parked if each.thread == me]
        for each in below:
            parked.remove(each)
        parked.append(waiter)
        disturb()
        if self._helper.drives:
            self.ring()  # it sees that a caller has come and offers the seat
        try:
            waiter.park(self.lock, seconds)
        finally:
            if waiter in parked:
                parked.remove(waiter)
            parked.extend(below)

    def leave(self) -> None:
        """The seat may be free: offer it to a parked caller, or see that the helper knows."""
        if self._driver:
            return
        while self._parked:
            if self._parked.popleft().offer():
                return
        if self._ready:
            self._helper.call()
        elif not self._inside:
            self._helper.stir()

    def _rouse(self) -> None:
        """There is work: let whoever has the seat see it, or call the helper if nobody has."""
        if self._asleep:
            self.ring()
        elif not self._driver and not self._inside:
            self._helper.call()

    def ring(self) -> None:
        """Wake whoever sleeps in the seat."""
        if self._asleep:
            self._asleep = False  # rung once a sleep
            self._descriptors.ring()

    def turn(self, seconds: float, waiter: Waiter | None = None) -> None:  # noqa: C901, PLR0912, PLR0915 - hot
        """Wait for descriptors in the seat, at most ``seconds``; run what is due for ``waiter``."""
        if self.closed:
            return
        timers, ready = self._timers.heap, self._ready
        if timers:  # a cancelled one wakes us for nothing, once
            left = timers[0][0] - monotonic()
            if left < seconds:
                seconds = left if left > 0 else 0.0
        serial = self._descriptors.serial
        interrupted = self._driver  # our own sleep, by a signal handler that waits, too
        self._driver = get_ident()
        self._asleep = True
        if ready:  # looked at after _asleep is set: see call_soon_threadsafe
            seconds = 0.0
        if waiter is not None:
            waiter.sleeps = True
        try:
            self.lock.release()
            wait = self._descriptors.wait
            lookout = None if waiter is None else waiter.lookout
            if lookout is None or seconds <= lookout.moment or not (events := lookout.look(wait)):
                events = wait(-1 if seconds == FOREVER else seconds)
        finally:
            try:
                self.lock.acquire()
            except BaseException:
                take_back(self.lock)
                raise
            finally:
                self._asleep, self._driver = False, 0
        if waiter is not None:
            waiter.sleeps = False
        if self._stopping:
            self._close()
            return
        try:
            self.running = waiter
            if events:
                self._descriptors.dispatch(events, serial)
            if timers:
                now = monotonic()
                if timers[0][0] <= now:
                    self._timers.run(now)
            if ready:
                self._run_ready()
        finally:
            self.running = None
            if interrupted:
                # It sleeps on when the handler returns, for things that may have come already.
                self._driver = interrupted
                self._asleep = True
                self.ring()

    def _run_ready(self) -> None:
        """Call what is due now; what these calls ask for is due in the next turn."""
        ready = self._ready
        for _ in range(len(ready)):
            if ready:  # a callback may have stopped us
                ready.popleft().run()

    def mend(self) -> None:
        """Let everybody look again, and see that somebody drives: see ``io.mending``. Lock held."""
        for waiter in list(self._parked):
            waiter.offer()
        self._descriptors.ring()
        self._helper.call()

    @property
    def occupied(self) -> bool:
        """A caller is in the seat, or on its way to it."""
        return self._inside > 0 or self._driver != 0

    @property
    def has_calls(self) -> bool:
        """Callbacks are due."""
        return bool(self._ready)

    def due(self) -> float:
        """When the next callback by time is due, on the clock of :meth:`time`; or infinity."""
        timers = self._timers.heap
        return timers[0][0] if timers else FOREVER

    @property
    def has_work(self) -> bool:
        """Somebody has to watch: a descriptor, the clock, or what was left to call."""
        return bool(self._descriptors) or bool(self._timers.heap) or bool(self._ready)

    # The end

    def stop(self) -> None:
        """End the helper thread and close what the reactor opened; wake those who wait.

        Without the lock. Whoever still sleeps in the seat closes the rest when it wakes.
        """
        self._helper.stop()
        with self.lock:
            self._stopping = True
            if self._driver:
                self.ring()
            else:
                self._close()

    def _close(self) -> None:
        if not self.closed:
            self.closed = True
            self._descriptors.close()
            self._timers.clear()
            self._ready.clear()

    def forget_parent(self) -> None:
        """In the child after a fork: no thread drives here, and epoll's set is still the parent's.

        Closing the copied descriptors changes nothing there; removing one from the set would.
        """
        self._driver = self._inside = 0
        self._asleep = False
        self._parked.clear()
        self._close()


def reactor_of(context: ContextIO) -> Reactor:
    """Return the reactor of a Context; made when first asked for."""
    reactor = context.reactor
    if reactor is None or reactor.closed:
        reactor = context.reactor = Reactor(context.lock)
        reactor.on_interruption = context.interrupted
    return reactor


def _after_fork_in_child() -> None:
    for reactor in list(_reactors):
        reactor.forget_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
