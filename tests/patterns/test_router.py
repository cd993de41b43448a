"""RFC 28: ROUTER, and what libzmq adds to it (handover, mandatory, probe, connect ids)."""

import pytest

from tests.patterns.world import (
    World,
    calls_during,
    connect,
    lose,
    make,
    network_peer,
    new_peer,
    received,
    sent,
)
from zerohop.constants import Errno
from zerohop.errors import Again, ZMQError
from zerohop.patterns.pattern import HWM_REACHED


class TestRouting:
    def test_received_messages_begin_with_the_id_of_their_sender(self):
        router = make("ROUTER")
        a, b = network_peer(router, routing_id=b"A"), network_peer(router, routing_id=b"B")
        router.deliver(a, [b"one", [b"", b"two"]])
        router.deliver(b, [b"three"])
        assert received(router) == [[b"A", b"one"], [b"B", b"three"], [b"A", b"", b"two"]]

    def test_sent_messages_go_to_the_peer_that_their_first_part_names(self):
        router = make("ROUTER")
        a, b = network_peer(router, routing_id=b"A"), network_peer(router, routing_id=b"B")
        router.send([b"B", b"one"])
        router.send([memoryview(b"A"), b"", b"two"])
        assert (sent(a), sent(b)) == ([[b"", b"two"]], [b"one"])

    def test_the_message_that_was_sent_is_not_changed(self):
        router = make("ROUTER")
        network_peer(router, routing_id=b"A")
        message = [b"A", b"x", b"y"]
        router.send(message)
        assert message == [b"A", b"x", b"y"]

    def test_a_message_to_nobody_is_dropped_and_counted(self):
        router = make("ROUTER")
        router.check_send(b"nobody")
        router.send([b"nobody", b"x"])
        assert router.dropped == {"unknown routing id": 1}

    def test_a_message_to_a_full_peer_is_dropped_and_counted(self):
        router = make("ROUTER")
        peer = network_peer(router, routing_id=b"A", hwm=1)
        router.send([b"A", b"1"])
        router.send([b"A", b"2"])
        assert sent(peer) == [b"1"]
        assert peer.dropped == {HWM_REACHED: 1}

    @pytest.mark.parametrize("mandatory", [False, True])
    def test_an_id_alone_is_ignored(self, mandatory):
        router = make("ROUTER", router_mandatory=mandatory)
        peer = network_peer(router, routing_id=b"A")
        router.send(b"A")
        assert sent(peer) == []
        assert router.dropped == {"no message after the routing id": 1}

    def test_it_can_always_send_and_cannot_receive_what_is_not_there(self):
        router = make("ROUTER")
        assert router.can_send_now()
        assert not router.can_receive_now()
        with pytest.raises(Again):
            router.receive()

    def test_what_a_peer_sent_before_it_left_still_bears_its_id(self):
        router = make("ROUTER")
        peer = network_peer(router, routing_id=b"A")
        router.deliver(peer, [b"last words"])
        router.detach(peer)
        assert received(router) == [[b"A", b"last words"]]
        router.send([b"A", b"x"])
        assert router.dropped == {"unknown routing id": 1}

    def test_it_has_no_lanes(self):
        router = make("ROUTER")
        network_peer(router)
        assert (router.send_lane, router.receive_lane) == (None, None)


class TestMandatory:
    def test_a_message_to_nobody_raises_ehostunreach(self):
        router = make("ROUTER", router_mandatory=True)
        for call in (lambda: router.send([b"nobody", b"x"]), lambda: router.check_send(b"nobody")):
            with pytest.raises(ZMQError, match="Host unreachable") as caught:
                call()
            assert caught.value.errno == Errno.EHOSTUNREACH

    def test_a_message_to_a_full_peer_raises_again(self):
        router = make("ROUTER", router_mandatory=True)
        peer = network_peer(router, routing_id=b"A", hwm=1)
        router.check_send(b"A")
        router.send([b"A", b"1"])
        with pytest.raises(Again):
            router.send([b"A", b"2"])
        with pytest.raises(Again):
            router.check_send(b"A")
        assert sent(peer) == [b"1"]
        assert not peer.dropped

    def test_it_can_send_while_some_peer_has_room(self):
        router = make("ROUTER", router_mandatory=True)
        assert not router.can_send_now()
        network_peer(router, routing_id=b"A", hwm=1)
        router.send([b"A", b"1"])
        assert not router.can_send_now()
        network_peer(router, routing_id=b"B", hwm=1)
        assert router.can_send_now()


