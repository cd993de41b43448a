"""RFC 28: DEALER."""

import pytest

from tests.patterns.world import connect, make, network_peer, new_peer, received, sent
from zerohop.errors import Again
from zerohop.patterns.pattern import Peer
from zerohop.patterns.pipe import Pipe


def test_it_sends_to_its_peers_in_turn_and_receives_from_each_in_turn():
    dealer = make("DEALER")
    a, b = network_peer(dealer), network_peer(dealer)
    for message in (b"1", [b"", b"2"], b"3"):
        dealer.send(message)
    assert (sent(a), sent(b)) == ([b"1", b"3"], [[b"", b"2"]])
    dealer.deliver(a, [b"a1", b"a2"])
    dealer.deliver(b, [[b"", b"b1"]])
    assert received(dealer) == [b"a1", [b"", b"b1"], b"a2"]


def test_without_peers_it_blocks():
    dealer = make("DEALER")
    assert not dealer.can_send_now()
    assert not dealer.can_receive_now()
    with pytest.raises(Again):
        dealer.send(b"x")
    with pytest.raises(Again):
        dealer.receive()


def test_it_goes_on_when_a_full_peer_has_room():
    dealer = make("DEALER")
    peer = network_peer(dealer, hwm=1)
    dealer.send(b"1")
    assert not dealer.can_send_now()
    assert sent(peer) == [b"1"]
    dealer.writable(peer)
    assert dealer.can_send_now()


def test_it_has_lanes_while_it_has_one_peer():
    dealer = make("DEALER")
    a = network_peer(dealer)
    assert (dealer.send_lane, dealer.receive_lane) == (a.outbound, a.inbound)
    b = network_peer(dealer)
    assert (dealer.send_lane, dealer.receive_lane) == (None, None)
    dealer.detach(a)
    assert (dealer.send_lane, dealer.receive_lane) == (b.outbound, b.inbound)


def test_the_receive_lane_comes_back_when_a_peer_that_left_is_drained():
    dealer = make("DEALER")
    a, b = network_peer(dealer), network_peer(dealer)
    dealer.deliver(a, [b"x"])
    dealer.detach(a)
    assert dealer.receive_lane is None
    assert dealer.receive() == b"x"
    with pytest.raises(Again):
        dealer.receive()
    assert dealer.receive_lane is b.inbound


def test_an_inproc_peer_that_has_written_is_read():
    dealer = make("DEALER")
    peer = network_peer(dealer)
    peer.inbound.push(b"x")
    dealer.readable(peer)
    assert received(dealer) == [b"x"]


class TestProbeRouter:
    def test_an_empty_message_goes_out_on_each_connection_before_all_others(self):
        dealer = make("DEALER", probe_router=True)
        peer = new_peer()
        dealer.attach(peer)
        dealer.send(b"queued before the connection")
        connect(dealer, peer)
        assert sent(peer) == [b"", b"queued before the connection"]
        connect(dealer, peer)
        assert sent(peer) == [b""]

    def test_a_full_pipe_is_probe_enough(self):
        dealer = make("DEALER", probe_router=True)
        peer = new_peer(hwm=1)
        dealer.attach(peer)
        dealer.send(b"queued")
        connect(dealer, peer)
        assert sent(peer) == [b"queued"]

    def test_a_probe_does_not_push_the_last_value_out_of_a_conflating_pipe(self):
        dealer = make("DEALER", probe_router=True)
        peer = Peer(Pipe(0, conflate=True), Pipe(0))
        dealer.attach(peer)
        dealer.send(b"last value")
        connect(dealer, peer)
        assert sent(peer) == [b"last value"]
