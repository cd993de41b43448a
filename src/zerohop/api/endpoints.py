"""Where a socket listens and connects to: ``bind``, ``connect`` and what undoes them."""

from __future__ import annotations

import errno
import sys

from zerohop.constants import Errno
from zerohop.errors import EndpointError, ZMQBindError, ZMQError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Generic, Literal, Self, TypeVar

    from zerohop.core.socket import SocketCore
    from zerohop.io.driver import SocketDriver

    S = TypeVar("S", bound="EndpointMethods")
else:
    S = None
    Generic = {S: object}  # to run, Generic[S] is object

__all__ = ["Attachment", "EndpointMethods", "check_address"]

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
        if not self.socket._core.closed:
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


class EndpointMethods:
    """The part of a Socket that deals with endpoints."""

    __slots__ = ()

    if TYPE_CHECKING:
        _core: SocketCore
        _driver: SocketDriver

    def bind(self, addr: str) -> Attachment[Self]:
        """Listen at an endpoint; the same socket may bind to several.

        Args:
            addr: ``tcp://interface:port`` (``*`` for all interfaces, ``*`` for a free port),
                ``ipc://path``, ``inproc://name``. Where it really is, LAST_ENDPOINT says.

        Returns:
            A context manager that unbinds; its value is the socket.

        Raises:
            ZMQError: EADDRINUSE, ENODEV, EINVAL, EPROTONOSUPPORT, ...; the text has the address,
                a note says what to write instead.
            TypeError: the address is no ``str``.
        """
        with self._driver.lock:
            self._attach(self._driver.bind, addr)
            return Attachment(self, "bind", self._core.last_endpoint)

    def connect(self, addr: str) -> Attachment[Self]:
        """Begin to connect to an endpoint, and keep connected; returns at once.

        Nobody need listen there yet. Where it leads may change with each attempt: names are
        resolved anew.

        Args:
            addr: as :meth:`bind`, but a host and a port in figures; ``tcp://source;host:port``
                connects from a given address.

        Returns:
            A context manager that disconnects; its value is the socket.

        Raises:
            ZMQError: EINVAL, EPROTONOSUPPORT; the text has the address.
            TypeError: the address is no ``str``.
        """
        with self._driver.lock:
            self._attach(self._driver.connect, addr)
            return Attachment(self, "connect", self._core.last_endpoint)

    def _attach(self, how: Callable[[str], object], addr: str) -> None:
        try:
            how(addr if type(addr) is str else check_address(addr))
        except ZMQError as error:
            self._driver.pump()  # a monitor may have heard of it
            if error.errno == Errno.ENOTSOCK and not isinstance(error, EndpointError):
                raise EndpointError(Errno.ENOTSOCK, endpoint=addr) from None
            raise
        except BaseException:  # as of ``with context``, which would be two calls more
            self._driver.context.interrupted()
            raise

    def unbind(self, addr: str) -> None:
        """Stop listening at an endpoint; its port is free at return.

        Connections that were made through it end, each once what is queued for it is out. Over
        ``inproc`` they stay.

        Args:
            addr: as given to :meth:`bind`, or as LAST_ENDPOINT gave it (the only way with ``*``).

        Raises:
            ZMQError: ENOENT, not bound there.
            TypeError: the address is no ``str``.
        """
        address = check_address(addr)
        with self._driver.lock, self._driver.context:
            self._driver.unbind(address)
            self._driver.pump()

    def disconnect(self, addr: str) -> None:
        """End the connection to an endpoint. What is queued for it is still sent, for LINGER.

        Raises:
            ZMQError: ENOENT, not connected there.
            TypeError: the address is no ``str``.
        """
        address = check_address(addr)
        with self._driver.lock, self._driver.context:
            self._driver.disconnect(address)

    def bind_to_random_port(
        self, addr: str, min_port: int = 49152, max_port: int = 65536, max_tries: int = 100
    ) -> int:
        """Bind to a port that is free.

        Args:
            addr: an endpoint without its port: ``tcp://127.0.0.1``.
            min_port: the lowest.
            max_port: one above the highest. With both as they are, the system chooses.
            max_tries: how many random ports to try.

        Returns:
            The port.

        Raises:
            ZMQBindError: all that were tried are taken.
            ZMQError: as :meth:`bind`, except EADDRINUSE.
        """
        return _bind_to_random_port(self, addr, min_port, max_port, max_tries)


def _bind_to_random_port(
    socket: EndpointMethods, addr: str, min_port: int, max_port: int, max_tries: int
) -> int:
    """Bind to a free port; return it."""
    if (min_port, max_port) == (_FROM, _TO):
        socket.bind(f"{addr}:*")
        return int(socket._core.last_endpoint.rpartition(":")[2])
    import random  # 3 ms that a program which does not come here need not spend

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
