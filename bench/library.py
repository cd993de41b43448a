"""A contender's sockets, opened and set by the names that all of them share.

Everything that differs between the libraries, and that a case must not know, is here.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from bench.contenders import Contender


class Library:
    """One contender's sockets, opened by pyzmq's names."""

    def __init__(self, contender: Contender) -> None:
        self._names = import_module(contender.names)
        self._context = import_module(contender.module).Context()
        self._sockets: list[Any] = []

    def open(self, kind: str) -> Any:
        """A socket with this library's defaults; ``kind`` is ``"PUSH"``, ``"SUB"`` ..."""
        socket = self._context.socket(getattr(self._names, kind))
        self._sockets.append(socket)
        return socket

    def bind(self, socket: Any, endpoint: str) -> str:
        """Bind, and say where the socket can be reached."""
        socket.bind(endpoint)
        where: bytes = socket.getsockopt(self._names.LAST_ENDPOINT)
        return where.rstrip(b"\0").decode()

    def set_if_known(self, socket: Any, option: str, value: int) -> bool:
        """Set an option by its name; False where this library has no such option (pyomq: BACKLOG).

        What it does is then what the library does by itself, and the case says so.
        """
        try:
            socket.setsockopt(getattr(self._names, option), value)
        except Exception:  # noqa: BLE001 - each library has its own error for it
            return False
        return True

    def never_drop(self, publisher: Any) -> None:
        """Let a PUB wait at its high-water mark instead of dropping.

        pyomq has its own option for it, OMQ_ON_MUTE; the others have libzmq's XPUB_NODROP.
        """
        if hasattr(self._names, "OMQ_ON_MUTE"):
            publisher.setsockopt(self._names.OMQ_ON_MUTE, self._names.OMQ_ON_MUTE_BLOCK)
        else:
            publisher.setsockopt(self._names.XPUB_NODROP, 1)

    def bound_buffers(self, socket: Any, octets: int) -> None:
        """Fix the kernel's buffers (SNDBUF, RCVBUF), which it would let grow to several MiB."""
        socket.setsockopt(self._names.SNDBUF, octets)
        socket.setsockopt(self._names.RCVBUF, octets)

    @property
    def again(self) -> type[Exception]:
        """What ``send`` raises when it would have to wait and may not."""
        again: type[Exception] = self._names.Again
        return again

    def poller(self, sockets: Sequence[Any]) -> Any:
        """A Poller of the blocking API that waits for messages on these sockets."""
        poller = self._names.Poller()
        for socket in sockets:
            poller.register(socket, self._names.POLLIN)
        return poller

    @property
    def no_wait(self) -> int:
        """The flag of a ``recv`` that may not wait."""
        flag: int = self._names.NOBLOCK
        return flag

    @property
    def empty(self) -> type[Exception]:
        """What a ``recv`` that may not wait raises when nothing is there.

        pyomq 0.21 has no number for it, and raises its base class with "internal error".
        """
        if hasattr(self._names, "OMQ_ON_MUTE"):
            error: type[Exception] = self._names.ZMQError
            return error
        return self.again

    def flush(self, socket: Any) -> None:
        """Write what the floor's sockets still collect; every real library does so by itself."""
        if self._names.__name__ == "bench.floor.names":
            socket.flush()

    def close_one(self, socket: Any) -> None:
        """Close one socket, without lingering, before the others."""
        self._sockets.remove(socket)
        socket.close(0)

    def proxy(self, front: Any, back: Any) -> None:
        """Move messages between two sockets until the context ends, which raises."""
        self._names.proxy(front, back)

    def end(self) -> None:
        """End the context, from another thread than the sockets'; they still have to be closed."""
        self._context.term()

    def close(self) -> None:
        """Close the sockets without lingering, and end the context."""
        for socket in self._sockets:
            socket.close(0)
        self._context.term()
