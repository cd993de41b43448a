"""The asyncio Socket: pyzmq's calls, each of which acts at once and returns an awaitable.

    send(data) ──► lane open? ── yes ─► append to the pipe, done                (no call in between)
                        └─ no ──► core.send ── Again ─► queue behind the other senders
    recv()     ──► lane has one? ─ yes ─► popleft, done
                        └─ no ──► core.receive ─ Again ─► queue behind the other receivers

What happens past the lanes is in :mod:`zerohop.asyncio.sending` and
:mod:`zerohop.asyncio.receiving`, and when the loop gets its turn in :mod:`zerohop.asyncio.turns`.
"""

from __future__ import annotations

import contextlib

from zerohop.api.parts import (
    check_parts,
    make_message,
    make_part,
    plain_message,
    refuse_draft_arguments,
)
from zerohop.api.receive import as_frame, as_frames, as_message, as_octets, as_octets_list
from zerohop.api.socket import SocketBase
from zerohop.asyncio.front import Front
from zerohop.asyncio.futures import SENT, Received
from zerohop.asyncio.waiting import Waiting
from zerohop.constants import Errno, PollEvent, SocketOption
from zerohop.errors import Again, ZMQError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Any, Self

    from zerohop.asyncio.receiving import Receiving
    from zerohop.asyncio.sending import Sending

POLLIN, POLLOUT = PollEvent.POLLIN, PollEvent.POLLOUT
_EVENTS, _IN = SocketOption.EVENTS, int(POLLIN)


