"""DEALER: talks to many, each message to the next and from the next (RFC 28)."""

# ruff: noqa: D102 - what each method promises stands in Pattern

from __future__ import annotations

from zerohop.errors import Again
from zerohop.patterns.pattern import Pattern, PatternOptions, Peer, probe
from zerohop.patterns.routing import FairQueue, LoadBalancer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import ClassVar

    from zerohop.patterns.pipe import Message


class Dealer(Pattern):
    """Sends each message to one peer in turn, receives one from each in turn; changes none."""

    accepts: ClassVar[frozenset[str]] = frozenset({"REP", "DEALER", "ROUTER"})

    def __init__(self, options: PatternOptions, seed: int = 0) -> None:
        super().__init__(options, seed)
        self._outgoing = LoadBalancer()
        self._incoming = FairQueue()

    def attach(self, peer: Peer) -> None:
        self._outgoing.add(peer)
        self._incoming.add(peer)
        self._find_lanes()

    def connected(self, peer: Peer) -> None:
        if self.options.probe_router:
            probe(peer)

    def detach(self, peer: Peer) -> None:
        self._outgoing.remove(peer)
        self._incoming.remove(peer)
        self._find_lanes()

    def deliver(self, peer: Peer, messages: list[Message]) -> None:
        peer.inbound.extend(messages)
        self._incoming.wake(peer)

    def mend(self, peers: Iterable[Peer]) -> None:
        self._outgoing.mend(peers)
        self._incoming.mend(peers)
        self._find_lanes()

    def readable(self, peer: Peer) -> None:
        self._incoming.wake(peer)

    def writable(self, peer: Peer) -> None:
        self._outgoing.resume(peer)

    def send(self, message: Message) -> None:
        self._outgoing.send(message)

    def receive(self) -> Message:
        try:
            return self._incoming.take()
        except Again:
            self.receive_lane = self._incoming.lane  # a peer that had left may be drained now
            raise

    def can_send_now(self) -> bool:
        return self._outgoing.has_room()

    def can_receive_now(self) -> bool:
        return self._incoming.has_messages()

    def _find_lanes(self) -> None:
        sole = self._incoming.sole
        if sole is not None:  # most often
            self.send_lane, self.receive_lane = sole.outbound, sole.inbound
        else:
            self.send_lane = self._outgoing.lane
            self.receive_lane = self._incoming.lane
