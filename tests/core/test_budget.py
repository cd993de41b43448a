"""What the hot paths may cost, in calls: the same number on every machine.

A call of Python costs some 50 ns, and this library pays for little else. Budgets leave one or two
calls of room: a change that adds a call to each message fails.
"""

import pytest

from tests.core.kit import Network, inproc, make_core
from tests.wire.kit import calls_during
from zerohop.core.context import ContextCore
from zerohop.wire.frames import encode

MESSAGE = b"x" * 64
MANY = 1000
FITTING = {
    "PUSH": "PULL",
    "PULL": "PUSH",
    "DEALER": "DEALER",
    "PAIR": "PAIR",
    "ROUTER": "DEALER",
    "PUB": "SUB",
    "SUB": "PUB",
}


def connected(socket_type, *, reads=False):
    """A socket with one peer, which wants everything and takes nothing."""
    net = Network(socket_type, sndhwm=0, rcvhwm=0)
    remote = net.greet(
        FITTING[socket_type], **({"identity": b"id"} if socket_type == "ROUTER" else {})
    )
    if socket_type == "PUB":
        remote.subscribe(b"")
    if socket_type == "SUB":
        net.core.pattern.subscribe(b"x")
    net.talk()
    net.links.monitors.clear()
    net.core.pattern.subscribers(b"")  # found once, and kept until a subscription changes
    remote.reads = reads
    return net, remote


def addressed(socket_type):
    return [b"id", MESSAGE] if socket_type == "ROUTER" else MESSAGE


# -- sending


def test_a_message_sent_by_the_lane_costs_one_call():
    """What drivers do: append, and look whether the reader wants a note or the pipe is full."""
    net, _ = connected("PUSH")
    lane = net.core.send_lane

    def send_all():
        append = lane.messages.append
        for _ in range(MANY):
            append(MESSAGE)
            if lane.asleep:
                lane.asleep = False
                lane.reader_signals.append(lane.reader)

    assert calls_during(send_all) <= MANY + 3
    net.core.settle()
    assert net.core.send_lane is lane
    assert net.links.to_flush == [lane.reader]


@pytest.mark.parametrize(
    "socket_type, budget", [("PAIR", 7), ("PUSH", 8), ("DEALER", 8), ("PUB", 10), ("ROUTER", 11)]
)
def test_a_message_sent_past_the_lane(socket_type, budget):
    net, _ = connected(socket_type)
    message = addressed(socket_type)
    assert calls_during(net.core.send, message) <= budget


@pytest.mark.parametrize("socket_type", ["PUSH", "DEALER", "PAIR", "ROUTER", "PUB"])
@pytest.mark.parametrize("count", [1, 100, MANY])
def test_a_batch_is_filled_and_encoded_at_one_call_a_message(socket_type, count):
    net, remote = connected(socket_type)
    for _ in range(count):
        net.core.send(addressed(socket_type))
    remote.link.batch = count
    assert calls_during(net.links.output, remote.link) <= count + 26
    assert len(remote.link.sending) == count


def test_a_batch_that_was_written_costs_the_same_however_many_messages_it_held():
    net, remote = connected("PUSH")
    for _ in range(MANY):
        net.core.send(MESSAGE)
    remote.link.batch = MANY
    size = sum(map(len, net.links.output(remote.link)))
    assert calls_during(net.links.wrote, remote.link, size, 0.0) <= 9


def test_of_many_subscribers_only_the_first_pays_for_the_encoding():
    net = Network("PUB", sndhwm=0)
    subs = [net.greet("SUB") for _ in range(10)]
    for sub in subs:
        sub.subscribe(b"")
    net.talk()
    for sub in subs:
        sub.reads = False
    for n in range(50):  # of several kinds: encoded one by one
        net.core.send([b"topic", b"%d" % n])
        net.core.send(b"%d" % n)
    first, *others = [calls_during(net.links.output, sub.link) for sub in subs]
    assert max(others) <= 100 + 16
    assert first > max(others) + 100


# -- receiving


@pytest.mark.parametrize("socket_type", ["PULL", "DEALER", "PAIR", "ROUTER"])
@pytest.mark.parametrize("count", [1, 10, MANY])
def test_a_chunk_costs_what_its_decoding_costs_and_a_fixed_number_of_calls(socket_type, count):
    net, remote = connected(socket_type)
    chunk = b"".join(encode([MESSAGE] * count))
    decoding = calls_during(remote.link.connection.receive_data, chunk, 0.0)
    assert calls_during(net.links.receive_data, remote.link, chunk, 0.0) <= decoding + 16


def test_a_subscriber_filters_a_chunk_at_one_call_a_message():
    net, remote = connected("SUB")
    chunk = b"".join(encode([MESSAGE] * MANY))
    decoding = calls_during(remote.link.connection.receive_data, chunk, 0.0)
    assert calls_during(net.links.receive_data, remote.link, chunk, 0.0) <= decoding + MANY + 24


def test_decoding_many_equal_messages_is_less_than_a_call_a_message():
    net, remote = connected("PULL")
    chunk = b"".join(encode([MESSAGE] * MANY))
    assert calls_during(net.links.receive_data, remote.link, chunk, 0.0) < MANY // 4


def test_a_message_received_by_the_lane_costs_one_call():
    net, remote = connected("PULL")
    net.links.receive_data(remote.link, b"".join(encode([MESSAGE] * MANY)), 0.0)
    net.core.settle()
    lane = net.core.receive_lane

    def receive_all():
        take = lane.messages.popleft
        for _ in range(MANY):
            take()
            if lane.full:
                lane.drained()

    assert calls_during(receive_all) <= MANY + 2


@pytest.mark.parametrize(
    "socket_type, budget", [("PULL", 8), ("DEALER", 8), ("ROUTER", 9), ("SUB", 9)]
)
def test_a_message_received_past_the_lane(socket_type, budget):
    net, remote = connected(socket_type)
    net.links.receive_data(remote.link, b"".join(encode([MESSAGE] * 2)), 0.0)
    net.core.receive()
    assert calls_during(net.core.receive) <= budget


# -- in between


def test_settling_when_there_is_nothing_to_settle_costs_nothing():
    net, _ = connected("DEALER")
    assert calls_during(net.core.settle) == 1


def test_a_message_over_inproc_costs_no_more_than_its_two_patterns():
    context = ContextCore()
    push, pull = make_core("PUSH", context), make_core("PULL", context)
    pull.inproc.bind(inproc("name"))
    push.inproc.connect(inproc("name"))
    context.hand_over()

    def pass_on():
        push.send(MESSAGE)
        context.hand_over()
        pull.receive()

    pass_on()
    assert calls_during(pass_on) <= 20
