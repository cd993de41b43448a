"""What a socket's queues, peers and connections look like now: typed, and true at one moment."""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Mapping  # noqa: TC003 - a dataclass may be asked for its types
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

from zerohop.core.endpoint import parse
from zerohop.core.link import Dialer, Link
from zerohop.errors import ZMQError
from zerohop.patterns.pattern import Peer

if TYPE_CHECKING:
    from zerohop.core.socket import SocketCore
    from zerohop.patterns.pipe import Message, Pipe

__all__ = ["PeerInfo", "PeerState", "Queued", "SocketStats", "last_error", "peers", "stats"]

PeerState: TypeAlias = Literal["connected", "handshaking", "connecting", "waiting", "stopped"]


@dataclass(frozen=True, slots=True)
class Queued:
    """What waits in a pipe.

    Attributes:
        messages: how many.
        octets: of their parts.
    """

    messages: int
    octets: int

    def __add__(self, other: Queued) -> Queued:
        return Queued(self.messages + other.messages, self.octets + other.octets)


_NOTHING = Queued(0, 0)


@dataclass(frozen=True, slots=True)
class PeerInfo:
    """One peer, or one endpoint that will have one.

    Attributes:
        endpoint: ours: the address that was bound or dialled ("tcp://127.0.0.1:5555").
        address: the peer's ("tcp://127.0.0.1:40123"), ``""`` while there is no connection.
        socket_type: its type ("PULL"), ``""`` before its handshake.
        routing_id: by which a ROUTER addresses it; else its identity, ``b""`` if it has none.
        state: "connected": messages flow. "handshaking": the connection is there. "connecting":
            being dialled, or an ``inproc`` name that nobody has bound yet. "waiting": it will be
            dialled again. "stopped": it will not (RECONNECT_IVL, RECONNECT_STOP).
        outgoing: sent by the application, not yet with the kernel (``inproc``: not yet received).
        incoming: received, and not yet taken by the application.
        messages_sent, messages_received: over this connection; ``inproc`` counts none, because
            there a message is handed over without anybody between.
        octets_sent, octets_received: on the wire, framing and handshake too.
        dropped: messages thrown away that were meant for it or came from it, by reason.
        reconnects: how often the endpoint was connected again.
        last_error: what went wrong last with it, None since it is well.
    """

    endpoint: str
    address: str
    socket_type: str
    routing_id: bytes
    state: PeerState
    outgoing: Queued
    incoming: Queued
    messages_sent: int
    messages_received: int
    octets_sent: int
    octets_received: int
    dropped: Mapping[str, int]
    reconnects: int
    last_error: Exception | None


@dataclass(frozen=True, slots=True)
class SocketStats:
    """A socket in numbers.

    Attributes:
        peers: those that are connected.
        outgoing, incoming: in all pipes, as in :class:`PeerInfo`.
        messages_sent, messages_received, octets_sent, octets_received: over the connections that
            are open now, as in :class:`PeerInfo`.
        dropped: messages thrown away by this socket since it was made, by reason.
        reconnects: of all endpoints together.
    """

    peers: int
    outgoing: Queued
    incoming: Queued
    messages_sent: int
    messages_received: int
    octets_sent: int
    octets_received: int
    dropped: Mapping[str, int]
    reconnects: int


def peers(core: SocketCore) -> list[PeerInfo]:
    """Every peer, then every connection without one, then every endpoint without a connection.

    The caller holds the lock.
    """
    dialers = {dialer.peer: dialer for dialer in core.links.dialers if dialer.peer is not None}
    known = list(core.links.peers)
    found = [_of_peer(core, peer, dialers.get(peer)) for peer in known]
    found += [_of_link(link) for link in core.links.open_links if link.peer not in core.links.peers]
    found += [
        _of_dialer(dialer)
        for dialer in core.links.dialers
        if dialer.link is None and dialer.peer not in core.links.peers
    ]
    return found


def stats(core: SocketCore) -> SocketStats:
    """The socket's sums. The caller holds the lock."""
    links = core.links.open_links
    outgoing = incoming = _NOTHING
    dropped = Counter(core.pattern.dropped)
    for peer in core.links.peers:
        outgoing += queued(peer.outbound)
        incoming += queued(peer.inbound)
        dropped.update(peer.dropped)
    for link in links:
        outgoing += _size(link.sending)
    return SocketStats(
        peers=sum(peer.connected for peer in core.links.peers),
        outgoing=outgoing,
        incoming=incoming,
        messages_sent=sum(link.messages_out for link in links),
        messages_received=sum(link.messages_in for link in links),
        octets_sent=sum(link.octets_out for link in links),
        octets_received=sum(link.octets_in for link in links),
        dropped=MappingProxyType(dropped),
        reconnects=sum(dialer.reconnects for dialer in core.links.dialers),
    )


