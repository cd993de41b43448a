"""The blocking floor: the caller reads and writes the socket itself.

PUSH collects about 64 KiB and writes them at once; REQ and REP write each message. A body of more
than that is written from where it is, and read into where it stays. Within one
process (inproc) a message goes through ``queue.SimpleQueue``, the standard library's own.
"""

import queue
import socket
from collections import deque
from typing import Any

from bench.floor.frames import CHUNK, LONG_HEADER, SHORT_HEADERS, Decoder, encode, header
from bench.floor.names import PUSH


def listen(endpoint: str) -> tuple[socket.socket, str]:
    """A listening socket, and its endpoint with the port that was given."""
    scheme, _, where = endpoint.partition("://")
    if scheme == "ipc":
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(where)
        listener.listen()
        return listener, endpoint
    listener = socket.create_server((where.rpartition(":")[0], 0))
    host, port = listener.getsockname()
    return listener, f"tcp://{host}:{port}"


def dial(endpoint: str) -> socket.socket:
    """A connection to a listening socket."""
    scheme, _, where = endpoint.partition("://")
    if scheme == "ipc":
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(where)
        return connection
    host, _, port = where.rpartition(":")
    connection = socket.create_connection((host, int(port)))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


class Socket:
    """One connection, and the messages that came over it."""

    def __init__(self, kind: int, context: "Context") -> None:
        self._context = context
        self._batch = CHUNK if kind == PUSH else 1
        self._pieces: list[bytes] = []
        self._size = 0
        self._inbox: deque[Any] = deque()
        self._decoder = Decoder(self._inbox.append)
        self._listener: socket.socket | None = None
        self._connection: socket.socket | None = None
        self._endpoint = ""

    def bind(self, endpoint: str) -> None:
        """Listen; the connection is accepted when the first message is asked for."""
        if endpoint.startswith("inproc://"):
            messages = self._context.queues[endpoint] = queue.SimpleQueue()
            self.recv = messages.get  # type: ignore[method-assign]  # nothing between it and us
            return
        self._listener, self._endpoint = listen(endpoint)

    def connect(self, endpoint: str) -> None:
        """Connect at once."""
        if endpoint.startswith("inproc://"):
            self.send = self._context.queues[endpoint].put  # type: ignore[method-assign, assignment]
            return
        self._connection = dial(endpoint)

    def getsockopt(self, _last_endpoint: int) -> bytes:
        """LAST_ENDPOINT is the one option there is."""
        return self._endpoint.encode()

    def send(self, message: bytes) -> None:
        """Queue one frame; write when enough has come together."""
        size = len(message)
        if size > CHUNK:
            self.flush()
            assert self._connection
            written = self._connection.sendmsg((header(size), message))
            if written < LONG_HEADER + size:
                self._connection.sendall(memoryview(message)[written - LONG_HEADER :])
            return
        self._pieces.append(SHORT_HEADERS[size] if size < 256 else header(size))
        self._pieces.append(message)
        self._size += size
        if self._size >= self._batch:
            self.flush()

    def send_multipart(self, parts: list[bytes]) -> None:
        """Queue one message of several frames."""
        self._pieces.append(encode(parts))
        self._size += len(self._pieces[-1])
        if self._size >= self._batch:
            self.flush()

    def flush(self) -> None:
        """Write what is queued."""
        if self._connection and self._pieces:
            self._connection.sendall(b"".join(self._pieces))
            self._pieces.clear()
            self._size = 0

    def recv(self) -> Any:
        """The next message; waits for it."""
        if self._inbox:
            return self._inbox.popleft()
        if not self._connection:
            assert self._listener
            self._connection, _ = self._listener.accept()
            if self._connection.family != socket.AF_UNIX:
                self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while not self._inbox:
            decoder = self._decoder
            data = self._connection.recv(
                decoder.wanted, socket.MSG_WAITALL if decoder.missing else 0
            )
            if not data:
                raise ConnectionError("the other side closed the connection")
            decoder.receive_data(data)
        return self._inbox.popleft()

    recv_multipart = recv

    def close(self, _linger: int) -> None:
        """Close both sockets."""
        for opened in (self._connection, self._listener):
            if opened:
                opened.close()


class Context:
    """Opens sockets, and joins those of this process."""

    def __init__(self) -> None:
        self.queues: dict[str, queue.SimpleQueue[Any]] = {}

    def socket(self, kind: int) -> Socket:
        """A socket that is not yet connected."""
        return Socket(kind, self)

    def term(self) -> None:
        """Nothing is left to end."""
