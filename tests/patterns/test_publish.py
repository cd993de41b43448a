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
from zerohop.patterns import publish
from zerohop.patterns.pattern import HWM_REACHED


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
        # send, matching, len, dict.get, fan_out, two isinstance; append and len for each peer
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


def test_invert_matching_sends_to_those_who_did_not_subscribe():
    pub = make("PUB", invert_matching=True)
    a, none = subscriber(pub, b"a"), subscriber(pub)
    pub.send(b"a1")
    pub.send(b"b1")
    assert sent(a) == [b"b1"]
    assert sent(none) == [b"a1", b"b1"]
    assert pub.subscribers(b"a") == 1
