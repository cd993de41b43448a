"""Differences from libzmq that docs/compatibility.md promises and no other test holds."""

import asyncio
import errno
import importlib
import inspect
import socket
import sys
import time
from contextlib import ExitStack

import pytest

import zerohop as zmq
import zerohop.asyncio
from zerohop.io.ending import EXIT_SECONDS
from zerohop.mechanisms.null import NullMechanism
from zerohop.patterns.subscriptions import SubscriptionIndex
from zerohop.wire.connection import Connection


@pytest.fixture
def make():
    """Makes sockets, and closes them at the end."""
    with zmq.Context() as context, ExitStack() as sockets:
        context.linger = 0
        yield lambda kind: sockets.enter_context(context.socket(kind))


def eventually(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return condition()


def shake_hands(peer: socket.socket, socket_type: bytes) -> None:
    """Do a peer's half of the handshake over a plain TCP connection, and read no further."""
    properties = {"Socket-Type": socket_type}
    connection = Connection(mechanism=NullMechanism(properties), properties=properties, now=0.0)
    while connection.phase != "traffic":
        peer.sendall(connection.data_to_send())
        connection.receive_data(peer.recv(1), now=0.0)
    peer.sendall(connection.data_to_send())


def test_what_was_not_wholly_written_goes_out_on_the_next_connection(make):
    """libzmq loses what the I/O thread had taken: 490 of 500 in one measurement."""
    push = make(zmq.PUSH)
    push.sndhwm = 0
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        push.connect(endpoint)
        peer, _ = server.accept()
    with peer:
        shake_hands(peer, b"PULL")
        push.wait_connected(timeout=10)
        for number in range(500):
            push.send(b"%d " % number + bytes(20_000))
        written = eventually(lambda: push.stats().messages_sent)
    pull = make(zmq.PULL)
    pull.bind(endpoint)
    received = [int(pull.recv(timeout=10).split()[0])]
    while received[-1] < 499:
        received.append(int(pull.recv(timeout=10).split()[0]))
    assert received[0] >= written
    assert received == list(range(received[0], 500))
    assert push.stats().outgoing.messages == 0


def test_a_name_that_does_not_resolve_is_an_error_of_its_endpoint_alone(make):
    push = make(zmq.PUSH)
    push.connect("tcp://no-such-host.invalid:5555")
    error = eventually(lambda: push.last_error("tcp://no-such-host.invalid:5555"))
    assert "cannot resolve the name" in str(error)
    assert str(error).count("[Errno") == 1


def test_a_connect_routing_id_that_is_taken_is_an_error(make):
    """libzmq aborts the process here."""
    router = make(zmq.ROUTER)
    router.connect_routing_id = b"worker"
    router.connect("tcp://127.0.0.1:9")
    with pytest.raises(zmq.ZMQError, match="Invalid argument") as caught:
        connect_again(router)
    assert "is the id of another peer" in caught.value.__notes__[0]


def connect_again(router: zmq.Socket) -> None:
    router.connect_routing_id = b"worker"
    router.connect("tcp://127.0.0.1:10")


def test_a_proxy_that_would_be_gone_around_is_an_error(make):
    push = make(zmq.PUSH)
    push.socks_proxy = b"127.0.0.1:1080"
    with pytest.raises(zmq.ZMQError) as refused:
        push.connect("tcp://127.0.0.1:9")
    assert refused.value.errno == zmq.ENOTSUP
    assert "SOCKS_PROXY" in refused.value.__notes__[0]


@pytest.mark.parametrize("verb", ["bind", "connect"])
@pytest.mark.parametrize(
    ("option", "value"),
    [
        (zmq.PLAIN_SERVER, 1),
        (zmq.PLAIN_USERNAME, b"me"),
        (zmq.PLAIN_PASSWORD, b"x"),
        (zmq.CURVE_SERVER, 1),
        (zmq.CURVE_PUBLICKEY, bytes(32)),
        (zmq.CURVE_SECRETKEY, bytes(32)),
        (zmq.CURVE_SERVERKEY, bytes(32)),
        (zmq.ZAP_DOMAIN, b"x"),
        (zmq.ZAP_ENFORCE_DOMAIN, 1),
    ],
)
def test_security_that_is_not_there_is_an_error(make, option, value, verb):
    push = make(zmq.PUSH)
    push.set(option, value)
    with pytest.raises(zmq.ZMQError) as refused:
        getattr(push, verb)("tcp://127.0.0.1:9999")
    assert refused.value.errno == zmq.ENOTSUP
    assert "is not supported yet" in refused.value.__notes__[0]


def test_term_on_the_loop_of_open_sockets_is_an_error():
    async def main():
        context = zmq.asyncio.Context()
        with context.socket(zmq.PULL) as pull:
            with pytest.raises(zmq.ZMQError) as refused:
                context.term()
            assert refused.value.errno == errno.EDEADLK
            assert repr(pull) in refused.value.__notes__[0]
            assert not context.closed
        context.term()

    asyncio.run(main())


def test_the_limits_of_one_subscriber_are_those_on_the_page():
    parameters = inspect.signature(SubscriptionIndex).parameters.values()
    limits = {limit.name: limit.default for limit in parameters}
    assert limits == {"max_topics": 1_000_000, "max_octets": 64 * 2**20, "max_lengths": 1_024}


def test_while_the_loop_is_blocked_its_sockets_answer_nobody(make):
    """libzmq's I/O thread answers heartbeats whatever the program does."""
    push = make(zmq.PUSH)
    push.heartbeat_ivl, push.heartbeat_timeout = 20, 60

    async def main():
        with zmq.asyncio.Context() as context, context.socket(zmq.PULL) as pull:
            pull.bind("tcp://127.0.0.1:*")
            push.connect(pull.last_endpoint)
            await pull.wait_connected(10)
            with push.monitor_records(zmq.EVENT_DISCONNECTED, timeout=10) as records:
                return next(records)  # blocks the loop

    assert asyncio.run(main()).event == zmq.EVENT_DISCONNECTED


def test_an_awaitable_is_like_a_future_and_needs_a_running_loop():
    with zmq.asyncio.Context() as context, context.socket(zmq.PULL) as pull:
        pull.bind("inproc://early")
        with pytest.raises(RuntimeError, match="no running event loop"):
            pull.recv()

        async def main():
            received = pull.recv()
            assert asyncio.isfuture(received)
            assert not isinstance(received, asyncio.Future)
            received.cancel()

        asyncio.run(main())


def test_an_awaitable_is_no_coroutine():
    """Neither is pyzmq's: create_task() refuses both, ensure_future() takes both."""

    async def main():
        with zmq.asyncio.Context() as context, context.socket(zmq.PAIR) as pair:
            pair.bind("inproc://tasks")
            refused = pair.recv()
            with pytest.raises(TypeError, match="a coroutine was expected"):
                await asyncio.create_task(refused)
            refused.cancel()
            waiting = asyncio.ensure_future(pair.recv())
            with context.socket(zmq.PAIR) as other:
                other.connect("inproc://tasks")
                await other.send(b"x")
                assert await waiting == b"x"

    asyncio.run(main())


def test_what_comes_over_inproc_is_a_copy_and_read_only(make):
    pull, push = make(zmq.PULL), make(zmq.PUSH)
    pull.bind("inproc://lent")
    push.connect("inproc://lent")
    lent = bytearray(100_000)
    tracker = push.send(lent, copy=False, track=True)
    assert not tracker.done
    frame = pull.recv(copy=False)
    tracker.wait(10)
    lent[0] = 1
    assert frame.bytes == bytes(100_000)
    assert frame.buffer.readonly


def test_the_buffer_of_a_frame_works_with_every_python():
    frame = zmq.Frame(b"octets")
    assert bytes(frame.buffer) == b"octets"
    if sys.version_info >= (3, 12):
        assert memoryview(frame) == b"octets"
    else:
        with pytest.raises(TypeError, match="bytes-like"):
            memoryview(frame)


def test_a_failed_attempt_is_closed_with_its_error_number(make):
    """libzmq gives the descriptor, which is closed and may be another one's by then."""
    push = make(zmq.PUSH)
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = f"tcp://127.0.0.1:{server.getsockname()[1]}"
    with push.monitor_records(zmq.EVENT_CLOSED, timeout=10) as records:
        push.connect(endpoint)
        assert next(records).value == errno.ECONNREFUSED


def test_the_page_names_how_long_the_exit_may_wait():
    assert EXIT_SECONDS == 1.0


def test_a_received_frame_has_no_properties_yet(make):
    pull, push = make(zmq.PULL), make(zmq.PUSH)
    pull.bind("tcp://127.0.0.1:*")
    push.connect(pull.last_endpoint)
    push.send(b"x")
    frame = pull.recv(copy=False, timeout=10)
    for name in ("Peer-Address", "Socket-Type", "User-Id"):
        with pytest.raises(zmq.ZMQError, match="Invalid argument"):
            frame.get(name)


@pytest.mark.parametrize(
    "name",
    [
        "utils.win32",
        "utils.garbage",
        "utils.interop",
        "devices.basedevice",
        "devices.monitoredqueue",
        "green",
        "ssh",
        "eventloop",
        "log",
        "backend",
        "auth",
    ],
)
def test_a_module_that_is_not_there_is_an_import_error(name):
    with pytest.raises(ImportError):
        importlib.import_module(f"zerohop.{name}")


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (zmq, "curve_keypair"),
        (zmq, "curve_public"),
        (zmq.asyncio, "install"),
        (zmq.asyncio, "ZMQEventLoop"),
        (zmq.asyncio.Socket, "from_socket"),
    ],
)
def test_a_name_that_is_not_there_is_an_attribute_error(owner, name):
    assert not hasattr(owner, name)
