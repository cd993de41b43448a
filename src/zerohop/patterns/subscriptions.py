"""Topics, and who wants them: prefix matching on the first part of a message (RFC 29).

A topic matches what starts with it. Rather than walk a trie octet by octet (libzmq), which an
interpreter does slowly, we probe one dictionary with the message's prefix of each length that
any topic has: one slice and one look-up a length, however many topics there are::

    topics  kv.a kv.b metrics              lengths  7 4
    message kv.b:17 ...                    probes   kv.b:17  kv.b

The longest topic that is found decides: all others that match the message are beginnings of that
one, so who wants the one topic or any of its beginnings is put together once, and kept until a
subscription changes.

Lengths are few in practice; a peer that invents many is refused, because it would slow down
every send. ``SubscriptionIndex`` is the publisher's side, ``TopicCounts`` the subscriber's.
"""

from __future__ import annotations

from collections import Counter
from itertools import compress, repeat
from operator import is_, itemgetter

from zerohop.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeAlias

    from zerohop.patterns.pattern import Peer
    from zerohop.patterns.pipe import Message, Part

    Route: TypeAlias = tuple[Peer, ...]
    """Who gets a message, each once. Of equal ones there is only one: ``is`` compares them."""

# One bytes.startswith of all topics costs less than the probes (bench/micro): of up to so many
# topics, and as many more for each further length. Not if they are many: the tuple is made anew for
# each that is added.
_FEW, _FEW_MORE, _STILL_FEW = 4, 15, 100

_KEPT = 100_000  # peers in all different routes together: 50 to 250 octets each


