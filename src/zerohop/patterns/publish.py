"""PUB and XPUB: each message to every peer that subscribed to its beginning (RFC 29).

Subscriptions come as commands (``subscription``) or, from ZMTP 3.0 peers and from whoever likes to,
as messages that begin with octet 1 or 0. They are applied at once, whatever the application does,
and take no place in any pipe. A peer whose pipe is full misses the message, which is counted;
with XPUB_NODROP the send raises Again instead, before anybody gets it.

What is sent on the lane waits to be handed out to all: :mod:`zerohop.patterns.handout`.
"""

# ruff: noqa: D102 - what each method promises stands in Pattern

from __future__ import annotations

from collections import deque

from zerohop.constants import Errno
from zerohop.errors import Again, ProtocolError, UsageError
from zerohop.patterns.handout import Handout
from zerohop.patterns.pattern import Pattern, PatternOptions, Peer
from zerohop.patterns.routing import FairQueue, fan_out
from zerohop.patterns.subscriptions import SubscriptionIndex, split_upstream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import ClassVar

    from zerohop.patterns.pipe import Message, Part
    from zerohop.patterns.subscriptions import Route

# An application that never receives from its XPUB must not keep every notification for ever.
_MAX_NOTIFICATIONS = 1_000_000
_MAX_OCTETS = 64 * 1024 * 1024  # of topics in them, whoever sends them


