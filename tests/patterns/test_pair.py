"""RFC 31: PAIR."""

import pytest

from tests.patterns.world import World, connect, make, network_peer, new_peer, received, sent
from zerohop.errors import Again


def test_messages_go_both_ways_unchanged():
    pair = make("PAIR")
    peer = network_peer(pair)
    pair.send([b"two", b"parts"])
    assert sent(peer) == [[b"two", b"parts"]]
    pair.deliver(peer, [b"one", [b"a", b"b"]])
    assert received(pair) == [b"one", [b"a", b"b"]]


def test_without_peer_it_can_neither_send_nor_receive():
    pair = make("PAIR")
    assert not pair.can_send_now()
    assert not pair.can_receive_now()
    with pytest.raises(Again):
        pair.send(b"x")
    with pytest.raises(Again):
        pair.check_send(b"x")
    with pytest.raises(Again):
        pair.receive()


def test_a_full_peer_blocks():
    pair = make("PAIR")
    peer = network_peer(pair, hwm=1)
    pair.check_send(b"x")
    pair.send(b"x")
    assert not pair.can_send_now()
    with pytest.raises(Again):
        pair.send(b"y")
    assert sent(peer) == [b"x"]
    pair.writable(peer)
    assert pair.can_send_now()


def test_a_second_peer_is_refused_while_the_first_is_there():
    pair = make("PAIR")
    first = network_peer(pair)
    second = new_peer()
    pair.attach(second)
    assert [peer for peer, _ in pair.refused] == [second]
    pair.send(b"x")
    assert (sent(first), sent(second)) == ([b"x"], [])


def test_a_refused_peer_that_connects_all_the_same_is_refused_again():
    """It was dialled: at first there was no connection that could have been closed."""
    pair = make("PAIR")
    network_peer(pair)
    second = new_peer()
    pair.attach(second)
    pair.refused = []
    connect(pair, second)
    assert [peer for peer, _ in pair.refused] == [second]


def test_what_a_refused_peer_sends_is_dropped_and_counted():
    pair = make("PAIR")
    network_peer(pair)
    second = new_peer()
    pair.attach(second)
    pair.deliver(second, [b"x", b"y"])
    assert not pair.can_receive_now()
    assert second.dropped["refused"] == 2


def test_a_refused_peer_that_leaves_does_not_take_the_first_with_it():
    pair = make("PAIR")
    first = network_peer(pair)
    second = new_peer()
    pair.attach(second)
    pair.detach(second)
    pair.send(b"x")
    assert sent(first) == [b"x"]


def test_another_peer_may_come_when_the_first_has_gone():
    pair = make("PAIR")
    pair.detach(network_peer(pair))
    second = network_peer(pair)
    assert not pair.refused
    pair.send(b"x")
    assert sent(second) == [b"x"]


def test_what_the_first_had_sent_is_received_before_what_the_second_sends():
    pair = make("PAIR")
    first = network_peer(pair)
    pair.deliver(first, [b"1"])
    pair.detach(first)
    second = network_peer(pair)
    pair.deliver(second, [b"2"])
    assert received(pair) == [b"1", b"2"]


def test_its_lanes_are_the_pipes_of_its_peer():
    pair = make("PAIR")
    assert (pair.send_lane, pair.receive_lane) == (None, None)
    peer = network_peer(pair)
    assert (pair.send_lane, pair.receive_lane) == (peer.outbound, peer.inbound)
    pair.detach(peer)
    assert (pair.send_lane, pair.receive_lane) == (None, None)


def test_there_is_no_receive_lane_until_a_peer_that_left_is_drained():
    pair = make("PAIR")
    first = network_peer(pair)
    pair.deliver(first, [b"1"])
    pair.detach(first)
    second = network_peer(pair)
    assert pair.receive_lane is None
    assert pair.receive() == b"1"
    with pytest.raises(Again):
        pair.receive()
    assert pair.receive_lane is second.inbound


def test_two_pairs_talk_over_shared_pipes():
    world, a, b = World(), make("PAIR"), make("PAIR")
    world.join(a, b)
    a.send(b"to b")
    b.send(b"to a")
    world.settle()
    assert (received(a), received(b)) == ([b"to a"], [b"to b"])
