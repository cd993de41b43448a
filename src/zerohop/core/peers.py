"""The peers of one socket, and where the notes of their pipes go.

    pipe        who notes what                                         where it stands
    outbound    the pattern: there are messages                        to_flush, the driver writes
                the driver: a full pipe has room again                 room, the pattern is told
    inbound     the pattern: a full pipe has room again                to_resume, the driver reads
                whoever delivers: there are messages                   nowhere: it wakes the pattern

The two pipes of an inproc peer are shared with another socket, and their notes are the Context's
(``core.context``).
"""

from __future__ import annotations

from collections import deque
from weakref import ref

from zerohop.patterns.pattern import Peer
from zerohop.patterns.pipe import Pipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from zerohop.core.options import SocketOptions
    from zerohop.patterns.pattern import Pattern
    from zerohop.patterns.pipe import Message

_NO_NEWS: Any = deque(maxlen=0)  # whoever delivers wakes the pattern, and needs no note

NOBODY = Peer(Pipe(0), Pipe(0))
"""Whom the pipes of a peer lead to that is gone for good; never attached, never linked."""

PEER_GONE = "peer gone"
"""The reason in ``Pattern.dropped`` for what was queued for a peer that has left."""


class Peers:
    """Every peer that the pattern has, inproc ones too, in the order they came.

    Args:
        pattern: told of every peer.
        options: the socket's; SNDHWM and RCVHWM are read whenever a peer is made.
        owner: the core, put into each peer so that a note about a shared pipe finds its way back.

    Attributes:
        to_flush, to_resume: for the driver; see ``core.socket``.
        room: peers whose outbound pipe has room again (for ``SocketCore.settle``).
        attached: they, for who asks with each message; changed by :meth:`attach` and
            :meth:`detach` alone.
    """

    def __init__(self, pattern: Pattern, options: SocketOptions, owner: object) -> None:
        self.to_flush: list[Peer] = []
        self.to_resume: list[Peer] = []
        self.room: list[Peer] = []
        self._pattern = pattern
        self._options = options
        self._owner = ref(owner)  # which has us: closed, it shall go at once
        self.attached: dict[Peer, None] = {}

    def __iter__(self) -> Iterator[Peer]:
        return iter(self.attached)

    def __len__(self) -> int:
        return len(self.attached)

    def __contains__(self, peer: object) -> bool:
        return peer in self.attached

    def new(self, *, conflate: bool) -> Peer:
        """A peer with pipes of this socket's own limits, not yet known to the pattern."""
        # In order, not by name: to make an object by names costs as much as another object.
        outbound = Pipe(self._options.sndhwm, conflate, self.to_flush, self.room)
        inbound = Pipe(self._options.rcvhwm, conflate, _NO_NEWS, self.to_resume)
        peer = Peer(outbound, inbound)
        peer.owner = self._owner()
        outbound.reader = outbound.writer = inbound.reader = inbound.writer = peer
        return peer

    def attach(self, peer: Peer) -> None:
        """Give the peer to the pattern."""
        self.attached[peer] = None
        self._pattern.attach(peer)

    def detach(self, peer: Peer) -> None:
        """Take the peer from the pattern, if it has it; what it sent can still be received.

        What was dropped of its messages stays in the socket's own count.
        """
        if self.attached.pop(peer, peer) is None:
            peer.connected = False
            peer.inbound.closed = True
            self._pattern.detach(peer)
            if peer.dropped:
                for reason, count in peer.dropped.items():
                    self._pattern.dropped[reason] += count

    def set_hwms(self) -> None:
        """SNDHWM or RCVHWM has changed, and is live. Pipes that are shared are ``Inproc``'s."""
        for peer in self.attached:
            if not peer.inproc or peer.link is None:
                peer.outbound.set_hwm(self._options.sndhwm)
                peer.inbound.set_hwm(self._options.rcvhwm)
        self._pattern.limits_changed()

    def drop_queue(self, peer: Peer, reason: str = PEER_GONE) -> None:
        """Throw away what is queued for a peer that will not come (back), and count it."""
        self._pattern.hand_out()  # what was sent is queued, too
        queued = len(peer.outbound)
        if queued:
            peer.outbound.messages.clear()
            peer.outbound.whole = None
            peer.dropped[reason] += queued
            if peer not in self:
                self._pattern.dropped[reason] += queued


def let_go(peer: Peer) -> None:
    """Have the pipes of a peer that is gone for good lead to nobody; what came is still received.

    They would hold it, and it its socket, until the garbage collector comes; and to look through
    a thousand sockets takes it long.
    """
    peer.owner = None
    for pipe in (peer.outbound, peer.inbound):
        pipe.full = False  # nobody is stopped, so nobody is to be told that it may go on
        pipe.reader = pipe.writer = NOBODY  # a thread may still be at it by its lane


def put_back(pipe: Pipe, messages: list[Message]) -> None:
    """Return messages to the head of the pipe, oldest first; a full pipe takes them, too.

    Where only the latest message counts (CONFLATE) and there is a newer one, they are forgotten.
    """
    if not messages or (pipe.conflate and pipe.messages):
        return
    pipe.messages.extendleft(reversed(messages))
    pipe.whole = None
    if 0 < pipe.hwm <= len(pipe.messages):
        pipe.mark_full()
    pipe.asleep = False
