"""SUB and XSUB: receive what publishers send of the topics one wants (RFC 29).

Topics are announced to every peer, now and when one connects; the core carries that past the pipes,
so that no high-water mark can lose a subscription (in libzmq it can: issue 2258). The publisher
filters; SUB filters once more what the network delivers (an unsubscription takes time to arrive).
"""

# ruff: noqa: D102 - what each method promises stands in Pattern

from __future__ import annotations

from collections import deque

from zerohop.errors import Again
from zerohop.patterns.pattern import Pattern, PatternOptions, Peer
from zerohop.patterns.routing import FairQueue, fan_out
from zerohop.patterns.subscriptions import TopicCounts, any_matches, split_upstream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import ClassVar

    from zerohop.patterns.pipe import Message, Part

NOT_SUBSCRIBED = "not subscribed"


class XSub(Pattern):
    r"""Subscribes by sending: ``b"\x01" + topic``, ``b"\x00" + topic``; all else goes to the peers.

    Two subscriptions need two unsubscriptions. Each subscription is announced, of the
    unsubscriptions the last one only, unless XSUB_VERBOSE_UNSUBSCRIBE. Nothing is filtered here.
    """

    accepts: ClassVar[frozenset[str]] = frozenset({"PUB", "XPUB"})

    def __init__(self, options: PatternOptions, seed: int = 0) -> None:
        super().__init__(options, seed)
        self._peers: dict[Peer, None] = {}
        self._incoming = FairQueue()
        self._topics = TopicCounts()

    def attach(self, peer: Peer) -> None:
        self._peers[peer] = None
        self._incoming.add(peer)
        self._find_lane()

    def detach(self, peer: Peer) -> None:
        self._peers.pop(peer, None)
        self._incoming.remove(peer)
        self._find_lane()

    def deliver(self, peer: Peer, messages: list[Message]) -> None:
        peer.inbound.extend(messages)
        self._incoming.wake(peer)

    def mend(self, peers: Iterable[Peer]) -> None:
        self._peers = dict.fromkeys(peers)
        self._incoming.mend(peers)
        self._find_lane()

    def readable(self, peer: Peer) -> None:
        self._incoming.wake(peer)

    def send(self, message: Message) -> None:
        subscriptions, rest = split_upstream(message, only_first=self.options.only_first_subscribe)
        for topic, subscribe in subscriptions:
            if subscribe:
                self._add(topic)
            else:
                self._remove(topic, verbose=self.options.xsub_verbose_unsubscribe)
        if rest is not None:
            fan_out(rest, self._peers)

    def check_send(self, first_part: Part) -> None:
        """Nothing to say against it: a peer that is full misses it, and that is counted."""

    def receive(self) -> Message:
        try:
            return self._incoming.take()
        except Again:
            self._find_lane()  # a peer that had left may be drained now
            raise

    def can_send_now(self) -> bool:
        return True

    def can_receive_now(self) -> bool:
        return self._incoming.has_messages()

    def topics(self) -> list[bytes]:
        return list(self._topics)

    def topics_count(self) -> int:
        return len(self._topics)

    def _find_lane(self) -> None:
        self.receive_lane = self._incoming.lane

    def _add(self, topic: bytes) -> None:
        self._topics.add(topic)
        self.announce(topic, subscribe=True)

    def _remove(self, topic: bytes, *, verbose: bool) -> bool:
        """Unsubscribe once; return whether that was the last time."""
        last = self._topics.remove(topic)
        if last or verbose:
            self.announce(topic, subscribe=False)
        return last


class Sub(XSub):
    """Subscribes by option, and receives only what it is subscribed to.

    An XSUB that cannot send and does filter, as in libzmq: hence a subclass.
    """

    can_send: ClassVar[bool] = False
    filters: ClassVar[bool] = True

    def __init__(self, options: PatternOptions, seed: int = 0) -> None:
        super().__init__(options, seed)
        # Peers whose pipes hold what nobody has looked at. That is an XPUB_WELCOME_MSG: it comes
        # as soon as we connect, and is wanted if the topic is there by the time of the receive.
        self._unfiltered: set[Peer] = set()

    def connected(self, peer: Peer) -> None:
        if peer.inproc:
            self._keep_unfiltered(peer)

    def deliver(self, peer: Peer, messages: list[Message]) -> None:
        wanted = messages
        if self.options.invert_matching:
            wanted = [message for message in messages if self._wants(message)]
        elif self._topics:
            wanted = self._topics.select(messages)
        else:
            self._keep_unfiltered(peer)
        if len(wanted) < len(messages):
            peer.dropped[NOT_SUBSCRIBED] += len(messages) - len(wanted)
        peer.inbound.extend(wanted)
        self._incoming.wake(peer)

    def receive(self) -> Message:
        if self._unfiltered:
            self._filter()
        return super().receive()

    def can_receive_now(self) -> bool:
        if self._unfiltered:
            self._filter()
        return super().can_receive_now()

    def can_send_now(self) -> bool:
        return False

    def subscribe(self, topic: bytes) -> None:
        self._add(topic)
        if self.options.invert_matching:
            self._purge_all()

    def unsubscribe(self, topic: bytes) -> None:
        if self._remove(topic, verbose=False) and not self.options.invert_matching:
            for peer in self._incoming:
                if any_matches(list(peer.inbound.messages), topic):  # seldom: topics are many
                    self._purge(peer)

    def _wants(self, message: Message) -> bool:
        return self._topics.match(message) != self.options.invert_matching

    def _keep_unfiltered(self, peer: Peer) -> None:
        self._unfiltered.add(peer)
        self._find_lane()

    def _filter(self) -> None:
        for peer in self._unfiltered:
            self._purge(peer)
        self._unfiltered.clear()
        self._find_lane()

    def _find_lane(self) -> None:
        self.receive_lane = None if self._unfiltered else self._incoming.lane

    def _purge_all(self) -> None:
        for peer in self._incoming:
            self._purge(peer)

    def _purge(self, peer: Peer) -> None:
        """Throw away what the peer's pipe holds and nobody here wants any more."""
        pipe = peer.inbound
        wanted: deque[Message] = deque()
        unwanted = 0
        # From the newest on: a reader on another thread that uses the lane meanwhile takes the
        # oldest, and so still sees every message once and in order.
        while pipe.messages:
            try:
                message = pipe.messages.pop()
            except IndexError:
                break
            if self._wants(message):
                wanted.appendleft(message)
            else:
                unwanted += 1
        pipe.messages.extend(wanted)
        if unwanted:
            peer.dropped[NOT_SUBSCRIBED] += unwanted
            pipe.drained()