class TestIds:
    def test_a_peer_without_identity_gets_a_zero_and_a_counter_that_begins_at_the_seed(self):
        router = make("ROUTER", seed=0x01020304)
        first, second = network_peer(router), network_peer(router)
        assert first.routing_id == b"\x00\x01\x02\x03\x04"
        assert second.routing_id == b"\x00\x01\x02\x03\x05"

    def test_an_accepted_peer_is_addressed_by_the_identity_it_announces(self):
        router = make("ROUTER")
        network_peer(router, routing_id=b"A")
        assert router.has_routing_id(b"A")
        assert not router.has_routing_id(b"B")

    def test_a_dialled_peer_has_no_id_before_its_handshake(self):
        router = make("ROUTER")
        peer = new_peer()
        router.attach(peer)
        peer.routing_id = b"A"
        router.send([b"A", b"x"])
        assert sent(peer) == []
        connect(router, peer)
        router.send([b"A", b"x"])
        assert sent(peer) == [b"x"]

    def test_a_peer_dialled_with_connect_routing_id_has_it_at_once_and_for_good(self):
        router = make("ROUTER")
        peer = new_peer(connect_routing_id=b"ours")
        router.attach(peer)
        router.send([b"ours", b"queued"])
        peer.routing_id = b"theirs"
        connect(router, peer)
        router.deliver(peer, [b"x"])
        assert peer.routing_id == b"ours"
        assert received(router) == [[b"ours", b"x"]]
        assert sent(peer) == [b"queued"]
        assert not router.notices

    def test_a_dialled_peer_keeps_its_id_and_its_queue_while_its_link_is_lost(self):
        router = make("ROUTER")
        peer = network_peer(router, routing_id=b"A")
        lose(router, peer)
        router.send([b"A", b"x"])
        assert sent(peer) == [b"x"]

    @pytest.mark.parametrize("identity", [b"A", b""], ids=["same", "none"])
    def test_a_peer_that_reconnects_keeps_its_id(self, identity):
        router = make("ROUTER")
        peer = network_peer(router, routing_id=b"A")
        lose(router, peer)
        peer.routing_id = identity
        connect(router, peer)
        assert peer.routing_id == b"A"
        assert not router.notices

    def test_a_peer_that_reconnects_under_another_identity_keeps_the_old_one_and_we_say_so(self):
        """libzmq skips the second identity, and the peer cannot be reached by it (issue 1575)."""
        router = make("ROUTER")
        peer = network_peer(router, routing_id=b"A")
        lose(router, peer)
        peer.routing_id = b"B"
        connect(router, peer)
        router.send([b"A", b"x"])
        assert sent(peer) == [b"x"]
        assert not router.has_routing_id(b"B")
        [(who, notice)] = router.notices
        assert who is peer
        assert "b'B'" in notice

    def test_a_peer_that_leaves_before_it_had_an_id_leaves_nothing(self):
        router = make("ROUTER")
        peer = new_peer()
        router.attach(peer)
        router.detach(peer)
        assert received(router) == []