class XPub(Pattern):
    r"""Publishes, and receives what its subscribers ask for.

    ``receive`` returns ``b"\x01" + topic`` when a topic is wanted for the first time and
    ``b"\x00" + topic`` when nobody wants it any more, in the order they happened; then what peers
    sent as ordinary messages. XPUB_VERBOSE passes every subscription, XPUB_VERBOSER every
    unsubscription too. When a peer has gone, its unsubscriptions are made up for it.

    XPUB_MANUAL: nothing is applied; the application receives every request, and ``subscribe`` and
    ``unsubscribe`` act for the peer whose request was received last.
    """

    accepts: ClassVar[frozenset[str]] = frozenset({"SUB", "XSUB"})
    hands_out: ClassVar[bool] = True

    def __init__(self, options: PatternOptions, seed: int = 0) -> None:
        super().__init__(options, seed)
        self._peers: dict[Peer, None] = {}
        self._inproc = 0  # how many of them; their messages wait for nobody's batch
        self._index = SubscriptionIndex()
        self._handout = Handout(self._index, options)
        self._requests = SubscriptionIndex()  # manual: what peers asked for, applied or not
        self._requester: Peer | None = None  # manual: who asked for what was received last
        self._incoming = FairQueue()
        self._notifications: deque[tuple[Peer | None, bytes]] = deque()
        self._notified_octets = 0  # of topics in them

    def attach(self, peer: Peer) -> None:
        self._peers[peer] = None
        self._incoming.add(peer)
        self._inproc += peer.inproc
        if peer.inproc:
            self.send_lane = None
        self._handout.one_more(peer)

    def connected(self, peer: Peer) -> None:
        if self.options.xpub_welcome_msg and peer in self._peers:
            fan_out(self.options.xpub_welcome_msg, (peer,))
            self._handout.less_room()

    def disconnected(self, peer: Peer) -> None:
        # When it comes back it says anew what it wants. What could not be sent is back in its pipe.
        self.hand_out()
        self._forget(peer)
        self._handout.less_room()

    def detach(self, peer: Peer) -> None:
        if peer in self._peers:
            self.hand_out()
            del self._peers[peer]
            self._inproc -= peer.inproc
            self._forget(peer)
            self._incoming.remove(peer)

    def writable(self, peer: Peer) -> None:
        self._handout.more_room()

    def limits_changed(self) -> None:
        self._handout.limits_changed()

    def deliver(self, peer: Peer, messages: list[Message]) -> None:
        others: list[Message] = []
        for message in messages:
            subscriptions, rest = split_upstream(
                message, only_first=self.options.only_first_subscribe
            )
            for topic, subscribe in subscriptions:
                self.subscription(peer, topic, subscribe)
            if rest is not None:
                others.append(rest)
        if others:
            self._keep(peer, others)

    def mend(self, peers: Iterable[Peer]) -> None:
        here = dict.fromkeys(peers)
        for peer in self._peers:
            if peer not in here:
                self._forget(peer)
        self._peers = here
        self._inproc = sum(peer.inproc for peer in here)
        for index in (self._index, self._requests):
            index.mend(here)
        self._incoming.mend(here)
        self._handout.mend()

    def readable(self, peer: Peer) -> None:
        self._incoming.wake(peer)

    def subscription(self, peer: Peer, topic: bytes, subscribe: bool) -> None:
        if peer not in self._peers:
            return
        handout = self._handout
        if handout.lane.messages or handout.runs:
            self.hand_out()
        options = self.options
        manual = options.xpub_manual or options.xpub_manual_last_value
        index = self._requests if manual else self._index
        try:
            changed = index.add(topic, peer) if subscribe else index.remove(topic, peer)
        except ProtocolError as error:
            self.refuse(peer, str(error))
            return
        if changed or manual or options.xpub_verboser or (subscribe and options.xpub_verbose):
            self._notify(peer, topic, subscribe=subscribe)

    def hand_out(self) -> None:
        handout, options = self._handout, self.options
        handout.hand_out(self._peers)
        if self._inproc or options.invert_matching or options.xpub_manual_last_value:
            self.send_lane = None
        else:
            self.send_lane = handout.lane if handout.has_room else None

    def send(self, message: Message) -> None:
        handout = self._handout
        if handout.lane.messages or handout.runs:
            self.hand_out()
        first = message[0] if isinstance(message, list) else message
        peers = self._index.matching(first)
        options = self.options
        if options.invert_matching or options.xpub_manual_last_value:
            peers = self._reconsider(peers)
        if options.xpub_nodrop:
            for peer in peers:
                if peer.outbound.full:
                    raise Again
            handout.less_room()
        if peers:
            fan_out(message, peers)
        if options.xpub_manual_last_value:
            self._requester = None

    def check_send(self, first_part: Part) -> None:
        if self.options.xpub_nodrop:
            self.hand_out()
            peers = self._reconsider(self._index.matching(first_part))
            if any(peer.outbound.full for peer in peers):
                raise Again

    def receive(self) -> Message:
        if self._notifications:
            peer, notification = self._notifications.popleft()
            self._notified_octets -= len(notification) - 1
            self._requester = peer if peer in self._peers else None
            return notification
        return self._incoming.take()

    def can_send_now(self) -> bool:
        return True

    def can_receive_now(self) -> bool:
        return bool(self._notifications) or self._incoming.has_messages()

    def subscribe(self, topic: bytes) -> None:
        self._check_manual()
        self.hand_out()
        if self._requester is not None:
            self._index.add(topic, self._requester)

    def unsubscribe(self, topic: bytes) -> None:
        self._check_manual()
        self.hand_out()
        if self._requester is not None:
            self._index.remove(topic, self._requester)

    def topics_count(self) -> int:
        return len(self._index)

    def subscribers(self, topic: bytes) -> int:
        return len(self._reconsider(self._index.matching(topic)))

    def _reconsider(self, peers: Route) -> Route:
        """Who really gets a message, of those whose subscriptions it matches."""
        options, requester = self.options, self._requester
        if requester is not None and options.xpub_manual_last_value:
            peers = (requester,) if requester in peers else ()
        if options.invert_matching:
            wanted = set(peers)
            peers = tuple(peer for peer in self._peers if peer not in wanted)
        return peers

    @property
    def _manual(self) -> bool:
        return self.options.xpub_manual or self.options.xpub_manual_last_value

    def _check_manual(self) -> None:
        if not self._manual:
            raise UsageError(
                Errno.EINVAL,
                hint="a publisher subscribes for its peers with XPUB_MANUAL only (ZMQ_SUBSCRIBE)",
            )

    def _keep(self, peer: Peer, messages: list[Message]) -> None:
        peer.inbound.extend(messages)
        self._incoming.wake(peer)

    def _forget(self, peer: Peer) -> None:
        """Drop what the peer wanted, and unsubscribe in its name."""
        if self._requester is peer:
            self._requester = None
        dropped = self._index.forget(peer)
        every_one = self._manual or self.options.xpub_verboser
        if self._manual:
            dropped = self._requests.forget(peer)
        for topic, was_last in dropped:
            if was_last or every_one:
                self._notify(None, topic, subscribe=False)

    def _notify(self, peer: Peer | None, topic: bytes, *, subscribe: bool) -> None:
        self._notified_octets += len(topic)
        notifications = self._notifications
        while notifications and (
            len(notifications) >= _MAX_NOTIFICATIONS or self._notified_octets > _MAX_OCTETS
        ):
            self._notified_octets -= len(notifications.popleft()[1]) - 1
            self.dropped["notification not received"] += 1
        self._notifications.append((peer, (b"\1" if subscribe else b"\0") + topic))


class Pub(XPub):
    """Publishes; its application does not hear of subscriptions, nor what else peers send.

    An XPUB that is silent upwards and nothing else, as in libzmq: hence a subclass.
    """

    can_receive: ClassVar[bool] = False

    def readable(self, peer: Peer) -> None:
        self._discard(peer, len(peer.inbound))
        peer.inbound.messages.clear()
        peer.inbound.drained()
        peer.inbound.sleep()

    def can_receive_now(self) -> bool:
        return False

    def _keep(self, peer: Peer, messages: list[Message]) -> None:
        self._discard(peer, len(messages))

    def _discard(self, peer: Peer, count: int) -> None:
        peer.dropped["no subscription"] += count

    def _notify(self, peer: Peer | None, topic: bytes, *, subscribe: bool) -> None:
        """Nobody would read it."""
