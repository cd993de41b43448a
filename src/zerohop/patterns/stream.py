"""STREAM: raw TCP connections behind routing ids (libzmq's ``zmq_socket(3)``, ZMQ_STREAM).

received   [routing_id, octets as they came]    [routing_id, b""]: connected, or disconnected
sent       [routing_id, octets]                 [routing_id, b""]: close that connection
"""

# ruff: noqa: D102 - what each method promises stands in Pattern

from __future__ import annotations

from zerohop.constants import Errno
from zerohop.errors import Again, ZMQError
from zerohop.patterns.pattern import CLOSE_REQUESTED, Pattern, PatternOptions, Peer
from zerohop.patterns.routing import FairQueue
from zerohop.patterns.routing_ids import RoutingIds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import ClassVar

    from zerohop.patterns.pipe import Message, Part


class Stream(Pattern):
    """Routes octets by id. Ids are invented (5 octets), or CONNECT_ROUTING_ID when dialled."""

    accepts: ClassVar[frozenset[str]] = frozenset()  # no handshake, so no socket type
    parts_in_a_message: ClassVar[int] = 2

    def __init__(self, options: PatternOptions, seed: int = 0) -> None:
        super().__init__(options, seed)
        self._incoming = FairQueue()
        self._ids = RoutingIds(seed)
        self._up: set[Peer] = set()  # whose connection is there, and its end to be told

    def has_routing_id(self, routing_id: bytes) -> bool:
        """Whether a connection is addressed by this id (CONNECT_ROUTING_ID must be free)."""
        return routing_id in self._ids

    def attach(self, peer: Peer) -> None:
        wanted = peer.connect_routing_id
        free = wanted and wanted not in self._ids
        self._ids.give(peer, wanted if free else self._ids.invent())
        self._incoming.add(peer)

    def connected(self, peer: Peer) -> None:
        self._ids.give(peer, self._ids.routing_id(peer) or self._ids.invent())
        self._up.add(peer)
        self._notify(peer)

    def disconnected(self, peer: Peer) -> None:
        if peer in self._up:
            self._up.discard(peer)
            self._notify(peer)

    def detach(self, peer: Peer) -> None:
        self.disconnected(peer)
        self._ids.release(peer)
        self._incoming.remove(peer)

    def deliver(self, peer: Peer, messages: list[Message]) -> None:
        peer.inbound.extend(messages)
        self._incoming.wake(peer)

    def mend(self, peers: Iterable[Peer]) -> None:
        here = dict.fromkeys(peers)
        self._ids.mend(here)
        for peer in here:
            if not self._ids.routing_id(peer):
                self._ids.give(peer, self._ids.invent())
        self._up.intersection_update(here)
        self._incoming.mend(here)

    def send(self, message: Message) -> None:
        if not isinstance(message, list):
            self.dropped["no octets after the routing id"] += 1
            return
        # Each two parts are a message of their own: libzmq ignores MORE on octets.
        pairs = [
            (self._route(message[at]), message[at + 1]) for at in range(0, len(message) - 1, 2)
        ]
        for peer, octets in pairs:
            if len(octets):
                peer.outbound.push(octets)
            else:
                self._close(peer)

    def check_send(self, first_part: Part) -> None:
        self._route(first_part)

    def receive(self) -> Message:
        octets = self._incoming.take()
        peer = self._incoming.peer
        assert peer is not None
        assert not isinstance(octets, list)
        return [peer.routing_id, octets]

    def can_send_now(self) -> bool:
        return True

    def can_receive_now(self) -> bool:
        return self._incoming.has_messages()

    def _route(self, routing_id: Part) -> Peer:
        peer = self._ids.peer(routing_id)
        if peer is None:
            raise ZMQError(
                Errno.EHOSTUNREACH,
                hint=f"no connection has the routing id {bytes(routing_id[:64])!r}",
            )
        if peer.outbound.full:
            raise Again
        return peer

    def _close(self, peer: Peer) -> None:
        """Hang up at the application's request: no notification, and no such id any more."""
        self._ids.release(peer)
        self._up.discard(peer)
        self.refuse(peer, CLOSE_REQUESTED)

    def _notify(self, peer: Peer) -> None:
        if self.options.stream_notify:
            peer.inbound.push(b"")
            self._incoming.wake(peer)
