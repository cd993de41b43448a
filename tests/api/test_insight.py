"""stats(), peers() and last_error() of sockets that talk over tcp."""

import socket as system
import time

import pytest

import zerohop as zmq
from zerohop.errors import HandshakeError

MS = 8000


@pytest.fixture
def make():
    context = zmq.Context()
    context.linger = 0
    context.rcvtimeo = context.sndtimeo = MS
    context.reconnect_ivl = 10
    kept = []

    def new(kind, **options):
        kept.append(context.socket(kind))
        for option, value in options.items():
            setattr(kept[-1], option, value)
        return kept[-1]

    yield new
    context.destroy(linger=0)


def eventually(condition):
    deadline = time.monotonic() + MS / 1000
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.002)
    return value


def test_both_ends_know_each_other(make):
    router, dealer = make(zmq.ROUTER), make(zmq.DEALER, identity=b"me")
    port = router.bind_to_random_port("tcp://127.0.0.1")
    dealer.connect(f"tcp://127.0.0.1:{port}")
    dealer.send(b"hello")
    assert router.recv_multipart() == [b"me", b"hello"]
    (at_router,), (at_dealer,) = router.peers(), dealer.peers()
    assert at_router.endpoint == at_dealer.endpoint == f"tcp://127.0.0.1:{port}"
    assert at_dealer.address == f"tcp://127.0.0.1:{port}"
    assert at_router.address.startswith("tcp://127.0.0.1:") != at_router.endpoint
    assert (at_router.socket_type, at_router.routing_id, at_router.state) == (
        "DEALER", b"me", "connected",
    )  # fmt: skip
    assert (at_dealer.socket_type, at_dealer.routing_id, at_dealer.state) == (
        "ROUTER", b"", "connected",
    )  # fmt: skip


def test_traffic_is_counted_in_messages_and_in_octets_of_the_wire(make):
    push, pull = make(zmq.PUSH), make(zmq.PULL)
    push.connect(f"tcp://127.0.0.1:{pull.bind_to_random_port('tcp://127.0.0.1')}")
    for _ in range(10):
        push.send_multipart([b"12345", b"678"])
    for _ in range(10):
        pull.recv_multipart()
    sent = eventually(lambda: push.stats() if push.stats().messages_sent == 10 else None)
    received = pull.stats()
    assert received.messages_received == 10
    assert sent.octets_sent == received.octets_received
    assert sent.octets_sent >= 10 * (2 + 5 + 2 + 3)  # two frames, each with two octets before it
    assert (sent.messages_received, received.messages_sent) == (0, 0)


def test_a_reconnected_endpoint_counts_it_and_has_no_error(make):
    pull, push = make(zmq.PULL), make(zmq.PUSH)
    port = pull.bind_to_random_port("tcp://127.0.0.1")
    endpoint = f"tcp://127.0.0.1:{port}"
    push.connect(endpoint)
    push.wait_connected(timeout=5)
    assert (push.stats().reconnects, push.last_error(endpoint)) == (0, None)
    pull.close(linger=0)
    error = eventually(lambda: push.last_error(endpoint))
    assert isinstance(error, Exception)
    assert push.peers()[0].state in {"waiting", "connecting"}
    again = make(zmq.PULL)
    again.bind(endpoint)
    eventually(lambda: push.stats().reconnects == 1)
    assert (push.peers()[0].reconnects, push.last_error(endpoint)) == (1, None)


def test_a_peer_of_the_wrong_type_is_the_endpoints_last_error(make):
    pull, dealer = make(zmq.PULL), make(zmq.DEALER)
    endpoint = f"tcp://127.0.0.1:{pull.bind_to_random_port('tcp://127.0.0.1')}"
    dealer.connect(endpoint)
    error = eventually(lambda: dealer.last_error(endpoint))
    assert isinstance(error, HandshakeError)
    assert "PULL" in str(error)
    assert dealer.peers()[0].last_error is dealer.last_error(endpoint)


def test_a_stranger_who_says_nothing_is_seen_and_has_no_queue(make):
    rep = make(zmq.REP)
    port = rep.bind_to_random_port("tcp://127.0.0.1")
    with system.create_connection(("127.0.0.1", port)) as stranger:
        (peer,) = eventually(rep.peers)
        assert (peer.state, peer.socket_type) == ("handshaking", "")
        host, number = stranger.getsockname()
        assert peer.address == f"tcp://{host}:{number}"
    assert rep.stats().peers == 0
    eventually(lambda: rep.peers() == [])


def test_what_a_peer_that_left_did_not_get_stays_counted(make):
    router, dealer = make(zmq.ROUTER), make(zmq.DEALER, identity=b"slow", rcvhwm=1)
    router.sndhwm = 1
    dealer.connect(f"tcp://127.0.0.1:{router.bind_to_random_port('tcp://127.0.0.1')}")
    dealer.send(b"here")
    router.recv_multipart()
    body = bytes(1_000_000)
    for _ in range(100):
        router.send_multipart([b"slow", body])
    dropped = sum(router.stats().dropped.values())
    assert dropped == sum(router.peers()[0].dropped.values()) > 0
    dealer.close(linger=0)
    eventually(lambda: router.peers() == [])
    assert sum(router.stats().dropped.values()) >= dropped