class TestDuplicateIdentity:
    def test_the_newcomer_is_mute_and_we_say_so(self):
        router = make("ROUTER")
        first = network_peer(router, routing_id=b"A")
        second = network_peer(router, routing_id=b"A")
        router.deliver(second, [b"unheard"])
        router.send([b"A", b"x"])
        assert received(router) == []
        assert (sent(first), sent(second)) == ([b"x"], [])
        [(who, notice)] = router.notices
        assert who is second
        assert "ROUTER_HANDOVER" in notice
        assert not router.refused

    def test_its_full_pipe_stops_its_connection(self):
        router = make("ROUTER")
        network_peer(router, routing_id=b"A")
        second = network_peer(router, routing_id=b"A", hwm=1)
        router.deliver(second, [b"unheard"])
        assert second.inbound.full

    def test_it_is_adopted_when_the_first_leaves_and_nothing_it_said_is_lost(self):
        router = make("ROUTER")
        first = network_peer(router, routing_id=b"A")
        second = network_peer(router, routing_id=b"A")
        router.deliver(first, [b"from the first"])
        router.deliver(second, [b"from the second"])
        router.notices = []
        router.detach(first)
        router.send([b"A", b"x"])
        assert sent(second) == [b"x"]
        assert received(router) == [[b"A", b"from the first"], [b"A", b"from the second"]]
        assert [who for who, _ in router.notices] == [second]

    def test_those_who_wait_are_adopted_in_the_order_they_came(self):
        router = make("ROUTER")
        other = network_peer(router, routing_id=b"B")
        network_peer(router, routing_id=b"B")
        peers = [network_peer(router, routing_id=b"A") for _ in range(3)]
        for leaving, heir in zip(peers, peers[1:]):
            router.detach(leaving)
            router.send([b"A", b"x"])
            assert sent(heir) == [b"x"]
        router.send([b"B", b"x"])
        assert sent(other) == [b"x"]

    def test_one_that_leaves_while_it_waits_is_forgotten_and_its_messages_counted(self):
        router = make("ROUTER")
        first = network_peer(router, routing_id=b"A")
        second, third = (network_peer(router, routing_id=b"A") for _ in range(2))
        router.deliver(second, [b"unheard"])
        router.detach(second)
        router.detach(third)
        router.detach(first)
        assert not router.has_routing_id(b"A")
        assert second.dropped == {"routing id taken": 1}
        assert not third.dropped

    def test_one_that_reconnects_while_it_waits_goes_on_waiting(self):
        router = make("ROUTER")
        network_peer(router, routing_id=b"A")
        second = network_peer(router, routing_id=b"A")
        router.notices = []
        lose(router, second)
        second.routing_id = b""
        connect(router, second)
        assert second.routing_id == b"A"
        router.deliver(second, [b"unheard"])
        assert received(router) == []

    def test_with_handover_the_newcomer_takes_the_id_and_the_first_is_refused(self):
        router = make("ROUTER", seed=5, router_handover=True)
        first = network_peer(router, routing_id=b"A")
        router.deliver(first, [b"from the first"])
        second = network_peer(router, routing_id=b"A")
        router.send([b"A", b"x"])
        assert (sent(first), sent(second)) == ([], [b"x"])
        assert [peer for peer, _ in router.refused] == [first]
        assert first.routing_id == b"\x00\x00\x00\x00\x05"
        assert received(router) == [[first.routing_id, b"from the first"]]
        router.detach(first)
        assert router.has_routing_id(b"A")


def test_probe_router_sends_an_empty_message_on_each_connection():
    router = make("ROUTER", probe_router=True)
    peer = network_peer(router, routing_id=b"A")
    assert sent(peer) == [b""]


def test_a_router_and_a_dealer_find_each_other_over_shared_pipes():
    world, router, dealer = World(), make("ROUTER"), make("DEALER", routing_id=b"D")
    world.join(dealer, router)
    dealer.send([b"", b"question"])
    world.settle()
    assert received(router) == [[b"D", b"", b"question"]]
    router.send([b"D", b"", b"answer"])
    world.settle()
    assert received(dealer) == [[b"", b"answer"]]


def test_an_echo_costs_few_calls():
    router = make("ROUTER")
    for name in (b"A", b"B", b"C"):
        peer = network_peer(router, routing_id=name, hwm=1000)
        router.deliver(peer, [b"x"] * 10)
    # receive, take, popleft, rotate, isinstance
    assert calls_during(router.receive) <= 5
    # send, isinstance, peer, dict.get, len, push, append, len; the first leaves a note
    assert calls_during(router.send, [b"A", b"x"]) <= 9
    assert calls_during(router.send, [b"A", b"x"]) <= 8