class Socket(SocketBase):
    """A ZeroMQ socket whose operations are awaited.

    May be made before the loop runs; it binds itself to the loop that is running when it first
    has to wait, and moves when it is used in another one later. Not for several threads: an asyncio
    socket belongs to its loop's thread, as everything of asyncio does.
    """

    _front: Front
    _sending: Sending
    _receiving: Receiving

    def _start(self) -> None:
        """Called by SocketBase at the end of its constructor."""
        with self._driver.lock:
            try:
                self._front = front = Front(self._driver, self._context_io)
            except BaseException:
                self._driver.close(0)
                raise
            self._sending = front.sending
            self._receiving = front.receiving

    def _on_close(self) -> None:
        """Called by SocketBase when the socket has been closed, lock held."""
        self._front.end()

    def get(self, option: int) -> int | bytes:
        """Return an option's value, as :meth:`zerohop.Socket.get`.

        For EVENTS it reads first what has come, if there is one connection and nothing to be
        received. With more it is the loop that knows which to read: a program that asks again and
        again has to await something in between (``await socket.poll()`` asks and waits).
        """
        value = super().get(option)
        if option == _EVENTS and not int(value) & _IN and self._lives_here():
            with self._driver.lock:
                came = self._driver.read_now()
            if came:
                value = super().get(option)
        return value

    def _announce(self, topic: bytes) -> None:
        """Called by SocketBase for a subscription, lock held."""
        self._front.announce(topic)

    def _lives_here(self) -> bool:
        """Whether the loop that runs in this thread is the one that this socket is bound to."""
        return self._front.lives_here()

    def _attach(self, how: Callable[[str], object], addr: str) -> None:
        """Called by SocketBase for bind() and connect()."""
        self._front.find_loop_if_any()
        super()._attach(how, addr)

    def close(self, linger: int | None = None) -> None:
        """Close, as :meth:`zerohop.Socket.close`; from another thread: in the loop's next turn."""
        loop = self._front.elsewhere
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has just ended
                loop.call_soon_threadsafe(super().close, linger)
                return
        super().close(linger)

    async def aclose(self, linger: int | None = None) -> None:
        """Close, and wait until what was sent is out (as LINGER allows) and all is given back."""
        self._front.find_loop()
        self.close(linger)
        if not self._driver.released:
            await self._front.released()

    async def __aenter__(self) -> Self:
        """Use as ``async with context.socket(...) as socket``."""
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Close; what was sent goes out while the loop runs on."""
        self.close()

    # Sending

    def send(
        self,
        data: Any,
        flags: int = 0,
        copy: bool = True,
        track: bool = False,
        routing_id: int | None = None,
        group: str | None = None,
        timeout: float | None = None,  # by name; the interpreter is slower at names alone
    ) -> Awaitable[Any]:
        """Send one part: a message, or with SNDMORE the first parts of one.

        Acts at once: also when it is not awaited the message is sent.

        Args:
            data: ``bytes``, anything with the buffer protocol, or a Frame.
            flags: ``SNDMORE``; ``DONTWAIT``: fail with Again instead of waiting.
            copy: False: send from the caller's buffer, which must not change until it is sent.
            track: with ``copy=False``: the result is a MessageTracker.
            routing_id: for libzmq's draft socket types; refused.
            group: likewise.
            timeout: seconds to wait at most, then Again; None: SNDTIMEO.

        Returns:
            An awaitable of None, or of a MessageTracker.

        Raises (through the awaitable):
            Again: nobody to send to, or all pipes full, for the time allowed.
            ZMQError: ENOTSUP, EFSM, EHOSTUNREACH, ENOTSOCK, ETERM as libzmq.
            TypeError: not something that can be sent (at once, not through the awaitable).
        """
        sending = self._sending
        lane = sending.lane
        credit = sending.credit
        if (
            lane is not None
            and credit
            and type(data) is bytes
            and copy
            and not flags
            and not track
            and routing_id is group  # type: ignore[comparison-overlap] # both None, in one question
        ):
            sending.credit = credit - 1
            lane.messages.append(data)
            if lane.asleep:
                sending.wake_reader(lane, data)
            return SENT
        if routing_id is not None or group is not None:
            refuse_draft_arguments(routing_id, group)
        if type(data) is bytes and copy:
            part: Any = data
            result: Any = None
        else:
            part, result = make_part(
                data, copy=copy, track=track, copy_threshold=self.copy_threshold
            )
        # Never in a variable: it may hold an error, whose traceback would hold our frame.
        if not sending.looks_back:
            return sending.send(part, flags, timeout, result=result)
        return self._warned(POLLOUT, sending.send(part, flags, timeout, result=result), sending)

    def send_multipart(
        self,
        msg_parts: Sequence[Any],
        flags: int = 0,
        copy: bool = True,
        track: bool = False,
        *,
        timeout: float | None = None,
        **kwargs: Any,
    ) -> Awaitable[Any]:
        """Send a message of several parts, all or nothing. Otherwise as :meth:`send`.

        Raises:
            TypeError: a part cannot be sent; nothing was.
            IndexError: there are no parts.
        """
        if kwargs:
            refuse_draft_arguments(kwargs.get("routing_id"), kwargs.get("group"))
        sending = self._sending
        result: Any = None
        message: Any = plain_message(msg_parts) if copy and not track else None
        if message is None:
            message, result = make_message(
                check_parts(msg_parts), copy=copy, track=track, copy_threshold=self.copy_threshold
            )
        elif not flags:
            # As in send, and below as in recv: what they have in common would cost a call more.
            lane = sending.lane
            credit = sending.credit
            if lane is not None and credit:
                sending.credit = credit - 1
                lane.messages.append(message)
                if lane.asleep:
                    sending.wake_reader(lane, message)
                return SENT
        if not sending.looks_back:
            return sending.send(message, flags, timeout, result=result)
        return self._warned(POLLOUT, sending.send(message, flags, timeout, result=result), sending)

    # Receiving

    def recv(
        self,
        flags: int = 0,
        copy: bool = True,
        track: bool = False,
        timeout: float | None = None,  # by name, as in send
    ) -> Any:
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
        receiving = self._receiving
        lane = receiving.lane
        number = receiving.number
        if (
            lane is not None
            and copy
            and not flags
            and (number < receiving.limit or receiving.go_on())
        ):
            try:
                message = lane.messages.popleft()
            except IndexError:
                pass
            else:
                if type(message) is bytes:
                    receiving.number = number + 1
                    if receiving.inproc and lane.full:
                        receiving.drained(lane)
                    received = Received()
                    received.value = message
                    received.key = number
                    received.front = receiving
                    return received
                receiving.put_first(message)
        del track
        convert = as_octets if copy else as_frame
        if not receiving.looks_back:
            return receiving.receive(flags, timeout, convert, part=True)
        return self._receive(flags, timeout, convert, part=True)

    def recv_multipart(
        self,
        flags: int = 0,
        copy: bool = True,
        track: bool = False,
        timeout: float | None = None,  # by name, as in send
    ) -> Any:
        """Receive a whole message: the list of its parts. Otherwise as :meth:`recv`."""
        receiving = self._receiving
        lane = receiving.lane
        number = receiving.number
        if (
            lane is not None
            and copy
            and not flags
            and (number < receiving.limit or receiving.go_on())
        ):
            try:
                message: Any = lane.messages.popleft()
            except IndexError:
                pass
            else:
                if type(message) is bytes:
                    message = [message]
                if type(message) is list and not (receiving.inproc and not _all_octets(message)):
                    receiving.number = number + 1
                    if receiving.inproc and lane.full:
                        receiving.drained(lane)
                    received = Received()
                    received.value = message
                    received.key = number
                    received.front = receiving
                    return received
                receiving.put_first(message)
        del track
        convert = as_octets_list if copy else as_frames
        if not receiving.looks_back:
            return receiving.receive(flags, timeout, convert, part=False)
        return self._receive(flags, timeout, convert, part=False)

    def _receive(
        self,
        flags: int,
        timeout: float | None,
        convert: Callable[[Any], Any] | None,
        *,
        part: bool,
    ) -> Any:
        """What recv_string and the like stand on: ``convert`` runs when the value is taken."""
        receiving = self._receiving
        return self._warned(
            POLLIN, receiving.receive(flags, timeout, convert, part=part), receiving
        )

    def _warned(
        self, event: int, awaitable: Awaitable[Any], direction: Sending | Receiving
    ) -> Awaitable[Any]:
        """The awaitable; if it waits for what can never come, say so once."""
        if direction.looks_back and isinstance(awaitable, Waiting):
            direction.looks_back -= 1
            self._warn_before_waiting(event)
        return awaitable

    def __aiter__(self) -> Self:
        """``async for message in socket``: bytes for one part, a list for more.

        Ends with the socket.
        """
        return self

    async def __anext__(self) -> bytes | list[bytes]:
        receiving = self._receiving
        lane = receiving.lane
        number = receiving.number
        if lane is not None and (number < receiving.limit or receiving.go_on()):
            try:
                message = lane.messages.popleft()
            except IndexError:
                pass
            else:
                receiving.number = number + 1
                if receiving.inproc and lane.full:
                    receiving.drained(lane)
                return message if type(message) is bytes else as_message(message)
        try:
            received: bytes | list[bytes] = await self._receive(0, None, as_message, part=False)
        except ZMQError as error:
            if error.errno in (Errno.ENOTSOCK, Errno.ETERM):
                raise StopAsyncIteration from None
            raise
        return received

    def poll(self, timeout: float | None = None, flags: int = PollEvent.POLLIN) -> Awaitable[int]:
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
        awaitable = self._front.wait_until(
            lambda: int(self._core.events()) & wanted, seconds, lambda waiting: waiting.end(0)
        )
        return awaitable if seconds == 0 else self._warned(wanted, awaitable, self._receiving)

    def wait_connected(self, timeout: float | None = None) -> Awaitable[None]:
        """Wait until every endpoint it connects to has a peer; if it only binds, for the first one.

        A peer is there when its handshake is done.

        Args:
            timeout: seconds; None: without limit.

        Raises (through the awaitable):
            Again: not in time; a note names the endpoints and their last errors.
        """
        return self._front.wait_until(
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

        Raises:
            UsageError: ENOTSUP at once: no other type has subscribers.
            Again: through the awaitable: not in time; a note says how many there are.
        """
        self._check_publisher()
        prefix = topic.encode() if isinstance(topic, str) else topic
        return self._front.wait_until(
            lambda: self._core.pattern.subscribers(prefix) >= n, timeout,
            lambda waiting: waiting.fail(Again(
                hint=f"{self._core.pattern.subscribers(prefix)} of {n} subscribers to {prefix!r}"
            )),
        )  # fmt: skip


def _all_octets(parts: list[Any]) -> bool:
    for part in parts:  # noqa: SIM110 (a loop costs half of what all() with a generator does)
        if type(part) is not bytes:
            return False
    return True
