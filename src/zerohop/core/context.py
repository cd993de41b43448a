"""What the sockets of one Context share, without I/O: inproc names and notes between sockets.

An inproc connection is two patterns that share two pipes::

    connecting socket                binding socket
      peer.outbound  ──────────────►  peer.inbound
      peer.inbound   ◄──────────────  peer.outbound

A connect may come before the bind. The connecting side then writes into its outbound pipe, which
waits here under the name; the bind completes the pair. Every change of a shared pipe that the other
socket should know of is noted in ``readable`` or ``writable``; the driver whose call caused
it hands the notes to the other socket's core and wakes its driver.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from zerohop.constants import Errno
from zerohop.errors import EndpointError
from zerohop.patterns.pattern import Peer
from zerohop.patterns.pipe import Pipe

if TYPE_CHECKING:
    from zerohop.core.socket import SocketCore


class ContextCore:
    """The pure part of a Context. Single-threaded: the caller holds the context's lock.

    Attributes:
        sockets: every open socket's core.
        readable: peers whose inbound pipe, shared with another socket, has got messages.
        writable: peers whose outbound pipe, shared with another socket, has room again.
        changed: sockets to which something happened through another socket's call.
        terminated: ``term`` has begun; sockets answer ETERM.
    """

    def __init__(self) -> None:
        self.sockets: set[SocketCore] = set()
        self.readable: list[Peer] = []
        self.writable: list[Peer] = []
        self.changed: list[SocketCore] = []
        self.terminated = False
        self._bound: dict[str, SocketCore] = {}
        self._waiting: dict[str, list[Peer]] = {}

    def bind(self, name: str, core: SocketCore) -> list[Peer]:
        """Give ``name`` to a socket; return the peers that were waiting for it, to be joined.

        Raises:
            EndpointError: EADDRINUSE, another socket (or this one) has it.
        """
        if name in self._bound:
            raise EndpointError(
                Errno.EADDRINUSE,
                endpoint=f"inproc://{name}",
                hint="an inproc name belongs to one socket of its Context; unbind or close it first",
            )
        self._bound[name] = core
        return self._waiting.pop(name, [])

    def unbind(self, name: str) -> None:
        """Take the name back; connections that exist go on (libzmq)."""
        self._bound.pop(name, None)

    def binder(self, name: str) -> SocketCore | None:
        """The socket bound to the name, if any."""
        return self._bound.get(name)

    def wait_for_bind(self, name: str, peer: Peer) -> None:
        """Keep a connecting peer until somebody binds the name."""
        self._waiting.setdefault(name, []).append(peer)

    def forget(self, peer: Peer) -> None:
        """A peer that waited for a bind is gone."""
        for name, peers in list(self._waiting.items()):
            if peer in peers:
                peers.remove(peer)
                if not peers:
                    del self._waiting[name]

    def part(self, peer: Peer) -> None:
        """Undo a join on one side: what the peers write from now on stays where it is written.

        Like a network peer whose connection is refused again and again, the other side keeps its
        queue.
        """
        other = peer.link
        peer.link = None
        peer.connected = False
        if isinstance(other, Peer):
            other.link = None
            other.connected = False

    def hand_over(self) -> list[SocketCore]:
        """Tell every core its notes; return the sockets something happened to, each once.

        A note may lead to another note (a pattern that resumes may send), hence the loop.
        """
        touched: dict[SocketCore, None] = dict.fromkeys(self.changed)
        self.changed.clear()
        while self.readable or self.writable:
            readable, writable = self.readable[:], self.writable[:]
            self.readable.clear()
            self.writable.clear()
            for peer in readable:
                if peer.owner is not None and peer.link is not None:
                    peer.owner.pattern.readable(peer)
                    touched[peer.owner] = None
            for peer in writable:
                if peer.owner is not None and peer.link is not None:
                    peer.owner.pattern.writable(peer)
                    touched[peer.owner] = None
        return list(touched)

    def join(self, connecting: Peer, binding: SocketCore) -> Peer:
        """Complete an inproc pair: make the binding side's peer over the same two pipes.

        A limit of a pipe is the sum of both ends' options; there is none if either has none.
        """
        connector: SocketCore = connecting.owner
        up, down = connecting.outbound, connecting.inbound
        accepted = Peer(outbound=down, inbound=up)
        accepted.owner = binding
        accepted.inproc = True
        _share(up, connecting, accepted, self, connector.options.conflate, binding.options.conflate)
        _share(down, accepted, connecting, self, connector.options.conflate,
               binding.options.conflate)  # fmt: skip
        accepted.socket_type = connector.type_name
        connecting.socket_type = binding.type_name
        accepted.routing_id = connector.options.routing_id
        connecting.routing_id = binding.options.routing_id
        accepted.link, connecting.link = connecting, accepted
        self.set_hwms(accepted)
        return accepted

    def set_hwms(self, peer: Peer) -> None:
        """Give both pipes of an inproc pair their limits: the sums of both ends' options."""
        ours, theirs = peer.owner.options, peer.link.owner.options
        peer.outbound.set_hwm(_sum(ours.sndhwm, theirs.rcvhwm))
        peer.inbound.set_hwm(_sum(theirs.sndhwm, ours.rcvhwm))


def _sum(sndhwm: int, rcvhwm: int) -> int:
    return sndhwm + rcvhwm if sndhwm and rcvhwm else 0


def _share(
    pipe: Pipe, writer: Peer, reader: Peer, context: ContextCore, *conflates: bool
) -> None:
    if any(conflates) and not pipe.conflate:
        pipe.conflate = True
        pipe.messages = deque(pipe.messages, maxlen=1)
    pipe.writer, pipe.writer_signals = writer, context.writable
    pipe.reader, pipe.reader_signals = reader, context.readable
    # Whatever was queued while the name was not bound: the reader has yet to be told.
    pipe.asleep = True
    if pipe.messages:
        pipe.asleep = False
        context.readable.append(reader)
