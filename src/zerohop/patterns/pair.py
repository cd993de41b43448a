"""PAIR: two sockets, and nobody else (RFC 31, "The PAIR Socket Type")."""

# ruff: noqa: D102 - what each method promises stands in Pattern

from __future__ import annotations

from zerohop.errors import Again
from zerohop.patterns.pattern import Pattern, PatternOptions, Peer
from zerohop.patterns.routing import FairQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import ClassVar

    from zerohop.patterns.pipe import Message


class Pair(Pattern):
    """Talks to one peer at a time; a second one is refused while the first is there.

    What a peer had sent before it left is received before what its successor sends.
    """

    accepts: ClassVar[frozenset[str]] = frozenset({"PAIR"})

    def __init__(self, options: PatternOptions, seed: int = 0) -> None:
        super().__init__(options, seed)
        self._peer: Peer | None = None
        self._incoming = FairQueue()

    def attach(self, peer: Peer) -> None:
        if self._peer is not None:
            self._refuse(peer)
            return
        self._peer = peer
        self._incoming.add(peer)
        self.send_lane = peer.outbound
        self.receive_lane = self._incoming.lane

    def connected(self, peer: Peer) -> None:
        if peer is not self._peer:  # dialled: when it was refused it had no connection to close
            self._refuse(peer)

    def detach(self, peer: Peer) -> None:
        if peer is self._peer:
            self._peer = None
            self._incoming.remove(peer)
            self.send_lane = None
            self.receive_lane = self._incoming.lane

    def deliver(self, peer: Peer, messages: list[Message]) -> None:
        if peer is not self._peer:
            peer.dropped["refused"] += len(messages)
            return
        peer.inbound.extend(messages)
        self._incoming.wake(peer)

    def mend(self, peers: Iterable[Peer]) -> None:
        here = list(peers)
        if self._peer not in here:
            self._peer = here[0] if here else None  # who came later was refused
        self._incoming.mend([] if self._peer is None else [self._peer])
        self.send_lane = None if self._peer is None else self._peer.outbound
        self.receive_lane = self._incoming.lane

    def readable(self, peer: Peer) -> None:
        self._incoming.wake(peer)

    def send(self, message: Message) -> None:
        if self._peer is None or self._peer.outbound.full:
            raise Again
        self._peer.outbound.push(message)

    def receive(self) -> Message:
        try:
            return self._incoming.take()
        except Again:
            # A peer that had left has been drained: the one that is here may be a lane now.
            self.receive_lane = self._incoming.lane
            raise

    def can_send_now(self) -> bool:
        return self._peer is not None and not self._peer.outbound.full

    def can_receive_now(self) -> bool:
        return self._incoming.has_messages()

    def _refuse(self, peer: Peer) -> None:
        self.refuse(peer, "PAIR has a peer already; use DEALER to have several")
