"""RFC 28: REQ and REP, and libzmq's REQ_RELAXED and REQ_CORRELATE."""

import struct

import pytest

from tests.patterns.world import World, lose, make, network_peer, new_peer, received, sent
from zerohop.constants import Errno
from zerohop.errors import Again, UsageError
from zerohop.patterns.pattern import HWM_REACHED


def request_id(number):
    return struct.pack("=I", number)


class TestReqSends:
    def test_an_empty_frame_before_the_body(self):
        req = make("REQ")
        peer = network_peer(req)
        req.send(b"body")
        assert sent(peer) == [[b"", b"body"]]

    def test_all_parts_of_the_body(self):
        req = make("REQ")
        peer = network_peer(req)
        req.send([b"two", b"parts"])
        assert sent(peer) == [[b"", b"two", b"parts"]]

    def test_each_request_to_the_next_peer(self):
        req = make("REQ")
        a, b = network_peer(req), network_peer(req)
        req.send(b"1")
        req.deliver(a, [[b"", b"reply"]])
        req.receive()
        req.send(b"2")
        assert (sent(a), sent(b)) == ([[b"", b"1"]], [[b"", b"2"]])

    def test_nothing_without_peers(self):
        req = make("REQ")
        assert not req.can_send_now()
        for call in (lambda: req.send(b"x"), lambda: req.check_send(b"x")):
            with pytest.raises(Again):
                call()
        assert not req.can_receive_now()

    def test_a_request_that_found_no_room_leaves_the_state_as_it_was(self):
        req = make("REQ")
        with pytest.raises(Again):
            req.send(b"x")
        with pytest.raises(UsageError) as caught:
            req.receive()
        assert caught.value.errno == Errno.EFSM

    def test_again_when_a_full_peer_has_room(self):
        req = make("REQ", req_relaxed=True)
        peer = network_peer(req, hwm=1)
        req.send(b"1")
        assert not req.can_send_now()
        sent(peer)
        req.writable(peer)
        assert req.can_send_now()

    def test_a_probe_on_each_connection_with_probe_router(self):
        assert sent(network_peer(make("REQ", probe_router=True))) == [b""]


class TestReqReceives:
    @pytest.mark.parametrize("body", [b"reply", [b"two", b"parts"], b""])
    def test_the_body_of_the_reply(self, body):
        req = make("REQ")
        peer = network_peer(req)
        req.send(b"x")
        assert not req.can_receive_now()
        with pytest.raises(Again):
            req.receive()
        req.deliver(peer, [[b"", *(body if isinstance(body, list) else [body])]])
        assert req.can_receive_now()
        assert req.receive() == body

    def test_nothing_before_it_has_asked(self):
        req = make("REQ")
        network_peer(req)
        with pytest.raises(UsageError) as caught:
            req.receive()
        assert caught.value.errno == Errno.EFSM
        assert any("must send a request" in note for note in caught.value.__notes__)

    def test_one_reply_a_request(self):
        req = make("REQ")
        peer = network_peer(req)
        req.send(b"x")
        req.deliver(peer, [[b"", b"reply"], [b"", b"another"]])
        req.receive()
        assert not req.can_receive_now()
        with pytest.raises(UsageError):
            req.receive()

    def test_only_from_the_peer_it_asked(self):
        req = make("REQ")
        a, b = network_peer(req), network_peer(req)
        req.send(b"x")
        req.deliver(b, [[b"", b"from the wrong one"]])
        assert not req.can_receive_now()
        assert b.dropped["unexpected reply"] == 1
        req.deliver(a, [[b"", b"from the right one"]])
        assert req.receive() == b"from the right one"

    def test_from_any_peer_when_the_one_it_asked_has_gone(self):
        req = make("REQ")
        a, b = network_peer(req), network_peer(req)
        req.send(b"x")
        req.detach(a)
        req.deliver(b, [[b"", b"from another"]])
        assert req.receive() == b"from another"

    def test_a_reply_that_came_before_the_peer_left(self):
        req = make("REQ")
        a, b = network_peer(req), network_peer(req)
        req.send(b"x")
        req.deliver(b, [[b"", b"from the wrong one"]])
        req.deliver(a, [[b"", b"reply"]])
        req.detach(a)
        assert not req.notices
        assert req.receive() == b"reply"

    def test_nothing_that_came_before_the_request(self):
        req = make("REQ")
        peer = network_peer(req)
        req.deliver(peer, [[b"", b"stale"], [b"", b"staler"]])
        req.send(b"x")
        assert not req.can_receive_now()
        assert peer.dropped["late reply"] == 2

    def test_over_shared_pipes_no_message_without_its_envelope(self):
        world, req, router = World(), make("REQ", routing_id=b"R"), make("ROUTER")
        at_req, _ = world.join(req, router)
        req.send(b"x")
        world.settle()
        router.receive()
        router.send([b"R", b"no empty frame", b"y"])
        router.send([b"R", b"bare"])
        router.send([b"R", b""])
        router.send([b"R", b"", b"reply"])
        world.settle()
        assert req.receive() == b"reply"
        assert at_req.dropped["unexpected reply"] == 3


