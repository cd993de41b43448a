"""Acceptor: a connection that cannot be had is reported, and the next one is accepted."""

import errno
import socket as plain
import sys

import pytest

import zerohop as zmq
from tests.kit.raw import frame, greeting, ready
from zerohop.io import listening

linux = pytest.mark.parametrize("count", [1000] if sys.platform == "linux" else [])


def listen(context, **options):
    """A PULL, where it listens, and its monitor, which tells only of what could not be accepted."""
    pull = context.socket(zmq.PULL)
    pull.rcvtimeo = 8000
    for name, value in options.items():
        setattr(pull, name, value)
    monitor = pull.get_monitor_socket(zmq.EVENT_ACCEPT_FAILED)
    monitor.rcvtimeo = 8000
    return pull, pull.bind_to_random_port("tcp://127.0.0.1"), monitor


def event(monitor):
    """Number and value of the next event."""
    body, _ = monitor.recv_multipart()
    return int.from_bytes(body[:2], sys.byteorder), int.from_bytes(body[2:6], sys.byteorder)


def is_hung_up_on(port):
    """Whether whoever connects is sent away, without a word."""
    with plain.create_connection(("127.0.0.1", port)) as stranger:
        stranger.settimeout(8)
        try:
            return stranger.recv(1) == b""
        except ConnectionResetError:
            return True


@linux
def test_an_option_that_the_kernel_refuses_is_reported_and_no_connection_stays(context, count):
    pull, port, monitor = listen(context, tcp_keepalive=1, tcp_keepalive_cnt=count)
    for _ in range(3):
        assert is_hung_up_on(port)
        assert event(monitor) == (zmq.EVENT_ACCEPT_FAILED, errno.EINVAL)
    assert pull.last_error(f"tcp://127.0.0.1:{port}").errno == errno.EINVAL
    monitor.close(0)


def test_after_a_connection_that_could_not_be_had_the_next_one_is_accepted(context, monkeypatch):
    set_options = listening.set_tcp_options

    def refuse(sock, options):
        monkeypatch.setattr(listening, "set_tcp_options", set_options)
        raise OSError(errno.ENOPROTOOPT, "Protocol not available")

    pull, port, monitor = listen(context)
    monkeypatch.setattr(listening, "set_tcp_options", refuse)
    assert is_hung_up_on(port)
    assert event(monitor) == (zmq.EVENT_ACCEPT_FAILED, errno.ENOPROTOOPT)
    push = context.socket(zmq.PUSH)
    push.connect(f"tcp://127.0.0.1:{port}")
    push.send(b"the next one")
    assert pull.recv() == b"the next one"
    monitor.close(0)


@pytest.fixture
def bound(world):
    """Makes a PULL on a loop whose time stands still; its acceptor, and what makes it a client."""
    clients = []
    world.loop.late = 1000.0
    world.loop.time = lambda: world.loop.late

    def make(**options):
        pull = world.socket(zmq.PULL, **options)
        pull.bind("tcp://127.0.0.1:*")
        port = int(pull.last_endpoint.decode().rpartition(":")[2])
        (acceptor,) = pull._driver._acceptors.values()

        def call(says=b""):
            clients.append(plain.create_connection(("127.0.0.1", port)))
            clients[-1].sendall(says)
            world.loop.settle(5)
            return clients[-1]

        return pull, acceptor, call

    yield make
    for client in clients:
        client.close()


def test_who_comes_soon_after_one_who_has_said_nothing_is_followed_by_more(world, bound):
    """They are accepted together, a moment later: a turn for each would cost as much again."""
    pull, acceptor, call = bound()
    links = pull._core.links.open_links
    call()
    call()
    assert len(links) == 2
    assert acceptor._sock.fileno() not in world.loop.readers
    call()
    call()
    assert len(links) == 2
    world.loop.skip(listening._LULL)
    world.loop.settle(3)
    assert len(links) == 4


@pytest.mark.parametrize("before", ["spoke", "left", "came long ago", "takes all the room"])
def test_nobody_waits_for_others_where_the_one_before(before, world, bound):
    _, acceptor, call = bound(**({"backlog": 100} if before == "takes all the room" else {}))
    for _ in range(3):
        client = call(greeting() + ready(b"PUSH") + frame(b"x") if before == "spoke" else b"")
        assert acceptor._sock.fileno() in world.loop.readers
        if before == "left":
            client.close()
            world.loop.settle(5)
        elif before == "came long ago":
            world.loop.skip(2 * listening._SOON)
