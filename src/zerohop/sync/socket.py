"""The blocking Socket: pyzmq's calls, each of which returns when it is done.

Every call first tries its lane, which needs no lock (:mod:`zerohop.sync.front`); then, with the
lock, the core; and where the core says Again it waits, by driving the reactor or by sleeping until
another thread has moved the socket (:mod:`zerohop.io.reactor`).

Sockets may be used by several threads at once. Two that send parts of messages (SNDMORE) at the
same time mix them, as with any stream: use ``send_multipart``.
"""

from __future__ import annotations

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
from zerohop.constants import Errno, Flag
from zerohop.errors import ZMQError
from zerohop.io.reactor import reactor_of
from zerohop.sync.front import Front
from zerohop.sync.wait_methods import WaitMethods

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from zerohop.api.tracker import MessageTracker
    from zerohop.patterns.pipe import Message, Part

_SNDMORE = int(Flag.SNDMORE)
_assign = object.__setattr__  # past the Socket's own, which looks for an option of that name


class Socket(WaitMethods, SocketBase):
    """A ZeroMQ socket whose calls wait. Safe for several threads."""

    _front: Front

    def _start(self) -> None:
        """Called by SocketBase at the end of its constructor, lock held."""
        driver, reactor = self._driver, reactor_of(self._context_io)
        front = driver.front = Front(driver, reactor)
        _assign(self, "_reactor", reactor)
        _assign(self, "_front", front)
        if self._shadowed is None:
            driver.attach(reactor)

    def _on_close(self) -> None:
        """Called by SocketBase when the socket has been closed, lock held."""
        front = getattr(self, "_front", None)
        if front is not None:  # else a signal handler has raised in the constructor
            front.end()

    def _announce(self, topic: bytes) -> None:
        self._front.announce(topic)

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
        if type(data) is bytes and copy and not (flags or track or routing_id or group):
            front = self._front
            lane = front.send_lane
            if lane is not None:
                pipe, messages, mark = lane
                if not pipe.full:
                    messages.append(data)
                    if pipe.asleep or len(messages) >= mark:
                        front.sent(pipe, data)
                    return None
            front.send(self._core.send, data, 0, timeout, self)
            return None
        if routing_id is not None or group is not None:
            refuse_draft_arguments(routing_id, group)
        part, tracker = make_part(data, copy=copy, track=track, copy_threshold=self.copy_threshold)
        send = self._core.send_part if flags & _SNDMORE else self._core.send
        self._front.send(send, part, flags, timeout, self)
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
        if type(msg_parts) is list and copy and not (flags or track or kwargs):
            message: Any = msg_parts[:]  # the caller may change his
            for part in message:
                if type(part) is not bytes:
                    break
            else:
                if len(message) > 1:
                    front = self._front
                    lane = front.send_lane
                    if lane is not None:
                        pipe, messages, mark = lane
                        if not pipe.full:
                            messages.append(message)
                            if pipe.asleep or len(messages) >= mark:
                                front.sent(pipe, message)
                            return None
                    front.send(self._core.send, message, 0, timeout, self)
                    return None
        parts = check_parts(msg_parts)
        if kwargs:
            refuse_draft_arguments(kwargs.get("routing_id"), kwargs.get("group"))
        message, tracker = make_message(
            parts, copy=copy, track=track, copy_threshold=self.copy_threshold
        )
        send = self._send_parts if flags & _SNDMORE else self._core.send
        self._front.send(send, message, flags, timeout, self)
        return tracker

    def _send_parts(self, message: Message) -> None:
        for part in message if isinstance(message, list) else [message]:
            self._core.send_part(part)

    # Receiving

    def recv(
        self,
        flags: int = 0,
        copy: bool = True,
        track: bool = False,
        timeout: float | None = None,  # by name, as in send
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
        pipe = self._front.receive_lane
        if pipe is not None:
            try:
                message = pipe.messages.popleft()
            except IndexError:
                pass
            else:
                if pipe.full and len(pipe.messages) <= pipe.resume_at:
                    self._front.drained(pipe)
                if type(message) is bytes and copy:
                    return message
                self._give_back(message)
        with self._driver.lock:
            part = self._front.receive(self._core.receive_part, flags, timeout, self)
            if type(part) is bytes and copy:
                return part
            return as_octets(part) if copy else as_frame(part, more=self._core.receiving_more)

    def recv_multipart(
        self,
        flags: int = 0,
        copy: bool = True,
        track: bool = False,
        *,
        timeout: float | None = None,
    ) -> list[Any]:
        """Receive a whole message: the list of its parts. Otherwise as :meth:`recv`."""
        pipe = self._front.receive_lane
        if pipe is not None:
            try:
                message = pipe.messages.popleft()
            except IndexError:
                pass
            else:
                if pipe.full and len(pipe.messages) <= pipe.resume_at:
                    self._front.drained(pipe)
                if copy and type(message) is list and not pipe.writer.inproc:
                    return message
                return as_octets_list(message) if copy else as_frames(message)
        with self._driver.lock:
            message = self._front.receive(self._core.receive, flags, timeout, self)
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
        taken: Any = self._take_part(flags, timeout) if part else self._take(flags, timeout)
        return taken if convert is None else convert(taken)

    def _take(self, flags: int = 0, timeout: float | None = None) -> Message:
        """The next message, or the rest of the one that ``recv`` has begun."""
        pipe = self._front.receive_lane
        if pipe is not None:
            try:
                message = pipe.messages.popleft()
            except IndexError:
                pass
            else:
                if pipe.full and len(pipe.messages) <= pipe.resume_at:
                    self._front.drained(pipe)
                return message
        with self._driver.lock:
            return self._front.receive(self._core.receive, flags, timeout, self)

    def _take_part(self, flags: int, timeout: float | None) -> Part:
        """The next part."""
        if self._front.receive_lane is not None:
            message = self._take(flags, timeout)
            if not isinstance(message, list):
                return message
            self._give_back(message)
        with self._driver.lock:
            return self._front.receive(self._core.receive_part, flags, timeout, self)

    def _give_back(self, message: Message) -> None:
        """What came off the lane has several parts, of which the caller wants one."""
        with self._driver.lock:
            self._core.put_back(message)
            self._front.activity()

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
