"""The blocking Socket: pyzmq's calls, each of which returns when it is done.

Every call first tries its lane, which needs no lock (:mod:`zerohop.sync.front`); then, with the
lock, the core; and where the core says Again it waits, by driving the reactor or by sleeping until
another thread has moved the socket (:mod:`zerohop.sync.reactor`).

Sockets may be used by several threads at once. Two that send parts of messages (SNDMORE) at the
same time mix them, as with any stream: use ``send_multipart``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from zerohop.api.parts import (
    check_buffer,
    check_parts,
    copy_into,
    make_message,
    make_part,
    refuse_draft_arguments,
)
from zerohop.api.receive import as_frame, as_frames, as_message, as_octets, as_octets_list
from zerohop.api.socket import SocketBase
from zerohop.constants import Errno, Flag, PollEvent
from zerohop.errors import Again, ZMQError
from zerohop.sync.front import POLLER, Front
from zerohop.sync.reactor import reactor_of
from zerohop.sync.seat import FOREVER, Waiter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from zerohop.api.tracker import MessageTracker
    from zerohop.patterns.pipe import Message, Part
    from zerohop.sync.reactor import Reactor

_T = TypeVar("_T")

_DONTWAIT = int(Flag.DONTWAIT)
_SNDMORE = int(Flag.SNDMORE)
_IN = int(PollEvent.POLLIN)
_OUT = int(PollEvent.POLLOUT)

# Deadlines besides those on the reactor's clock.
_AT_ONCE = 0.0  # do the I/O that can be done, and no more
_OVER = -1.0  # the time is over; the next Again is the caller's


class Socket(SocketBase):
    """A ZeroMQ socket whose calls wait. Safe for several threads."""

    _front: Front
    _reactor: Reactor

    def _start(self) -> None:
        """Called by SocketBase at the end of its constructor, lock held."""
        driver = self._driver
        self._reactor = reactor_of(self._context_io)
        self._front = Front(driver, self._reactor)
        driver.front = self._front
        if self._shadowed is None:
            driver.attach(self._reactor)

    def _on_close(self) -> None:
        """Called by SocketBase when the socket has been closed, lock held."""
        self._front.end()

    # Sending

    def send(
        self,
        data: Any,
        flags: int = 0,
        copy: bool = True,
        track: bool = False,
        routing_id: int | None = None,
        group: str | None = None,
        *,
        timeout: float | None = None,
    ) -> MessageTracker | None:
        """Send one part: a message, or with SNDMORE one of the first parts of a message.

        Args:
            data: ``bytes``, anything with the buffer protocol, or a Frame.
            flags: ``SNDMORE``; ``DONTWAIT``: raise Again instead of waiting.
            copy: False: send from the caller's buffer, which must not change until it is sent.
            track: with ``copy=False``: return a MessageTracker that tells when that is.
            routing_id: for libzmq's draft socket types; refused.
            group: likewise.
            timeout: seconds to wait at most; None: SNDTIMEO.

        Returns:
            None, or a MessageTracker where ``track`` asks for one.

        Raises:
            Again: nobody to send to, or all their pipes full, for the time allowed.
            ZMQError: ENOTSUP, EFSM, EHOSTUNREACH, ENOTSOCK, ETERM as ``zmq_send``.
            TypeError: not something that can be sent.
        """
        lane = self._front.send_lane
        if (
            lane is not None
            and type(data) is bytes
            and copy
            and not (flags or track or routing_id or group)
        ):
            pipe, messages, mark = lane
            if not pipe.full:
                messages.append(data)
                if pipe.asleep or len(messages) >= mark:
                    self._front.sent(pipe, data)
                return None
        if routing_id is not None or group is not None:
            refuse_draft_arguments(routing_id, group)
        part, tracker = make_part(data, copy=copy, track=track, copy_threshold=self.copy_threshold)
        if flags & _SNDMORE:
            self._wait_to_send(self._core.send_part, part, flags, timeout)
        else:
            self._wait_to_send(self._core.send, part, flags, timeout)
        return tracker

    def send_multipart(
        self,
        msg_parts: Sequence[Any],
        flags: int = 0,
        copy: bool = True,
        track: bool = False,
        *,
        timeout: float | None = None,
        **kwargs: Any,
    ) -> MessageTracker | None:
        """Send a message of several parts, all or nothing. Otherwise as :meth:`send`.

        Raises:
            TypeError: a part cannot be sent; nothing was.
            IndexError: there are no parts.
        """
        parts = check_parts(msg_parts)
        if kwargs:
            refuse_draft_arguments(**kwargs)
        message, tracker = make_message(
            parts, copy=copy, track=track, copy_threshold=self.copy_threshold
        )
        if flags & _SNDMORE:
            self._wait_to_send(self._send_parts, message, flags, timeout)
        else:
            self._wait_to_send(self._core.send, message, flags, timeout)
        return tracker

    def _send_parts(self, message: Message) -> None:
        for part in message if isinstance(message, list) else [message]:
            self._core.send_part(part)

    def _wait_to_send(
        self, send: Callable[[Any], None], message: Message, flags: int, timeout: float | None
    ) -> None:
        """Send with the lock, as soon as the core takes the message."""
        with self._driver.lock:
            deadline: float | None = None
            while True:
                try:
                    send(message)
                except Again:
                    if deadline == _OVER:
                        raise
                    if deadline is None:
                        deadline = self._deadline(flags, timeout, self._options.sndtimeo)
                    deadline = self._wait(_OUT, deadline)
                else:
                    self._front.flush()
                    return

    # Receiving

    def recv(
        self,
        flags: int = 0,
        copy: bool = True,
        track: bool = False,
        *,
        timeout: float | None = None,
    ) -> Any:
        """Receive one part; RCVMORE says whether its message has more.

        Args:
            flags: ``DONTWAIT``: raise Again instead of waiting.
            copy: False: return a Frame instead of ``bytes``.
            track: for pyzmq's signature; what is received is the caller's at once.
            timeout: seconds to wait at most; None: RCVTIMEO.

        Raises:
            Again: nothing came in the time allowed.
            ZMQError: ENOTSUP, EFSM, ENOTSOCK, ETERM as ``zmq_recv``.
        """
        take, pipe = self._front.receive_lane
        try:
            message = take()
        except IndexError:
            pass
        else:
            if pipe.full:  # type: ignore[union-attr] # what has given a message is a lane
                self._front.drained(pipe)  # type: ignore[arg-type]
            if type(message) is bytes and copy:
                return message
            self._give_back(message)
        part, more = self._take_part(flags, timeout)
        return as_octets(part) if copy else as_frame(part, more=more)

    def recv_multipart(
        self,
        flags: int = 0,
        copy: bool = True,
        track: bool = False,
        *,
        timeout: float | None = None,
    ) -> list[Any]:
        """Receive a whole message: the list of its parts. Otherwise as :meth:`recv`."""
        message = self._take(flags, timeout)
        return as_octets_list(message) if copy else as_frames(message)

    def _receive(
        self,
        flags: int,
        timeout: float | None,
        convert: Callable[[Any], Any] | None,
        *,
        part: bool,
    ) -> Any:
        """Receive a part or a whole message; return what ``convert`` makes of it."""
        taken: Any = self._take_part(flags, timeout)[0] if part else self._take(flags, timeout)
        return taken if convert is None else convert(taken)

    def _take(self, flags: int = 0, timeout: float | None = None) -> Message:
        """The next message, or the rest of the one that ``recv`` has begun."""
        take, pipe = self._front.receive_lane
        message: Message
        try:
            message = take()
        except IndexError:
            with self._driver.lock:
                message = self._wait_to_receive(self._core.receive, flags, timeout)
        else:
            if pipe.full:  # type: ignore[union-attr]
                self._front.drained(pipe)  # type: ignore[arg-type]
        return message

    def _take_part(self, flags: int, timeout: float | None) -> tuple[Part, bool]:
        """The next part, and whether its message has more."""
        with self._driver.lock:
            core = self._core
            part = self._wait_to_receive(core.receive_part, flags, timeout)
            if core.receiving_more:
                self._front.activity()  # the lane is closed until the last part is taken
            return part, core.receiving_more

    def _give_back(self, message: Message) -> None:
        """What came off the lane has several parts, of which the caller wants one."""
        with self._driver.lock:
            self._core.put_back(message)
            self._front.activity()

    def _wait_to_receive(self, receive: Callable[[], _T], flags: int, timeout: float | None) -> _T:
        """Receive as soon as the core has something. Lock held."""
        deadline: float | None = None
        while True:
            try:
                taken = receive()
            except Again:
                if deadline == _OVER:
                    raise
                if deadline is None:
                    deadline = self._deadline(flags, timeout, self._options.rcvtimeo)
                deadline = self._wait(_IN, deadline)
            else:
                self._front.received()
                return taken

    def recv_into(
        self,
        buffer: Any,
        /,
        *,
        nbytes: int = 0,
        flags: int = 0,
        timeout: float | None = None,
    ) -> int:
        """Receive one part into a buffer.

        Args:
            buffer: writable, without gaps; what does not fit is thrown away.
            nbytes: octets to copy at most; 0: as many as fit.
            flags: as :meth:`recv`.
            timeout: as :meth:`recv`.

        Returns:
            The size of the part, which may be more than was copied.

        Raises:
            BufferError: the buffer is read-only or has gaps; nothing was received.
        """
        check_buffer(buffer, nbytes)
        return copy_into(self.recv(flags, timeout=timeout), buffer, nbytes)

    def __iter__(self) -> Iterator[bytes | list[bytes]]:
        """Each message that comes: bytes for one part, a list for more; ends with the socket.

        Raises:
            Again: nothing came for RCVTIMEO.
        """
        while True:
            try:
                message = self._take()
            except ZMQError as error:
                if error.errno in (Errno.ENOTSOCK, Errno.ETERM):
                    return
                raise
            yield as_message(message)

    # Waiting

    def poll(self, timeout: float | None = None, flags: int = PollEvent.POLLIN) -> int:
        """Wait until the socket is ready.

        Args:
            timeout: milliseconds; None or negative: without limit.
            flags: ``POLLIN``, ``POLLOUT`` or both.

        Returns:
            Those of ``flags`` that it is ready for; 0 when the time is over.

        Raises:
            ZMQError: ENOTSUP, the socket is closed; ETERM.
        """
        if self.closed:
            raise ZMQError(Errno.ENOTSUP)
        with self._driver.lock:
            deadline = _AT_ONCE if timeout == 0 else FOREVER
            if timeout is not None and timeout > 0:
                deadline = self._reactor.time() + timeout / 1000
            while True:
                events = int(self._core.events()) & flags
                if events or deadline == _OVER:
                    return events
                deadline = self._wait(flags | POLLER, deadline)

    def _deadline(self, flags: int, timeout: float | None, option: float | None) -> float:
        seconds = option if timeout is None else timeout
        if flags & _DONTWAIT or (seconds is not None and seconds <= 0):
            return _AT_ONCE
        return FOREVER if seconds is None else self._reactor.time() + seconds

    def _wait(self, mask: int, deadline: float) -> float:
        """Wait until the core should be asked again; return the deadline, perhaps ``_OVER``."""
        reactor = self._reactor
        if deadline == _AT_ONCE:
            reactor.poll()
            return _OVER
        waiter = Waiter(reactor)
        self._front.wait_for(waiter, mask)
        try:
            return deadline if reactor.wait(waiter, deadline) else _OVER
        finally:
            self._front.wait_no_more(waiter)
