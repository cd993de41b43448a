"""Fair queueing, load balancing and fan-out, each alone."""

from collections import deque

import pytest

from tests.patterns.world import EmptiedWhenFull, calls_during, new_peer, sent
from zerohop.errors import Again
from zerohop.patterns.pattern import HWM_REACHED, Peer
from zerohop.patterns.pipe import Pipe
from zerohop.patterns.routing import FairQueue, LoadBalancer, fan_out, fan_out_all


def fair_queue(*contents):
    """A fair queue, and a peer in it for each list of messages."""
    queue = FairQueue()
    peers = []
    for messages in contents:
        peer = new_peer()
        peer.inbound.extend(messages)
        queue.add(peer)
        peers.append(peer)
    return queue, peers


class RacedPipe(Pipe):
    """A message comes at the very moment at which the reader goes to sleep, once."""

    def sleep(self):
        if not self.messages and not self.closed:
            self.closed = True
            self.messages.append(b"just now")
        return super().sleep()


class InterruptedPipe(Pipe):
    """Ctrl-C comes when it is asked for the first time whether its reader may sleep."""

    def sleep(self):
        raise KeyboardInterrupt


def take_all(queue):
    messages = []
    while queue.has_messages():
        messages.append(queue.take())
    return messages


class TestFairQueue:
    def test_one_message_is_taken_from_each_peer_in_turn(self):
        queue, _ = fair_queue([b"a1", b"a2", b"a3"], [b"b1"], [b"c1", b"c2"])
        assert take_all(queue) == [b"a1", b"b1", b"c1", b"a2", b"c2", b"a3"]

    def test_it_tells_where_a_message_came_from(self):
        queue, [a, b] = fair_queue([b"a"], [b"b"])
        queue.take()
        assert queue.peer is a
        queue.take()
        assert queue.peer is b

    def test_who_is_alone_is_known(self):
        queue, [a] = fair_queue([])
        assert queue.sole is a
        b = new_peer()
        queue.add(b)
        assert queue.sole is None
        queue.remove(a)
        assert queue.sole is b
        queue.remove(b)
        assert queue.sole is None

    def test_whoever_leaves_messages_behind_is_not_gone_before_they_are_taken(self):
        queue, [_, leaving] = fair_queue([], [b"x"])
        queue.remove(leaving)
        assert queue.sole is None
        assert take_all(queue) == [b"x"]
        assert queue.sole is not None

    def test_a_peer_of_this_process_is_never_said_to_be_alone(self):
        queue, peer = FairQueue(), new_peer()
        peer.inproc = True
        queue.add(peer)
        assert queue.sole is None

    def test_what_is_put_is_taken_and_stops_the_writer_at_the_high_water_mark(self):
        queue, peer = FairQueue(), new_peer(hwm=2)
        queue.add(peer)
        queue.put(peer, [b"x", b"y"])
        assert peer.inbound.full
        assert not peer.inbound.asleep
        assert take_all(queue) == [b"x", b"y"]

    def test_an_empty_queue_raises_again_and_all_its_inproc_peers_sleep(self):
        queue, [a, b] = fair_queue([b"a"], [])
        a.inproc = b.inproc = True
        queue.take()
        with pytest.raises(Again):
            queue.take()
        assert a.inbound.asleep
        assert b.inbound.asleep

    def test_the_last_network_peer_that_had_messages_stays_where_it_is(self):
        """Whoever delivers wakes it in any case, and a round trip would move it to and fro."""
        queue, [a, b] = fair_queue([b"a"], [b"b"])
        assert take_all(queue) == [b"a", b"b"]
        assert (a.inbound.asleep, b.inbound.asleep) == (True, False)
        assert not queue.has_messages()
        b.inbound.push(b"b2")
        queue.wake(b)
        a.inbound.push(b"a2")
        queue.wake(a)
        assert take_all(queue) == [b"b2", b"a2"]

    def test_a_peer_that_is_leaving_does_not_stay(self):
        queue, [a] = fair_queue([b"a"])
        queue.remove(a)
        assert take_all(queue) == [b"a"]
        assert a not in queue

    def test_many_that_leave_with_nothing_to_say_cost_a_few_calls_each_and_are_gone(self):
        queue, peers = fair_queue(*[[b"%d" % number] for number in range(400)])
        for peer in peers:
            peer.inbound.messages.clear()
        assert calls_during(lambda: [queue.remove(peer) for peer in peers[:-1]]) < 399 * 6
        assert peers[-1] in queue
        peers[-1].inbound.push(b"last")
        assert take_all(queue) == [b"last"]
        assert list(queue) == peers[-1:]
        assert queue.lane is peers[-1].inbound

    def test_a_peer_that_wakes_queues_up_behind_the_others(self):
        queue, [a, b] = fair_queue([b"a1", b"a2"], [])
        a.inproc = True
        b.inbound.push(b"b1")
        queue.wake(b)
        assert take_all(queue) == [b"a1", b"b1", b"a2"]
        assert a.inbound.asleep

    def test_waking_a_peer_twice_or_a_stranger_does_nothing(self):
        queue, [a] = fair_queue([b"a"])
        queue.wake(a)
        queue.wake(new_peer())
        assert take_all(queue) == [b"a"]

    def test_looking_takes_nothing(self):
        queue, [a, _] = fair_queue([b"a"], [b"b"])
        assert queue.peek() == b"a"
        assert queue.peek() == b"a"
        assert queue.peer is a
        assert queue.take() == b"a"

    def test_a_message_that_comes_while_its_peer_is_put_to_sleep_is_found(self):
        """The writer is on another thread and pushes without seeing the reader asleep."""
        peer = Peer(Pipe(0), RacedPipe(0))
        peer.inproc = True
        peer.inbound.push(b"a")
        queue = FairQueue()
        queue.add(peer)
        assert take_all(queue) == [b"a", b"just now"]

    def test_a_stopped_writer_is_resumed_when_its_messages_are_taken(self):
        queue = FairQueue()
        peer = new_peer(hwm=2)
        queue.add(peer)
        peer.inbound.extend([b"1", b"2"])
        queue.wake(peer)
        queue.take()
        assert not peer.inbound.full
        assert peer.inbound.writer_signals == [peer]

    def test_a_removed_peer_stays_until_it_is_drained(self):
        queue, [a, b] = fair_queue([b"a1", b"a2"], [b"b1"])
        queue.remove(a)
        assert a in queue
        assert take_all(queue) == [b"a1", b"b1", b"a2"]
        assert a not in queue
        assert b in queue

    def test_a_removed_peer_whose_messages_nobody_has_noted_yet_stays_too(self):
        queue, [a] = fair_queue([])
        a.inbound.push(b"the note is still on its way")
        queue.remove(a)
        assert take_all(queue) == [b"the note is still on its way"]

    @pytest.mark.parametrize("messages", [[], [b"taken"]], ids=["asleep", "ready"])
    def test_a_removed_peer_with_nothing_left_is_forgotten_at_once(self, messages):
        queue, [a] = fair_queue(messages)
        for _ in messages:
            queue.take()
        queue.remove(a)
        assert a not in queue
        assert list(queue) == []

    def test_a_peer_can_be_removed_whose_adding_was_broken_off(self):
        queue, [a] = fair_queue([b"a"])
        b = new_peer()
        b.inbound = InterruptedPipe(10)
        with pytest.raises(KeyboardInterrupt):
            queue.add(b)
        queue.remove(b)
        assert take_all(queue) == [b"a"]
        assert list(queue) == [a]

    def test_removing_a_stranger_does_nothing(self):
        queue, [a] = fair_queue([b"a"])
        stranger = new_peer()
        queue.remove(stranger)
        stranger.inbound.push(b"x")
        queue.remove(stranger)
        assert take_all(queue) == [b"a"]
        assert list(queue) == [a]

    def test_the_lane_is_the_pipe_of_the_only_peer(self):
        queue, [a] = fair_queue([b"a"])
        assert queue.lane is a.inbound
        take_all(queue)
        assert queue.lane is a.inbound

    @pytest.mark.parametrize("contents", [[], [[], [b"b"]]], ids=["nobody", "two"])
    def test_there_is_no_lane_with_another_number_of_peers(self, contents):
        assert fair_queue(*contents)[0].lane is None

    def test_there_is_no_lane_to_a_peer_that_has_left(self):
        queue, [a] = fair_queue([b"a"])
        queue.remove(a)
        assert queue.lane is None

    def test_discarding_empties_every_pipe_and_counts(self):
        queue, [a, b, c] = fair_queue([b"a1", b"a2"], [b"b1"], [])
        queue.discard("too late")
        assert not queue.has_messages()
        assert (a.dropped["too late"], b.dropped["too late"]) == (2, 1)
        assert not c.dropped

    def test_taking_a_message_makes_three_calls(self):
        queue, _ = fair_queue([b"a"] * 100, [b"b"] * 100)
        # take, deque.popleft, deque.rotate
        assert calls_during(lambda: [queue.take() for _ in range(200)]) <= 3 * 200 + 5


