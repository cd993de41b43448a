"""RFC 29: PUB and XPUB, and libzmq's XPUB options."""

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
from zerohop.errors import Again, UsageError
from zerohop.patterns import handout, publish
from zerohop.patterns.pattern import HWM_REACHED
from zerohop.patterns.pipe import Pipe
from zerohop.patterns.routing import fan_out_all


def subscriber(pattern, *topics, **properties):
    peer = network_peer(pattern, **properties)
    for topic in topics:
        pattern.subscription(peer, topic, subscribe=True)
    return peer


class TestPub:
    def test_a_message_goes_to_those_who_subscribed_to_its_beginning(self):
        pub = make("PUB")
        a, b, everything = subscriber(pub, b"a"), subscriber(pub, b"b"), subscriber(pub, b"")
        pub.send(b"a1")
        pub.send([b"b1", b"a"])
        assert sent(a) == [b"a1"]
        assert sent(b) == [[b"b1", b"a"]]
        assert sent(everything) == [b"a1", [b"b1", b"a"]]

    def test_only_the_first_part_is_looked_at(self):
        pub = make("PUB")
        peer = subscriber(pub, b"a")
        pub.send([b"b", b"a"])
        assert sent(peer) == []

    def test_a_memoryview_is_looked_at_too(self):
        pub = make("PUB")
        peer = subscriber(pub, b"a")
        view = memoryview(b"a large body")
        pub.send(view)
        assert sent(peer)[0] is view

    def test_all_subscribers_get_the_same_object(self):
        pub = make("PUB")
        peers = [subscriber(pub, b""), subscriber(pub, b"")]
        message = [b"a", b"b"]
        pub.send(message)
        assert all(sent(peer)[0] is message for peer in peers)

    def test_what_nobody_wants_is_nobodys_drop(self):
        pub = make("PUB")
        peer = subscriber(pub, b"a")
        pub.send(b"b")
        assert not peer.dropped
        assert not pub.dropped

    def test_a_full_subscriber_misses_the_message_which_is_counted(self):
        pub = make("PUB")
        slow, quick = subscriber(pub, b"", hwm=1), subscriber(pub, b"")
        pub.check_send(b"1")
        for message in (b"1", b"2", b"3"):
            pub.send(message)
        assert (len(sent(slow)), len(sent(quick))) == (1, 3)
        assert slow.dropped == {HWM_REACHED: 2}

    def test_it_can_always_send_and_never_receives(self):
        pub = make("PUB")
        assert pub.can_send_now()
        subscriber(pub, b"a")
        assert not pub.can_receive
        assert not pub.can_receive_now()

    def test_an_unsubscription_ends_it(self):
        pub = make("PUB")
        peer = subscriber(pub, b"a")
        pub.subscription(peer, b"a", subscribe=False)
        pub.send(b"a1")
        assert sent(peer) == []

    def test_subscriptions_come_as_messages_too(self):
        pub = make("PUB")
        peer = network_peer(pub)
        pub.deliver(peer, [b"\x01a", b"\x01b", b"\x00a"])
        pub.send(b"a1")
        pub.send(b"b1")
        assert sent(peer) == [b"b1"]

    def test_other_messages_of_subscribers_are_discarded_and_counted(self):
        pub = make("PUB")
        peer = network_peer(pub)
        pub.deliver(peer, [b"hello", [b"two", b"parts"], b"\x01a"])
        assert peer.dropped == {"no subscription": 2}
        assert pub.subscribers(b"a") == 1

    def test_other_messages_over_shared_pipes_are_discarded_and_never_block(self):
        world, pub, xsub = World(), make("PUB"), make("XSUB")
        at_xsub, at_pub = world.join(xsub, pub, hwm=2)
        for number in range(10):
            xsub.send(b"%d" % (number + 2))
            world.settle()
        assert at_pub.dropped == {"no subscription": 10}
        assert not at_xsub.dropped

    def test_a_lost_link_ends_all_subscriptions_until_they_are_sent_again(self):
        pub = make("PUB")
        peer = subscriber(pub, b"a")
        lose(pub, peer)
        pub.send(b"a1")
        connect(pub, peer)
        assert sent(peer) == []
        pub.subscription(peer, b"a", subscribe=True)
        pub.send(b"a2")
        assert sent(peer) == [b"a2"]

    def test_a_peer_that_left_gets_nothing_more_whatever_still_comes_from_it(self):
        pub = make("PUB")
        peer = subscriber(pub, b"a")
        pub.detach(peer)
        pub.subscription(peer, b"a", subscribe=True)
        pub.send(b"a1")
        assert sent(peer) == []
        pub.detach(peer)

    def test_it_tells_how_many_would_get_a_message_and_how_many_topics_there_are(self):
        pub = make("PUB")
        subscriber(pub, b"a", b"ab")
        subscriber(pub, b"a")
        assert pub.subscribers(b"abc") == 2
        assert pub.subscribers(b"b") == 0
        assert pub.topics_count() == 2

    def test_a_peer_with_too_many_topics_is_refused(self):
        pub = make("PUB")
        peer = network_peer(pub)
        for length in range(1, 1100):
            pub.subscription(peer, b"x" * length, subscribe=True)
        who, reason = pub.refused[0]
        assert who is peer
        assert "max_lengths=1024" in reason

    def test_a_publisher_cannot_subscribe(self):
        pub = make("PUB")
        for call in (pub.subscribe, pub.unsubscribe):
            with pytest.raises(UsageError) as caught:
                call(b"a")
            assert caught.value.errno == Errno.EINVAL

    def test_sending_costs_few_calls(self):
        pub = make("PUB")
        peers = [subscriber(pub, b"topic", hwm=1000) for _ in range(64)]
        pub.send(b"topic")
        pub.send(b"other")
        # send, isinstance, matching, len, dict.get, fan_out; extend and len for each peer
        assert calls_during(pub.send, b"topic 1") <= 2 * len(peers) + 7
        assert calls_during(pub.send, b"other 1") <= 6