class SubscriptionIndex:
    """Which peers want a message; at most one subscription a peer and topic.

    Args:
        max_topics: for one peer.
        max_octets: of all topics of one peer together, so that one very long topic is as good as
            many short ones.
        max_lengths: different topic lengths for one peer. The default is more than names need,
            and few enough that a hostile peer costs well under a millisecond a message.
    """

    __slots__ = (
        "_everyone", "_kept", "_length_counts", "_lengths", "_max_lengths", "_max_octets",
        "_max_topics", "_routed", "_routes", "_subscribers", "_topics",
    )  # fmt: skip

    def __init__(
        self,
        *,
        max_topics: int = 1_000_000,
        max_octets: int = 64 * 1024 * 1024,
        max_lengths: int = 1024,
    ) -> None:
        self._max_topics = max_topics
        self._max_octets = max_octets
        self._max_lengths = max_lengths
        self._topics: dict[bytes, _Topic] = {}
        self._lengths: tuple[int, ...] = ()  # of all topics but b"", longest first
        self._length_counts: Counter[int] = Counter()
        self._subscribers: dict[Peer, _Subscriber] = {}
        # What is put together from the above, and forgotten when a subscription changes.
        self._everyone: Route | None = None  # who wants b"": no probe for them
        self._routes: dict[frozenset[Peer], Route] = {}  # each once, so that ``is`` compares them
        self._routed: list[_Topic] = []  # topics that have a route
        self._kept = 0

    def __len__(self) -> int:
        """How many different topics there are."""
        return len(self._topics)

    def add(self, topic: bytes, peer: Peer) -> bool:
        """Subscribe the peer; return whether it is the first to want this topic.

        Raises:
            ProtocolError: the peer is over a limit. Nothing has changed.
        """
        subscriber = self._subscribers.get(peer)
        if subscriber is None:
            subscriber = self._subscribers[peer] = _Subscriber(peer)
        elif topic in subscriber.topics:
            return False
        size, lengths = len(topic), subscriber.lengths
        octets = subscriber.octets + size
        if (
            octets > self._max_octets
            or len(subscriber.topics) >= self._max_topics
            or size not in lengths
        ):
            self._check_limits(subscriber, topic)
        subscriber.topics[topic] = None
        lengths[size] += 1
        subscriber.octets = octets
        if self._routed or self._everyone is not None:
            self._forget_routes()
        known = self._topics.get(topic)
        if known is not None:
            if len(known.peers) == 1:
                known.peers = known.peers.copy()
            known.peers[peer] = None
            return False
        self._topics[topic] = _Topic(topic, subscriber.alone)
        if topic:
            length_counts = self._length_counts
            length_counts[size] = count = length_counts[size] + 1
            if count == 1:
                self._lengths = tuple(sorted(length_counts, reverse=True))
        return True

    def remove(self, topic: bytes, peer: Peer) -> bool:
        """Unsubscribe the peer; return whether it was the last to want this topic."""
        subscriber = self._subscribers.get(peer)
        if subscriber is None or topic not in subscriber.topics:
            return False
        del subscriber.topics[topic]
        subscriber.lengths[len(topic)] -= 1
        subscriber.octets -= len(topic)
        if not subscriber.lengths[len(topic)]:
            del subscriber.lengths[len(topic)]
        return self._unlink(topic, peer)

    def forget(self, peer: Peer) -> list[tuple[bytes, bool]]:
        """Drop all that the peer wanted: (topic, whether it was the last to want it), sorted."""
        subscriber = self._subscribers.pop(peer, None)
        if subscriber is None:
            return []
        self._forget_routes()
        # As remove() of each, in less than half the time: of several hundred thousand that would
        # keep everybody waiting for a second.
        known = self._topics
        dropped = []
        for name in sorted(subscriber.topics):
            peers = known[name].peers if name in known else {}
            last = peer in peers and len(peers) == 1
            if last:
                del known[name]
            elif peer in peers:
                del peers[peer]
            dropped.append((name, last))
        for length, count in Counter(map(len, [name for name, last in dropped if last])).items():
            self._uncount(length, count)
        return dropped

    def mend(self, peers: Iterable[Peer]) -> None:
        """Begin anew with what each of these peers subscribed to: see ``Pattern.mend``."""
        wanted = {peer: self._subscribers.get(peer, _Subscriber(peer)).topics for peer in peers}
        self._forget_routes()
        self._topics.clear()
        self._length_counts.clear()
        self._lengths = ()
        self._subscribers.clear()
        for peer, topics in wanted.items():
            for topic in topics:
                self.add(topic, peer)

    def matching(self, first_part: Part) -> Route:
        """Return the peers that want a message with this first part."""
        lengths = self._lengths
        if lengths:
            if type(first_part) is not bytes:
                first_part = bytes(first_part[: lengths[0]])
            size = len(first_part)
            if size < lengths[0]:
                lengths = tuple([length for length in lengths if length <= size])
            for length in lengths:
                topic = self._topics.get(first_part[:length])
                if topic is not None:
                    return topic.route or self._make_route(topic.name)
        everyone = self._everyone
        return self._find_everyone() if everyone is None else everyone

    def split(self, messages: list[Message]) -> list[tuple[Route, list[Message]]]:
        """Part messages into runs that the same peers want, in order; leave out the unwanted."""
        if self._lengths and len(messages) > 1:
            return _runs(messages, self._look_up(messages))
        route = self.matching(_first_part(messages[0])) if messages else ()
        return [(route, messages)] if route else []

    def _look_up(self, messages: list[Message]) -> list[Route]:
        """As :meth:`matching` for each, but by C as far as that goes."""
        lengths = self._lengths
        everyone = self._everyone
        if everyone is None:
            everyone = self._find_everyone()
        firsts = _first_parts(messages, lengths[0])
        find = self._topics.get
        found = list(map(find, map(itemgetter(slice(lengths[0])), firsts)))
        for length in lengths[1:]:
            if None not in found:
                break
            pairs = zip(found, firsts, strict=True)
            found = [topic or find(part[:length]) for topic, part in pairs]
        return [
            everyone if topic is None else topic.route or self._make_route(topic.name)
            for topic in found
        ]

    def _find_everyone(self) -> Route:
        topic = self._topics.get(b"")
        self._everyone = everyone = () if topic is None else self._make_route(b"")
        return everyone

    def _make_route(self, topic: bytes) -> Route:
        """Put together who wants this topic, or one that it begins with."""
        peers: dict[Peer, None] = {}
        for length in (0, *reversed(self._lengths)):
            if length > len(topic):
                break
            known = self._topics.get(topic[:length])
            if known is not None:
                peers.update(known.peers)
        if self._kept > _KEPT:
            self._forget_routes()
        key = frozenset(peers)
        route = self._routes.get(key)
        if route is None:
            route = self._routes[key] = tuple(peers)
            self._kept += len(route)
        self._topics[topic].route = route
        self._routed.append(self._topics[topic])
        return route

    def _forget_routes(self) -> None:
        """A subscription has changed: what was put together from all of them may be wrong."""
        self._everyone = None
        if self._routed:
            for topic in self._routed:
                topic.route = ()
            self._routed.clear()
            self._routes.clear()
            self._kept = 0

    def _unlink(self, topic: bytes, peer: Peer) -> bool:
        self._forget_routes()
        known = self._topics.get(topic)
        if known is None or peer not in known.peers:
            return False  # an exception has come in between, and mend() will come
        if len(known.peers) > 1:
            del known.peers[peer]
            return False
        del self._topics[topic]
        self._uncount(len(topic), 1)
        return True

    def _uncount(self, length: int, topics: int) -> None:
        """So many topics of this length have gone."""
        if length:
            self._length_counts[length] -= topics
            if not self._length_counts[length]:
                del self._length_counts[length]
                self._lengths = tuple(sorted(self._length_counts, reverse=True))

    def _check_limits(self, subscriber: _Subscriber, topic: bytes) -> None:
        problem = ""
        if subscriber.octets + len(topic) > self._max_octets:
            problem = f"topics of more octets than max_octets={self._max_octets}"
        elif len(subscriber.topics) >= self._max_topics:
            problem = f"more topics than max_topics={self._max_topics}"
        elif len(topic) not in subscriber.lengths and len(subscriber.lengths) >= self._max_lengths:
            problem = f"topics of more lengths than max_lengths={self._max_lengths}"
        if problem:
            raise ProtocolError(f"peer subscribed to {problem}", source="RFC 29, PUB")


