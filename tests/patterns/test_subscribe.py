"""RFC 29: SUB and XSUB."""

import pytest

from tests.patterns.world import World, calls_during, make, network_peer, received, sent
from zerohop.errors import Again
from zerohop.patterns.pattern import HWM_REACHED, Announcement


def subscribe(topic):
    return Announcement(topic, subscribe=True)


def unsubscribe(topic):
    return Announcement(topic, subscribe=False)


class TestXSub:
    def test_messages_that_begin_with_one_or_zero_become_announcements(self):
        xsub = make("XSUB")
        peer = network_peer(xsub)
        xsub.check_send(b"\x01a")
        xsub.send(b"\x01a")
        xsub.send([b"\x01b", b"\x00a"])
        assert xsub.announcements == [subscribe(b"a"), subscribe(b"b"), unsubscribe(b"a")]
        assert xsub.topics() == [b"b"]
        assert xsub.topics_count() == 1
        assert sent(peer) == []

    def test_other_messages_go_to_every_peer(self):
        xsub = make("XSUB")
        peers = [network_peer(xsub), network_peer(xsub)]
        xsub.send(b"hello")
        xsub.send([b"two", b"parts"])
        assert [sent(peer) for peer in peers] == [[b"hello", [b"two", b"parts"]]] * 2
        assert not xsub.announcements

    def test_a_full_peer_misses_them_which_is_counted(self):
        xsub = make("XSUB")
        peer = network_peer(xsub, hwm=1)
        xsub.send(b"hello")
        xsub.send(b"again")
        assert xsub.can_send_now()
        assert peer.dropped == {HWM_REACHED: 1}

    def test_a_peer_that_left_gets_no_more(self):
        xsub = make("XSUB")
        peer = network_peer(xsub)
        xsub.detach(peer)
        xsub.send(b"hello")
        assert sent(peer) == []

    def test_with_only_first_subscribe_later_parts_are_left_alone(self):
        xsub = make("XSUB", only_first_subscribe=True)
        peer = network_peer(xsub)
        xsub.send([b"two", b"\x01a"])
        assert sent(peer) == [[b"two", b"\x01a"]]

    def test_every_subscription_is_announced_but_only_the_last_unsubscription(self):
        xsub = make("XSUB")
        for message in (b"\x01a", b"\x01a", b"\x00a", b"\x00a", b"\x00a"):
            xsub.send(message)
        assert xsub.announcements == [subscribe(b"a"), subscribe(b"a"), unsubscribe(b"a")]

    def test_verbose_unsubscribe_announces_all_of_them(self):
        xsub = make("XSUB", xsub_verbose_unsubscribe=True)
        for message in (b"\x01a", b"\x01a", b"\x00a", b"\x00a", b"\x00never subscribed"):
            xsub.send(message)
        assert xsub.announcements[2:] == [
            unsubscribe(b"a"),
            unsubscribe(b"a"),
            unsubscribe(b"never subscribed"),
        ]

    def test_it_filters_nothing(self):
        xsub = make("XSUB")
        a, b = network_peer(xsub), network_peer(xsub)
        xsub.deliver(a, [b"a1", b"a2"])
        xsub.deliver(b, [[b"b1", b"x"]])
        assert received(xsub) == [b"a1", [b"b1", b"x"], b"a2"]

    def test_with_nothing_to_receive_it_blocks(self):
        xsub = make("XSUB")
        assert not xsub.can_receive_now()
        with pytest.raises(Again):
            xsub.receive()

    def test_it_has_a_receive_lane_while_it_has_one_peer(self):
        xsub = make("XSUB")
        a = network_peer(xsub)
        assert xsub.receive_lane is a.inbound
        network_peer(xsub)
        assert xsub.receive_lane is None

    def test_the_receive_lane_comes_back_when_a_peer_that_left_is_drained(self):
        xsub = make("XSUB")
        a, b = network_peer(xsub), network_peer(xsub)
        xsub.deliver(a, [b"x"])
        xsub.detach(a)
        assert xsub.receive() == b"x"
        with pytest.raises(Again):
            xsub.receive()
        assert xsub.receive_lane is b.inbound


