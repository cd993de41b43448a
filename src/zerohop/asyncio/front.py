"""Where an asyncio socket meets its driver: lanes, turns of the loop, and who waits.

The driver calls :meth:`Front.activity` after whatever happened, the lock held. Between such calls
the Socket uses the lanes below directly.

*Turns.* What was sent is written at once if it is the first of the loop's turn, and together with
the rest at the end of the turn otherwise, or after ``CREDIT`` messages. A socket that always has
something to do
yields to the loop about every millisecond: an operation that is done then gives an awaitable
that suspends until the next turn. (zmq.asyncio never yields there, and starves every other task.)
"""

from __future__ import annotations

import asyncio
import threading
from time import monotonic  # not the loop's: uvloop's clock stands still during a turn

from zerohop.api.receive import as_frame, as_octets
from zerohop.asyncio.conditions import Conditions
from zerohop.asyncio.futures import SENT, Converted, Received, done_with, failed
from zerohop.asyncio.line import Line
from zerohop.asyncio.returned import Returned
from zerohop.asyncio.waiting import (
    Waiting,
    WaitingReceive,
    WaitingSend,
    as_frame_of_more,
    released,
)
from zerohop.constants import Errno, Flag
from zerohop.errors import Again, UsageError, ZMQError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from zerohop.asyncio.returned import Key
    from zerohop.io.context import ContextIO
    from zerohop.io.driver import SocketDriver
    from zerohop.patterns.pipe import Message, Pipe

CREDIT = 64  # operations at most between two looks at the clock, messages before a flush
_TURN = 0.0002  # seconds a socket may keep the loop: a 1 ms ticker stays above 500 a second
_ON_ACCOUNT = 8  # operations for a program that goes on although its turn is over
_MOMENT = 50e-6  # seconds; sends that follow each other faster are gathered
_DONTWAIT = int(Flag.DONTWAIT)
_SNDMORE = int(Flag.SNDMORE)


