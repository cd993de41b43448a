"""Prefix matching at both ends, and what a subscriber may cost a publisher."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.patterns.world import calls_during, new_peer
from zerohop.errors import ProtocolError
from zerohop.patterns import subscriptions
from zerohop.patterns.subscriptions import (
    SubscriptionIndex,
    TopicCounts,
    any_matches,
    split_upstream,
)


@pytest.fixture
def index():
    return SubscriptionIndex()


@pytest.fixture
def a():
    return new_peer()


@pytest.fixture
def b():
    return new_peer()


class TestSubscriptionIndex:
    def test_a_topic_matches_what_starts_with_it(self, index, a):
        index.add(b"kv.", a)
        assert list(index.matching(b"kv.stored")) == [a]
        assert list(index.matching(b"kv.")) == [a]

    @pytest.mark.parametrize("first", [b"", b"k", b"kv", b"KV.x", b"akv."])
    def test_a_topic_matches_nothing_else(self, index, a, first):
        index.add(b"kv.", a)
        assert list(index.matching(first)) == []

    def test_the_empty_topic_matches_everything(self, index, a):
        index.add(b"", a)
        assert list(index.matching(b"")) == [a]
        assert list(index.matching(b"anything")) == [a]

    def test_nobody_is_found_where_nobody_subscribed(self, index):
        assert not index.matching(b"anything")

    def test_a_peer_is_found_once_however_many_of_its_topics_match(self, index, a, b):
        for topic in (b"", b"k", b"kv"):
            index.add(topic, a)
        index.add(b"k", b)
        assert list(index.matching(b"kv.stored")) == [a, b]
        assert list(index.matching(b"other")) == [a]

    def test_topics_of_several_lengths_are_all_looked_for(self, index, a, b):
        index.add(b"kv", a)
        index.add(b"kv.st", b)
        assert list(index.matching(b"kv.")) == [a]
        assert list(index.matching(b"kv.st")) == [a, b]

    def test_a_first_part_may_be_a_memoryview(self, index, a):
        index.add(b"kv", a)
        assert list(index.matching(memoryview(bytearray(b"kv.stored")))) == [a]

    def test_what_was_found_before_does_not_change_the_index(self, index, a, b):
        index.add(b"", a)
        index.add(b"k", b)
        index.matching(b"kv")
        assert list(index.matching(b"other")) == [a]

    def test_only_the_first_subscriber_makes_a_topic_new(self, index, a, b):
        assert index.add(b"t", a)
        assert not index.add(b"t", b)
        assert not index.add(b"t", a)
        assert len(index) == 1

    def test_only_the_last_unsubscriber_ends_a_topic(self, index, a, b):
        index.add(b"t", a)
        index.add(b"t", b)
        assert not index.remove(b"t", a)
        assert index.remove(b"t", b)
        assert len(index) == 0

    def test_subscriptions_of_one_peer_to_one_topic_collapse(self, index, a):
        index.add(b"t", a)
        index.add(b"t", a)
        assert index.remove(b"t", a)
        assert not index.matching(b"t")

    def test_removing_what_was_never_subscribed_does_nothing(self, index, a, b):
        index.add(b"t", a)
        assert not index.remove(b"t", b)
        assert not index.remove(b"other", a)
        assert list(index.matching(b"t")) == [a]

    def test_the_empty_topic_can_be_removed(self, index, a):
        index.add(b"", a)
        assert index.remove(b"", a)
        assert not index.matching(b"x")

    def test_a_length_is_probed_until_its_last_topic_is_gone(self, index, a):
        index.add(b"aa", a)
        index.add(b"bb", a)
        index.remove(b"aa", a)
        assert list(index.matching(b"bb")) == [a]
        index.remove(b"bb", a)
        assert not index.matching(b"bb")

    def test_forgetting_a_peer_tells_which_topics_nobody_wants_any_more(self, index, a, b):
        index.add(b"shared", a)
        index.add(b"", a)
        index.add(b"shared", b)
        assert index.forget(a) == [(b"", True), (b"shared", False)]
        assert list(index.matching(b"shared")) == [b]

    def test_forgetting_a_peer_changes_nothing_for_those_who_want_the_same(self, index, a, b):
        for topic in (b"both", b"of a", b"of b"):
            for peer, name in ((a, b"of b"), (b, b"of a")):
                if topic != name:
                    index.add(topic, peer)
        assert index.forget(b) == [(b"both", False), (b"of b", True)]
        assert list(index.matching(b"both")) == list(index.matching(b"of a")) == [a]
        assert not index.matching(b"of b")
        assert not index.remove(b"both", b)
        assert index.forget(a) == [(b"both", True), (b"of a", True)]
        assert len(index) == 0

    def test_forgetting_a_peer_costs_two_calls_a_topic(self, index, a, b):
        """The lock is held meanwhile, and a peer may have a million of them."""
        for number in range(1000):
            index.add(b"topic.%d" % number, a)
        index.add(b"topic.7", b)
        assert calls_during(index.forget, a) <= 2 * 1000 + 30
        assert len(index) == 1

    def test_forgetting_a_stranger_tells_nothing(self, index, a):
        assert index.forget(a) == []

    @pytest.mark.parametrize(
        ("limits", "topics", "problem"),
        [
            ({"max_topics": 2}, [b"a", b"b", b"c"], "max_topics=2"),
            ({"max_octets": 3}, [b"ab", b"cd"], "max_octets=3"),
            ({"max_lengths": 2}, [b"a", b"bb", b"ccc"], "max_lengths=2"),
        ],
        ids=["topics", "octets", "lengths"],
    )
    def test_a_peer_over_a_limit_is_refused_and_nothing_changes(self, a, limits, topics, problem):
        index = SubscriptionIndex(**limits)
        for topic in topics[:-1]:
            index.add(topic, a)
        with pytest.raises(ProtocolError, match=problem):
            index.add(topics[-1], a)
        assert len(index) == len(topics) - 1

    def test_what_a_peer_gave_up_no_longer_counts_against_its_limits(self, a):
        index = SubscriptionIndex(max_topics=1, max_lengths=1)
        index.add(b"a", a)
        index.remove(b"a", a)
        assert index.add(b"bb", a)

    def test_a_length_in_use_twice_counts_once(self, a):
        index = SubscriptionIndex(max_lengths=1)
        index.add(b"a", a)
        index.add(b"b", a)
        index.remove(b"a", a)
        assert index.add(b"c", a)

    def test_the_limits_are_each_peers_own(self, a, b):
        index = SubscriptionIndex(max_topics=1)
        index.add(b"a", a)
        assert index.add(b"b", b)

    def test_a_lookup_makes_one_call_a_length_however_many_topics(self, index, a):
        for number in range(5000):
            index.add(b"%04d" % number, a)
            index.add(b"%05d" % number, a)
        index.matching(b"0042 and more")  # puts the route together
        index.matching(b"none of them")
        assert calls_during(index.matching, b"0042 and more") <= 5  # itself, len, and two dict.get
        assert calls_during(index.matching, b"none of them") <= 5

    def test_lengths_that_the_message_or_the_topics_have_not_cost_nothing(self, index, a):
        for length in range(1, 200):
            index.add(b"x" * length, a)
        index.matching(b"xx")
        assert calls_during(index.matching, b"xx") <= 5  # itself, len, a list, one dict.get
        for length in range(2, 200):
            index.remove(b"x" * length, a)
        index.matching(b"x" * 1000)
        assert calls_during(index.matching, b"x" * 1000) <= 4

    def test_the_longest_topic_knows_who_wants_what_it_begins_with(self, index, a, b):
        for length in range(1, 200):
            index.add(b"x" * length, a)
        index.add(b"", b)
        assert index.matching(b"x" * 1000) == (b, a)
        assert calls_during(index.matching, b"x" * 1000) <= 4  # finds it at its first probe

    def test_equal_routes_are_one_object(self, index, a, b):
        index.add(b"1", a)
        index.add(b"1", b)
        index.add(b"2", b)
        index.add(b"2", a)
        assert index.matching(b"1") is index.matching(b"2")

    def test_a_route_is_forgotten_when_a_subscription_changes(self, index, a, b):
        index.add(b"kv", a)
        index.add(b"k", b)
        assert index.matching(b"kv.1") == (b, a)
        index.remove(b"k", b)
        assert index.matching(b"kv.1") == (a,)
        index.add(b"", b)
        assert index.matching(b"kv.1") == (b, a)
        index.forget(a)
        assert index.matching(b"kv.1") == (b,)

    def test_routes_that_are_kept_are_bounded(self, index, monkeypatch):
        monkeypatch.setattr(subscriptions, "_KEPT", 50)
        peers = [new_peer() for _ in range(110)]
        for number in range(100):
            for peer in peers[number : number + 10]:
                index.add(b"%02d" % number, peer)
        for number in range(100):
            assert index.matching(b"%02d..." % number) == tuple(peers[number : number + 10])
            assert len(index._routes) == len(index._routed) <= 6

    def test_a_batch_is_parted_into_runs_that_the_same_peers_want(self, index, a, b):
        index.add(b"a", a)
        index.add(b"b", b)
        index.add(b"ab", b)
        batch = [b"a1", [b"a2", b"x"], b"b1", b"c", b"ab1", b"ab", memoryview(b"abc"), b"", b"a"]
        assert list(index.split(batch)) == [
            ((a,), [b"a1", [b"a2", b"x"]]),
            ((b,), [b"b1"]),  # b"c" is nobody's
            ((a, b), [b"ab1", b"ab", batch[6]]),
            ((a,), [b"a"]),
        ]

    def test_a_batch_that_everybody_wants_is_one_run_and_is_not_looked_at(self, index, a, b):
        batch = [b"x"] * 1000
        assert list(index.split(batch)) == []
        index.add(b"", a)
        index.add(b"", b)
        [(route, run)] = index.split(batch)
        assert route == (a, b)
        assert run is batch
        assert calls_during(index.split, batch) <= 6

    def test_who_wants_everything_gets_what_others_want_too(self, index, a, b):
        index.add(b"", a)
        index.add(b"t", b)
        assert list(index.split([b"t1", b"u", b"t2"])) == [
            ((a, b), [b"t1"]),
            ((a,), [b"u"]),
            ((a, b), [b"t2"]),
        ]

    def test_parting_costs_a_number_of_calls_that_no_message_and_no_topic_changes(self, index, a):
        """For those that go one way together; C does the rest."""
        for number in range(5000):
            index.add(b"%04d" % number, a)
        batch = [b"%04d..." % (number * 7) for number in range(500)]
        index.split(batch)
        assert calls_during(index.split, batch) <= 20

    def test_messages_that_go_different_ways_cost_one_call_each(self, index, a, b):
        for number in range(5000):
            index.add(b"%04d" % number, (a, b)[number % 2])
        batch = [b"%04d..." % (number * 7) for number in range(500)]
        runs = index.split(batch)
        assert [run for _, run in runs] == [[message] for message in batch]
        assert calls_during(index.split, batch) <= len(batch) + 20  # list.append

    def test_topics_of_many_lengths_cost_a_call_a_message_and_length(self, index, a):
        for length in range(5, 15):
            for number in range(100):
                index.add((b"%02d" % number).ljust(length, b"-"), a)
        batch = [b"%02d----" % (number % 100) for number in range(500)]  # found at the ninth
        index.split(batch)
        assert calls_during(index.split, batch) <= 9 * len(batch) + 40


topics = st.binary(max_size=4)


@given(
    steps=st.lists(st.tuples(st.booleans(), topics, st.integers(0, 2)), max_size=40),
    first=st.binary(max_size=6),
)
def test_the_index_finds_what_comparing_every_topic_would_find(steps, first):
    index, peers = SubscriptionIndex(), [new_peer() for _ in range(3)]
    wanted = {peer: set() for peer in peers}
    expected = set()
    for subscribe, topic, number in steps:
        peer = peers[number]
        others_want = any(topic in wanted[other] for other in peers if other is not peer)
        if subscribe:
            assert index.add(topic, peer) == (not others_want and topic not in wanted[peer])
            wanted[peer].add(topic)
        else:
            assert index.remove(topic, peer) == (not others_want and topic in wanted[peer])
            wanted[peer].discard(topic)
        expected = {p for p in peers if any(first.startswith(topic) for topic in wanted[p])}
        assert set(index.matching(first)) == expected  # each time: what is kept must not be stale
    runs = list(index.split([first, [first, b"more"]]))
    assert runs == ([(index.matching(first), [first, [first, b"more"]])] if expected else [])
    assert len(index) == len(set().union(*wanted.values()))


class TestTopicCounts:
    def counts(self, *topics):
        counts = TopicCounts()
        for topic in topics:
            counts.add(topic)
        return counts

    def test_two_subscriptions_need_two_unsubscriptions(self):
        counts = self.counts(b"t", b"t")
        assert not counts.remove(b"t")
        assert counts.match(b"t")
        assert counts.remove(b"t")
        assert not counts.match(b"t")

    def test_unsubscribing_from_an_unknown_topic_does_nothing(self):
        assert not self.counts(b"t").remove(b"other")

    def test_topics_are_listed_once_each(self):
        counts = self.counts(b"a", b"b", b"a")
        assert list(counts) == [b"a", b"b"]
        assert len(counts) == 2

    @pytest.mark.parametrize(
        "message",
        [b"kv.1", [b"kv.1", b"rest"], memoryview(b"kv.1"), [memoryview(b"kv.1"), b"rest"]],
        ids=["bytes", "parts", "memoryview", "memoryview part"],
    )
    @pytest.mark.parametrize("others", [0, 100], ids=["few topics", "many topics"])
    def test_the_first_part_decides(self, message, others):
        counts = self.counts(*(b"other %d" % number for number in range(others)))
        assert not counts.match(message)
        counts.add(b"kv.")
        assert counts.match(message)

    @pytest.mark.parametrize("others", [0, 100], ids=["few topics", "many topics"])
    def test_a_batch_is_filtered_in_order(self, others):
        counts = self.counts(b"a", *(b"other %d" % number for number in range(others)))
        batch = [b"a1", b"b1", [b"a2", b"x"], [b"b2", b"a"], b"a3"]
        assert counts.select(batch) == [b"a1", [b"a2", b"x"], b"a3"]

    @pytest.mark.parametrize("count", [1, 13, 10_000])
    def test_a_batch_is_filtered_by_c_however_many_topics(self, count):
        counts = self.counts(*(b"%05d" % number for number in range(count)))
        batch = [b"%05d and more" % (number * 7 % count) for number in range(1000)]
        assert counts.select(batch) is batch
        assert calls_during(counts.select, batch) <= 12

    def test_without_topics_nothing_is_selected(self):
        assert self.counts().select([b"a", b""]) == []

    def test_the_empty_topic_selects_the_batch_itself(self):
        batch = [b"a", [b"b", b"c"]]
        assert self.counts(b"", b"x").select(batch) is batch


letters = st.binary(max_size=4).map(lambda octets: bytes(octet % 3 + 97 for octet in octets))
firsts = st.binary(max_size=6).map(lambda octets: bytes(octet % 3 + 97 for octet in octets))


@given(
    wanted=st.lists(letters, max_size=30),
    unwanted=st.lists(letters, max_size=10),
    batch=st.lists(st.one_of(firsts, st.lists(firsts, min_size=2, max_size=3)), max_size=12),
)
def test_a_batch_is_filtered_as_comparing_every_topic_would(wanted, unwanted, batch):
    counts = TopicCounts()
    for topic in wanted:
        counts.add(topic)
    for topic in unwanted:
        counts.remove(topic)
    left = list(counts)

    def matches(message):
        first = message[0] if isinstance(message, list) else message
        return any(first.startswith(topic) for topic in left)

    assert counts.select(batch) == list(filter(matches, batch))
    assert [counts.match(message) for message in batch] == list(map(matches, batch))


@given(
    wants=st.lists(st.tuples(letters, st.integers(0, 2)), max_size=30),
    batch=st.lists(st.one_of(firsts, st.lists(firsts, min_size=2, max_size=3)), max_size=12),
)
def test_a_batch_is_parted_as_each_message_alone_would_be_routed(wants, batch):
    index, peers = SubscriptionIndex(), [new_peer() for _ in range(3)]
    for topic, number in wants:
        index.add(topic, peers[number])
    expected = [
        (index.matching(message[0] if isinstance(message, list) else message), message)
        for message in batch
    ]
    runs = index.split(batch)
    assert [(route, message) for route, run in runs for message in run] == [
        each for each in expected if each[0]
    ]
    assert all(one[0] is not other[0] for one, other in pairwise(runs))


@pytest.mark.parametrize("parts", [False, True], ids=["one part", "two parts"])
@pytest.mark.parametrize("kind", [bytes, memoryview])
def test_whether_any_message_of_many_matches_a_topic(parts, kind):
    def batch(*firsts):
        return [[kind(first), b"t"] if parts else kind(first) for first in firsts]

    assert any_matches(batch(b"a", b"topic", b"b"), b"t")
    assert any_matches(batch(b"a"), b"")
    assert not any_matches(batch(b"a", b"ut", b""), b"t")
    assert not any_matches([], b"")


@pytest.mark.parametrize(
    ("message", "subscriptions", "rest"),
    [
        (b"\x01topic", [(b"topic", True)], None),
        (b"\x00topic", [(b"topic", False)], None),
        (b"\x01", [(b"", True)], None),
        (memoryview(b"\x01view"), [(b"view", True)], None),
        (b"\x02data", [], b"\x02data"),
        (b"", [], b""),
        ([b"data", b"more"], [], [b"data", b"more"]),
        ([b"\x01a", b"\x00b"], [(b"a", True), (b"b", False)], None),
        ([b"\x01a", b"data", b"more"], [(b"a", True)], [b"data", b"more"]),
        ([b"data", b"\x01a"], [(b"a", True)], b"data"),
    ],
)
def test_every_part_that_begins_with_one_or_zero_is_a_subscription(message, subscriptions, rest):
    assert split_upstream(message, only_first=False) == (subscriptions, rest)


@pytest.mark.parametrize(
    ("message", "subscriptions", "rest"),
    [
        ([b"data", b"\x01a"], [], [b"data", b"\x01a"]),
        ([b"\x01a", b"\x01b", b"data"], [(b"a", True), (b"b", True)], b"data"),
        (b"\x01a", [(b"a", True)], None),
    ],
)
def test_with_only_first_subscribe_the_first_part_decides_for_all(message, subscriptions, rest):
    assert split_upstream(message, only_first=True) == (subscriptions, rest)