class TestSub:
    def sub(self, *topics, **options):
        sub = make("SUB", **options)
        for topic in topics:
            sub.subscribe(topic)
        return sub, network_peer(sub)

    def test_it_receives_what_it_subscribed_to(self):
        sub, peer = self.sub(b"a")
        sub.deliver(peer, [b"a1", b"b1", [b"a2", b"x"], [b"b2", b"a"]])
        assert received(sub) == [b"a1", [b"a2", b"x"]]
        assert peer.dropped == {"not subscribed": 2}

    def test_without_subscriptions_it_receives_nothing(self):
        sub, peer = self.sub()
        sub.deliver(peer, [b"a1"])
        assert received(sub) == []
        assert peer.dropped == {"not subscribed": 1}

    def test_the_empty_topic_is_everything(self):
        sub, peer = self.sub(b"")
        sub.deliver(peer, [b"a", b"", [b"b", b"c"]])
        assert received(sub) == [b"a", b"", [b"b", b"c"]]

    def test_subscriptions_are_announced(self):
        sub, _ = self.sub(b"a", b"a")
        sub.unsubscribe(b"a")
        sub.unsubscribe(b"a")
        assert sub.announcements == [subscribe(b"a"), subscribe(b"a"), unsubscribe(b"a")]
        assert sub.topics() == []

    @pytest.mark.parametrize("topics", [1, 1000, 10_000])
    def test_what_arrives_costs_the_same_however_many_topics_and_messages(self, topics):
        sub = make("SUB")
        for number in range(topics):
            sub.subscribe(b"%05d" % number)
        peer = network_peer(sub)
        batch = [b"%05d..." % (number * 7 % topics) for number in range(900)]
        assert calls_during(sub.deliver, peer, batch) <= 25
        assert len(peer.inbound) == len(batch)

    def test_unsubscribing_from_many_topics_costs_nothing_for_what_is_queued_of_others(self):
        sub = make("SUB")
        sub.subscribe(b"kept")
        for number in range(100):
            sub.subscribe(b"%02d" % number)
        peer = network_peer(sub)
        sub.deliver(peer, [b"kept"] * 1000)
        sub.unsubscribe(b"00")
        # a look at each by C, and no more
        assert calls_during(sub.unsubscribe, b"01") <= 30

    def test_unsubscribing_from_an_unknown_topic_does_nothing(self):
        """libzmq returns 0 and says nothing to the peers (measured)."""
        sub, _ = self.sub()
        sub.unsubscribe(b"never subscribed")
        assert not sub.announcements

    def test_topics_are_for_those_who_connect_later_each_once(self):
        sub, _ = self.sub(b"a", b"b", b"a")
        assert sub.topics() == [b"a", b"b"]
        assert sub.topics_count() == 2

    def test_what_is_queued_and_no_longer_wanted_is_thrown_away(self):
        sub, peer = self.sub(b"a", b"b")
        sub.deliver(peer, [b"a1", b"b1", b"a2", b"b2"])
        sub.unsubscribe(b"a")
        assert received(sub) == [b"b1", b"b2"]
        assert peer.dropped == {"not subscribed": 2}

    def test_what_another_topic_still_wants_is_kept(self):
        sub, peer = self.sub(b"a", b"a", b"", b"ab")
        sub.deliver(peer, [b"ab", b"a"])
        sub.unsubscribe(b"")
        sub.unsubscribe(b"a")
        assert received(sub) == [b"ab", b"a"]
        assert not peer.dropped

    def test_throwing_queued_messages_away_resumes_a_stopped_publisher(self):
        sub = make("SUB")
        peer = network_peer(sub, hwm=2)
        sub.subscribe(b"a")
        sub.deliver(peer, [b"a1", b"a2"])
        assert peer.inbound.full
        sub.unsubscribe(b"a")
        assert peer.inbound.writer_signals == [peer]

    def test_a_reader_on_the_lane_that_empties_the_pipe_meanwhile_harms_nothing(self):
        sub, peer = self.sub(b"a", b"b")

        class Racing(list):
            """Says that there is a message, and then another thread has taken it."""

            def pop(self):
                raise IndexError

            def popleft(self):
                raise IndexError

        peer.inbound.messages = Racing([b"a1"])
        sub.unsubscribe(b"b")
        assert not peer.dropped

    def test_invert_matching_receives_what_it_did_not_subscribe_to(self):
        sub, peer = self.sub(b"a", invert_matching=True)
        sub.deliver(peer, [b"a1", b"b1"])
        assert received(sub) == [b"b1"]
        sub.deliver(peer, [b"b2", b"c2"])
        sub.subscribe(b"b")
        assert received(sub) == [b"c2"]

    def test_it_cannot_send(self):
        sub, _ = self.sub()
        assert not sub.can_send
        assert not sub.can_send_now()

    def test_its_receive_lane_bypasses_the_filter_only_after_it(self):
        sub, peer = self.sub(b"a")
        sub.deliver(peer, [b"a1", b"b1"])
        assert list(sub.receive_lane.messages) == [b"a1"]