def _runs(messages: list[Message], routes: list[Route]) -> list[tuple[Route, list[Message]]]:
    """Neighbours that go the same way, together, when those that go nowhere are left out."""
    if not all(routes):
        messages = list(compress(messages, routes))
        routes = list(filter(None, routes))
        if not routes:
            return []
    route = routes[0]
    if all(map(is_, routes, repeat(route))):
        return [(route, messages)]
    runs = []
    start = 0
    for end, other in enumerate(routes):
        if other is not route:
            runs.append((route, messages[start:end]))
            route, start = other, end
    runs.append((route, messages[start:]))
    return runs


class _Topic:
    """Who wants it, and who gets what it is the longest topic of; ``()``: to be put together.

    A dict is a set that keeps its order. With one peer in it it may be that of many topics, and is
    not changed.
    """

    __slots__ = ("name", "peers", "route")

    def __init__(self, name: bytes, peers: dict[Peer, None]) -> None:
        self.name = name
        self.peers = peers
        self.route: Route = ()


class _Subscriber:
    """What one peer subscribed to."""

    __slots__ = ("alone", "lengths", "octets", "topics")

    def __init__(self, peer: Peer) -> None:
        self.alone: dict[Peer, None] = {peer: None}  # of topics that nobody else wants
        self.octets = 0
        self.topics: dict[bytes, None] = {}
        self.lengths: Counter[int] = Counter()


