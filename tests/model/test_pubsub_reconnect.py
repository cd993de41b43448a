"""Whoever connects again knows at once what is wanted, and gets what it wants and nothing else."""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.core.kit import Network
from zerohop.wire.events import SubscriptionReceived

PEERS = 3
peers = st.integers(0, PEERS - 1)
topics = st.sampled_from([b"", b"a", b"ab", b"b", b"abc"])
messages = st.sampled_from([b"", b"a", b"ab", b"abcd", b"b", b"c", [b"a", b"b"], [b"c", b"a"]])
minors = st.sampled_from([0, 1, 1])


def address(n):
    return f"tcp://127.0.0.1:{5000 + n}"


def first(message):
    return message[0] if isinstance(message, list) else message


class Subscriptions:
    """What a publisher believes, from what it has heard since its handshake."""

    def __init__(self, remote):
        self.remote = remote
        self.wanted = set()

    def hear(self):
        for item in self.remote.taken():
            if isinstance(item, SubscriptionReceived):
                topic, subscribe = item.topic, item.subscribe
            else:
                topic, subscribe = item[1:], item[0] == 1
            if subscribe:
                self.wanted.add(topic)
            else:
                assert topic in self.wanted
                self.wanted.remove(topic)
        return self.wanted


class SubscriberMachine(RuleBasedStateMachine):
    """One SUB that dials several publishers."""

    @initialize()
    def begin(self):
        self.net = Network("SUB", sndhwm=1, rcvhwm=0, reconnect_ivl=0.1)
        self.dialers = [self.net.connect(address(n)) for n in range(PEERS)]
        self.there = [None] * PEERS
        self.counts = Counter()
        self.expected = []

    def wants(self, message):
        return any(first(message).startswith(topic) for topic in self.counts)

    @rule(n=peers, minor=minors)
    def a_publisher_is_reached(self, n, minor):
        dialer = self.dialers[n]
        if dialer in self.net.links.to_dial:
            to_dial = self.net.links.to_dial
            to_dial.insert(0, to_dial.pop(to_dial.index(dialer)))
            self.there[n] = Subscriptions(self.net.meet(dialer, "PUB", minor=minor))

    @rule(n=peers)
    def a_connection_breaks(self, n):
        if self.there[n] is not None:
            self.net.cut(self.there[n].remote)
            self.there[n] = None

    @rule()
    def time_passes(self):
        self.net.after(0.2)

    @rule(topic=topics)
    def subscribe(self, topic):
        self.net.core.pattern.subscribe(topic)
        self.counts[topic] += 1
        self.net.talk()

    @rule(topic=topics)
    def unsubscribe(self, topic):
        self.net.core.pattern.unsubscribe(topic)
        self.counts = +(self.counts - Counter([topic]))
        self.expected = [message for message in self.expected if self.wants(message)]
        self.net.talk()

    @rule(n=peers, message=messages)
    def a_publisher_says_something(self, n, message):
        # It may not have heard yet that this is no longer wanted; that nothing is, it has.
        if self.there[n] is not None and self.counts:
            self.there[n].remote.say(message)
            self.net.talk()
            if self.wants(message):
                self.expected.append(message)

    @rule()
    def receive_all(self):
        received = []
        while self.net.core.pattern.can_receive_now():
            received.append(self.net.core.receive())
        # From several publishers the order is between each one's own.
        assert sorted(map(repr, received)) == sorted(map(repr, self.expected))
        self.expected.clear()

    @invariant()
    def every_publisher_that_is_there_knows_exactly_what_is_wanted(self):
        for publisher in filter(None, getattr(self, "there", ())):
            assert publisher.hear() == set(self.counts)


class PublisherMachine(RuleBasedStateMachine):
    """One XPUB: some subscribers it dials, the others come to it."""

    @initialize(verbose=st.booleans())
    def begin(self, verbose):
        self.net = Network("XPUB", reconnect_ivl=0.1, xpub_verbose=verbose)
        self.net.core.listen(address(1))
        self.dialer = self.net.connect(address(0))
        self.there = [None] * PEERS
        self.wanted = [set() for _ in range(PEERS)]
        self.known = set()  # topics, by what the application was told

    def wants(self, n, message):
        return any(first(message).startswith(topic) for topic in self.wanted[n])

    @rule(n=peers, minor=minors)
    def a_subscriber_is_there(self, n, minor):
        if self.there[n] is None:
            if n == 0 and self.dialer in self.net.links.to_dial:
                self.there[n] = self.net.meet(self.dialer, "SUB", minor=minor)
            elif n > 0:
                self.there[n] = self.net.greet("SUB", address(1), minor=minor)

    @rule(n=peers)
    def a_connection_breaks(self, n):
        if self.there[n] is not None:
            self.net.cut(self.there[n])
            self.there[n] = None
            self.wanted[n].clear()

    @rule()
    def time_passes(self):
        self.net.after(0.2)

    @rule(n=peers, topic=topics, subscribe=st.booleans(), minor=minors)
    def a_subscriber_changes_its_mind(self, n, topic, subscribe, minor):
        if self.there[n] is None:
            return
        if minor:
            self.there[n].subscribe(topic, subscribe=subscribe)
        else:
            self.there[n].say((b"\1" if subscribe else b"\0") + topic)
        self.net.talk()
        if subscribe:
            self.wanted[n].add(topic)
        else:
            self.wanted[n].discard(topic)

    @rule(message=messages)
    def publish(self, message):
        self.net.core.send(message)
        self.net.talk()
        for n, remote in enumerate(self.there):
            if remote is not None:
                assert remote.taken() == ([message] if self.wants(n, message) else [])

    @rule()
    def the_application_reads_what_is_asked_for(self):
        while self.net.core.pattern.can_receive_now():
            notification = self.net.core.receive()
            if notification[0]:
                self.known.add(notification[1:])
            else:
                self.known.remove(notification[1:])
        assert self.known == set().union(*self.wanted)

    @invariant()
    def the_publisher_counts_its_subscribers(self):
        for topic in (b"", b"a", b"abcd", b"b"):
            expected = sum(
                remote is not None and self.wants(n, topic)
                for n, remote in enumerate(getattr(self, "there", ()))
            )
            if hasattr(self, "net"):
                assert self.net.core.pattern.subscribers(topic) == expected


TestSubscriber = SubscriberMachine.TestCase
TestPublisher = PublisherMachine.TestCase
TestSubscriber.settings = TestPublisher.settings = settings(
    max_examples=100, stateful_step_count=40, deadline=None
)
