"""The asyncio Socket: how an operation waits on the running loop.

    send(data) ──► lane open? ── yes ─► append to the pipe, done                (no call in between)
                        └─ no ──► core.send ── Again ─► queue behind the other senders
    recv()     ──► lane has one? ─ yes ─► popleft, done
                        └─ no ──► core.receive ─ Again ─► queue behind the other receivers

What was sent is written at once if it is the first of the loop's turn, and together with the rest at the
end of the turn otherwise, or after ``_CREDIT`` messages. A socket that always has something to do
yields to the loop about every millisecond: operations that are done then return an awaitable that
suspends until the next turn (zmq.asyncio never yields there, and starves every other task).
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from zerohop.api.parts import check_parts, make_message, make_part, to_part
from zerohop.api.receive import as_frame, as_frames, as_octets, as_octets_list
from zerohop.api.socket import SocketBase
from zerohop.asyncio.futures import (
    SENT,
    Converted,
    Received,
    ReceivedPart,
    Waiting,
    WaitingReceive,
)
from zerohop.constants import Errno, Flag, PollEvent
from zerohop.errors import Again, ContextTerminated, UsageError, ZMQError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from zerohop.patterns.pipe import Message, Pipe

_CREDIT = 128  # operations between two looks at the clock; also messages queued before a flush
_TURN = 0.001  # seconds a socket may keep the loop: a 1 ms ticker beside a flood runs > 500 times a s
_DONTWAIT = int(Flag.DONTWAIT)
_SNDMORE = int(Flag.SNDMORE)


class Socket(SocketBase):
    """A ZeroMQ socket whose operations are awaited.

    May be made before the loop runs; it binds itself to the loop that is running when it first
    has to wait, and moves when it is used in another one later. Not for several threads: an asyncio
    socket belongs to its loop's thread, as everything of asyncio does.
    """

    _send_lane: Pipe | None = None
    _receive_lane: Pipe | None = None
    _credit = 0
    _turn: asyncio.Handle | None = None
    _turn_started = 0.0
    _loop: asyncio.AbstractEventLoop | None = None

    def _start(self) -> None:
        """Called by SocketBase at the end of its constructor."""
        self._receivers: deque[WaitingReceive] = deque()
        self._senders: deque[tuple[Waiting, Message, bool]] = deque()
        self._conditions: list[tuple[Waiting, Callable[[], int]]] = []
        self._yielding: list[Waiting] = []
        try:
            self._use_loop(asyncio.get_running_loop())
        except RuntimeError:
            return  # no loop yet: the first operation that needs one finds it

    # Sending

    def send(
        self,
        data: Any,
        flags: int = 0,
        copy: bool = True,  # noqa: FBT001, FBT002 (pyzmq's signature)
        track: bool = False,  # noqa: FBT001, FBT002
        routing_id: int | None = None,
        group: str | None = None,
        *,
        timeout: float | None = None,
    ) -> Awaitable[Any]:
        """Send one part: a message, or with SNDMORE the first parts of one.

        Acts at once: also when it is not awaited the message is sent.

        Args:
            data: ``bytes``, anything with the buffer protocol, or a Frame.
            flags: ``SNDMORE``; ``DONTWAIT``: fail with Again instead of waiting.
            copy: False: send from the caller's buffer, which must not change until it is sent.
            track: with ``copy=False``: the result is a MessageTracker.
            routing_id, group: for draft socket types; refused.
            timeout: seconds to wait at most, then Again; None: SNDTIMEO.

        Returns:
            An awaitable of None, or of a MessageTracker.

        Raises (through the awaitable):
            Again: nobody to send to, or all pipes full, for the time allowed.
            ZMQError: ENOTSUP, EFSM, EHOSTUNREACH, ENOTSOCK, ETERM as libzmq.
            TypeError: not something that can be sent (at once, not through the awaitable).
        """
        lane = self._send_lane
        credit = self._credit
        if (
            lane is not None
            and credit
            and type(data) is bytes
            and not flags
            and not track
            and not lane.full
        ):
            self._credit = credit - 1
            messages = lane.messages
            messages.append(data)
            if len(messages) == lane.hwm:
                lane.full = True
            if lane.asleep:
                self._wake_reader(lane)
            return SENT
        if routing_id is not None or group is not None:
            self._refuse_draft_arguments(routing_id, group)
        part, result = make_part(
            data, copy=copy, track=track, copy_threshold=self.copy_threshold
        )
        return self._send(part, flags, timeout, result=result)

    def send_multipart(
        self,
        msg_parts: Sequence[Any],
        flags: int = 0,
        copy: bool = True,  # noqa: FBT001, FBT002
        track: bool = False,  # noqa: FBT001, FBT002
        *,
        timeout: float | None = None,
        **kwargs: Any,
    ) -> Awaitable[Any]:
        """Send a message of several parts, all or nothing. Otherwise as :meth:`send`.

        Raises:
            TypeError: a part cannot be sent; nothing was.
            IndexError: there are no parts.
        """
        del kwargs
        lane = self._send_lane
        credit = self._credit
        if (
            lane is not None
            and credit
            and not flags
            and not track
            and not lane.full
            and type(msg_parts) is list
            and len(msg_parts) > 1
            and _all_octets(msg_parts)
        ):
            self._credit = credit - 1
            messages = lane.messages
            messages.append(msg_parts[:])
            if len(messages) == lane.hwm:
                lane.full = True
            if lane.asleep:
                self._wake_reader(lane)
            return SENT
        message, result = make_message(
            msg_parts, copy=copy, track=track, copy_threshold=self.copy_threshold
        )
        return self._send(message, flags, timeout, result=result)

    def _send(
        self, message: Message, flags: int, timeout: float | None, *, result: Any = None
    ) -> Awaitable[Any]:
        """The careful way: every case that the lane does not cover."""
        loop = self._find_loop()
        with self._driver.lock:
            more = bool(flags & _SNDMORE)
            try:
                if self._senders:
                    raise Again
                self._send_to_core(message, more=more)
            except Again as error:
                wait = self._time_limit(flags, timeout, self._options.sndtimeo)
                if wait == 0:
                    return _failed(loop, error)
                waiting = Waiting(loop=loop, value=result)
                self._limit(waiting, wait, loop)
                self._senders.append((waiting, message, more))
                self._driver.pump()
                return waiting
            except ZMQError as error:
                return _failed(loop, error)
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
        driver = self._driver
        if self._turn is None:
            self._begin_turn(loop)
            driver.pump()
        elif not self._credit:
            driver.pump()
        elif self._context_io.core.readable or self._core.send_lane is not self._send_lane:
            driver.pump()
        else:
            self._credit -= 1
            return SENT if result is None else _done(loop, result)
        if self._spend(loop):
            waiting = Waiting(loop=loop, value=result)
            self._yielding.append(waiting)
            return waiting
        return SENT if result is None else _done(loop, result)

    def _wake_reader(self, lane: Pipe) -> None:
        """Whoever reads the pipe sleeps: leave the note; write now if this begins the turn."""
        loop = self._find_loop()
        with self._driver.lock:
            if lane.asleep:
                lane.asleep = False
                lane.reader_signals.append(lane.reader)
            if self._turn is None:
                self._begin_turn(loop)
                self._driver.pump()
            elif self._context_io.core.readable:
                self._driver.pump()  # an inproc reader waits for nothing but this note

    # Receiving

    def recv(
        self,
        flags: int = 0,
        copy: bool = True,  # noqa: FBT001, FBT002
        track: bool = False,  # noqa: FBT001, FBT002
        *,
        timeout: float | None = None,
    ) -> Awaitable[Any]:
        """Receive one part; ``RCVMORE`` says whether its message has more.

        Args:
            flags: ``DONTWAIT``: fail with Again instead of waiting.
            copy: False: the result is a Frame instead of ``bytes``.
            track: for pyzmq's signature; what is received is the caller's at once.
            timeout: seconds to wait at most, then Again; None: RCVTIMEO.

        Raises (through the awaitable):
            Again: nothing came in the time allowed.
            ZMQError: ENOTSUP, EFSM, ENOTSOCK, ETERM as libzmq.
        """
        lane = self._receive_lane
        credit = self._credit
        if lane is not None and credit and copy and not flags and not lane.full:
            try:
                message = lane.messages.popleft()
            except IndexError:
                pass
            else:
                if type(message) is bytes:
                    self._credit = credit - 1
                    return Received((message, self))
                lane.messages.appendleft(message)
        del track
        return self._receive(flags, timeout, as_octets if copy else as_frame, part=True)

    def recv_multipart(
        self,
        flags: int = 0,
        copy: bool = True,  # noqa: FBT001, FBT002
        track: bool = False,  # noqa: FBT001, FBT002
        *,
        timeout: float | None = None,
    ) -> Awaitable[list[Any]]:
        """Receive a whole message: the list of its parts. Otherwise as :meth:`recv`."""
        del track
        return self._receive(flags, timeout, as_octets_list if copy else as_frames, part=False)

    def _receive(
        self,
        flags: int,
        timeout: float | None,
        convert: Callable[[Any], Any] | None,
        *,
        part: bool,
    ) -> Any:
        loop = self._find_loop()
        with self._driver.lock:
            wait = self._time_limit(flags, timeout, self._options.rcvtimeo)
            must_yield = not self._credit and self._spend(loop) and wait != 0
            try:
                if self._receivers or must_yield:
                    raise Again
                message, whole = self._take(part=part)
            except Again as error:
                if wait == 0:
                    return _failed(loop, error)
                waiting = WaitingReceive(self, convert, part=part, loop=loop)
                self._limit(waiting, wait, loop)
                self._receivers.append(waiting)
                if self._turn is None and not must_yield:
                    self._driver.pump()
                return waiting
            except ZMQError as error:
                return _failed(loop, error)
            if self._credit:
                self._credit -= 1
            self._after_receive()
            received = Received((message, self)) if whole else ReceivedPart((message, self))
            if convert is None or (convert is as_octets and type(message) is bytes):
                return received
            return Converted(received, convert)

    def _take(self, *, part: bool) -> tuple[Any, bool]:
        """The next message or part, and whether it is a whole message."""
        core = self._core
        if not part:
            return core.receive(), True
        begun = core.receiving_more
        value = core.receive_part()
        return value, not (begun or core.receiving_more)

    def _after_receive(self) -> None:
        """Let a connection that was paused go on; tell an inproc sender that there is room."""
        links, shared = self._core.links, self._context_io.core
        if links.to_resume or shared.writable or self._core.receiving_more or self._receivers:
            self._driver.pump()
        elif self._core.receive_lane is not self._receive_lane:
            self._driver.pump()

    def give_back(self, value: Any, *, part: bool) -> None:
        """Put what was taken and never got back to the head of the queue (see ``futures``)."""
        with self._driver.lock:
            if self._core.closed:
                return
            if part:
                self._core.put_back_part(value)
            else:
                self._core.put_back(value)
            self._driver.pump()

    def __aiter__(self) -> Socket:
        """``async for message in socket``: bytes for one part, a list for more; without end."""
        return self

    async def __anext__(self) -> bytes | list[bytes]:
        lane = self._receive_lane
        credit = self._credit
        if lane is not None and credit and not lane.full:
            try:
                message = lane.messages.popleft()
            except IndexError:
                pass
            else:
                self._credit = credit - 1
                if type(message) is bytes:
                    return message
                return as_message(message)
        try:
            return await self._receive(0, None, as_message, part=False)
        except ZMQError as error:
            if error.errno in (Errno.ENOTSOCK, Errno.ETERM):
                raise StopAsyncIteration from None
            raise

    # Turns of the loop

    def _begin_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self._turn_started = loop.time()
        self._turn = loop.call_soon(self._end_turn)

    def _end_turn(self) -> None:
        """The loop has come round: write what has gathered, let those that yielded go on."""
        with self._driver.lock:
            self._turn = None
            self._credit = _CREDIT
            for waiting in self._yielding:
                if not waiting.done():
                    waiting.settle(waiting.value)
            self._yielding.clear()
            self._driver.pump()

    def _spend(self, loop: asyncio.AbstractEventLoop) -> bool:
        """The credit is used up: renew it, or say that it is time to yield."""
        if self._turn is None:
            self._begin_turn(loop)
        elif loop.time() - self._turn_started > _TURN:
            return True
        self._credit = _CREDIT
        return False

    # Waiting

    def activity(self) -> bool:
        """Serve who waits, as far as the core can; return whether that changed anything."""
        core = self._core
        served = False
        if self._receivers:
            served = self._serve_receivers()
        if self._senders:
            served |= self._serve_senders()
        if self._conditions:
            self._serve_conditions()
        if served:
            core.settle(self._driver.now())
        self._send_lane = None if self._senders else core.send_lane
        self._receive_lane = None if self._receivers else core.receive_lane
        return served

    def _serve_receivers(self) -> bool:
        waiting_list = self._receivers
        served = False
        while waiting_list:
            waiting = waiting_list[0]
            if not waiting.done():
                try:
                    message, waiting.whole = self._take(part=waiting.part)
                except Again:
                    break
                except ZMQError as error:
                    waiting.fail(error)
                else:
                    waiting.settle(message)
                    served = True
            waiting_list.popleft()
        return served

    def _serve_senders(self) -> bool:
        waiting_list = self._senders
        served = False
        while waiting_list:
            waiting, message, more = waiting_list[0]
            if not waiting.done():
                try:
                    self._send_to_core(message, more=more)
                except Again:
                    break
                except ZMQError as error:
                    waiting.fail(error)
                else:
                    waiting.settle(waiting.value)
                    served = True
            waiting_list.popleft()
        return served

    def _serve_conditions(self) -> None:
        left = []
        for waiting, holds in self._conditions:
            if waiting.done():
                continue
            try:
                value = holds()
            except ZMQError as error:
                waiting.fail(error)
            else:
                if value:
                    waiting.settle(value)
                else:
                    left.append((waiting, holds))
        self._conditions = left

    def _wait_until(
        self, holds: Callable[[], int], seconds: float | None, give_up: Callable[[Waiting], None]
    ) -> Awaitable[Any]:
        """Wait until ``holds()`` gives something true, which is the result; lock not held."""
        loop = self._find_loop()
        with self._driver.lock:
            try:
                value = holds()
            except ZMQError as error:
                return _failed(loop, error)
            if value:
                return _done(loop, value)
            waiting = Waiting(loop=loop)
            if seconds is not None:
                waiting.timer = loop.call_later(seconds, give_up, waiting)
            self._conditions.append((waiting, holds))
            self._driver.pump()
            return waiting

    def poll(
        self, timeout: float | None = None, flags: int = PollEvent.POLLIN
    ) -> Awaitable[int]:
        """Wait until the socket is readable or writable, as ``flags`` asks.

        Args:
            timeout: milliseconds (pyzmq); None or negative: without limit.
            flags: POLLIN, POLLOUT or both.

        Returns:
            An awaitable of the events that are there, 0 when the time is over.

        Raises:
            ZMQError: ENOTSUP at once: the socket is closed.
        """
        if self.closed:
            raise ZMQError(Errno.ENOTSUP)
        wanted = int(flags)
        seconds = None if timeout is None or timeout < 0 else timeout / 1000
        return self._wait_until(
            lambda: int(self._core.events()) & wanted, seconds, lambda waiting: waiting.end(0)
        )

    def wait_connected(self, timeout: float | None = None) -> Awaitable[None]:
        """Wait until every endpoint that this socket connects to has a peer, handshake done.

        A socket that only binds waits for its first peer.

        Args:
            timeout: seconds; None: without limit.

        Raises (through the awaitable):
            Again: not in time; a note names the endpoints and their last errors.
        """
        return self._wait_until(
            self._core.connected, timeout,
            lambda waiting: waiting.fail(Again(hint=self._core.why_not_connected())),
        )  # fmt: skip

    def wait_for_subscribers(
        self, topic: bytes | str = b"", n: int = 1, timeout: float | None = None
    ) -> Awaitable[None]:
        """Wait until ``n`` connected peers would get a message that starts with ``topic``.

        For PUB and XPUB: the end of ``sleep(0.1)`` for slow joiners.

        Args:
            topic: as :meth:`subscribe` takes it at the other end.
            n: how many peers.
            timeout: seconds; None: without limit.

        Raises (through the awaitable):
            Again: not in time.
        """
        prefix = topic.encode() if isinstance(topic, str) else topic
        return self._wait_until(
            lambda: self._core.pattern.subscribers(prefix) >= n, timeout,
            lambda waiting: waiting.fail(Again(
                hint=f"{self._core.pattern.subscribers(prefix)} of {n} subscribers to {prefix!r}"
            )),
        )  # fmt: skip

    def _time_limit(
        self, flags: int, timeout: float | None, option: float | None
    ) -> float | None:
        """Seconds to wait: 0 not at all, None without limit."""
        if flags & _DONTWAIT:
            return 0
        return option if timeout is None else max(timeout, 0)

    def _limit(
        self, waiting: Waiting, seconds: float | None, loop: asyncio.AbstractEventLoop
    ) -> None:
        if seconds is not None:
            waiting.timer = loop.call_later(seconds, waiting.fail, Again())

    # The loop

    def _find_loop(self) -> asyncio.AbstractEventLoop:
        """The running loop; the driver moves to it if it was on another.

        Raises:
            RuntimeError: no loop runs in this thread.
        """
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._use_loop(loop)
        return loop

    def _use_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._driver.lock:
            if self._loop is not None:
                # Whoever waited on the loop that is gone will never be resumed.
                self._receivers.clear()
                self._senders.clear()
                self._conditions.clear()
                self._yielding.clear()
            self._turn = None
            self._loop = loop
            self._credit = _CREDIT
            self._driver.attach(loop, thread=threading.get_ident())

    def _on_close(self) -> None:
        """Called by SocketBase.close, lock held: whoever waits is cancelled, as pyzmq does."""
        waiting_list: list[Waiting] = [
            *self._receivers,
            *(waiting for waiting, _, _ in self._senders),
            *(waiting for waiting, _ in self._conditions),
        ]
        self._receivers.clear()
        self._senders.clear()
        self._conditions.clear()
        self._send_lane = self._receive_lane = None
        for waiting in waiting_list:
            if not waiting.get_loop().is_closed():
                waiting.cancel()
        for waiting in self._yielding:
            if not waiting.done() and not waiting.get_loop().is_closed():
                waiting.settle(waiting.value)
        self._yielding.clear()


def as_message(message: Message) -> bytes | list[bytes]:
    """What iteration gives: bytes for a message of one part, else the list of its parts."""
    if isinstance(message, list):
        return as_octets_list(message)
    return as_octets(message)


def _all_octets(parts: list[Any]) -> bool:
    for part in parts:  # noqa: SIM110 (a loop costs half of what all() with a generator does)
        if type(part) is not bytes:
            return False
    return True


def _done(loop: asyncio.AbstractEventLoop, value: Any) -> Awaitable[Any]:
    future = loop.create_future()
    future.set_result(value)
    return future


def _failed(loop: asyncio.AbstractEventLoop, error: BaseException) -> Awaitable[Any]:
    future = loop.create_future()
    future.set_exception(error)
    return future