class TopicCounts:
    """A subscriber's own topics, each counted as often as it was subscribed to."""

    __slots__ = ("_counts", "_few", "_length_counts", "_lengths")

    def __init__(self) -> None:
        self._counts: dict[bytes, int] = {}
        self._few: tuple[bytes, ...] = ()  # all of them, while they are few
        self._length_counts: Counter[int] = Counter()
        self._lengths: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self._counts)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._counts)

    def add(self, topic: bytes) -> None:
        """Subscribe once more."""
        known = self._counts.get(topic, 0)
        self._counts[topic] = known + 1
        if not known:
            length_counts = self._length_counts
            length_counts[len(topic)] = count = length_counts[len(topic)] + 1
            if count == 1 or self._few or len(self._counts) <= _STILL_FEW:
                self._index(count == 1)

    def remove(self, topic: bytes) -> bool:
        """Unsubscribe once; return whether it was the last time. An unknown topic: False."""
        known = self._counts.get(topic, 0)
        if known > 1:
            self._counts[topic] = known - 1
        elif known:
            del self._counts[topic]
            self._length_counts[len(topic)] -= 1
            if last := not self._length_counts[len(topic)]:
                del self._length_counts[len(topic)]
            self._index(last)
        return known == 1

    def match(self, message: Message) -> bool:
        """Whether the message starts with any of the topics."""
        lengths, counts = self._lengths, self._counts
        if not lengths:
            return False
        first = _first_part(message)
        if type(first) is not bytes:
            first = bytes(first[: lengths[-1]])
        if self._few:
            return first.startswith(self._few)
        for length in lengths:  # noqa: SIM110 - a generator costs twice as much
            if first[:length] in counts:
                return True
        return False

    def select(self, messages: list[Message]) -> list[Message]:
        """Return those of the messages that match; the same list if all do.

        Nearly always all do, for the publisher has looked at them. C sees that the fastest.
        """
        counts, lengths = self._counts, self._lengths
        if b"" in counts:
            return messages
        if len(messages) == 1 or not lengths:
            return [message for message in messages if self.match(message)]
        firsts = _first_parts(messages, lengths[-1])
        if few := self._few:
            hits = list(map(bytes.startswith, firsts, repeat(few)))
        else:
            known = counts.__contains__
            hits = list(map(known, map(itemgetter(slice(lengths[0])), firsts)))
            for length in lengths[1:]:
                if False not in hits:
                    break
                pairs = zip(hits, firsts, strict=True)
                hits = [hit or part[:length] in counts for hit, part in pairs]
        return messages if False not in hits else list(compress(messages, hits))

    def _index(self, lengths_changed: bool) -> None:
        counts = self._counts
        if lengths_changed:
            self._lengths = tuple(sorted(self._length_counts))
        few = min(_FEW + _FEW_MORE * (len(self._lengths) - 1), _STILL_FEW)
        self._few = tuple(counts) if len(counts) <= few else ()


def _first_part(message: Message) -> Part:
    return message[0] if type(message) is list else message  # type: ignore[return-value] # then it is


def _first_parts(messages: list[Message], longest: int) -> list[bytes]:
    """Of each message the first part, or as much of it as any topic can match."""
    if list(map(type, messages)).count(bytes) == len(messages):
        return messages  # type: ignore[return-value] # just what was asked
    firsts = map(_first_part, messages)
    return [part if type(part) is bytes else bytes(part[:longest]) for part in firsts]


def any_matches(messages: list[Message], topic: bytes) -> bool:
    """Whether any of the messages starts with the topic."""
    return True in map(bytes.startswith, _first_parts(messages, len(topic)), repeat(topic))


def split_upstream(
    message: Message, *, only_first: bool
) -> tuple[list[tuple[bytes, bool]], Message | None]:
    r"""Part what a subscriber sends into subscriptions and the rest, as libzmq does.

    A part that begins with octet 1 subscribes to what follows, one with 0 unsubscribes (how ZMTP
    3.0 says it, and XSUB's application); every part is looked at, unless ``only_first``
    (ZMQ_ONLY_FIRST_SUBSCRIBE) and the first is no subscription.

    Returns:
        ``(topic, subscribe)`` in order, and what is left as a message, or None.
    """
    parts = message if isinstance(message, list) else [message]
    if only_first and parts[0][:1] not in (b"\0", b"\1"):
        return [], message
    subscriptions = []
    rest = []
    for part in parts:
        if part[:1] in (b"\0", b"\1"):
            octets = bytes(part)
            subscriptions.append((octets[1:], octets[0] == 1))
        else:
            rest.append(part)
    if not subscriptions:
        return [], message
    if len(rest) > 1:
        return subscriptions, rest
    return subscriptions, rest[0] if rest else None