class Front:
    """One socket's lanes, turns and waiters. The driver's side of a Socket; knows no Socket.

    Attributes:
        send_lane, receive_lane: pipes that the Socket uses directly; None: it asks here.
        looks_back: waits left that are checked for the classic mistakes; a socket that has waited
            in vain so often is either right or already told.
        credit: operations left until the clock is looked at; the lanes may be used while it lasts.
        number: ``number - credit`` is the number of the message that is taken next.
    """

    __slots__ = (
        "_conditions", "_context", "_core", "_driver", "_grant", "_lock", "_loop", "_options",
        "_receivers", "_resumed", "_returned", "_senders", "_turn", "_turn_started", "_wrote_at",
        "_yielding", "credit", "looks_back", "number", "receive_lane", "send_lane",
    )  # fmt: skip

    def __init__(self, driver: SocketDriver, context: ContextIO) -> None:
        self._driver = driver
        self._core = driver.core
        self._options = driver.core.options
        self._lock = driver.lock
        self._context = context
        self.send_lane: Pipe | None = None
        self.receive_lane: Pipe | None = None
        self.credit = 0
        self._grant = CREDIT
        self.number = 0
        self.looks_back = 8
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn: asyncio.Handle | None = None
        self._turn_started = 0.0
        self._wrote_at = 0.0
        self._resumed = False  # a receive that waited has got its message
        self._receivers = Line()
        self._returned = Returned(driver.core)
        self._senders = Line()
        self._conditions = Conditions(driver.core)
        self._yielding: list[Waiting] = []
        driver.front = self
        self.find_loop_if_any()

    # Sending

    def send(
        self, message: Message, flags: int, timeout: float | None, *, result: Any = None
    ) -> Awaitable[Any]:
        """Send in every case that the lane does not cover."""
        loop = self.find_loop()
        with self._lock:
            more = bool(flags & _SNDMORE)
            if self._senders:
                self._senders.tidy()
            try:
                if self._senders:
                    raise Again
                self._send_to_core(message, more=more)
            except Again as error:
                wait = self._options.sndtimeo if timeout is None else _at_least_0(timeout)
                if flags & _DONTWAIT:
                    wait = 0
                if wait == 0:
                    return failed(loop, error)
                waiting = WaitingSend(loop, result, message, more=more)
                self._senders.append(waiting)
                if wait is not None:
                    waiting.timer = loop.call_later(wait, self._expire, self._senders, waiting)
                self._driver.pump()
                return waiting
            except ZMQError as error:
                return failed(loop, error)
            return self._sent(loop, result)

    def _send_to_core(self, message: Message, *, more: bool) -> None:
        core = self._core
        if not more:
            core.send(message)
        elif isinstance(message, list):
            for part in message:
                core.send_part(part)
        else:
            core.send_part(message)

    def _sent(self, loop: asyncio.AbstractEventLoop, result: Any) -> Awaitable[Any]:
        """Write now, or leave it to the end of the turn; yield if the turn is getting long."""
        if self._turn is None and self._first(loop):
            self._driver.pump()
            return SENT if result is None else done_with(loop, result)
        if (
            self.credit
            and not self._context.core.readable  # an inproc reader waits for nothing but its note
            and self._core.send_lane is self.send_lane
            and not self._driver.watched
        ):
            self.credit -= 1
            return SENT if result is None else done_with(loop, result)
        self._driver.pump()
        if self._spend(loop):
            return self._yield(loop, result)
        return SENT if result is None else done_with(loop, result)

    def wake_reader(self, lane: Pipe) -> None:
        """Whoever reads the pipe sleeps: leave the note; write now if this begins the turn."""
        loop = self.find_loop()
        with self._lock:
            if lane.asleep:
                lane.reader_signals.append(lane.reader)
                lane.asleep = False
            # An inproc reader waits for nothing but this note.
            if (self._turn is None and self._first(loop)) or self._context.core.readable:
                self._driver.pump()

    # Receiving

    def receive(
        self,
        flags: int,
        timeout: float | None,
        convert: Callable[[Any], Any] | None,
        *,
        part: bool,
    ) -> Any:
        """Receive in every case that the lane does not cover."""
        loop = self.find_loop()
        with self._lock:
            if flags & _DONTWAIT:
                wait: float | None = 0
            else:
                wait = self._options.rcvtimeo if timeout is None else _at_least_0(timeout)
            must_yield = not self.credit and self._spend(loop) and wait != 0
            if self._receivers:
                self._receivers.tidy()
            try:
                if self._receivers or must_yield:
                    raise Again
                message, key = self._take(part=part)
                if convert is as_frame and self._core.receiving_more:
                    convert = as_frame_of_more
            except Again as error:
                if wait == 0:
                    return failed(loop, error)
                waiting = WaitingReceive(self, convert, part=part, loop=loop)
                self._receivers.append(waiting)
                if wait is not None:
                    waiting.timer = loop.call_later(wait, self._expire, self._receivers, waiting)
                self.receive_lane = None
                if not must_yield and self._driver.has_work():
                    self._driver.pump()
                return waiting
            except ZMQError as error:
                return failed(loop, error)
            if self.credit:
                self.credit -= 1
            self._after_receive()
            received = Received((message, key, self))
            if convert is None or (convert is as_octets and type(message) is bytes):
                return received
            return Converted(received, convert)

    def _take(self, *, part: bool) -> tuple[Any, Key]:
        """The next message or part, and what :meth:`give_back` wants to know of it."""
        core = self._core
        begun = core.receiving_more
        value: Any = core.receive_part() if part else core.receive()
        number = self.number - self.credit
        self.number += 1
        if begun or self._returned.numbers or core.receiving_more:
            return value, self._returned.key(number, value, begun=begun)
        return value, number

    def _after_receive(self) -> None:
        """Let a connection that was paused go on; tell an inproc sender that there is room."""
        links, shared = self._core.links, self._context.core
        if (
            links.to_resume
            or self._driver.watched
            or shared.writable
            or self._core.receiving_more
            or self._receivers
            or (self._core.receive_lane is not self.receive_lane and not self._receivers)
        ):
            self._driver.pump()

    def put_first(self, message: Message) -> None:
        """A message that the lane's user cannot deal with is the next one to be received."""
        with self._lock:
            self._core.put_back(message)

    def drained(self, lane: Pipe) -> None:
        """A message was taken from the lane, which is marked full: half empty, it goes on."""
        if len(lane.messages) <= lane.resume_at:
            with self._lock:
                lane.drained()
                self._driver.pump()

    def give_back(self, value: Any, key: Key) -> None:
        """Put back what was taken and never got. On any thread: it may be a garbage collection."""
        with self._lock:
            if self._core.closed or self._context.core.terminated:
                return
            self._returned.put(value, key)
            self.receive_lane = None
            self._driver.woken()

    def take_again(self, key: Key) -> bool:
        """Take what was given back, if nobody has received it meanwhile."""
        with self._lock:
            return self._returned.take_again(key)

    # Turns of the loop

    def _first(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether nothing was written a moment ago: then this message goes at once.

        Otherwise there may be more to come: the loop is asked to call at the end of its turn. So it
        is now and then in any case, to find out whether it still comes round; unless a receive had
        to wait meanwhile, which shows it.
        """
        now = monotonic()
        lone = now - self._wrote_at > _MOMENT
        if lone:
            self._wrote_at = now
            if self._resumed:
                self._resumed = False
                self._turn_started = now
                return True
            if now - self._turn_started < _TURN:
                return True
        self._begin_turn(loop, now)
        return lone

    def _begin_turn(self, loop: asyncio.AbstractEventLoop, now: float) -> None:
        self._turn_started = now
        self._turn = loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        """The loop has come round: write what has gathered, let those that yielded go on."""
        with self._lock:
            self._turn = None
            self._wrote_at = self._turn_started
            self._renew_credit()
            for waiting in self._yielding:
                waiting.end(waiting.value)
            self._yielding.clear()
            self._driver.pump()

    def _spend(self, loop: asyncio.AbstractEventLoop) -> bool:
        """The credit is used up: renew it, or say that it is time to yield.

        The next credit is what fits into a turn, if this one has lasted longer: the program works
        on each message. Whoever does not await, and so does not yield, gets a little on account:
        not every message shall be written by itself.
        """
        now = monotonic()
        lasted = now - self._turn_started
        if self._turn is None:
            self._begin_turn(loop, now)
        elif lasted > _TURN:
            self._grant = max(1, int(self._grant * _TURN / lasted))
            self._renew_credit()
            self.credit = _ON_ACCOUNT
            return True
        elif lasted < _TURN / 2 and self._grant < CREDIT:
            self._grant *= 2
        self._renew_credit()
        return False

    def _renew_credit(self) -> None:
        self.credit = self._grant
        self.number += CREDIT  # so that ``number - credit`` only ever grows

    def _yield(self, loop: asyncio.AbstractEventLoop, value: Any) -> Waiting:
        """What is done, but given only when the loop has come round."""
        waiting = Waiting(loop, value)
        self._yielding.append(waiting)
        return waiting

    # Waiting

    def activity(self) -> bool:
        """Serve who waits, as far as the core can; return whether that changed anything."""
        core = self._core
        served = False
        waits = self._receivers or self._senders or self._conditions.waits
        if waits and self._loop is not None and self._loop.is_closed():
            self._forget_waiting()
        if self._receivers:
            served = self._serve_receivers()
        if self._senders:
            served |= self._serve_senders()
        if self._conditions.waits:
            self._conditions.serve()
        if served:
            core.settle()
        # Somebody who watches the descriptor (ZMQ_FD) must see every step; and ETERM is for all.
        closed = self._driver.watched or core.context.terminated
        self.send_lane = None if closed or self._senders else core.send_lane
        self.receive_lane = None if closed or self._receivers else core.receive_lane
        return served

    def _serve_receivers(self) -> bool:
        line = self._receivers
        served = False
        while line:
            waiting = line[0]
            if not waiting.done():
                try:
                    message, key = self._take(part=waiting.part)
                    if type(key) is tuple and self._core.receiving_more:
                        waiting.has_more()
                except Again:
                    break
                except ZMQError as error:
                    waiting.fail(error)
                else:
                    waiting.hand_over(message, key)
                    served = self._resumed = True
            line.popleft()
        return served

    def _serve_senders(self) -> bool:
        line = self._senders
        served = False
        while line:
            waiting = line[0]
            if not waiting.done():
                try:
                    self._send_to_core(waiting.message, more=waiting.more)
                except Again:
                    break
                except ZMQError as error:
                    waiting.fail(error)
                else:
                    waiting.settle(waiting.value)
                    served = True
            line.popleft()
        return served

    def wait_until(
        self, holds: Callable[[], int], seconds: float | None, give_up: Callable[[Waiting], None]
    ) -> Awaitable[Any]:
        """Wait until ``holds()`` gives something true, which is the result; lock not held."""
        loop = self.find_loop()
        with self._lock:
            try:
                self._core.check_open()
                value = holds()
            except ZMQError as error:
                return failed(loop, error)
            if value:
                if not self.credit and self._spend(loop):
                    return self._yield(loop, value)
                self.credit -= 1
                return done_with(loop, value)
            limit = None if seconds is None else _at_least_0(seconds)
            waiting = self._conditions.add(loop, holds)
            if limit is not None:
                waiting.timer = loop.call_later(limit, give_up, waiting)
            self._driver.pump()
            return waiting

    def _expire(self, line: Line, waiting: Waiting) -> None:
        with self._lock:
            waiting.fail(Again())
            line.tidy()

    # The loop

    def find_loop(self) -> asyncio.AbstractEventLoop:
        """The running loop; the driver moves to it if it was on another.

        Raises:
            RuntimeError: no loop runs in this thread; or the socket is in use on one that runs in
                another thread.
            UsageError: ENOTSUP, the loop cannot watch descriptors.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._use_loop(loop)
        return loop

    def find_loop_if_any(self) -> None:
        """As :meth:`find_loop`, but where no loop runs, and none did, there is time yet.

        Raises:
            RuntimeError: the socket is in use on a loop that runs in another thread.
            UsageError: ENOTSUP, the loop cannot watch descriptors.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._check_thread()
        else:
            if loop is not self._loop:
                self._use_loop(loop)

    @property
    def elsewhere(self) -> asyncio.AbstractEventLoop | None:
        """The socket's loop, if that runs in another thread."""
        return None if self._driver.may_move() else self._loop

    def _check_thread(self) -> None:
        busy = self._driver.watches or self._receivers or self._senders or self._conditions.waits
        if busy and self.elsewhere is not None:
            raise RuntimeError(
                "this socket is in use on a loop that runs in another thread, and belongs there; "
                "make one socket for each thread (they can meet over inproc)"
            )

    def _use_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        watch = getattr(type(loop), "add_reader", None)
        if watch in (None, asyncio.AbstractEventLoop.add_reader):
            raise UsageError(
                Errno.ENOTSUP,
                hint=f"{type(loop).__name__} cannot watch descriptors (add_reader); run the "
                "program on a SelectorEventLoop: asyncio.run(main(), loop_factory="
                "asyncio.SelectorEventLoop), or before Python 3.12 "
                "asyncio.set_event_loop_policy(asyncio.WindowsSelectorEventLoopPolicy())",
            )
        with self._lock:
            self._check_thread()
            old = self._loop
            if old is not None:
                self._forget_waiting()
            self._turn = None
            self._loop = loop
            self._renew_credit()
            self._driver.attach(loop, thread=threading.get_ident())
            if old is not None and old.is_closed():
                self._take_others_along(old, loop)

    def _forget_waiting(self) -> None:
        """Whoever waited on the loop that is gone will never be resumed."""
        self._receivers.clear()
        self._senders.clear()
        self._conditions.clear()
        self._yielding.clear()

    def _take_others_along(
        self, old: asyncio.AbstractEventLoop, loop: asyncio.AbstractEventLoop
    ) -> None:
        """The other sockets of the loop that has ended may have something to send, too."""
        for driver in list(self._context.drivers):
            if driver.loop is old and driver.may_move() and isinstance(driver.front, Front):
                driver.front._use_loop(loop)

    def lives_here(self) -> bool:
        """Whether this thread runs the loop that the socket is bound to."""
        try:
            return self._loop is not None and asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def released(self) -> asyncio.Future[None]:
        """A future that is done when the closed socket has nothing left to send."""
        return released(self._driver)

    def end(self) -> None:
        """The socket has been closed, lock held: whoever waits gets ENOTSOCK."""
        everybody = [*self._receivers, *self._senders, *self._conditions.waiting()]
        self._receivers.clear()
        self._senders.clear()
        self._conditions.clear()
        self.send_lane = self.receive_lane = None
        for waiting in everybody:
            if not waiting.get_loop().is_closed():
                error = ZMQError(Errno.ENOTSOCK, hint="the socket was closed meanwhile")
                waiting.fail(error, quietly=True)
        for waiting in self._yielding:
            if not waiting.get_loop().is_closed():
                waiting.end(waiting.value)
        self._yielding.clear()


def _at_least_0(seconds: float) -> float:
    """A time limit as it was given, 0 for a negative one.

    Raises:
        TypeError: it is no number.
    """
    try:
        return max(seconds, 0)
    except TypeError:
        raise TypeError(f"timeout is a number of seconds or None, not {seconds!r}") from None