class TestXPubNotifications:
    def test_the_first_subscription_and_the_last_unsubscription_are_received(self):
        xpub = make("XPUB")
        a, b = subscriber(xpub, b"t"), subscriber(xpub, b"t", b"u")
        assert received(xpub) == [b"\x01t", b"\x01u"]
        xpub.subscription(a, b"t", subscribe=False)
        assert received(xpub) == []
        xpub.subscription(b, b"t", subscribe=False)
        assert received(xpub) == [b"\x00t"]

    def test_an_unsubscription_from_what_was_never_subscribed_is_not(self):
        """libzmq passes it on, even while others want the topic."""
        xpub = make("XPUB")
        peer = network_peer(xpub)
        xpub.subscription(peer, b"t", subscribe=False)
        assert received(xpub) == []

    def test_with_nothing_to_receive_it_blocks(self):
        xpub = make("XPUB")
        network_peer(xpub)
        with pytest.raises(Again):
            xpub.receive()

    @pytest.mark.parametrize("end", ["detach", "disconnected"])
    def test_a_peer_that_is_lost_is_unsubscribed_in_its_name(self, end):
        xpub = make("XPUB")
        peer = subscriber(xpub, b"shared", b"own", b"")
        subscriber(xpub, b"shared")
        received(xpub)
        getattr(xpub, end)(peer)
        assert received(xpub) == [b"\x00", b"\x00own"]  # sorted, as libzmq's trie gives them

    def test_verbose_passes_every_subscription(self):
        xpub = make("XPUB", xpub_verbose=True)
        a, b = subscriber(xpub, b"t", b"t"), subscriber(xpub, b"t")
        assert received(xpub) == [b"\x01t"] * 3
        xpub.subscription(a, b"t", subscribe=False)
        assert received(xpub) == []
        xpub.subscription(b, b"t", subscribe=False)
        assert received(xpub) == [b"\x00t"]

    def test_verboser_passes_every_unsubscription_too(self):
        xpub = make("XPUB", xpub_verboser=True)
        a, b = subscriber(xpub, b"t"), subscriber(xpub, b"t")
        assert received(xpub) == [b"\x01t"] * 2
        xpub.subscription(a, b"t", subscribe=False)
        xpub.detach(b)
        assert received(xpub) == [b"\x00t", b"\x00t"]

    def test_other_messages_of_subscribers_are_received_after_the_notifications(self):
        xpub = make("XPUB")
        peer = network_peer(xpub)
        xpub.deliver(peer, [b"hello", [b"\x01t", b"two", b"parts"]])
        assert received(xpub) == [b"\x01t", b"hello", [b"two", b"parts"]]

    def test_with_only_first_subscribe_later_parts_are_left_alone(self):
        xpub = make("XPUB", only_first_subscribe=True)
        peer = network_peer(xpub)
        xpub.deliver(peer, [[b"two", b"\x01t"]])
        assert received(xpub) == [[b"two", b"\x01t"]]

    def test_messages_of_an_inproc_subscriber_are_received(self):
        world, xpub, xsub = World(), make("XPUB"), make("XSUB")
        world.join(xsub, xpub)
        xsub.send(b"\x01t")
        xsub.send(b"hello")
        world.settle()
        assert received(xpub) == [b"\x01t", b"hello"]

    def test_an_application_that_never_receives_keeps_the_newest_notifications_only(
        self, monkeypatch
    ):
        monkeypatch.setattr(publish, "_MAX_NOTIFICATIONS", 2)
        xpub = make("XPUB")
        subscriber(xpub, b"1", b"2", b"3")
        assert xpub.dropped == {"notification not received": 1}
        assert received(xpub) == [b"\x012", b"\x013"]


