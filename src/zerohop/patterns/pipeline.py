"""PUSH and PULL: work handed out round-robin, and collected fairly (RFC 30)."""

# ruff: noqa: D102 - what each method promises stands in Pattern

from __future__ import annotations

from zerohop.errors import Again
from zerohop.patterns.pattern import Pattern, PatternOptions, Peer
from zerohop.patterns.routing import FairQueue, LoadBalancer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import ClassVar

    from zerohop.patterns.pipe import Message


class Push(Pattern):
    """Sends each message to one peer, in turn; waits while there is none with room.

    A peer that we dialled takes part before it has answered, and while its link is lost (libzmq
    does so too; IMMEDIATE avoids it): what is queued for it waits there.
    """

    accepts: ClassVar[frozenset[str]] = frozenset({"PULL"})
    can_receive: ClassVar[bool] = False

    def __init__(self, options: PatternOptions, seed: int = 0) -> None:
        super().__init__(options, seed)
        self._outgoing = LoadBalancer()

    def attach(self, peer: Peer) -> None:
        self._outgoing.add(peer)
        self.send_lane = self._outgoing.lane

    def detach(self, peer: Peer) -> None:
        self._outgoing.remove(peer)
        self.send_lane = self._outgoing.lane

    def mend(self, peers: Iterable[Peer]) -> None:
        self._outgoing.mend(peers)
        self.send_lane = self._outgoing.lane

    def writable(self, peer: Peer) -> None:
        self._outgoing.resume(peer)

    def send(self, message: Message) -> None:
        self._outgoing.send(message)

    def can_send_now(self) -> bool:
        return self._outgoing.has_room()


class Pull(Pattern):
    """Receives one message from each peer that has any, in turn."""

    accepts: ClassVar[frozenset[str]] = frozenset({"PUSH"})
    can_send: ClassVar[bool] = False

    def __init__(self, options: PatternOptions, seed: int = 0) -> None:
        super().__init__(options, seed)
        self._incoming = FairQueue()

    def attach(self, peer: Peer) -> None:
        self._incoming.add(peer)
        self.receive_lane = self._incoming.lane

    def detach(self, peer: Peer) -> None:
        self._incoming.remove(peer)
        self.receive_lane = self._incoming.lane

    def deliver(self, peer: Peer, messages: list[Message]) -> None:
        peer.inbound.extend(messages)
        self._incoming.wake(peer)

    def mend(self, peers: Iterable[Peer]) -> None:
        self._incoming.mend(peers)
        self.receive_lane = self._incoming.lane

    def readable(self, peer: Peer) -> None:
        self._incoming.wake(peer)

    def receive(self) -> Message:
        try:
            return self._incoming.take()
        except Again:
            # A peer that had left has been drained: the one that is here may be a lane now.
            self.receive_lane = self._incoming.lane
            raise

    def can_receive_now(self) -> bool:
        return self._incoming.has_messages()