class TestMalformedReply:
    @pytest.mark.parametrize(
        "message",
        [b"bare", [b"x", b"body"], [b"four", b"body"], [b"four", b""], [b"four", b"x", b"body"]],
    )
    def test_the_peer_is_refused(self, message):
        req = make("REQ")
        peer = network_peer(req)
        req.send(b"x")
        req.deliver(peer, [[b"", b"good"], message, [b"", b"after it"]])
        assert [who for who, _ in req.refused] == [peer]
        assert peer.dropped["malformed reply"] == 1
        assert req.receive() == b"good"

    def test_an_empty_message_is_a_probe_and_only_discarded(self):
        req = make("REQ")
        peer = network_peer(req)
        req.send(b"x")
        req.deliver(peer, [b"", [b"", b"reply"]])
        assert not req.refused
        assert req.receive() == b"reply"

    def test_a_request_id_where_none_was_sent_is_well_formed_but_no_reply(self):
        req = make("REQ")
        peer = network_peer(req)
        req.send(b"x")
        req.deliver(peer, [[b"four", b"", b"body"]])
        assert not req.refused
        assert not req.can_receive_now()


class TestReqTurns:
    def test_a_second_request_before_the_reply_is_an_error(self):
        req = make("REQ")
        network_peer(req)
        req.send(b"1")
        assert not req.can_send_now()
        for call in (lambda: req.send(b"2"), lambda: req.check_send(b"2")):
            with pytest.raises(UsageError) as caught:
                call()
            assert caught.value.errno == Errno.EFSM
            assert any("REQ_RELAXED" in note for note in caught.value.__notes__)

    def test_relaxed_allows_it_and_drops_what_has_come_meanwhile(self):
        req = make("REQ", req_relaxed=True)
        peer = network_peer(req)
        req.send(b"1")
        req.deliver(peer, [[b"", b"reply to 1"]])
        assert req.can_send_now()
        req.send(b"2")
        assert not req.can_receive_now()
        assert sent(peer) == [[b"", b"1"], [b"", b"2"]]

    def test_relaxed_sends_the_new_request_to_the_next_peer_and_listens_to_it_alone(self):
        req = make("REQ", req_relaxed=True)
        a, b = network_peer(req), network_peer(req)
        req.send(b"1")
        req.send(b"2")
        req.deliver(a, [[b"", b"late"]])
        req.deliver(b, [[b"", b"in time"]])
        assert req.receive() == b"in time"

    def test_relaxed_without_correlate_takes_a_late_reply_of_the_same_peer_for_the_new_one(self):
        req = make("REQ", req_relaxed=True)
        peer = network_peer(req)
        req.send(b"1")
        req.send(b"2")
        req.deliver(peer, [[b"", b"reply to 1"]])
        assert req.receive() == b"reply to 1"

    def test_a_peer_that_left_does_not_keep_a_relaxed_req_from_asking_another(self):
        req = make("REQ", req_relaxed=True)
        a = network_peer(req)
        b = network_peer(req)
        req.send(b"1")
        req.detach(a)
        req.send(b"2")
        req.deliver(b, [[b"", b"reply"]])
        assert req.receive() == b"reply"


