"""Connections within one Context: two patterns that share two pipes, and no wire between them.

    connecting socket                binding socket
      peer.outbound  ──────────────►  peer.inbound
      peer.inbound   ◄──────────────  peer.outbound

A connect may come before the bind. The connecting side then writes into its outbound pipe, which
waits under the name in the Context; the bind completes the pair. Each peer is the other's ``link``.

A pipe may hold as much as both ends allow together (libzmq: SNDHWM of the writer plus RCVHWM of the
reader, no limit if either has none), and follows both when they change.
"""

from __future__ import annotations

import errno
from collections import deque
from weakref import ref

from zerohop.constants import Errno
from zerohop.errors import EndpointError, ZMQError
from zerohop.patterns.pattern import Peer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.core.context import ContextCore
    from zerohop.core.endpoint import InprocEndpoint
    from zerohop.core.socket import SocketCore

NEVER_BOUND = "never bound"
"""The reason in ``Pattern.dropped`` for what was sent to a name that nobody bound."""


class Inproc:
    """One socket's names, and its connections to the names of others.

    Args:
        core: the socket.

    Attributes:
        names: those it has bound, in order.
        peers: by the name that was connected to; joined, or still waiting for somebody to bind it.
    """

    def __init__(self, core: SocketCore) -> None:
        self._core_ref = ref(core)  # which has us: closed, it shall go at once
        self.names: list[str] = []
        self.peers: dict[str, list[Peer]] = {}

    @property
    def _core(self) -> SocketCore:
        core = self._core_ref()
        assert core is not None  # whoever calls us has come through it
        return core

    def bind(self, endpoint: InprocEndpoint) -> None:
        """Take an inproc name and join whoever waits for it.

        Raises:
            EndpointError: EADDRINUSE.
        """
        core = self._core
        waiting = core.context.bind(endpoint.name, core)
        self.names.append(endpoint.name)
        core.last_endpoint = str(endpoint)
        for peer in waiting:
            connector: SocketCore = peer.owner
            if core.accepts(connector):
                _join(peer, core)
            else:
                connector.links.reports.append(
                    f"inproc: {connector.type_name} connected to a {core.type_name} socket, which "
                    "does not talk to it"
                )
                connector.inproc.drop(peer)

    def connect(self, endpoint: InprocEndpoint) -> None:
        """Join the socket bound to the name, or wait for one to be.

        Raises:
            EndpointError: EINVAL, a socket of a type that does not fit is bound there.
            UsageError: EINVAL, CONNECT_ROUTING_ID names a peer that is there already.
        """
        core = self._core
        binder = core.context.binder(endpoint.name)
        if binder is not None and not binder.accepts(core):
            raise EndpointError(
                Errno.EINVAL,
                endpoint=str(endpoint),
                hint=f"{endpoint} is bound by a {binder.type_name} socket, which does not talk to "
                f"{core.type_name}",
            )
        core.check_connect_routing_id()
        peer = core.links.peers.new(conflate=core.options.conflate)
        peer.inproc = True
        peer.connect_routing_id = core.options.connect_routing_id
        core.options.connect_routing_id = b""
        core.last_endpoint = str(endpoint)
        self.peers.setdefault(endpoint.name, []).append(peer)
        core.links.peers.attach(peer)
        if binder is None:
            core.context.wait_for_bind(endpoint.name, peer)
        else:
            _join(peer, binder)

    def unbind(self, endpoint: InprocEndpoint) -> None:
        """Give the name back; existing connections go on.

        Raises:
            ZMQError: ENOENT, this socket has not bound it.
        """
        if endpoint.name not in self.names:
            raise ZMQError(errno.ENOENT)
        self.names.remove(endpoint.name)
        self._core.context.unbind(endpoint.name)

    def disconnect(self, endpoint: InprocEndpoint) -> None:
        """End the connections made to the name.

        Raises:
            ZMQError: ENOENT, there is none.
        """
        peers = self.peers.get(endpoint.name)
        if not peers:
            raise ZMQError(errno.ENOENT)
        for peer in peers[:]:
            self.drop(peer)

    def drop(self, peer: Peer) -> None:
        """End a connection: both sides lose the peer, both may still read what was sent."""
        core, other = self._core, peer.link
        peer.link = None
        if other is None:
            core.context.forget(peer)
            core.links.peers.drop_queue(peer, NEVER_BOUND)
        core.links.peers.detach(peer)
        self._remove(peer)
        if other is not None:
            owner: SocketCore = other.owner
            other.link = None
            owner.inproc._remove(other)
            owner.links.peers.detach(other)
            core.context.changed.append(owner)

    def refuse(self, peer: Peer) -> None:
        """Do not want the peer (PAIR's second one).

        The other side keeps its end, whose messages stay where they are: like one over the network
        whose connection is refused again and again.
        """
        _part(peer)
        self._core.links.peers.detach(peer)

    def announce(self, topic: bytes, *, subscribe: bool) -> None:
        """Tell every connected inproc peer of a subscription."""
        for peer in self._core.links.peers:
            if isinstance(peer.link, Peer):
                _tell(peer.link, topic, subscribe=subscribe)

    def set_hwms(self) -> None:
        """SNDHWM or RCVHWM has changed: so have the limits of the pipes that are shared."""
        for peer in self._core.links.peers:
            if isinstance(peer.link, Peer):
                _set_hwms(peer)
                self._core.context.changed.append(peer.link.owner)

    def mend(self) -> None:
        """Leave all notes about the shared pipes again, one may have been lost: ``io.mending``."""
        context = self._core.context
        for peer in self._core.links.peers:
            if not peer.inproc:
                continue
            context.readable.append(peer)
            context.writable.append(peer)
            other = peer.link
            if other is not None:
                context.readable.append(other)
                context.writable.append(other)
                for topic in self._core.pattern.topics():
                    _tell(other, topic, subscribe=True)

    def close(self, core: SocketCore) -> None:
        """Leave; what waits for a name to be bound goes on waiting, unless LINGER is 0.

        Args:
            core: the socket; we may not know it any more: a garbage collection clears references
                like ours before it has anything closed.
        """
        self._core_ref = ref(core)
        for name in self.names:
            core.context.unbind(name)
        self.names.clear()
        for peer in list(core.links.peers):
            if not peer.inproc:
                continue
            if peer.link is None and peer.outbound.messages and core.options.linger != 0:
                core.links.peers.detach(peer)
            else:
                self.drop(peer)
        self.peers.clear()

    def _remove(self, peer: Peer) -> None:
        for name, peers in self.peers.items():
            if peer in peers:
                peers.remove(peer)
                if not peers:
                    del self.peers[name]
                return


