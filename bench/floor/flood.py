"""A flood: ready-made ZMTP bytes, written as fast as a socket takes them, for every contender.

The ticker case must show how a receiver lives under pressure, so the pressure must be the same for
all and more than anyone can take. A PUSH of the contender's own library would be gentler for slow
libraries than for fast ones; this one speaks just enough ZMTP 3.0 to be accepted as a PUSH.
"""

import socket
import time
from collections.abc import Sequence

from bench.floor.blocking import dial
from bench.floor.frames import header

# RFC 23, "Greeting": signature, version 3.0, mechanism, as-server, filler.
GREETING = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x00" + b"NULL".ljust(20, b"\0") + b"\0" + bytes(31)
# RFC 23, "The NULL Security Mechanism": a command frame, its name, one metadata property.
READY_BODY = b"\x05READY" + b"\x0bSocket-Type" + (4).to_bytes(4, "big") + b"PUSH"
READY = bytes((4, len(READY_BODY))) + READY_BODY


def receive_exactly(connection: socket.socket, size: int) -> bytes:
    """Read this many octets.

    Raises:
        ConnectionError: the peer closed before.
    """
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionError("the contender closed the flood's connection")
        data += more
    return data


def connect_as_push(endpoint: str) -> socket.socket:
    """A connection that the peer takes for a PUSH: greeting and handshake done."""
    connection = dial(endpoint)
    connection.sendall(GREETING)
    receive_exactly(connection, len(GREETING))
    connection.sendall(READY)
    _, size = receive_exactly(connection, 2)
    body = receive_exactly(connection, size)
    if not body.startswith(b"\x05READY"):
        raise ConnectionError(f"the contender answered {body[:24]!r} instead of READY")
    return connection


def flood(connection: socket.socket, messages: Sequence[bytes], seconds: float) -> int:
    """Write whole passes until the time is over or the peer has gone; return the octets written."""
    data = memoryview(b"".join(header(len(m)) + m for m in messages))
    written = 0
    until = time.monotonic() + seconds
    rest = data
    while (left := until - time.monotonic()) > 0:
        connection.settimeout(left)
        try:
            count = connection.send(rest)
        except (TimeoutError, ConnectionError):
            break
        written += count
        rest = rest[count:] or data
    return written