def last_error(core: SocketCore, endpoint: str) -> Exception | None:
    """What went wrong last at an endpoint that was bound or connected; None: nothing.

    Raises:
        ZMQError: ENOENT, the socket has no such endpoint.
    """
    for dialer in core.links.dialers:
        if endpoint in (dialer.address, str(dialer.endpoint)) or _same(dialer, endpoint):
            return dialer.last_error
    for listener in core.links.listeners:
        if listener.endpoint == endpoint:
            return listener.last_error
    have = [dialer.address for dialer in core.links.dialers]
    have += [listener.endpoint for listener in core.links.listeners]
    raise ZMQError(errno.ENOENT, hint=f"no tcp or ipc endpoint {endpoint}; have: {have}")


def _same(dialer: Dialer, endpoint: str) -> bool:
    try:
        return parse(endpoint, for_bind=False) == dialer.endpoint
    except ZMQError:  # an address that one can only bind to
        return False


def queued(pipe: Pipe) -> Queued:
    """What waits in a pipe; other threads may be at work on it meanwhile."""
    return _size(list(pipe.messages))  # the copy is made in one step of the interpreter


def _size(messages: list[Message]) -> Queued:
    octets = sum(
        sum(map(len, message)) if isinstance(message, list) else len(message)
        for message in messages
    )
    return Queued(len(messages), octets)


def _of_peer(core: SocketCore, peer: Peer, dialer: Dialer | None) -> PeerInfo:
    link = peer.link if isinstance(peer.link, Link) else None
    if link is None and dialer is not None:
        link = dialer.link
    outgoing = queued(peer.outbound)
    if link is not None:
        outgoing += _size(link.sending)
    if link is not None:
        endpoint = link.endpoint
    elif dialer is not None:
        endpoint = dialer.address
    else:
        endpoint = _inproc_endpoint(core, peer)
    return PeerInfo(
        endpoint=endpoint,
        address=link.remote if link is not None else "",
        socket_type=peer.socket_type,
        routing_id=peer.routing_id,
        state=_state(peer, dialer, link),
        outgoing=outgoing,
        incoming=queued(peer.inbound),
        messages_sent=link.messages_out if link is not None else 0,
        messages_received=link.messages_in if link is not None else 0,
        octets_sent=link.octets_out if link is not None else 0,
        octets_received=link.octets_in if link is not None else 0,
        dropped=MappingProxyType(dict(peer.dropped)),
        reconnects=dialer.reconnects if dialer is not None else 0,
        last_error=dialer.last_error if dialer is not None else None,
    )


def _of_link(link: Link) -> PeerInfo:
    """A connection without a peer: a stranger in its handshake, or one that is leaving."""
    dialer = link.source if isinstance(link.source, Dialer) else None
    return PeerInfo(
        endpoint=link.endpoint,
        address=link.remote,
        socket_type="",
        routing_id=b"",
        state="connected" if link.handshaken else "handshaking",
        outgoing=_size(link.sending),
        incoming=_NOTHING,
        messages_sent=link.messages_out,
        messages_received=link.messages_in,
        octets_sent=link.octets_out,
        octets_received=link.octets_in,
        dropped=MappingProxyType({}),
        reconnects=dialer.reconnects if dialer is not None else 0,
        last_error=link.failure or (dialer.last_error if dialer is not None else None),
    )


def _of_dialer(dialer: Dialer) -> PeerInfo:
    """An endpoint that has neither a connection nor (IMMEDIATE) a peer."""
    return PeerInfo(
        endpoint=dialer.address,
        address="",
        socket_type="",
        routing_id=b"",
        state=_dialling(dialer),
        outgoing=_NOTHING,
        incoming=_NOTHING,
        messages_sent=0,
        messages_received=0,
        octets_sent=0,
        octets_received=0,
        dropped=MappingProxyType({}),
        reconnects=dialer.reconnects,
        last_error=dialer.last_error,
    )


def _state(peer: Peer, dialer: Dialer | None, link: Link | None) -> PeerState:
    if peer.connected:
        return "connected"
    if link is not None:
        return "handshaking"
    return "connecting" if dialer is None else _dialling(dialer)


def _dialling(dialer: Dialer) -> PeerState:
    if dialer.stopped:
        return "stopped"
    return "waiting" if dialer.due_at is not None else "connecting"


def _inproc_endpoint(core: SocketCore, peer: Peer) -> str:
    for name, connected in core.inproc.peers.items():
        if peer in connected:
            return f"inproc://{name}"
    other = peer.link
    if isinstance(other, Peer):
        for name, connected in other.owner.inproc.peers.items():
            if other in connected:
                return f"inproc://{name}"
    return ""