class TestManual:
    def test_nothing_is_applied_until_the_application_says_so(self):
        xpub = make("XPUB", xpub_manual=True)
        peer = subscriber(xpub, b"a")
        xpub.send(b"a1")
        assert sent(peer) == []
        assert received(xpub) == [b"\x01a"]
        xpub.subscribe(b"b")
        xpub.send(b"a2")
        xpub.send(b"b2")
        assert sent(peer) == [b"b2"]
        xpub.unsubscribe(b"b")
        xpub.send(b"b3")
        assert sent(peer) == []

    def test_every_request_is_received(self):
        xpub = make("XPUB", xpub_manual=True)
        peer = subscriber(xpub, b"a", b"a")
        xpub.subscription(peer, b"a", subscribe=False)
        assert received(xpub) == [b"\x01a", b"\x01a", b"\x00a"]

    def test_the_application_acts_for_the_peer_whose_request_it_received_last(self):
        xpub = make("XPUB", xpub_manual=True)
        a, b = subscriber(xpub, b"a"), subscriber(xpub, b"b")
        xpub.receive()
        xpub.subscribe(b"x")
        xpub.receive()
        xpub.subscribe(b"y")
        xpub.send(b"x")
        xpub.send(b"y")
        assert (sent(a), sent(b)) == ([b"x"], [b"y"])

    def test_nobody_is_acted_for_before_a_request_or_after_its_peer_has_gone(self):
        xpub = make("XPUB", xpub_manual=True)
        xpub.subscribe(b"x")
        xpub.unsubscribe(b"x")
        peer = subscriber(xpub, b"a")
        xpub.receive()
        xpub.detach(peer)
        xpub.subscribe(b"x")
        assert xpub.topics_count() == 0

    def test_a_request_received_after_its_peer_has_gone_is_nobodys(self):
        xpub = make("XPUB", xpub_manual=True)
        peer = subscriber(xpub, b"a")
        xpub.detach(peer)
        assert xpub.receive() == b"\x01a"
        xpub.subscribe(b"a")
        assert xpub.topics_count() == 0

    def test_a_peer_that_left_unsubscribes_from_what_it_had_asked_for(self):
        xpub = make("XPUB", xpub_manual=True)
        peer = subscriber(xpub, b"asked")
        subscriber(xpub, b"asked")
        received(xpub)
        xpub.subscribe(b"given")
        xpub.detach(peer)
        assert received(xpub) == [b"\x00asked"]

    def test_last_value_goes_only_to_the_last_requester_and_only_once(self):
        xpub = make("XPUB", xpub_manual_last_value=True)
        old, new = subscriber(xpub, b"a"), subscriber(xpub, b"a")
        for _ in (old, new):
            xpub.receive()
            xpub.subscribe(b"a")
        xpub.send(b"a last value")
        xpub.send(b"a news")
        assert sent(old) == [b"a news"]
        assert sent(new) == [b"a last value", b"a news"]

    def test_last_value_goes_to_nobody_if_the_last_requester_does_not_want_it(self):
        xpub = make("XPUB", xpub_manual_last_value=True)
        old, new = subscriber(xpub, b"a"), subscriber(xpub, b"b")
        for topic in (b"a", b"b"):
            xpub.receive()
            xpub.subscribe(topic)
        xpub.send(b"a1")
        assert (sent(old), sent(new)) == ([], [])