class TestCorrelate:
    def test_a_request_begins_with_four_octets_that_count_requests(self):
        req = make("REQ", seed=41, req_correlate=True, req_relaxed=True)
        peer = network_peer(req)
        req.send(b"1")
        req.send([b"2", b"2"])
        assert sent(peer) == [
            [request_id(42), b"", b"1"],
            [request_id(43), b"", b"2", b"2"],
        ]

    def test_the_counter_wraps(self):
        req = make("REQ", seed=0xFFFFFFFF, req_correlate=True)
        peer = network_peer(req)
        req.send(b"1")
        assert sent(peer) == [[request_id(0), b"", b"1"]]

    def test_only_the_reply_with_the_id_of_the_last_request_counts(self):
        req = make("REQ", seed=0, req_correlate=True, req_relaxed=True)
        peer = network_peer(req)
        req.send(b"1")
        req.send(b"2")
        req.deliver(peer, [[request_id(1), b"", b"late"], [b"", b"no id"]])
        assert not req.can_receive_now()
        req.deliver(peer, [[request_id(2), b"", b"in time"]])
        assert req.receive() == b"in time"
        assert peer.dropped["unexpected reply"] == 2


class TestLostRequest:
    def test_a_dialled_peer_that_is_lost_with_the_request_is_reported(self):
        req = make("REQ")
        peer = network_peer(req)
        req.send(b"x")
        sent(peer)
        lose(req, peer)
        [(who, notice)] = req.notices
        assert who is peer
        assert "REQ_RELAXED" in notice
        assert not req.can_send_now()  # as libzmq: for ever, unless relaxed

    def test_a_request_still_queued_is_not_lost(self):
        req = make("REQ")
        peer = network_peer(req)
        req.send(b"x")
        lose(req, peer)
        assert not req.notices

    def test_a_peer_that_leaves_with_the_request_is_reported(self):
        req = make("REQ")
        peer = network_peer(req)
        req.send(b"x")
        req.detach(peer)
        assert [who for who, _ in req.notices] == [peer]

    def test_a_relaxed_req_is_told_but_not_what_it_knows(self):
        req = make("REQ", req_relaxed=True)
        peer = network_peer(req)
        req.send(b"x")
        req.detach(peer)
        [(_, notice)] = req.notices
        assert "REQ_RELAXED" not in notice

    def test_peers_that_were_not_asked_come_and_go_unnoticed(self):
        req = make("REQ")
        network_peer(req)
        other = network_peer(req)
        req.send(b"x")
        lose(req, other)
        req.detach(other)
        assert not req.notices


