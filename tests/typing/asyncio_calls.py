"""What type checkers make of the asyncio API: mypy reads this, nobody runs it."""

from collections.abc import Awaitable
from typing import Any, assert_type

import zerohop as zmq
import zerohop.asyncio
from zerohop.api.endpoints import Attachment
from zerohop.api.statistics import PeerInfo, SocketStats


async def contexts() -> None:
    context = zmq.asyncio.Context()
    assert_type(context, zmq.asyncio.Context)
    assert_type(zmq.asyncio.Context.instance(), zmq.asyncio.Context)
    assert_type(zmq.asyncio.Context.shadow(zmq.Context()), zmq.asyncio.Context)
    async with context as same:
        assert_type(same, zmq.asyncio.Context)
    assert_type(context.socket(zmq.PUSH), Any)
    await context.aclose(linger=0, timeout=1.0)


async def sockets(context: zmq.asyncio.Context) -> None:
    socket: zmq.asyncio.Socket = context.socket(zmq.DEALER)
    assert_type(zmq.asyncio.Socket.shadow(socket), zmq.asyncio.Socket)
    async with socket as same:
        assert_type(same, zmq.asyncio.Socket)
    assert_type(socket.bind("inproc://a"), Attachment[zmq.asyncio.Socket])
    assert_type(socket.stats(), SocketStats)
    assert_type(socket.peers(), list[PeerInfo])
    await socket.wait_connected(timeout=1.0)
    await socket.wait_for_subscribers("topic", timeout=1.0)
    await socket.aclose(linger=0)


async def messages(socket: zmq.asyncio.Socket) -> None:
    assert_type(socket.send(b"x"), Awaitable[Any])
    assert_type(await socket.send(b"x", timeout=1.0), Any)  # None, or a MessageTracker
    assert_type(await socket.send_multipart([b"x", b"y"]), Any)
    assert_type(await socket.recv(), Any)  # bytes, or with copy=False a Frame
    assert_type(await socket.recv_multipart(timeout=1.0), Any)
    assert_type(await socket.poll(1000, zmq.POLLIN), int)
    async for message in socket:
        assert_type(message, bytes | list[bytes])


async def pollers(socket: zmq.asyncio.Socket) -> None:
    poller = zmq.asyncio.Poller()
    poller.register(socket, zmq.POLLIN)
    assert_type(await poller.poll(0), list[tuple[Any, int]])