class TestNoDrop:
    def test_a_full_subscriber_blocks_the_message_for_all(self):
        pub = make("PUB", xpub_nodrop=True)
        slow, quick = subscriber(pub, b"", hwm=1), subscriber(pub, b"")
        pub.send(b"1")
        for call in (lambda: pub.send(b"2"), lambda: pub.check_send(b"2")):
            with pytest.raises(Again):
                call()
        assert sent(slow) == [b"1"]
        pub.writable(slow)
        pub.check_send(b"2")
        pub.send(b"2")
        assert sent(quick) == [b"1", b"2"]
        assert not slow.dropped

    def test_a_full_subscriber_of_something_else_does_not(self):
        pub = make("PUB", xpub_nodrop=True)
        subscriber(pub, b"a", hwm=1)
        other = subscriber(pub, b"b", hwm=1)
        pub.send(b"a1")
        pub.send(b"b1")
        assert sent(other) == [b"b1"]


class TestWelcome:
    def test_it_is_sent_to_each_peer_that_connects_whatever_it_subscribed_to(self):
        xpub = make("XPUB", xpub_welcome_msg=b"welcome")
        peer = new_peer()
        xpub.attach(peer)
        assert sent(peer) == []
        connect(xpub, peer)
        connect(xpub, peer)
        assert sent(peer) == [b"welcome", b"welcome"]

    def test_it_is_not_sent_to_a_peer_that_was_not_attached(self):
        xpub = make("XPUB", xpub_welcome_msg=b"welcome")
        peer = new_peer()
        connect(xpub, peer)
        assert sent(peer) == []


def send_on_lane(pattern, *messages):
    """As a driver does, without asking anybody."""
    lane = pattern.send_lane
    for message in messages:
        assert not lane.full
        lane.messages.append(message)
        if 0 < lane.hwm <= len(lane.messages):
            lane.mark_full()
        if lane.asleep:
            lane.reader_signals.append(lane.reader)
            lane.asleep = False


def settled(socket_type, **options):
    pattern = make(socket_type, **options)
    pattern.hand_out()
    return pattern


