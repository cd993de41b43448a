"""A peer that is only octets: plain sockets and a script, for what no well-behaved library sends.

The octets are put together here on their own, from RFC 37, and not with the code under test:

    greeting  = FF 00*8 7F  major minor  mechanism(20)  as-server  00*31           64 octets
    frame     = flags size body         flags: 1 MORE, 2 LONG, 4 COMMAND; size: 1 octet or 8
    command   = name-size name data     the body of a frame with the COMMAND flag
    READY     = {name-size name value-size(4) value}
"""

import contextlib
import errno
import os
import socket
import struct
from typing import Any, Self

from tests.kit.net import Net

MORE, LONG, COMMAND = 1, 2, 4


def greeting(*, major: int = 3, minor: int = 1, mechanism: bytes = b"NULL") -> bytes:
    """Return the 64 octets that open a connection."""
    signature = b"\xff" + bytes(8) + b"\x7f"
    return signature + bytes([major, minor]) + mechanism.ljust(20, b"\0") + bytes(32)


def frame(body: bytes, flags: int = 0) -> bytes:
    """Return one frame, with a size of one octet where it fits."""
    if len(body) < 256 and not flags & LONG:
        return bytes([flags, len(body)]) + body
    return bytes([flags | LONG]) + struct.pack(">Q", len(body)) + body


def message(*parts: bytes) -> bytes:
    """Return the frames of one message."""
    return b"".join(frame(part, MORE) for part in parts[:-1]) + frame(parts[-1])


def command(name: bytes, data: bytes = b"") -> bytes:
    """Return a frame that holds a command."""
    return frame(bytes([len(name)]) + name + data, COMMAND)


def metadata(*properties: tuple[bytes, bytes]) -> bytes:
    """Return name and value of each property, with their sizes."""
    return b"".join(
        bytes([len(name)]) + name + struct.pack(">I", len(value)) + value
        for name, value in properties
    )


def ready(socket_type: bytes, *properties: tuple[bytes, bytes]) -> bytes:
    """Return the READY command of a socket of this type."""
    return command(b"READY", metadata((b"Socket-Type", socket_type), *properties))


class RawPeer:
    """One end of a connection, in the hands of the test.

    Its socket never blocks: what must be waited for is waited for beside the socket under test.
    """

    def __init__(self, net: Net, raw: socket.socket) -> None:
        raw.setblocking(False)
        net.keep(raw)
        self._net = net
        self._raw = raw
        self._came = bytearray()

    @classmethod
    async def dial(cls, net: Net, endpoint: str) -> Self:
        """Connect to where a socket is bound."""
        scheme, _, address = endpoint.partition("://")
        host, _, port = address.rpartition(":")
        target: Any = address if scheme == "ipc" else (host, int(port))
        raw = socket.socket(socket.AF_UNIX if scheme == "ipc" else socket.AF_INET)
        peer = cls(net, raw)
        if scheme == "tcp":
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await net.eventually(lambda: raw.connect_ex(target) in (0, errno.EISCONN))
        return peer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._raw.close()

    async def send(self, octets: bytes) -> None:
        """Send everything, or as much as the other end takes before it closes."""
        view = memoryview(octets)

        def sent() -> bool:
            nonlocal view
            try:
                while view:
                    view = view[self._raw.send(view) :]
            except BlockingIOError:
                return False
            except ConnectionError:
                return True
            return True

        await self._net.eventually(sent)

    async def read(self, size: int) -> bytes:
        """Return the next ``size`` octets."""
        await self._net.eventually(lambda: self._pull() and len(self._came) >= size)
        octets, self._came = bytes(self._came[:size]), self._came[size:]
        return octets

    async def read_frame(self) -> tuple[int, bytes]:
        """Return flags and body of the next frame."""
        flags, size = await self.read(2)
        if flags & LONG:
            rest = await self.read(7)
            size = int.from_bytes(bytes([size]) + rest, "big")
        return flags, await self.read(size)

    async def handshake(
        self, socket_type: bytes, *properties: tuple[bytes, bytes], minor: int = 1
    ) -> bytes:
        """Greet, send READY, and read the other end's READY; return its body."""
        await self.send(greeting(minor=minor) + ready(socket_type, *properties))
        await self.read(64)
        flags, body = await self.read_frame()
        assert flags == COMMAND, (flags, body)
        assert body[:6] == b"\x05READY", body
        return body

    def come(self) -> bytes:
        """Return what has come so far and was not read."""
        self._pull()
        return bytes(self._came)

    async def closed(self) -> bytes:
        """Wait until the other end has closed; return what it sent until then."""
        await self._net.eventually(lambda: not self._pull())
        return bytes(self._came)

    async def alive(self) -> None:
        """Demand that a PING is answered: the other end is well and has read what came before."""
        await self.send(command(b"PING", b"\0\0" + b"alive?"))
        while (await self.read_frame()) != (COMMAND, b"\x04PONG" + b"alive?"):
            pass

    def end(self) -> None:
        """Send no more, but go on listening: an orderly end of the stream."""
        with contextlib.suppress(OSError):  # the other end may have been quicker
            self._raw.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Vanish: the other end sees a connection that was reset."""
        if self._raw.family != socket.AF_UNIX:
            self._raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._raw.close()

    def _pull(self) -> bool:
        """Take what has come; False once the other end has closed."""
        try:
            while data := self._raw.recv(65536):
                self._came += data
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        return False


class RawListener:
    """A listening end in the hands of the test."""

    def __init__(self, net: Net, *, backlog: int = 500) -> None:
        self._net = net
        self.endpoint = net.endpoint()
        scheme, _, address = self.endpoint.partition("://")
        self._raw = socket.socket(socket.AF_UNIX if scheme == "ipc" else socket.AF_INET)
        self._raw.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        host, _, port = address.rpartition(":")
        self._raw.bind(address if scheme == "ipc" else (host, int(port)))
        self._raw.listen(backlog)
        self._raw.setblocking(False)
        net.keep(self._raw)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._raw.close()
        if self._raw.family == socket.AF_UNIX:
            os.unlink(self.endpoint.removeprefix("ipc://"))

    async def accept(self) -> RawPeer:
        """Wait for the next connection."""
        accepted: Any = await self._net.eventually(self._accept_now)
        return RawPeer(self._net, accepted)

    def _accept_now(self) -> socket.socket | None:
        try:
            return self._raw.accept()[0]
        except BlockingIOError:
            return None
