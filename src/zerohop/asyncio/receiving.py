"""The receiving direction of an asyncio socket: its lane, who waits, and what comes back."""

from __future__ import annotations

from asyncio import get_running_loop

from zerohop.api.receive import as_frame, as_octets, as_octets_list
from zerohop.asyncio.futures import Converted, Received, ReceivedLast, failed, failed_later
from zerohop.asyncio.returned import Returned
from zerohop.asyncio.waiting import Line, WaitingReceive, as_frame_of_more, at_least_0
from zerohop.constants import Flag
from zerohop.errors import Again, ZMQError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from typing import Any

    from zerohop.asyncio.front import Front
    from zerohop.asyncio.returned import Key
    from zerohop.asyncio.turns import Turns
    from zerohop.io.driver import SocketDriver
    from zerohop.patterns.pipe import Message, Pipe

_DONTWAIT = int(Flag.DONTWAIT)


class Receiving:
    """What is received on one socket.

    Whoever uses the lane takes from its queue and counts ``number`` up. At the ``limit`` he asks
    :meth:`go_on` first.

    Args:
        front: knows the loop.
        driver: the socket's.
        turns: likewise.

    Attributes:
        lane: the pipe that the Socket takes from without asking; None: there is none now.
        number: of the message that is taken next; it only ever grows.
        limit: the number at which the clock is looked at, or a connection that waits for room goes
            on; until then the lane may be used.
        inproc: the lane's writer is a socket of this process: its parts may be lent ones, and it
            may wait for room at any time, so :meth:`drained` is called while the lane is full.
        line: who waits to receive.
        over: the turn is: whoever awaits what was received since has to wait for the next one.
        looks_back: as for :class:`~zerohop.asyncio.sending.Sending`.
    """

    __slots__ = (
        "_core", "_driver", "_front", "_lock", "_options", "_returned", "_turns",
        "inproc", "lane", "limit", "line", "looks_back", "number", "over",
    )  # fmt: skip

    def __init__(self, front: Front, driver: SocketDriver, turns: Turns) -> None:
        self._front = front
        self._driver = driver
        self._core = driver.core
        self._options = driver.core.options
        self._lock = driver.lock
        self._turns = turns
        self.lane: Pipe | None = None
        self.inproc = False
        self.number = 0
        self.limit = turns.credit
        self.over = False
        self.line = Line()
        self.looks_back = 8
        self._returned = Returned(driver.core)

    def receive(
        self,
        flags: int,
        timeout: float | None,
        convert: Callable[[Any], Any] | None,
        *,
        part: bool,
    ) -> Any:
        """Receive in every case that the lane does not cover.

        Args:
            flags: DONTWAIT.
            timeout: seconds; None: RCVTIMEO.
            convert: what the caller gets of it; None: the message itself.
            part: a single part is wanted, not a whole message.
        """
        loop = get_running_loop()
        if loop is not self._front.loop:
            self._front.find_loop()
        with self._lock:
            if flags & _DONTWAIT:
                wait: float | None = 0
            else:
                wait = self._options.rcvtimeo if timeout is None else at_least_0(timeout)
            try:
                message, key = self._take_or_look(part=part, look=wait != 0)
            except Again as error:
                if self._core.links.to_resume or self._core.context.writable:
                    self._driver.go_on_soon()
                if wait == 0:  # who asks again and again shall not starve the loop, and himself
                    return failed_later(error) if self.count(loop) else failed(loop, error)
                return self._wait(loop, wait, convert, part=part)
            except ZMQError as error:
                return failed(loop, error)
            if convert is not None:
                convert = self._needed(convert, message)
            self.looks_back = 0
            last = (self.number > self.limit and self._spend(loop)) and wait != 0
            self._after_receive()
        received = ReceivedLast() if last else Received()
        received.value = message
        received.key = key
        received.front = self
        return received if convert is None else Converted(received, convert)

    def _take_or_look(self, *, part: bool, look: bool) -> tuple[Any, Key]:
        line = self.line
        if line:
            line.tidy()
            if line:
                raise Again
        lane = self.lane
        if lane is None or lane.messages or self.inproc:
            try:
                return self._take(part=part)
            except Again:
                if not look:
                    raise
        elif not look:
            raise Again
        # Of a lane that is empty nothing need be asked: it is where all comes from.
        if not (self._front.vigil or self._front.make_vigil()).look():
            raise Again
        return self._take(part=part)

    def _needed(
        self, convert: Callable[[Any], Any], message: Message
    ) -> Callable[[Any], Any] | None:
        """What is left of a conversion for this message: mostly nothing."""
        if convert is as_octets:
            return None if type(message) is bytes else convert
        if convert is as_octets_list and type(message) is list:
            for part in message:
                if type(part) is not bytes:
                    return convert
            return None
        return as_frame_of_more if convert is as_frame and self._core.parts_in else convert

    def _wait(
        self,
        loop: asyncio.AbstractEventLoop,
        seconds: float | None,
        convert: Callable[[Any], Any] | None,
        *,
        part: bool,
    ) -> WaitingReceive:
        line = self.line
        waiting = WaitingReceive(self, convert, part=part, loop=loop)
        line.append(waiting)
        if seconds is not None:
            waiting.timer = loop.call_later(seconds, self._front.expire, line, waiting)
        self.lane = None
        if self._driver.has_work():
            self._driver.pump()
        vigil = self._front.vigil or self._front.make_vigil()
        vigil.keep(loop, waiting)
        return waiting

    def _take(self, *, part: bool) -> tuple[Any, Key]:
        """The next message or part, and what :meth:`give_back` wants to know of it."""
        core = self._core
        begun = bool(core.parts_in)
        value: Any = core.receive_part() if part else core.receive()
        number = self.number
        self.number = number + 1
        if begun or core.parts_in or self._returned.numbers:
            return value, self._returned.key(number, value, begun=begun)
        return value, number

    def count(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Something else was asked and is done; return whether the turn is over."""
        self.number += 1
        return self.number > self.limit and self._spend(loop)

    def go_on(self) -> bool:
        """Renew the limit of the lane; return whether it may be used."""
        loop = get_running_loop()
        if loop is not self._front.loop:
            self._front.find_loop()
        with self._lock:
            self._spend(loop)
        return self.number < self.limit

    def _spend(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Look at the clock; return whether the turn is over: then it is until the next begins.

        Whoever awaits one of the messages has to wait, so that none after it may be got sooner.
        """
        if self.over:
            return True
        self.over = self._turns.spend(loop)
        self.limit = self.number
        if not self.over:
            self.limit += self._turns.credit
            self._stop_at_room()
        return self.over

    def _stop_at_room(self) -> None:
        """A connection that was stopped goes on when half the lane is drained: not on the lane."""
        lane = self.lane
        if lane is not None and lane.full and not self.inproc:
            self.limit = min(self.limit, self.number + len(lane.messages) - lane.resume_at - 1)

    def new_turn(self, credit: int) -> None:
        """A turn begins, which gives no more than this."""
        limit = self.number + credit
        if self.over or self.limit > limit:
            self.over = False
            self.limit = limit
            self._stop_at_room()

    def _after_receive(self) -> None:
        """Let a connection that was paused go on; tell an inproc sender that there is room."""
        core, driver = self._core, self._driver
        if (
            core.links.to_resume
            or driver.watched
            or core.context.writable
            or core.parts_in
            or self.line
            or core.receive_lane is not self.lane
        ):
            driver.pump()

    def put_first(self, message: Message) -> None:
        """A message that the lane's user cannot deal with is the next one to be received."""
        with self._lock:
            self._core.put_back(message)
            self.lane = None  # not all comes from there any more

    def drained(self, lane: Pipe) -> None:
        """A message was taken from the lane, which is marked full: half empty, it goes on."""
        if len(lane.messages) <= lane.resume_at:
            with self._lock:
                lane.drained()
                self._driver.pump()

    def use(self, lane: Pipe | None) -> None:
        """The core has changed: the lane is this one now."""
        if self.line:
            lane = None
        if lane is not self.lane:
            self.lane = lane
            self.inproc = lane is not None and lane.reader.inproc
        if lane is not None and lane.full:
            self._stop_at_room()

    def serve(self) -> bool:
        """Receive for those that wait, as far as there is something; return whether there was.

        Not before those who have to wait for the end of the turn have what they have received.
        """
        line = self.line
        served = False
        if self.over:
            return False
        while line:
            waiting = line[0]
            if not waiting.future.done():
                try:
                    message, key = self._take(part=waiting.part)
                    if type(key) is tuple and self._core.parts_in:
                        waiting.has_more()
                except Again:
                    break
                except ZMQError as error:
                    waiting.fail(error)
                else:
                    self.looks_back = 0
                    waiting.hand_over(message, key)
                    served = self._turns.resumed = True
            line.popleft()
        return served

    # What comes back

    def give_back(self, value: Any, key: Key) -> None:
        """Put back what was taken and never got. On any thread: it may be a garbage collection."""
        with self._lock:
            if self._core.closed or self._core.context.terminated:
                return
            if type(value) is list and len(value) == 1:  # as recv_multipart gives it
                value = value[0]
            self._returned.put(value, key)
            self.lane = None
            self._driver.woken()

    def take_again(self, key: Key) -> bool:
        """Take what was given back, if nobody has received it meanwhile."""
        with self._lock:
            return self._returned.take_again(key)
