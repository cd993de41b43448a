"""Differences from libzmq that docs/compatibility.md promises and no other test holds."""

import asyncio
import errno
import inspect
import socket
import time
from contextlib import ExitStack

import pytest

import zerohop as zmq
import zerohop.asyncio
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
    ("option", "value"), [(zmq.PLAIN_SERVER, 1), (zmq.PLAIN_USERNAME, b"me"), (zmq.CURVE_SERVER, 1)]
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