class TestRep:
    def test_a_request_comes_without_its_envelope_and_the_reply_goes_back_in_it(self):
        rep = make("REP")
        peer = network_peer(rep)
        rep.deliver(peer, [[b"", b"request"]])
        assert rep.can_receive_now()
        assert rep.receive() == b"request"
        rep.send(b"reply")
        assert sent(peer) == [[b"", b"reply"]]

    def test_the_envelope_reaches_to_the_first_empty_frame(self):
        rep = make("REP")
        peer = network_peer(rep)
        rep.deliver(peer, [[b"hop1", b"hop2", b"", b"two", b"", b"parts"]])
        assert rep.receive() == [b"two", b"", b"parts"]
        rep.send([b"re", b"ply"])
        assert sent(peer) == [[b"hop1", b"hop2", b"", b"re", b"ply"]]

    def test_requests_are_taken_from_each_peer_in_turn(self):
        rep = make("REP")
        a, b = network_peer(rep), network_peer(rep)
        rep.deliver(a, [[b"", b"a1"], [b"", b"a2"]])
        rep.deliver(b, [[b"", b"b1"]])
        order = []
        for _ in range(3):
            order.append(rep.receive())
            rep.send(b"ok")
        assert order == [b"a1", b"b1", b"a2"]
        assert (len(sent(a)), len(sent(b))) == (2, 1)

    @pytest.mark.parametrize(
        "message", [b"", b"bare", [b"x", b"y"], [b"x", b""]], ids=["probe", "bare", "parts", "end"]
    )
    def test_a_request_without_an_empty_frame_before_a_body_is_discarded(self, message):
        rep = make("REP")
        peer = network_peer(rep)
        rep.deliver(peer, [message])
        assert not rep.can_receive_now()
        assert peer.dropped["malformed request"] == 1
        rep.deliver(peer, [message, [b"", b"good"]])
        assert rep.receive() == b"good"

    def test_with_no_request_it_blocks(self):
        rep = make("REP")
        network_peer(rep)
        with pytest.raises(Again):
            rep.receive()

    def test_a_reply_before_a_request_is_an_error(self):
        rep = make("REP")
        network_peer(rep)
        assert not rep.can_send_now()
        with pytest.raises(UsageError) as caught:
            rep.send(b"x")
        assert caught.value.errno == Errno.EFSM
        assert any("must receive a request" in note for note in caught.value.__notes__)

    def test_a_second_request_before_the_reply_is_an_error(self):
        rep = make("REP")
        rep.deliver(network_peer(rep), [[b"", b"1"], [b"", b"2"]])
        rep.receive()
        assert rep.can_send_now()
        assert not rep.can_receive_now()
        with pytest.raises(UsageError) as caught:
            rep.receive()
        assert caught.value.errno == Errno.EFSM

    def test_the_reply_to_a_peer_that_has_gone_is_dropped_and_counted(self):
        rep = make("REP")
        peer = network_peer(rep)
        rep.deliver(peer, [[b"", b"x"]])
        rep.receive()
        rep.detach(peer)
        rep.send(b"reply")
        assert sent(peer) == []
        assert rep.dropped == {"requester gone": 1}
        assert not rep.can_send_now()

    def test_the_reply_to_a_full_peer_is_dropped_and_counted(self):
        rep = make("REP")
        peer = network_peer(rep, hwm=1)
        for _ in range(2):
            rep.deliver(peer, [[b"", b"x"]])
            rep.receive()
            rep.send(b"reply")
        assert sent(peer) == [[b"", b"reply"]]
        assert peer.dropped == {HWM_REACHED: 1}

    def test_two_peers_with_one_identity_both_get_their_answers(self):
        """libzmq's REP is a ROUTER, which never reads the second of them (measured)."""
        rep = make("REP")
        for peer in [network_peer(rep, routing_id=b"same") for _ in range(2)]:
            rep.deliver(peer, [[b"", b"x"]])
            rep.receive()
            rep.send(b"reply")
            assert sent(peer) == [[b"", b"reply"]]

    def test_what_was_received_is_not_changed_by_the_reply(self):
        rep = make("REP")
        peer = new_peer()
        rep.attach(peer)
        rep.deliver(peer, [[b"", b"a", b"b"]])
        request = rep.receive()
        rep.send([b"c", b"d"])
        assert request == [b"a", b"b"]


def test_a_question_and_its_answer_pass_through_a_router_and_a_dealer():
    world = World()
    req, rep = make("REQ", routing_id=b"client"), make("REP")
    front, back = make("ROUTER"), make("DEALER")
    world.join(req, front)
    world.join(back, rep)
    for number in range(3):
        req.send(b"question %d" % number)
        world.settle()
        for message in received(front):
            back.send(message)
        world.settle()
        assert rep.receive() == b"question %d" % number
        rep.send([b"answer", b"%d" % number])
        world.settle()
        for message in received(back):
            front.send(message)
        world.settle()
        assert req.receive() == [b"answer", b"%d" % number]