def _join(connecting: Peer, binder: SocketCore) -> None:
    """Complete a pair, and tell both patterns."""
    connector: SocketCore = connecting.owner
    accepted = _other_end(connecting, binder, binder.context)
    binder.links.peers.attach(accepted)
    if connector.closed:
        # It lingered: what it had sent before anybody bound the name is still to be received.
        binder.pattern.connected(accepted)
        _part(accepted)
        binder.links.peers.detach(accepted)
        binder.context.changed.append(binder)
        return
    for peer in (connecting, accepted):
        peer.connected = True
        peer.owner.pattern.connected(peer)
    for peer in (connecting, accepted):
        for topic in peer.owner.pattern.topics():
            _tell(peer.link, topic, subscribe=True)
    binder.context.changed += (connector, binder)


def _other_end(connecting: Peer, binder: SocketCore, context: ContextCore) -> Peer:
    """Make the binding side's peer, over the same two pipes."""
    connector: SocketCore = connecting.owner
    up, down = connecting.outbound, connecting.inbound
    accepted = Peer(outbound=down, inbound=up)
    accepted.owner = binder
    accepted.inproc = True
    conflate = connector.options.conflate or binder.options.conflate
    for pipe, writer, reader in ((up, connecting, accepted), (down, accepted, connecting)):
        if conflate and not pipe.conflate:
            pipe.conflate = True
            pipe.messages = deque(pipe.messages, maxlen=1)
        pipe.writer, pipe.writer_signals = writer, context.writable
        pipe.reader, pipe.reader_signals = reader, context.readable
        if pipe.messages:  # queued while the name was not bound: the reader has yet to be told
            context.readable.append(reader)
    for peer, core in ((accepted, connector), (connecting, binder)):
        peer.socket_type = core.type_name
        peer.routing_id = core.options.routing_id
    accepted.link, connecting.link = connecting, accepted
    _set_hwms(accepted)
    return accepted


def _part(peer: Peer) -> None:
    """Undo a join: what either side writes from now on stays where it is written."""
    other: Peer = peer.link
    for end in (peer, other):
        end.link = None
        end.connected = False


def _tell(peer: Peer, topic: bytes, *, subscribe: bool) -> None:
    """Tell the owner of ``peer``, as whom it knows us, of our subscription."""
    owner: SocketCore = peer.owner
    owner.pattern.subscription(peer, topic, subscribe=subscribe)
    owner.context.changed.append(owner)


def _set_hwms(peer: Peer) -> None:
    ours, theirs = peer.owner.options, peer.link.owner.options
    peer.outbound.set_hwm(_sum(ours.sndhwm, theirs.rcvhwm))
    peer.inbound.set_hwm(_sum(theirs.sndhwm, ours.rcvhwm))


def _sum(sndhwm: int, rcvhwm: int) -> int:
    return sndhwm + rcvhwm if sndhwm and rcvhwm else 0
