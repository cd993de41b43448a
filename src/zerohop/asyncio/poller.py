"""Waiting for several sockets and descriptors at once, on the running loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from zerohop.asyncio.socket import Socket
from zerohop.constants import PollEvent, SocketOption

if TYPE_CHECKING:
    from collections.abc import Awaitable

_BOTH = PollEvent.POLLIN | PollEvent.POLLOUT


class Poller:
    """pyzmq's ``zmq.asyncio.Poller``: register what to wait for, then ``await poll(timeout)``.

    Takes asyncio sockets, file descriptors and objects with a ``fileno()``.
    """

    def __init__(self) -> None:
        self.sockets: list[tuple[Any, int]] = []

    def __contains__(self, socket: object) -> bool:
        return any(registered is socket or registered == socket for registered, _ in self.sockets)

    def register(self, socket: Any, flags: int = _BOTH) -> None:
        """Wait for ``flags`` (POLLIN, POLLOUT) of a socket or descriptor; 0: no longer.

        Raises:
            TypeError: neither a socket nor a descriptor.
        """
        _descriptor(socket)
        rest = [(other, old) for other, old in self.sockets if other is not socket]
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
        self.sockets = [(other, flags) for other, flags in self.sockets if other is not socket]

    def poll(self, timeout: float | None = None) -> Awaitable[list[tuple[Any, int]]]:
        """Wait until something is ready.

        Args:
            timeout: milliseconds (pyzmq); None or negative: without limit; 0: only look.

        Returns:
            An awaitable of ``(socket, events)`` pairs, empty when the time is over.
        """
        return asyncio.ensure_future(self._poll(timeout))

    async def _poll(self, timeout: float | None) -> list[tuple[Any, int]]:
        sockets = self.sockets[:]
        ready = self._ready_sockets(sockets)
        if ready or not sockets:
            return ready
        loop = asyncio.get_running_loop()
        wake: asyncio.Future[None] = loop.create_future()

        def awake(_: object = None) -> None:
            if not wake.done():
                wake.set_result(None)

        waits = []
        descriptors: dict[int, int] = {}
        for socket, flags in sockets:
            if isinstance(socket, Socket):
                wait = socket.poll(-1, flags)
                waits.append(asyncio.ensure_future(wait))
                waits[-1].add_done_callback(awake)
            else:
                number = _descriptor(socket)
                descriptors[number] = descriptors.get(number, 0) | flags
        seen: dict[int, int] = {}

        def descriptor_ready(number: int, event: int) -> None:
            seen[number] = seen.get(number, 0) | event
            awake()

        for number, flags in descriptors.items():
            if flags & PollEvent.POLLIN:
                loop.add_reader(number, descriptor_ready, number, int(PollEvent.POLLIN))
            if flags & PollEvent.POLLOUT:
                loop.add_writer(number, descriptor_ready, number, int(PollEvent.POLLOUT))
        timer = None
        if timeout is not None and timeout >= 0:
            timer = loop.call_later(timeout / 1000, awake)
        try:
            await wake
        finally:
            if timer is not None:
                timer.cancel()
            for number in descriptors:
                loop.remove_reader(number)
                loop.remove_writer(number)
            for wait in waits:
                if wait.done() and not wait.cancelled():
                    wait.exception()  # a socket that was closed meanwhile has said so
                wait.cancel()
        return [
            *self._ready_sockets(sockets),
            *(
                (socket, seen[_descriptor(socket)] & flags)
                for socket, flags in sockets
                if not isinstance(socket, Socket) and seen.get(_descriptor(socket), 0) & flags
            ),
        ]

    def _ready_sockets(self, sockets: list[tuple[Any, int]]) -> list[tuple[Any, int]]:
        ready = []
        for socket, flags in sockets:
            if isinstance(socket, Socket):
                events = int(socket.get(SocketOption.EVENTS)) & flags
                if events:
                    ready.append((socket, events))
        return ready


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
