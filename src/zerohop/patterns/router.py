"""ROUTER: addresses each of its peers by id (RFC 28, "The ROUTER Socket Type").

A peer gets its id when its handshake is done: the CONNECT_ROUTING_ID it was dialled with, else the
identity it announces, else an invented one. A dialled peer keeps it over reconnects, whatever
identity the next process there announces (libzmq; issue 1575 asks for more).

Two peers with one identity: libzmq leaves the second connected and unread for ever. Here it is mute
too, but a notice says so, and it takes its place when the first has gone. With ROUTER_HANDOVER
the second takes the id at once, and the first is refused under an invented one.
"""

# ruff: noqa: D102 - what each method promises stands in Pattern

from __future__ import annotations

from zerohop.constants import Errno
from zerohop.errors import Again, ZMQError
from zerohop.patterns.pattern import HWM_REACHED, Pattern, PatternOptions, Peer, probe
from zerohop.patterns.routing import FairQueue
from zerohop.patterns.routing_ids import RoutingIds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import ClassVar

    from zerohop.patterns.pipe import Message, Part

UNROUTABLE = "unknown routing id"


class Router(Pattern):
    """Receives ``[routing_id, *parts]`` in turn from each peer, sends the same form to one of them.

    What cannot be sent (nobody has that id, or its pipe is full) is dropped and counted, unless
    ROUTER_MANDATORY: then ``send`` raises EHOSTUNREACH or Again.
    """

    accepts: ClassVar[frozenset[str]] = frozenset({"REQ", "DEALER", "ROUTER"})

    def __init__(self, options: PatternOptions, seed: int = 0) -> None:
        super().__init__(options, seed)
        self._incoming = FairQueue()
        # Into the pipe of a waiting peer, too: once it is full it stops the connection.
        self.deliver = self._incoming.put  # type: ignore[method-assign] # nothing is looked at
        self._ids = RoutingIds(seed)
        self._waiting: dict[Peer, bytes] = {}  # mute: the id they claim is taken; oldest first

    def has_routing_id(self, routing_id: bytes) -> bool:
        """Whether a peer is addressed by this id (CONNECT_ROUTING_ID must be free)."""
        return routing_id in self._ids

    def attach(self, peer: Peer) -> None:
        if peer.connect_routing_id:
            self._identify(peer, peer.connect_routing_id)

    def connected(self, peer: Peer) -> None:
        claimed = peer.routing_id
        known = self._ids.routing_id(peer) or self._waiting.get(peer)
        if known is None:
            self._identify(peer, claimed)
        else:
            peer.routing_id = known
            if claimed not in (b"", known) and not peer.connect_routing_id:
                self.notice(
                    peer, f"reconnected as {claimed[:64]!r}, is still addressed as {known[:64]!r}"
                )
        if self.options.probe_router:
            probe(peer)

    def detach(self, peer: Peer) -> None:
        if self._waiting.pop(peer, None) is not None:
            if unread := len(peer.inbound):
                peer.dropped["routing id taken"] += unread
            return
        self._incoming.remove(peer)
        routing_id = self._ids.release(peer)
        for heir, claimed in self._waiting.items():
            if claimed == routing_id:
                del self._waiting[heir]
                self._admit(heir, claimed)
                self.notice(heir, f"routing id {claimed[:64]!r} is free, and given to it")
                break

    def mend(self, peers: Iterable[Peer]) -> None:
        here = dict.fromkeys(peers)
        self._ids.mend(here)
        self._waiting = {peer: name for peer, name in self._waiting.items() if peer in here}
        for peer in here:
            if self._ids.routing_id(peer):
                self._waiting.pop(peer, None)
            elif peer not in self._waiting and (peer.connected or peer.connect_routing_id):
                self._identify(peer, peer.connect_routing_id or peer.routing_id)
        self._incoming.mend(peer for peer in here if self._ids.routing_id(peer))

    def readable(self, peer: Peer) -> None:
        self._incoming.wake(peer)

    def send(self, message: Message) -> None:
        if not isinstance(message, list):
            self.dropped["no message after the routing id"] += 1
            return
        peer = self._ids.peer(message[0])
        if peer is None:
            if self.options.router_mandatory:
                raise _unreachable(message[0])
            self.dropped[UNROUTABLE] += 1
        elif not (pipe := peer.outbound).full:
            messages = pipe.messages
            messages.append(message[1] if len(message) == 2 else message[1:])
            # As Pipe.push: a call of ours is what an answer can do without.
            if 0 < pipe.hwm <= len(messages):
                pipe.mark_full()
            if pipe.asleep:
                pipe.reader_signals.append(pipe.reader)
                pipe.asleep = False
        elif self.options.router_mandatory:
            raise Again
        else:
            peer.dropped[HWM_REACHED] += 1

    def check_send(self, first_part: Part) -> None:
        if self.options.router_mandatory:
            peer = self._ids.peer(first_part)
            if peer is None:
                raise _unreachable(first_part)
            if peer.outbound.full:
                raise Again

    def receive(self) -> Message:
        message = self._incoming.take()
        peer = self._incoming.peer
        assert peer is not None
        if isinstance(message, list):
            return [peer.routing_id, *message]
        return [peer.routing_id, message]

    def can_send_now(self) -> bool:
        return not self.options.router_mandatory or any(
            not peer.outbound.full for peer in self._ids.peers
        )

    def can_receive_now(self) -> bool:
        return self._incoming.has_messages()

    def _identify(self, peer: Peer, claimed: bytes) -> None:
        """Give the peer the id it claims, or an invented one; or let it wait."""
        owner = self._ids.peer(claimed)
        if owner is None:
            self._admit(peer, claimed or self._ids.invent())
        elif self.options.router_handover:
            self._ids.give(owner, self._ids.invent())
            self.refuse(
                owner,
                f"a new connection took over its routing id {claimed[:64]!r} (ROUTER_HANDOVER)",
            )
            self._admit(peer, claimed)
        else:
            self._waiting[peer] = claimed
            self.notice(
                peer,
                f"routing id {claimed[:64]!r} belongs to another connection; not heard until that "
                "one is gone. Give each peer its own ROUTING_ID, or set ROUTER_HANDOVER",
            )

    def _admit(self, peer: Peer, routing_id: bytes) -> None:
        self._ids.give(peer, routing_id)
        self._incoming.add(peer)


def _unreachable(routing_id: Part) -> ZMQError:
    return ZMQError(
        Errno.EHOSTUNREACH,
        hint=f"no connected peer has the routing id {bytes(routing_id[:64])!r} (ROUTER_MANDATORY)",
    )
