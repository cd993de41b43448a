"""The asyncio floor: a bare Protocol, one write a loop turn, one deque of received messages.

It is a BufferedProtocol, which is told where to read to: small frames into one buffer that is used
again and again (for each read a transport would allocate 256 KiB), large bodies into where they
stay. A large body is written from where it is.
"""

import asyncio
import socket
from collections import deque
from typing import Any

from bench.floor.blocking import dial, listen
from bench.floor.frames import CHUNK, SHORT_HEADERS, Decoder, encode, header

ENOUGH = 4000  # messages in the inbox at which reading stops for a while


class Socket(asyncio.BufferedProtocol):
    """One connection, and the messages that came over it."""

    def __init__(self, _kind: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._pieces: list[bytes] = []
        self._size = 0
        self._inbox: deque[Any] = deque()
        self._decoder = Decoder(self._inbox.append)
        self._buffer = memoryview(bytearray(CHUNK))
        self._body = bytearray()  # a large one that is on its way ...
        self._rest = memoryview(self._body)  # ... and what it lacks
        self._transport: asyncio.Transport | None = None
        self._opened = self._loop.create_future()
        self._arrival: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._paused = False  # reading
        self._endpoint = ""
        self._task: asyncio.Task[None] | None = None

    def bind(self, endpoint: str) -> None:
        """Listen, and accept one connection."""
        listener, self._endpoint = listen(endpoint)
        self._task = self._loop.create_task(self._accept(listener))

    def connect(self, endpoint: str) -> None:
        """Connect at once."""
        self._task = self._loop.create_task(self._adopt(dial(endpoint)))

    async def _accept(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        with listener:
            connection, _ = await self._loop.sock_accept(listener)
        await self._adopt(connection)

    async def _adopt(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        # For either family the transport is the same; TCP_NODELAY is its default for TCP.
        await self._loop.create_connection(lambda: self, sock=connection)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The link is open."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._opened.set_result(None)
        self._flush()

    def connection_lost(self, _error: Exception | None) -> None:
        """Nobody waits for a message that cannot come."""
        if self._arrival and not self._arrival.done():
            self._arrival.set_exception(ConnectionError("the other side closed the connection"))

    def getsockopt(self, _last_endpoint: int) -> bytes:
        """LAST_ENDPOINT is the one option there is."""
        return self._endpoint.encode()

    async def send(self, message: bytes) -> None:
        """Queue one frame; it is written at the end of this turn of the loop, or at 64 KiB."""
        size = len(message)
        if size > CHUNK:
            await self._write_large(message)
            return
        pieces = self._pieces
        if not pieces:
            self._loop.call_soon(self._flush)
        pieces.append(SHORT_HEADERS[size] if size < 256 else header(size))
        pieces.append(message)
        self._size += size
        if self._size >= CHUNK:
            await self._write_enough()

    async def send_multipart(self, parts: list[bytes]) -> None:
        """Queue one message of several frames."""
        if not self._pieces:
            self._loop.call_soon(self._flush)
        self._pieces.append(encode(parts))
        self._size += len(self._pieces[-1])
        if self._size >= CHUNK:
            await self._write_enough()

    async def _write_enough(self) -> None:
        await self._opened
        self._flush()
        if self._room:
            await self._room

    async def _write_large(self, body: bytes) -> None:
        await self._write_enough()
        assert self._transport
        self._transport.write(header(len(body)))
        self._transport.write(memoryview(body))
        if self._room:
            await self._room

    def _flush(self) -> None:
        if self._pieces and self._transport:
            data = b"".join(self._pieces)
            self._pieces.clear()
            self._size = 0
            self._transport.write(data)

    def flush(self) -> None:
        """Nothing stays queued beyond this turn of the loop."""

    def pause_writing(self) -> None:
        """The transport is full."""
        self._room = self._loop.create_future()

    def resume_writing(self) -> None:
        """The transport has room again."""
        if self._room:
            self._room.set_result(None)
            self._room = None

    def get_buffer(self, _size_hint: int) -> memoryview:
        """Where the next octets belong."""
        return self._rest or self._buffer[: self._decoder.wanted]

    def buffer_updated(self, count: int) -> None:
        """Decode, wake the reader, and stop reading when it falls behind."""
        decoder = self._decoder
        if self._rest:
            self._rest = self._rest[count:]
            if self._rest:
                return
            decoder.finish_large(self._body)
        else:
            decoder.receive_data(bytes(self._buffer[:count]))
            if decoder.missing:
                head = decoder.head()
                self._body = bytearray(len(head) + decoder.missing)
                self._body[: len(head)] = head
                self._rest = memoryview(self._body)[len(head) :]
        if self._arrival and self._inbox and not self._arrival.done():
            self._arrival.set_result(None)
        if len(self._inbox) > ENOUGH and self._transport:
            self._paused = True
            self._transport.pause_reading()

    async def recv(self) -> Any:
        """The next message; waits for it."""
        if self._inbox:
            return self._inbox.popleft()
        while not self._inbox:
            if self._paused and self._transport:
                self._paused = False
                self._transport.resume_reading()
            self._arrival = self._loop.create_future()
            await self._arrival
        return self._inbox.popleft()

    recv_multipart = recv

    def close(self, _linger: int) -> None:
        """Drop the connection."""
        if self._task:
            self._task.cancel()
        if self._transport:
            self._transport.abort()


class Context:
    """Opens sockets; keeps nothing."""

    def socket(self, kind: int) -> Socket:
        """A socket that is not yet connected."""
        return Socket(kind)

    def term(self) -> None:
        """Nothing is left to end."""