class TestLoadBalancer:
    def balancer(self, *hwms):
        balancer = LoadBalancer()
        peers = [new_peer(hwm=hwm) for hwm in hwms]
        for peer in peers:
            balancer.add(peer)
        return balancer, peers

    def test_messages_go_to_the_peers_in_turn(self):
        balancer, [a, b] = self.balancer(0, 0)
        assert [balancer.send(b"%d" % number) for number in range(4)] == [a, b, a, b]
        assert sent(a) == [b"0", b"2"]
        assert sent(b) == [b"1", b"3"]

    def test_a_full_peer_is_passed_over(self):
        balancer, [a, b] = self.balancer(1, 0)
        assert [balancer.send(b"x") for _ in range(4)] == [a, b, b, b]

    def test_a_peer_with_room_again_comes_last_in_the_round(self):
        balancer, [a, b] = self.balancer(1, 0)
        for _ in range(3):
            balancer.send(b"x")
        sent(a)
        balancer.resume(a)
        assert [balancer.send(b"x") for _ in range(3)] == [b, a, b]

    def test_with_nobody_to_send_to_it_raises_again(self):
        balancer, _ = self.balancer()
        assert not balancer.has_room()
        with pytest.raises(Again):
            balancer.send(b"x")

    def test_with_everybody_full_it_raises_again(self):
        balancer, [a] = self.balancer(1)
        assert balancer.has_room()
        balancer.send(b"x")
        with pytest.raises(Again):
            balancer.send(b"y")
        assert not balancer.has_room()
        assert sent(a) == [b"x"]

    def test_resuming_a_peer_that_was_not_stopped_does_nothing(self):
        balancer, [a, b] = self.balancer(0, 0)
        balancer.resume(a)
        assert [balancer.send(b"x") for _ in range(3)] == [a, b, a]

    def test_a_removed_peer_gets_nothing_more(self):
        balancer, [a, b] = self.balancer(0, 0)
        balancer.remove(a)
        assert [balancer.send(b"x") for _ in range(2)] == [b, b]

    def test_a_stopped_peer_can_be_removed(self):
        balancer, [a] = self.balancer(1)
        balancer.send(b"x")
        assert not balancer.has_room()
        balancer.remove(a)
        balancer.resume(a)
        assert not balancer.has_room()

    def test_removing_a_stranger_does_nothing(self):
        balancer, [a] = self.balancer(0)
        balancer.remove(new_peer())
        assert balancer.send(b"x") is a

    def test_a_sleeping_reader_gets_one_note(self):
        balancer, [a] = self.balancer(0)
        balancer.send(b"x")
        balancer.send(b"y")
        assert a.outbound.reader_signals == [a]

    def test_the_lane_is_the_pipe_of_the_only_peer_full_or_not(self):
        balancer, [a] = self.balancer(1)
        assert balancer.lane is a.outbound
        balancer.send(b"x")
        assert not balancer.has_room()
        assert balancer.lane is a.outbound

    @pytest.mark.parametrize("hwms", [[], [0, 0]], ids=["nobody", "two"])
    def test_there_is_no_lane_with_another_number_of_peers(self, hwms):
        assert self.balancer(*hwms)[0].lane is None

    def test_sending_makes_four_calls(self):
        balancer, _ = self.balancer(0, 1000, 1000)
        # send, deque.append, len, deque.rotate
        assert calls_during(lambda: [balancer.send(b"x") for _ in range(300)]) <= 4 * 300 + 20