class TestLane:
    def test_messages_wait_until_they_are_handed_out(self):
        pub = settled("PUB")
        a, b, everything = subscriber(pub, b"a"), subscriber(pub, b"b"), subscriber(pub, b"")
        send_on_lane(pub, b"a1", b"a2", [b"b1", b"a"], b"c", b"a3")
        assert not a.outbound.messages
        pub.hand_out()
        assert sent(a) == [b"a1", b"a2", b"a3"]
        assert sent(b) == [[b"b1", b"a"]]
        assert sent(everything) == [b"a1", b"a2", [b"b1", b"a"], b"c", b"a3"]

    def test_each_reader_gets_one_note_for_all(self):
        pub = settled("PUB")
        peer = subscriber(pub, b"a")
        send_on_lane(pub, b"a1", b"b", b"a2")
        pub.hand_out()
        assert peer.outbound.reader_signals == [peer]

    def test_it_sleeps_when_it_has_been_handed_out_and_its_notes_are_gone(self):
        pub = settled("PUB")
        send_on_lane(pub, b"1", b"2")
        lane = pub.send_lane
        assert not lane.asleep
        for _ in range(2):
            pub.hand_out()
            assert lane.asleep
            assert not lane.reader_signals

    def test_it_sleeps_too_if_somebody_noted_what_another_thread_had_handed_out_already(self):
        pub = settled("PUB")
        lane = pub.send_lane
        lane.asleep = False
        lane.reader_signals.append(lane.reader)
        pub.hand_out()
        assert lane.asleep
        assert not lane.reader_signals

    def test_a_lane_that_is_kept_awake_stays_awake(self):
        """A sender that sends much does not want to leave a note for each batch."""
        pub = settled("PUB")
        pub.send_lane.asleep = False
        pub.hand_out()
        assert not pub.send_lane.asleep

    def test_a_message_that_another_thread_sends_meanwhile_is_handed_out_too(self, monkeypatch):
        pub = settled("PUB")
        peer = subscriber(pub, b"")
        fall_asleep = Pipe.sleep

        def raced(pipe):
            if len(peer.outbound.messages) == 1:
                pipe.messages.append(b"2")
            return fall_asleep(pipe)

        send_on_lane(pub, b"1")
        monkeypatch.setattr(Pipe, "sleep", raced)
        pub.hand_out()
        monkeypatch.undo()
        assert sent(peer) == [b"1", b"2"]

    @pytest.mark.parametrize(
        "change",
        [
            lambda pub, peer: pub.subscription(peer, b"a", subscribe=False),
            lambda pub, peer: pub.deliver(peer, [b"\x00a"]),
            lambda pub, peer: pub.detach(peer),
            lambda pub, peer: pub.disconnected(peer),
            lambda pub, peer: pub.send(b"b"),
        ],
        ids=["unsubscription", "as a message", "detach", "disconnected", "send"],
    )
    def test_whatever_comes_after_a_message_does_not_change_who_gets_it(self, change):
        pub = settled("PUB")
        peer = subscriber(pub, b"a")
        send_on_lane(pub, b"a1")
        change(pub, peer)
        assert sent(peer) == [b"a1"]

    def test_a_subscription_that_comes_later_does_not_get_it(self):
        pub = settled("PUB")
        peer = network_peer(pub)
        send_on_lane(pub, b"a1")
        pub.subscription(peer, b"a", subscribe=True)
        send_on_lane(pub, b"a2")
        pub.hand_out()
        assert sent(peer) == [b"a2"]

    def test_what_the_application_grants_by_hand_comes_later_too(self):
        xpub = settled("XPUB", xpub_manual=True)
        peer = subscriber(xpub, b"a")
        xpub.receive()
        send_on_lane(xpub, b"a1")
        xpub.subscribe(b"a")
        send_on_lane(xpub, b"a2")
        xpub.unsubscribe(b"a")
        xpub.hand_out()
        assert sent(peer) == [b"a2"]

    def test_what_is_sent_past_it_comes_after_it(self):
        pub = settled("PUB")
        peer = subscriber(pub, b"")
        send_on_lane(pub, b"1", b"2")
        pub.send(memoryview(b"3"))
        send_on_lane(pub, b"4")
        pub.hand_out()
        assert sent(peer) == [b"1", b"2", b"3", b"4"]

    @pytest.mark.parametrize("option", ["invert_matching", "xpub_manual_last_value"])
    def test_there_is_none_while_who_gets_a_message_is_no_matter_of_topics(self, option):
        pub = settled("XPUB")
        setattr(pub.options, option, True)
        pub.hand_out()
        assert pub.send_lane is None
        setattr(pub.options, option, False)
        pub.hand_out()
        assert pub.send_lane is not None

    def test_there_is_none_while_a_peer_of_this_process_waits_for_nothing_but_its_note(self):
        world, pub, sub = World(), settled("PUB"), make("SUB")
        _, at_pub = world.join(sub, pub)
        assert pub.send_lane is None
        pub.hand_out()
        assert pub.send_lane is None
        world.part(at_pub)
        pub.hand_out()
        assert pub.send_lane is not None

    def test_it_is_full_when_the_smallest_pipe_would_be(self):
        pub = settled("PUB")
        assert pub.send_lane.hwm == 0
        for hwm in (20, 10, 0, 30):
            subscriber(pub, b"", hwm=hwm)
        pub.hand_out()
        assert pub.send_lane.hwm == 10

    def test_it_follows_the_limits_of_the_pipes(self):
        pub = settled("PUB")
        peer = subscriber(pub, b"", hwm=10)
        peer.outbound.set_hwm(50)
        pub.limits_changed()
        pub.hand_out()
        assert pub.send_lane.hwm == 50
        peer.outbound.set_hwm(0)
        pub.limits_changed()
        pub.hand_out()
        assert pub.send_lane.hwm == 0

    def test_what_a_pipe_has_no_room_for_is_dropped_and_counted(self):
        pub = settled("PUB")
        slow, quick = subscriber(pub, b"", hwm=10), subscriber(pub, b"", hwm=10)
        for _ in range(2):
            send_on_lane(pub, *[b"x"] * 6)
            pub.hand_out()
            sent(quick)
        assert slow.dropped == {HWM_REACHED: 2}
        assert not quick.dropped
        assert len(sent(slow)) == 10

    def test_an_interrupted_hand_out_is_finished_by_the_next(self, monkeypatch):
        """A signal handler raised while it was under way: nobody misses or gets anything twice."""
        pub = settled("PUB")
        peers = [subscriber(pub, b"") for _ in range(3)]

        def interrupted(messages, waiting, *, drop):
            fan_out_all(messages, [next(waiting)], drop=drop)
            raise KeyboardInterrupt

        send_on_lane(pub, b"1", b"2")
        monkeypatch.setattr(handout, "fan_out_all", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pub.hand_out()
        monkeypatch.undo()
        send_on_lane(pub, b"3")
        pub.send(b"4")
        assert [sent(peer) for peer in peers] == [[b"1", b"2", b"3", b"4"]] * 3

    @pytest.mark.parametrize("peers", [1, 8, 64])
    @pytest.mark.parametrize("count", [1, 1000])
    def test_handing_out_costs_a_call_a_message_and_a_few_a_peer(self, peers, count):
        pub = settled("PUB")
        for _ in range(peers):
            subscriber(pub, b"", hwm=2000)
        send_on_lane(pub, b"x")
        pub.hand_out()
        send_on_lane(pub, *[b"x"] * count)
        # popleft; extend, and len twice; of hand_out itself
        assert calls_during(pub.hand_out) <= count + 3 * peers + 20

    def test_nothing_to_hand_out_costs_next_to_nothing_however_many_peers(self):
        pub = settled("PUB")
        for _ in range(64):
            subscriber(pub, b"")
        pub.hand_out()
        assert calls_during(pub.hand_out) <= 3

    def test_topics_cost_a_message_one_look_up_a_length_and_nothing_for_each_topic(self):
        pub = settled("PUB")
        for _ in range(8):
            subscriber(pub, *[b"topic.%04d" % n for n in range(1000)], hwm=2000)
        batch = [b"topic.%04d and so on" % (n * 7 % 1000) for n in range(1000)]
        send_on_lane(pub, *batch)
        pub.hand_out()
        send_on_lane(pub, *batch[:900])
        # popleft, dict.get, list.append
        assert calls_during(pub.hand_out) <= 3 * 900 + 60


class TestLaneWithoutDrops:
    def test_it_takes_what_every_pipe_has_room_for(self):
        pub = settled("PUB", xpub_nodrop=True)
        slow, quick = subscriber(pub, b"", hwm=20), subscriber(pub, b"", hwm=30)
        subscriber(pub, b"")
        pub.hand_out()
        assert pub.send_lane.hwm == 20
        send_on_lane(pub, *[b"x"] * 12)
        pub.hand_out()
        assert pub.send_lane.hwm == 8
        assert (len(slow.outbound), len(quick.outbound)) == (12, 12)

    def test_it_takes_more_as_soon_as_the_pipes_have_been_written(self):
        pub = settled("PUB", xpub_nodrop=True)
        peer = subscriber(pub, b"", hwm=20)
        pub.hand_out()
        send_on_lane(pub, *[b"x"] * 10)
        pub.hand_out()
        sent(peer)
        pub.hand_out()
        assert pub.send_lane.hwm == 20

    def test_it_closes_when_a_pipe_is_as_good_as_full_and_opens_when_that_has_room_again(self):
        pub = settled("PUB", xpub_nodrop=True)
        peer = subscriber(pub, b"", hwm=20)
        pub.hand_out()
        lane = pub.send_lane
        send_on_lane(pub, *[b"x"] * 20)
        pub.hand_out()
        assert pub.send_lane is None
        assert lane.full  # for a thread that has it still
        with pytest.raises(Again):
            pub.send(b"x")
        sent(peer)
        pub.writable(peer)
        pub.hand_out()
        assert pub.send_lane is lane
        assert (lane.full, lane.hwm) == (False, 20)

    def test_a_full_pipe_of_somebody_who_wants_something_else_stops_the_lane_only(self):
        pub = settled("PUB", xpub_nodrop=True)
        subscriber(pub, b"a", hwm=1)
        other = subscriber(pub, b"b", hwm=100)
        pub.send(b"a1")
        pub.hand_out()
        assert pub.send_lane is None
        pub.check_send(b"b1")
        pub.send(b"b1")
        assert sent(other) == [b"b1"]

    def test_what_is_sent_past_it_takes_room_that_it_must_not_promise(self):
        pub = settled("PUB", xpub_nodrop=True)
        peer = subscriber(pub, b"", hwm=20)
        pub.hand_out()
        pub.send(b"past")
        assert pub.send_lane.full
        pub.hand_out()
        assert (pub.send_lane.full, pub.send_lane.hwm) == (False, 19)
        send_on_lane(pub, *[b"x"] * 19)
        with pytest.raises(Again):
            pub.check_send(b"x")
        assert len(peer.outbound) == 20

    @pytest.mark.parametrize("event", ["welcome", "put back"])
    def test_what_else_takes_room_is_not_promised_either(self, event):
        pub = settled("XPUB", xpub_nodrop=True, xpub_welcome_msg=b"welcome")
        peer = subscriber(pub, b"", hwm=20)
        sent(peer)
        pub.hand_out()
        assert pub.send_lane.hwm == 20
        if event == "welcome":
            connect(pub, peer)
        else:
            peer.outbound.messages.append(b"not sent")
            lose(pub, peer)
        assert pub.send_lane.full
        pub.hand_out()
        assert (pub.send_lane.full, pub.send_lane.hwm) == (False, 19)

    def test_the_option_can_change(self):
        pub = settled("PUB")
        peer = subscriber(pub, b"", hwm=20)
        pub.send(b"x")
        pub.options.xpub_nodrop = True
        pub.hand_out()
        assert pub.send_lane.hwm == 19
        pub.options.xpub_nodrop = False
        pub.hand_out()
        assert pub.send_lane.hwm == 20
        peer.outbound.set_hwm(1)
        pub.options.xpub_nodrop = True
        pub.hand_out()
        assert pub.send_lane is None


def test_invert_matching_sends_to_those_who_did_not_subscribe():
    pub = make("PUB", invert_matching=True)
    a, none = subscriber(pub, b"a"), subscriber(pub)
    pub.send(b"a1")
    pub.send(b"b1")
    assert sent(a) == [b"b1"]
    assert sent(none) == [b"a1", b"b1"]
    assert pub.subscribers(b"a") == 1
