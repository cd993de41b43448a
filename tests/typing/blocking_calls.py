"""What type checkers make of the blocking API: mypy reads this, nobody runs it.

``Context.socket`` returns Any, for it makes what ``socket_class`` says; programs that annotate the
result get the types below.
"""

from collections.abc import Iterator
from typing import Any, assert_type

import zerohop as zmq
from zerohop import decorators, error, sugar, utils
from zerohop.api.endpoints import Attachment
from zerohop.api.records import MonitorRecords
from zerohop.api.statistics import PeerInfo, SocketStats


def contexts() -> None:
    context = zmq.Context()
    assert_type(context, zmq.Context)
    assert_type(zmq.Context.instance(), zmq.Context)
    assert_type(zmq.Context.shadow(context), zmq.Context)
    assert_type(zmq.SyncContext(), zmq.Context)
    with context as same:
        assert_type(same, zmq.Context)
    assert_type(context.closed, bool)
    assert_type(context.underlying, int)
    assert_type(context.get(zmq.IO_THREADS), int)
    assert_type(context.socket(zmq.PUSH), Any)
    context.term(timeout=1.0)
    context.destroy(linger=0)


def sockets(context: zmq.Context) -> None:
    socket: zmq.Socket = context.socket(zmq.DEALER)
    assert_type(zmq.Socket(context, zmq.PUSH), zmq.Socket)
    assert_type(zmq.Socket.shadow(socket), zmq.Socket)
    with socket as same:
        assert_type(same, zmq.Socket)
    assert_type(socket.bind("inproc://a"), Attachment[zmq.Socket])
    with socket.connect("inproc://a") as connected:
        assert_type(connected, zmq.Socket)
    assert_type(socket.bind_to_random_port("tcp://127.0.0.1"), int)
    assert_type(socket.type, zmq.SocketType)
    assert_type(socket.closed, bool)
    assert_type(socket.fileno(), int)
    assert_type(socket.get(zmq.LINGER), int | bytes)
    assert_type(socket.getsockopt(zmq.LINGER), int | bytes)
    assert_type(socket.get_string(zmq.LAST_ENDPOINT), str)
    assert_type(socket.linger, Any)
    assert_type(socket.hwm, int)
    socket.close(linger=0)


def messages(socket: zmq.Socket) -> None:
    assert_type(socket.send(b"x", zmq.SNDMORE, timeout=1.0), zmq.MessageTracker | None)
    assert_type(socket.send_multipart([b"x", memoryview(b"y")]), zmq.MessageTracker | None)
    assert_type(socket.recv(zmq.DONTWAIT), Any)  # bytes, or with copy=False a Frame
    assert_type(socket.recv_multipart(timeout=1.0), list[Any])
    assert_type(socket.recv_into(bytearray(9)), int)
    assert_type(socket.poll(1000, zmq.POLLIN), int)
    assert_type(iter(socket), Iterator[bytes | list[bytes]])


def insight(socket: zmq.Socket) -> None:
    assert_type(socket.stats(), SocketStats)
    assert_type(socket.peers(), list[PeerInfo])
    assert_type(socket.last_error("tcp://127.0.0.1:1"), Exception | None)
    assert_type(socket.monitor_records(timeout=1.0), MonitorRecords)
    socket.wait_connected(timeout=1.0)
    socket.wait_for_subscribers(b"topic", 2, timeout=1.0)


def frames() -> None:
    frame = zmq.Frame(b"x", copy=False)
    assert_type(frame.bytes, bytes)
    assert_type(frame.buffer, memoryview)
    assert_type(len(frame), int)
    assert_type(zmq.MessageTracker().done, bool)


def pollers(socket: zmq.Socket) -> None:
    poller = zmq.Poller()
    poller.register(socket, zmq.POLLIN)
    assert_type(poller.poll(0), list[tuple[Any, int]])
    assert_type(zmq.zmq_poll([(socket, zmq.POLLIN)]), list[tuple[Any, int]])
    assert_type(zmq.select([socket], [], [], 0), tuple[list[Any], list[Any], list[Any]])


def errors() -> None:
    try:
        raise zmq.Again
    except zmq.ZMQError as caught:
        assert_type(caught.errno, int | None)
        assert_type(caught.strerror, str)
    assert_type(error.ZMQError, type[zmq.ZMQError])
    assert_type(zmq.zmq_errno(), int)
    assert_type(zmq.strerror(zmq.EAGAIN), str)


def the_library() -> None:
    assert_type(zmq.zmq_version(), str)
    assert_type(zmq.zmq_version_info(), tuple[int, int, int])
    assert_type(zmq.has("ipc"), bool)
    assert_type(zmq.get_includes(), list[str])
    assert_type(zmq.Stopwatch().stop(), int)
    assert_type(sugar.poll.Poller(), zmq.Poller)
    assert_type(utils.z85.encode(b"1234"), bytes)
    assert_type(zmq.utils.z85.encode(b"1234"), bytes)


@decorators.context()
@decorators.socket(zmq.PUSH)
def decorated(number: int, context: zmq.Context, push: zmq.Socket) -> str:
    return f"{number} {context} {push}"