class TestFanOut:
    def test_everybody_gets_the_same_object(self):
        peers = [new_peer(), new_peer()]
        message = [b"two", b"parts"]
        fan_out(message, peers)
        assert all(sent(peer)[0] is message for peer in peers)

    def test_inproc_peers_get_lists_of_their_own(self):
        peer = new_peer()
        peer.inproc = True
        message = [b"two", b"parts"]
        fan_out(message, [peer])
        [copy] = sent(peer)
        assert copy == message
        assert copy is not message

    def test_a_full_peer_misses_the_message_and_that_is_counted(self):
        full, other = new_peer(hwm=1), new_peer()
        fan_out(b"1", [full, other])
        fan_out(b"2", [full, other])
        assert sent(full) == [b"1"]
        assert sent(other) == [b"1", b"2"]
        assert full.dropped == {HWM_REACHED: 1}

    def test_a_sleeping_reader_gets_one_note(self):
        peer = new_peer()
        fan_out(b"1", [peer])
        fan_out(b"2", [peer])
        assert peer.outbound.reader_signals == [peer]

    def test_a_peer_costs_one_call_and_one_more_with_a_high_water_mark(self):
        unlimited = [new_peer() for _ in range(64)]
        fan_out(b"awake now", unlimited)
        assert calls_during(fan_out, b"x", unlimited) <= 64 + 5  # deque.append
        limited = [new_peer(hwm=9) for _ in range(64)]
        fan_out(b"awake now", limited)
        assert calls_during(fan_out, b"x", limited) <= 2 * 64 + 5  # and len

    def test_a_peer_that_has_read_all_before_it_was_marked_full_is_not_full(self):
        peer = new_peer(hwm=2)
        peer.outbound.messages = EmptiedWhenFull(hwm=2)
        for n in range(2):
            fan_out(b"%d" % n, [peer])
        assert not peer.outbound.full


