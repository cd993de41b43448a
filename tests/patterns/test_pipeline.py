"""RFC 30: PUSH and PULL."""

import pytest

from tests.patterns.world import (
    World,
    calls_during,
    lose,
    make,
    network_peer,
    new_peer,
    received,
    sent,
)
from zerohop.errors import Again, UsageError


class TestPush:
    def test_it_sends_to_its_peers_in_turn(self):
        push = make("PUSH")
        a, b = network_peer(push), network_peer(push)
        for message in (b"1", [b"2", b"2"], b"3"):
            push.send(message)
        assert (sent(a), sent(b)) == ([b"1", b"3"], [[b"2", b"2"]])

    def test_without_peers_it_blocks(self):
        push = make("PUSH")
        assert not push.can_send_now()
        with pytest.raises(Again):
            push.send(b"x")
        with pytest.raises(Again):
            push.check_send(b"x")

    def test_it_blocks_when_all_are_full_and_goes_on_when_one_has_room(self):
        push = make("PUSH")
        a, b = network_peer(push, hwm=1), network_peer(push, hwm=1)
        push.send(b"1")
        push.send(b"2")
        with pytest.raises(Again):
            push.send(b"3")
        assert sent(b) == [b"2"]
        push.writable(b)
        push.send(b"3")
        assert (sent(a), sent(b)) == ([b"1"], [b"3"])

    def test_a_dialled_peer_takes_part_before_and_after_its_connection(self):
        push = make("PUSH")
        peer = new_peer()
        push.attach(peer)
        push.send(b"before")
        push.connected(peer)
        lose(push, peer)
        push.send(b"after")
        assert sent(peer) == [b"before", b"after"]

    def test_a_peer_that_left_gets_nothing_more(self):
        push = make("PUSH")
        a, b = network_peer(push), network_peer(push)
        push.detach(a)
        push.send(b"1")
        push.send(b"2")
        assert (sent(a), sent(b)) == ([], [b"1", b"2"])

    def test_the_send_lane_is_there_while_there_is_one_peer(self):
        push = make("PUSH")
        assert push.send_lane is None
        a = network_peer(push)
        assert push.send_lane is a.outbound
        b = network_peer(push)
        assert push.send_lane is None
        push.detach(a)
        assert push.send_lane is b.outbound

    def test_it_does_not_receive(self):
        push = make("PUSH")
        peer = network_peer(push)
        push.deliver(peer, [b"x"])
        assert not push.can_receive
        assert not push.can_receive_now()
        assert peer.dropped["not expected"] == 1
        with pytest.raises(UsageError):
            push.receive()

    def test_a_message_costs_five_calls(self):
        push = make("PUSH")
        for _ in range(4):
            network_peer(push, hwm=1000)
        # send, LoadBalancer.send, deque.append, len, deque.rotate
        assert calls_during(lambda: [push.send(b"x") for _ in range(1000)]) <= 5 * 1000 + 50


class TestPull:
    def test_it_receives_from_its_peers_in_turn(self):
        pull = make("PULL")
        a, b = network_peer(pull), network_peer(pull)
        pull.deliver(a, [b"a1", b"a2"])
        pull.deliver(b, [[b"b1", b"x"]])
        assert received(pull) == [b"a1", [b"b1", b"x"], b"a2"]

    def test_with_nothing_to_receive_it_blocks(self):
        pull = make("PULL")
        network_peer(pull)
        assert not pull.can_receive_now()
        with pytest.raises(Again):
            pull.receive()

    def test_what_a_peer_sent_before_it_left_is_received(self):
        pull = make("PULL")
        peer = network_peer(pull)
        pull.deliver(peer, [b"last words"])
        pull.detach(peer)
        assert received(pull) == [b"last words"]

    def test_the_receive_lane_is_there_while_there_is_one_peer(self):
        pull = make("PULL")
        assert pull.receive_lane is None
        a = network_peer(pull)
        assert pull.receive_lane is a.inbound
        b = network_peer(pull)
        assert pull.receive_lane is None
        pull.detach(a)
        assert pull.receive_lane is b.inbound

    def test_the_receive_lane_comes_back_when_a_peer_that_left_is_drained(self):
        pull = make("PULL")
        a, b = network_peer(pull), network_peer(pull)
        pull.deliver(a, [b"a1"])
        pull.detach(a)
        assert pull.receive_lane is None
        assert pull.receive() == b"a1"
        with pytest.raises(Again):
            pull.receive()
        assert pull.receive_lane is b.inbound

    def test_a_message_taken_past_it_through_the_lane_is_not_missed(self):
        pull = make("PULL")
        peer = network_peer(pull)
        pull.deliver(peer, [b"1", b"2"])
        assert pull.receive_lane.pop() == b"1"
        assert received(pull) == [b"2"]

    def test_it_does_not_send(self):
        pull = make("PULL")
        network_peer(pull)
        assert not pull.can_send
        assert not pull.can_send_now()
        with pytest.raises(UsageError):
            pull.send(b"x")

    def test_a_message_costs_four_calls(self):
        pull = make("PULL")
        for _ in range(4):
            pull.deliver(network_peer(pull), [b"x"] * 250)
        # receive, FairQueue.take, deque.popleft, deque.rotate
        assert calls_during(lambda: [pull.receive() for _ in range(1000)]) <= 4 * 1000 + 50


def test_work_is_spread_and_collected_over_shared_pipes():
    world, ventilator, sink = World(), make("PUSH"), make("PULL")
    workers = [(make("PULL"), make("PUSH")) for _ in range(2)]
    for pull, push in workers:
        world.join(ventilator, pull)
        world.join(push, sink)
    for task in (b"1", b"2", b"3", b"4"):
        ventilator.send(task)
    world.settle()
    for pull, push in workers:
        for task in received(pull):
            push.send(b"done " + task)
    world.settle()
    assert received(sink) == [b"done 1", b"done 2", b"done 3", b"done 4"]


def test_back_pressure_reaches_a_pusher_over_shared_pipes_and_leaves_it_again():
    world, push, pull = World(), make("PUSH"), make("PULL")
    world.join(push, pull, hwm=2)
    push.send(b"1")
    push.send(b"2")
    with pytest.raises(Again):
        push.send(b"3")
    world.settle()
    assert pull.receive() == b"1"
    world.settle()
    push.send(b"3")
    world.settle()
    assert received(pull) == [b"2", b"3"]