class TestWelcome:
    """An XPUB_WELCOME_MSG comes before any topic is known; SUB filters it when it receives."""

    @pytest.mark.parametrize(
        ("topics", "expected"), [([b"wel"], [b"welcome"]), ([b"other"], []), ([], [])]
    )
    def test_it_is_received_if_the_topic_is_there_by_then(self, topics, expected):
        world, xpub, sub = World(), make("XPUB", xpub_welcome_msg=b"welcome"), make("SUB")
        world.join(sub, xpub)
        assert sub.receive_lane is None
        for topic in topics:
            sub.subscribe(topic)
        world.settle()
        assert received(sub) == expected

    def test_over_the_network_too(self):
        sub = make("SUB")
        peer = network_peer(sub)
        sub.deliver(peer, [b"welcome"])
        sub.subscribe(b"wel")
        assert sub.receive() == b"welcome"

    def test_afterwards_the_lane_is_there(self):
        world, xpub, sub = World(), make("XPUB", xpub_welcome_msg=b"welcome"), make("SUB")
        at_sub, _ = world.join(sub, xpub)
        with pytest.raises(Again):
            sub.receive()
        assert sub.receive_lane is at_sub.inbound

    def test_what_a_peer_that_left_had_sent_is_still_filtered(self):
        sub = make("SUB")
        peer = network_peer(sub)
        sub.deliver(peer, [b"welcome", b"other"])
        sub.detach(peer)
        sub.subscribe(b"wel")
        assert received(sub) == [b"welcome"]


class TestTogether:
    def test_a_publisher_filters_for_its_inproc_subscribers(self):
        world, pub, sub = World(), make("PUB"), make("SUB")
        sub.subscribe(b"a")
        world.join(sub, pub)
        sub.subscribe(b"b")
        world.settle()
        for message in (b"a1", b"b1", b"c1"):
            pub.send(message)
        sub.unsubscribe(b"a")
        world.settle()
        pub.send(b"a2")
        world.settle()
        assert received(sub) == [b"b1"]

    def test_two_inproc_subscribers_do_not_share_a_list(self):
        world, pub, subs = World(), make("PUB"), [make("SUB"), make("SUB")]
        for sub in subs:
            sub.subscribe(b"")
            world.join(sub, pub)
        pub.send([b"a", b"b"])
        world.settle()
        first, second = received(subs[0]), received(subs[1])
        assert first == second == [[b"a", b"b"]]
        assert first[0] is not second[0]

    def test_subscriptions_travel_up_through_a_proxy_and_messages_down(self):
        world = World()
        pub, xsub, xpub, sub = make("PUB"), make("XSUB"), make("XPUB"), make("SUB")
        world.join(xsub, pub)
        world.join(sub, xpub)

        def proxy():
            world.settle()
            for message in received(xpub):
                xsub.send(message)
            world.settle()
            for message in received(xsub):
                xpub.send(message)
            world.settle()

        sub.subscribe(b"a")
        proxy()
        pub.send(b"a1")
        pub.send(b"b1")
        proxy()
        assert received(sub) == [b"a1"]
        sub.unsubscribe(b"a")
        proxy()
        assert pub.subscribers(b"a") == 0

    def test_five_thousand_topics_reach_the_publisher_whatever_the_high_water_mark(self):
        world, pub, sub = World(), make("PUB"), make("SUB")
        world.join(sub, pub, hwm=1)
        for number in range(5000):
            sub.subscribe(b"%d" % number)
        world.settle()
        assert pub.topics_count() == 5000
