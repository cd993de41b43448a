"""A publisher's lane in a whole socket: what comes after a message does not change who gets it."""

import pytest

from tests.core.kit import ADDRESS, Network, Remote
from tests.wire.kit import calls_during
from tests.wire.toy import ToyMechanism
from zerohop.constants import SocketOption
from zerohop.core import link
from zerohop.core.peers import PEER_GONE
from zerohop.wire.connection import Connection


def publisher(subscribers=1, **options):
    net = Network("PUB", **options)
    remotes = [net.greet("SUB") for _ in range(subscribers)]
    for remote in remotes:
        remote.subscribe(b"a")
    net.talk()
    return net, *remotes


def send_on_lane(net, *messages):
    lane = net.core.send_lane
    for message in messages:
        lane.messages.append(message)
        if lane.asleep:
            lane.asleep = False
            lane.reader_signals.append(lane.reader)


def test_what_the_lane_holds_is_written_with_the_drivers_next_turn():
    net, first, second = publisher(2)
    send_on_lane(net, b"a1", b"b", b"a2")
    net.talk()
    assert first.taken() == second.taken() == [b"a1", b"a2"]
    assert net.core.send_lane.asleep


def test_what_was_sent_before_an_option_was_set_does_not_obey_it():
    net, remote = publisher()
    send_on_lane(net, b"a1", b"b1")
    net.core.set_option(SocketOption.INVERT_MATCHING, 1)
    net.core.send(b"b2")
    net.talk()
    assert net.core.send_lane is None
    assert remote.taken() == [b"a1", b"b2"]


def test_closing_sends_what_the_lane_still_holds():
    net, remote = publisher()
    send_on_lane(net, b"a1")
    net.core.close()
    net.talk()
    assert remote.taken() == [b"a1"]
    assert net.links.finished


def test_a_subscription_that_arrives_later_does_not_get_it():
    net, early = publisher()
    late = net.greet("SUB")
    send_on_lane(net, b"a1")
    late.subscribe(b"a")
    net.read(late.link)
    net.talk()
    assert (early.taken(), late.taken()) == ([b"a1"], [])


def test_what_was_sent_to_a_peer_that_is_gone_counts_as_dropped():
    net, _, leaving = publisher(2)
    send_on_lane(net, b"a1", b"b", b"a2")
    net.cut(leaving)
    assert net.core.pattern.dropped[PEER_GONE] == 2


def test_the_lane_follows_the_high_water_mark():
    net, _ = publisher(sndhwm=50)
    assert net.core.send_lane.hwm == 50
    net.core.set_option(SocketOption.SNDHWM, 20)
    net.core.settle()
    assert net.core.send_lane.hwm == 20


def test_without_drops_the_lane_opens_when_the_network_has_taken_what_was_queued():
    net, remote = publisher(sndhwm=20, xpub_nodrop=True)
    remote.reads = False
    for _ in range(2):
        send_on_lane(net, *[b"a"] * (20 - len(remote.link.peer.outbound)))
        net.core.settle()
        assert net.core.send_lane is None
        remote.reads = True
        net.write(remote.link)
        remote.reads = False
        net.core.settle()
        net.core.settle()
        assert net.core.send_lane.hwm == 20
    assert remote.taken() == [b"a"] * 40


@pytest.mark.parametrize("subscribers", [1, 8, 64])
def test_a_batch_for_many_costs_a_call_a_message_and_a_fixed_number_a_subscriber(subscribers):
    """Handed out and written: of the messages only those calls that take them from a queue."""
    net, *remotes = publisher(subscribers, sndhwm=0)
    messages = [b"a%d" % n for n in range(500)]
    for remote in remotes:
        remote.link.batch = len(messages)
        remote.reads = False
    send_on_lane(net, *messages)

    def write_all():
        net.core.settle()
        for peer in net.links.to_flush:
            net.links.wrote(peer.link, sum(map(len, net.links.output(peer.link))), 0.0)

    write_all()
    net.links.to_flush.clear()
    for remote in remotes:
        remote.link.peer.outbound.sleep()
    send_on_lane(net, *messages)
    calls = calls_during(write_all)
    assert len(net.links.to_flush) == subscribers
    # A popleft at the lane, a look-up of the topic and an append to the run; encoding. For each
    # subscriber the batch is one thing.
    assert calls <= 5 * len(messages) + 50 * subscribers


def wrapped(socket_type, *, as_server):
    """A connection whose mechanism gives each frame a form of its own."""
    properties = {"Socket-Type": socket_type.encode()}
    mechanism = ToyMechanism(properties, as_server=as_server)
    return Connection(mechanism=mechanism, properties=properties, now=0.0)


def test_where_each_connection_wraps_frames_its_own_way_none_gets_those_of_another(monkeypatch):
    monkeypatch.setattr(
        link, "_introduction", lambda *_: lambda now: wrapped("PUB", as_server=True)
    )
    net = Network("PUB")
    listener = net.core.listen(ADDRESS)
    remotes = [Remote("SUB") for _ in range(3)]
    for remote in remotes:
        remote.connection = wrapped("SUB", as_server=False)
        remote.said = bytearray(remote.connection.data_to_send())
        net.open(listener, remote)
    net.talk()
    for remote in remotes:
        remote.subscribe(b"a")
    net.talk()
    message = b"a, always the same object"
    for _ in range(2):
        send_on_lane(net, message, message)
        net.talk()
    assert [remote.taken() for remote in remotes] == [[message] * 4] * 3
    assert not any(remote.error for remote in remotes)


def test_peers_that_read_at_different_speeds_get_the_same():
    net, quick, slow, slower = publisher(3, sndhwm=0)
    slow.reads = slower.reads = False
    sent = []
    for batch in range(1, 30):
        messages = [b"a%d-%d" % (batch, n) for n in range(batch * 7)]
        sent += messages
        send_on_lane(net, *messages)
        net.talk()
        for remote, size in ((slow, 500), (slower, 150)):
            remote.hear(net.takes(remote.link, size), 0.0)
    for remote in (slow, slower):
        remote.reads = True
        net.write(remote.link)
    assert quick.taken() == slow.taken() == slower.taken() == sent


def test_a_connection_that_has_subscriptions_to_write_is_queued_once():
    net = Network("SUB")
    remote = net.greet("PUB")
    for number in range(1000):
        net.core.pattern.subscribe(b"%d" % number)
    net.core.settle()
    assert net.links.to_write == [remote.link]
    net.talk()
    assert [item.topic for item in remote.taken()] == [b"%d" % number for number in range(1000)]
    net.core.pattern.subscribe(b"one more")
    net.core.settle()
    assert net.links.to_write == [remote.link]