class TestFanOutAll:
    def test_everybody_gets_the_same_objects(self):
        peers = [new_peer(), new_peer()]
        messages = [[b"two", b"parts"], b"one"]
        fan_out_all(messages, peers)
        for peer in peers:
            assert peer.outbound.whole is messages
            assert [id(message) for message in sent(peer)] == [id(message) for message in messages]

    def test_inproc_peers_get_lists_of_their_own(self):
        peer = new_peer()
        peer.inproc = True
        message = [b"two", b"parts"]
        fan_out_all([message, b"one"], [peer])
        [copy, one] = sent(peer)
        assert (copy, one) == (message, b"one")
        assert copy is not message

    def test_of_many_messages_a_peer_misses_the_last_that_it_has_no_room_for(self):
        small, large, exact = new_peer(hwm=3), new_peer(), new_peer(hwm=4)
        fan_out(b"1", [small, exact])
        fan_out_all([b"2", b"3", b"4"], [small, large, exact])
        assert small.dropped == {HWM_REACHED: 1}
        assert not exact.dropped
        assert small.outbound.full
        assert exact.outbound.full
        assert sent(small) == [b"1", b"2", b"3"]
        assert sent(large) == [b"2", b"3", b"4"]
        assert sent(exact) == [b"1", b"2", b"3", b"4"]

    def test_a_peer_that_was_full_gets_nothing_before_half_of_it_is_drained(self):
        peer = new_peer(hwm=4)
        fan_out_all([b"1", b"2", b"3", b"4"], [peer])
        peer.outbound.pop()
        fan_out_all([b"5", b"6"], [peer])
        assert peer.dropped == {HWM_REACHED: 2}
        assert sent(peer) == [b"2", b"3", b"4"]

    def test_a_pipe_that_was_not_empty_has_no_whole(self):
        peer = new_peer()
        fan_out_all([b"1", b"2"], [peer])
        fan_out_all([b"3", b"4"], [peer])
        assert peer.outbound.whole is None
        assert sent(peer) == [b"1", b"2", b"3", b"4"]

    def test_an_interrupted_batch_is_never_taken_for_a_later_one(self):
        class Interrupted(deque):
            def extend(self, messages):
                raise KeyboardInterrupt

        peer = new_peer()
        pipe = peer.outbound
        queue, pipe.messages = pipe.messages, Interrupted()
        with pytest.raises(KeyboardInterrupt):
            fan_out_all([b"1", b"2"], [peer])
        pipe.messages = queue
        for message in (b"3", b"4"):
            fan_out(message, [peer])
        assert pipe.whole in (None, [b"3", b"4"])

    def test_where_nothing_may_be_dropped_a_pipe_takes_what_it_is_given(self):
        peer = new_peer(hwm=2)
        fan_out_all([b"1"], [peer], drop=False)
        fan_out_all([b"2", b"3"], [peer], drop=False)
        assert peer.outbound.full
        assert not peer.dropped
        assert sent(peer) == [b"1", b"2", b"3"]

    def test_a_sleeping_reader_gets_one_note(self):
        peer = new_peer()
        fan_out_all([b"1", b"2"], [peer])
        fan_out_all([b"3", b"4"], [peer])
        assert peer.outbound.reader_signals == [peer]

    @pytest.mark.parametrize("count", [1, 100])
    def test_a_peer_costs_one_call_and_two_more_with_a_high_water_mark(self, count):
        messages = [b"x"] * count
        unlimited = [new_peer() for _ in range(64)]
        fan_out(b"awake now", unlimited)
        assert calls_during(fan_out_all, messages, unlimited) <= 64 + 5  # deque.extend
        limited = [new_peer(hwm=999) for _ in range(64)]
        fan_out(b"awake now", limited)
        assert calls_during(fan_out_all, messages, limited) <= 3 * 64 + 5  # and len


def test_a_balanced_peer_that_has_read_all_before_it_was_marked_full_is_not_full():
    balancer, peer = LoadBalancer(), new_peer(hwm=2)
    peer.outbound.messages = EmptiedWhenFull(hwm=2)
    balancer.add(peer)
    for n in range(2):
        balancer.send(b"%d" % n)
    assert not peer.outbound.full
