"""The sending direction of an asyncio socket: its lane, and who waits to send."""

from __future__ import annotations

from asyncio import get_running_loop

from zerohop.asyncio.futures import (
    SENT,
    SENT_LAST,
    done_with,
    done_with_later,
    failed,
    failed_later,
)
from zerohop.asyncio.waiting import Line, WaitingSend, at_least_0
from zerohop.constants import Flag
from zerohop.core.output import FLUSH_SIZE
from zerohop.errors import Again, ZMQError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable
    from typing import Any

    from zerohop.asyncio.front import Front
    from zerohop.asyncio.turns import Turns
    from zerohop.io.driver import SocketDriver
    from zerohop.patterns.pipe import Message, Pipe

_DONTWAIT = int(Flag.DONTWAIT)
_SNDMORE = int(Flag.SNDMORE)
_SENDS = 2  # for each operation that the turn has credit for: a receive takes twice as long
_OVERHEAD = 16  # octets: what a message costs besides its own, so that empty ones count, too


class Sending:
    """What is sent on one socket.

    Whoever uses the lane appends to its queue, counts ``credit`` down, and calls
    :meth:`wake_reader` if the lane sleeps. There is room for as many messages as there is credit.

    Args:
        front: knows the loop.
        driver: the socket's.
        turns: likewise.

    Attributes:
        lane: the pipe that the Socket appends to without asking; None: there is none now.
        credit: operations left until the clock is looked at, or the lane may be full.
        line: who waits to send.
        looks_back: waits left that are checked for the classic mistakes; a socket that has sent
            something is right, and one that has waited in vain so often is already told.
    """

    __slots__ = (
        "_context", "_core", "_driver", "_front", "_given", "_lock", "_options", "_turns",
        "credit", "lane", "line", "looks_back",
    )  # fmt: skip

    def __init__(self, front: Front, driver: SocketDriver, turns: Turns) -> None:
        self._front = front
        self._driver = driver
        self._core = driver.core
        self._context = driver.core.context
        self._options = driver.core.options
        self._lock = driver.lock
        self._turns = turns
        self.lane: Pipe | None = None
        self.credit = 0
        self._given = 0  # what the credit was when it was last looked at
        self.line = Line()
        self.looks_back = 8

    def send(
        self, message: Message, flags: int, timeout: float | None, *, result: Any = None
    ) -> Awaitable[Any]:
        """Send in every case that the lane does not cover.

        Args:
            message: a message, or with SNDMORE the first parts of one.
            flags: DONTWAIT, SNDMORE.
            timeout: seconds; None: SNDTIMEO.
            result: what the awaitable gives.
        """
        loop = get_running_loop()
        if loop is not self._front.loop:
            self._front.find_loop()
        with self._lock:
            line = self.line
            if line:
                line.tidy()
            try:
                if line:
                    raise Again
                if flags & _SNDMORE:
                    self._send_parts(message)
                else:
                    self._core.send(message)
            except Again as error:
                wait = self._options.sndtimeo if timeout is None else at_least_0(timeout)
                if flags & _DONTWAIT:
                    wait = 0
                if wait == 0:  # as Receiving.receive
                    over = self._front.receiving.count(loop)
                    return failed_later(error) if over else failed(loop, error)
                waiting = WaitingSend(loop, result, message, more=bool(flags & _SNDMORE))
                line.append(waiting)
                if wait is not None:
                    waiting.timer = loop.call_later(wait, self._front.expire, line, waiting)
                self._driver.pump()
                vigil = self._front.vigil or self._front.make_vigil()
                vigil.keep(loop, waiting)
                return waiting
            except ZMQError as error:
                return failed(loop, error)
            if self._sent(loop, message):
                return SENT_LAST if result is None else done_with_later(result)
            return SENT if result is None else done_with(loop, result)

    def _send_parts(self, message: Message) -> None:
        for part in message if isinstance(message, list) else (message,):
            self._core.send_part(part)

    def _sent(self, loop: asyncio.AbstractEventLoop, message: Message) -> bool:
        """Write now, or leave it to the end of the turn; return whether the turn is over."""
        self.looks_back = 0
        turns = self._turns
        if turns.write_at_once(loop):
            return turns.late
        over = False
        size = _size_of(message)
        messages = self._given - self.credit + 1
        used_up = not self.credit
        if used_up:
            over = turns.spend(loop)
        else:
            self.credit -= 1
        self._given = self.credit
        if (
            self._context.readable  # an inproc reader waits for nothing but its note
            or self._core.send_lane is not self.lane
            or self._driver.watched
        ):
            self._driver.pump()
        else:
            turns.sent(messages * size)
        if used_up:
            self._grant(self.lane, size)
            self._given = self.credit
        return over

    def _grant(self, lane: Pipe | None, size: int) -> None:
        """Give credit for messages of this size, as much as the turn and the lane have room for.

        The message after them completes what is worth a write.
        """
        credit = _SENDS * self._turns.credit
        if lane is not None:
            credit = min(credit, (FLUSH_SIZE - self._turns.unwritten) // size)
            if lane.hwm:  # its last place is given by the core, which sees that it is full then
                credit = max(0, min(credit, lane.hwm - 1 - len(lane.messages)))
        self.credit = credit

    def new_turn(self, credit: int) -> None:
        """A turn begins, which gives no more than this."""
        if self.credit > credit:
            self._given -= self.credit - credit
            self.credit = credit

    def wake_reader(self, lane: Pipe, message: Message) -> None:
        """The message was put into the lane, whose reader sleeps: leave a note.

        Written now if it begins the turn.
        """
        loop = get_running_loop()
        if loop is not self._front.loop:
            self._front.find_loop()
        with self._lock:
            peer = lane.reader
            if not (peer.connected or peer.inproc):
                # There is nothing to write to, and no turn that would end with it: whatever is
                # queued goes out when the handshake is done.
                lane.asleep = False
                return
            if lane.asleep:
                lane.reader_signals.append(peer)
                lane.asleep = False
            self._given -= 1  # it is counted here
            if self._turns.write_at_once(loop):
                return
            if self._context.readable:  # an inproc reader waits for nothing but this note
                self._driver.pump()
            else:
                self._turns.sent(_size_of(message))

    def use(self, lane: Pipe | None) -> None:
        """The core has changed: the lane is this one now."""
        if self.line:
            lane = None
        if lane is not self.lane:
            self.lane = lane
            self._grant(lane, _OVERHEAD)
            self._given = self.credit
        elif lane is not None and lane.hwm and self.credit + len(lane.messages) >= lane.hwm:
            self._given -= self.credit
            self.credit = 0

    def serve(self) -> bool:
        """Send for those that wait, as far as the core takes it; return whether it took any."""
        line = self.line
        served = False
        while line:
            waiting = line[0]
            if not waiting.done():
                try:
                    if waiting.more:
                        self._send_parts(waiting.message)
                    else:
                        self._core.send(waiting.message)
                except Again:
                    break
                except ZMQError as error:
                    waiting.fail(error)
                else:
                    waiting.settle(waiting.value)
                    served = True
            line.popleft()
        return served


def _size_of(message: Message) -> int:
    """About how many octets a message takes on its way."""
    return _OVERHEAD + (sum(map(len, message)) if type(message) is list else len(message))
