"""Subscribers that come, go and change their minds get what they want, and the XPUB knows of it."""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.patterns.world import World, make, received

SUBSCRIBERS = 3
subscribers = st.integers(0, SUBSCRIBERS - 1)
topics = st.sampled_from([b"", b"a", b"ab", b"b", b"abc"])
messages = st.sampled_from([b"", b"a", b"ab", b"abcd", b"b", b"c", [b"a", b"b"], [b"c", b"a"]])


def first(message):
    return message[0] if isinstance(message, list) else message


class PubSubMachine(RuleBasedStateMachine):
    @initialize(hwm=st.integers(0, 3), verbose=st.booleans())
    def make(self, hwm, verbose):
        self.world, self.hwm = World(), hwm
        self.xpub = make("XPUB", xpub_verbose=verbose)
        self.sub = [make("SUB") for _ in range(SUBSCRIBERS)]
        self.peers = [None] * SUBSCRIBERS  # the subscriber as the publisher sees it, if joined
        self.wanted = [Counter() for _ in range(SUBSCRIBERS)]
        self.expected = [[] for _ in range(SUBSCRIBERS)]
        self.dropped = Counter()
        self.heard_of = set()

    def wants(self, s, message):
        return any(first(message).startswith(topic) for topic in self.wanted[s])

    @rule(s=subscribers)
    def join_or_part(self, s):
        if self.peers[s] is None:
            _, self.peers[s] = self.world.join(self.sub[s], self.xpub, hwm=self.hwm)
        else:
            self.world.part(self.peers[s])
            self.peers[s] = None

    @rule(s=subscribers, topic=topics)
    def subscribe(self, s, topic):
        self.sub[s].subscribe(topic)
        self.wanted[s][topic] += 1
        self.world.settle()

    @rule(s=subscribers, topic=topics)
    def unsubscribe(self, s, topic):
        self.sub[s].unsubscribe(topic)
        self.wanted[s] = +(self.wanted[s] - Counter([topic]))
        self.expected[s] = [m for m in self.expected[s] if self.wants(s, m)]
        self.world.settle()

    @rule(message=messages)
    def publish(self, message):
        for s, peer in enumerate(self.peers):
            if peer is not None and self.wants(s, message):
                if peer.outbound.full:
                    self.dropped[peer] += 1
                else:
                    self.expected[s].append(message)
        self.xpub.send(message)
        self.world.settle()

    @rule(s=subscribers)
    def receive(self, s):
        if self.sub[s].can_receive_now():
            message = self.sub[s].receive()
            # In order from one connection; what an earlier one left may be interleaved.
            assert message in self.expected[s]
            self.expected[s].remove(message)
        else:
            assert self.expected[s] == []
        self.world.settle()

    @rule()
    def hear_of_subscriptions(self):
        for notification in received(self.xpub):
            topic = notification[1:]
            if notification[0]:
                self.heard_of.add(topic)
            else:
                assert topic in self.heard_of
                self.heard_of.discard(topic)
        assert self.heard_of == self.topics_of_those_who_are_there()

    def topics_of_those_who_are_there(self):
        joined = (wanted for wanted, peer in zip(self.wanted, self.peers) if peer is not None)
        return {topic for wanted in joined for topic in wanted}

    @invariant()
    def the_publisher_knows_exactly_the_topics_that_are_wanted(self):
        assert self.xpub.topics_count() == len(self.topics_of_those_who_are_there())

    @invariant()
    def every_drop_is_counted_with_its_peer(self):
        for peer in filter(None, self.peers):
            assert sum(peer.dropped.values()) == self.dropped[peer]

    @invariant()
    def a_subscriber_knows_its_topics(self):
        for sub, wanted in zip(self.sub, self.wanted):
            assert set(sub.topics()) == set(wanted)


TestPubSub = PubSubMachine.TestCase
TestPubSub.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
