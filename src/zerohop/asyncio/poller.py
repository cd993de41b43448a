"""Waiting for several sockets and descriptors at once, on the running loop."""

from __future__ import annotations

import asyncio
import os

from zerohop.api.socket import SocketBase
from zerohop.asyncio.socket import Socket
from zerohop.constants import PollEvent, SocketOption
from zerohop.errors import ZMQError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable
    from typing import Any, Self

_BOTH = PollEvent.POLLIN | PollEvent.POLLOUT
_LOOK_AGAIN = 0.001  # seconds
_COPIES = os.name == "posix"  # elsewhere a socket's handle is no descriptor that could be copied


class Poller:
    """pyzmq's ``zmq.asyncio.Poller``: register what to wait for, then ``await poll(timeout)``.

    Takes sockets, file descriptors and objects with a ``fileno()``.
    """

    def __init__(self) -> None:
        self.sockets: list[tuple[Any, int]] = []

    def __contains__(self, socket: object) -> bool:
        return any(_same(registered, socket) for registered, _ in self.sockets)

    def register(self, socket: Any, flags: int = _BOTH) -> None:
        """Wait for ``flags`` (POLLIN, POLLOUT) of a socket or descriptor; 0: no longer.

        Raises:
            TypeError: neither a socket nor a descriptor.
        """
        _descriptor(socket)
        rest = [(other, old) for other, old in self.sockets if not _same(other, socket)]
        if flags:
            rest.append((socket, int(flags)))
        self.sockets = rest

    def modify(self, socket: Any, flags: int = _BOTH) -> None:
        """Change what is waited for."""
        self.register(socket, flags)

    def unregister(self, socket: Any) -> None:
        """Wait for it no longer.

        Raises:
            KeyError: it is not registered.
        """
        if socket not in self:
            raise KeyError(socket)
        self.sockets = [entry for entry in self.sockets if not _same(entry[0], socket)]

    def poll(self, timeout: float | None = None) -> Awaitable[list[tuple[Any, int]]]:
        """Wait until something is ready.

        Args:
            timeout: milliseconds (pyzmq); None or negative: without limit; 0: only look.

        Returns:
            An awaitable of ``(socket, events)`` pairs, empty when the time is over.
        """
        return asyncio.ensure_future(self._poll(timeout))

    async def _poll(self, timeout: float | None) -> list[tuple[Any, int]]:
        registered = self.sockets[:]
        ready = _ready_sockets(registered)
        if not registered or (ready and not any(map(_is_descriptor, registered))):
            return ready
        # With a socket ready, descriptors still get the loop's next look.
        seconds = 0 if ready else None if timeout is None or timeout < 0 else timeout / 1000
        with _Watch(registered, only_look=seconds == 0) as watch:
            await watch.something(seconds)
        return [*_ready_sockets(registered), *watch.ready_descriptors()]


class _Watch:
    """One wait: watches everything that is registered while the ``with`` block runs.

    Of each descriptor a copy is watched: a loop has one watcher a descriptor, which may be
    another poll's, or the program's own.
    """

    def __init__(self, registered: list[tuple[Any, int]], *, only_look: bool) -> None:
        self._timeout = 0 if only_look else -1
        self._registered = registered
        self._loop = asyncio.get_running_loop()
        self._wake: asyncio.Future[None] = self._loop.create_future()
        self._waits: list[asyncio.Future[int]] = []
        self._seen: dict[int, int] = {}
        self._watched: list[int] = []
        self._pauses: dict[int, asyncio.TimerHandle] = {}

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _begin(self) -> None:
        wanted: dict[int, int] = {}
        for entry, flags in self._registered:
            if isinstance(entry, Socket):
                wait = asyncio.ensure_future(entry.poll(self._timeout, flags))
                wait.add_done_callback(self._awake)
                self._waits.append(wait)
            elif isinstance(entry, SocketBase):
                number = self._copy(entry.fileno())
                self._loop.add_reader(number, self._look, entry, flags, number)
            else:
                number = _descriptor(entry)
                wanted[number] = wanted.get(number, 0) | flags
        for number, flags in wanted.items():
            copy = self._copy(number)
            if flags & PollEvent.POLLIN:
                self._loop.add_reader(copy, self._descriptor_ready, number, PollEvent.POLLIN)
            if flags & PollEvent.POLLOUT:
                self._loop.add_writer(copy, self._descriptor_ready, number, PollEvent.POLLOUT)

    def _copy(self, number: int) -> int:
        copy = os.dup(number) if _COPIES else number
        self._watched.append(copy)
        return copy

    def __exit__(self, *exc_info: object) -> None:
        for pause in self._pauses.values():
            pause.cancel()
        for number in self._watched:
            self._loop.remove_reader(number)
            self._loop.remove_writer(number)
            if _COPIES:
                os.close(number)
        for wait in self._waits:
            if wait.done() and not wait.cancelled():
                wait.exception()  # a socket that was closed meanwhile has said so
            wait.cancel()

    async def something(self, seconds: float | None) -> None:
        """Wait until something is ready, or the time is over."""
        if seconds == 0:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            return
        timer = None if seconds is None else self._loop.call_later(seconds, self._awake)
        try:
            await self._wake
        finally:
            if timer is not None:
                timer.cancel()

    def ready_descriptors(self) -> list[tuple[Any, int]]:
        """What was seen of descriptors, by their numbers."""
        return [
            (_descriptor(other), self._seen[_descriptor(other)] & flags)
            for other, flags in filter(_is_descriptor, self._registered)
            if self._seen.get(_descriptor(other), 0) & flags
        ]

    def _awake(self, _: object = None) -> None:
        if not self._wake.done():
            self._wake.set_result(None)

    def _descriptor_ready(self, number: int, event: int) -> None:
        self._seen[number] = self._seen.get(number, 0) | int(event)
        self._awake()

    def _look(self, socket: SocketBase, flags: int, number: int) -> None:
        """A blocking socket's descriptor (ZMQ_FD) is readable: something has changed.

        Perhaps not what is waited for; then look again a little later, for it may stay readable.
        """
        try:
            ready = int(socket.get(SocketOption.EVENTS)) & flags
        except ZMQError:  # it was closed: _ready_sockets will say so
            ready = flags
        if ready:
            self._awake()
        else:
            self._loop.remove_reader(number)
            self._pauses[number] = self._loop.call_later(
                _LOOK_AGAIN, self._loop.add_reader, number, self._look, socket, flags, number
            )


def _ready_sockets(registered: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
    ready = []
    for socket, flags in registered:
        if isinstance(socket, SocketBase):
            events = int(socket.get(SocketOption.EVENTS)) & flags
            if events:
                ready.append((socket, events))
    return ready


def _is_descriptor(entry: tuple[Any, int]) -> bool:
    return not isinstance(entry[0], SocketBase)


def _same(registered: object, socket: object) -> bool:
    return registered is socket or registered == socket


def _descriptor(socket: Any) -> int:
    """The descriptor of what was registered; 0 for an asyncio socket, which needs none.

    Raises:
        TypeError: there is none.
    """
    if isinstance(socket, Socket):
        return 0
    if isinstance(socket, int):
        return socket
    fileno = getattr(socket, "fileno", None)
    if fileno is None:
        raise TypeError(
            f"Socket must be a 0MQ socket, an integer fd or have a fileno() method: {socket!r}"
        )
    return int(fileno())
