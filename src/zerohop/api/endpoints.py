"""``with socket.bind(...)``, and ports that nobody else has."""

from __future__ import annotations

import errno
import random
import sys
from typing import TYPE_CHECKING, Generic, TypeVar

from zerohop.constants import Errno
from zerohop.errors import ZMQBindError, ZMQError

if TYPE_CHECKING:
    from typing import Literal

    from zerohop.api.socket import SocketBase

__all__ = ["Attachment", "bind_to_random_port", "check_address"]

S = TypeVar("S", bound="SocketBase")

_FROM, _TO = 49152, 65536  # the ports that IANA leaves to everybody (RFC 6335)


class Attachment(Generic[S]):
    """What ``bind`` and ``connect`` return: undoes them at the end of a ``with`` block.

    Args:
        socket: the socket.
        kind: which of the two it was.
        addr: the endpoint as LAST_ENDPOINT has it: with the real port.
    """

    __slots__ = ("addr", "kind", "socket")

    def __init__(self, socket: S, kind: Literal["bind", "connect"], addr: str) -> None:
        self.socket = socket
        self.kind = kind
        self.addr = addr

    def __enter__(self) -> S:
        return self.socket

    def __exit__(self, *exc_info: object) -> None:
        if not self.socket.closed:
            undo = self.socket.unbind if self.kind == "bind" else self.socket.disconnect
            undo(self.addr)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}({self.kind}={self.addr!r})>"


def check_address(addr: object) -> str:
    """Return an address as text.

    Raises:
        TypeError: it is neither ``str`` nor ``bytes``.
    """
    if isinstance(addr, bytes):
        return addr.decode()
    if not isinstance(addr, str):
        raise TypeError(f"Expected addr to be str, got {addr=}")
    return addr


def bind_to_random_port(
    socket: SocketBase, addr: str, min_port: int, max_port: int, max_tries: int
) -> int:
    """Bind to a free port; return it. See ``SocketBase.bind_to_random_port``."""
    if (min_port, max_port) == (_FROM, _TO):
        socket.bind(f"{addr}:*")
        return int(socket.last_endpoint.decode().rpartition(":")[2])
    for _ in range(max_tries):
        port = random.randrange(min_port, max_port)  # noqa: S311 - any will do, none is a secret
        try:
            socket.bind(f"{addr}:{port}")
        except ZMQError as error:
            # Windows says EACCES of a port that somebody has for himself alone.
            if error.errno != Errno.EADDRINUSE and (
                sys.platform != "win32" or error.errno != errno.EACCES
            ):
                raise
        else:
            return port
    raise ZMQBindError("Could not bind socket to random port.")
