"""What the sockets of one Context share, without I/O: inproc names, and notes between sockets.

An inproc connection is two patterns that share two pipes (``core.inproc``). Every change of a pipe
that the other socket should know of is noted in ``readable`` or ``writable``; the driver whose call
caused it has the notes handed over to the other socket's pattern, and wakes its driver.
"""

from __future__ import annotations

from zerohop.constants import Errno
from zerohop.errors import EndpointError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.core.socket import SocketCore
    from zerohop.patterns.pattern import Peer


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
                hint="an inproc name belongs to one socket of its Context; unbind or close it",
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
        """A peer that waited for a bind is gone. Unknown ones are ignored."""
        for name, peers in self._waiting.items():
            if peer in peers:
                peers.remove(peer)
                if not peers:
                    del self._waiting[name]
                return

    def hand_over(self) -> list[SocketCore]:
        """Tell every pattern its notes; return the sockets something happened to, each once.

        A note may lead to another note (a pattern that resumes may send), hence the loop.
        """
        touched: dict[SocketCore, None] = dict.fromkeys(self.changed)
        self.changed.clear()
        while self.readable or self.writable:
            readable, writable = self.readable[:], self.writable[:]
            self.readable.clear()
            self.writable.clear()
            for peer in readable:
                if peer.link is not None:
                    peer.owner.pattern.readable(peer)
                    touched[peer.owner] = None
            for peer in writable:
                if peer.link is not None:
                    peer.owner.pattern.writable(peer)
                    touched[peer.owner] = None
        return list(touched)
