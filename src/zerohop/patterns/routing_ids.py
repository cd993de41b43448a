"""Routing ids: the names by which the application addresses peers (ROUTER, STREAM)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from zerohop.patterns.pattern import Peer
    from zerohop.patterns.pipe import Part


class RoutingIds:
    """Two-way table of peers and their ids; no id belongs to two peers.

    Args:
        seed: where the ids that we invent begin (libzmq: random, so that a restarted socket does
            not give old ids to new peers).
    """

    __slots__ = ("_by_id", "_by_peer", "_next")

    def __init__(self, seed: int) -> None:
        self._by_id: dict[bytes, Peer] = {}
        self._by_peer: dict[Peer, bytes] = {}
        self._next = seed & 0xFFFFFFFF

    def __contains__(self, routing_id: bytes) -> bool:
        return routing_id in self._by_id

    @property
    def peers(self) -> Iterable[Peer]:
        """All that have an id."""
        return self._by_peer

    def invent(self) -> bytes:
        """Return a free id of 5 octets: 0, and a counter in network order.

        An id beginning with 0 is reserved (``zmq_setsockopt(3)``, ZMQ_ROUTING_ID), yet libzmq lets
        a peer claim one: those are passed over.
        """
        while True:
            routing_id = b"\0" + self._next.to_bytes(4, "big")
            self._next = (self._next + 1) & 0xFFFFFFFF
            if routing_id not in self._by_id:
                return routing_id

    def give(self, peer: Peer, routing_id: bytes) -> None:
        """Address the peer by this free id from now on, and by no other."""
        self.release(peer)
        self._by_id[routing_id] = peer
        self._by_peer[peer] = routing_id
        peer.routing_id = routing_id

    def release(self, peer: Peer) -> bytes | None:
        """Take the peer out; return the id that is free now, or None if it had none."""
        routing_id = self._by_peer.pop(peer, None)
        if routing_id is not None:
            del self._by_id[routing_id]
        return routing_id

    def mend(self, peers: Iterable[Peer]) -> None:
        """Forget who is not among these, and ids that are nobody's: see ``Pattern.mend``."""
        here = set(peers)
        self._by_peer = {peer: name for peer, name in self._by_peer.items() if peer in here}
        self._by_id = {name: peer for peer, name in self._by_peer.items()}

    def peer(self, routing_id: Part) -> Peer | None:
        """Who is addressed by this id."""
        return self._by_id.get(routing_id if type(routing_id) is bytes else bytes(routing_id))

    def routing_id(self, peer: Peer) -> bytes | None:
        """By which id the peer is addressed."""
        return self._by_peer.get(peer)
