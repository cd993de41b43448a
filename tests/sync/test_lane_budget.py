"""What the hot paths of blocking sockets may cost, in calls: the same on every machine.

Calls of Python and of C functions as a profiler sees them, both ends on one thread. A limit that is
reached is no accident: raise it with the measurement that shows why it is worth it. The least of a
few times counts: what the helper thread did in between, and when, is no cost of the path.
"""

import socket as plain
from time import monotonic

import pytest

import zerohop as zmq
from tests.kit.keeper import keeper
from tests.wire.kit import calls_during
from zerohop.io import lookout

MESSAGE = bytes(64)
PARTS = [MESSAGE] * 5
MANY = 500


@pytest.fixture
def context(monkeypatch):
    """Without looking before a wait sleeps: how often it looks depends on the machine."""
    monkeypatch.setenv(lookout.VARIABLE, "0")
    with keeper() as context:
        context.linger = 0
        yield context


def joined(context, binds, connects, count=1, endpoint="tcp://127.0.0.1:*"):
    """A socket that binds, and as many that connect to it."""
    server = context.socket(binds)
    server.bind(endpoint)
    clients = [context.socket(connects) for _ in range(count)]
    for client in clients:
        client.connect(server.last_endpoint)
    return [server, *clients]


def sending(send, message, count):
    def work():
        for _ in range(count):
            send(message)

    return work


def receiving(recv, count):
    def work():
        for _ in range(count):
            recv()

    return work


def calls_of(*works):
    """Calls of each work, played in turn: the least of a few times."""
    for work in works:
        work()  # connected, and warm
    rounds = [[calls_during(work) for work in works] for _ in range(9)]
    return [min(times) for times in zip(*rounds)]


def test_a_message_that_has_come_costs_two_calls_to_receive(context):
    pull, push = joined(context, zmq.PULL, zmq.PUSH)
    for _ in range(MANY):
        push.send(MESSAGE)
    deadline = monotonic() + 8
    while pull.stats().incoming.messages < MANY and monotonic() < deadline:
        pull.poll(1)
    assert calls_during(receiving(pull.recv, MANY)) <= 2 * MANY + 20


def test_a_message_to_a_busy_connection_costs_three_calls_to_send(context):
    """One of ours, an append, and a look at how long the queue is."""
    pull, push = joined(context, zmq.PULL, zmq.PUSH)
    sent, _ = calls_of(sending(push.send, MESSAGE, MANY), receiving(pull.recv, MANY))
    assert sent <= 3 * MANY + 250


def test_a_message_to_a_peer_that_is_not_there_yet_only_waits(context):
    """It goes out after the handshake: nothing is to be written, and nobody to be told."""
    dealer = context.socket(zmq.DEALER)
    dealer.sndhwm = 0
    with plain.create_server(("127.0.0.1", 0)) as silent:
        dealer.connect(f"tcp://127.0.0.1:{silent.getsockname()[1]}")
        assert calls_during(dealer.send, MESSAGE) <= 5
        assert calls_during(sending(dealer.send, MESSAGE, 4 * MANY)) <= 3 * 4 * MANY + 20
        dealer.close(0)


def test_a_message_from_one_socket_to_another(context):
    pull, push = joined(context, zmq.PULL, zmq.PUSH)
    both = calls_of(sending(push.send, MESSAGE, MANY), receiving(pull.recv, MANY))
    assert sum(both) <= 7.5 * MANY


def test_a_message_of_several_parts_on_the_lane_costs_one_call_for_each_and_a_few(context):
    pull, push = joined(context, zmq.PULL, zmq.PUSH)
    sent, received = calls_of(
        sending(push.send_multipart, PARTS, 100), receiving(pull.recv_multipart, 100)
    )
    assert sent + received <= 100 * 12


def test_a_round_trip(context):
    """Of which each end takes half: two system calls, and asking what is ready."""
    rep, req = joined(context, zmq.REP, zmq.REQ)

    def ask():
        req.send(MESSAGE)
        rep.send(rep.recv())
        req.recv()

    assert calls_of(ask)[0] <= 140


def test_a_message_delivered_by_a_publisher_costs_each_subscriber_little_besides_receiving(context):
    pub, *subs = joined(context, zmq.PUB, zmq.SUB, 8)
    for sub in subs:
        sub.subscribe(b"")
    pub.wait_for_subscribers(b"", 8)

    def receive():
        for sub in subs:
            receiving(sub.recv, 200)()

    sent, received = calls_of(sending(pub.send, MESSAGE, 200), receive)
    assert sent + received <= 4.5 * 8 * 200


def test_a_topic_among_many_that_a_subscriber_wants(context):
    _pub, sub = joined(context, zmq.PUB, zmq.SUB)
    sub.wait_connected(10)
    numbers = iter(range(100_000))

    def subscribe():
        for _ in range(MANY):
            sub.subscribe(b"topic.%05d" % next(numbers))

    assert calls_of(subscribe)[0] <= 40 * MANY


def test_a_message_within_a_process(context):
    pull, push = joined(context, zmq.PULL, zmq.PUSH, endpoint="inproc://x")
    sent, received = calls_of(sending(push.send, MESSAGE, MANY), receiving(pull.recv, MANY))
    assert sent + received <= 5 * MANY + 100
