"""What stands in for the core in these tests: peers to attach, and sockets joined by pipes.

``network_peer`` is a peer whose other end is the test itself: it reads ``sent(peer)`` and calls
``pattern.deliver``. ``World`` joins patterns as inproc connections do, and hands over their notes.
"""

import gc
import sys
from collections import deque

from zerohop.constants import SocketType
from zerohop.patterns import make_pattern
from zerohop.patterns.pattern import Pattern, PatternOptions, Peer
from zerohop.patterns.pipe import Message, Pipe


def make(socket_type: str, *, seed: int = 0, **options) -> Pattern:
    """A pattern without peers, by the name of its type."""
    return make_pattern(SocketType[socket_type], PatternOptions(**options), seed=seed)


def new_peer(*, hwm: int = 0, routing_id: bytes = b"", connect_routing_id: bytes = b"") -> Peer:
    peer = Peer(outbound=Pipe(hwm), inbound=Pipe(hwm))
    peer.routing_id = routing_id
    peer.connect_routing_id = connect_routing_id
    for pipe in (peer.outbound, peer.inbound):
        pipe.reader = pipe.writer = peer
    return peer


def network_peer(pattern: Pattern, **properties) -> Peer:
    """A peer that has connected."""
    peer = new_peer(**properties)
    pattern.attach(peer)
    connect(pattern, peer)
    return peer


def connect(pattern: Pattern, peer: Peer) -> None:
    peer.connected = True
    pattern.connected(peer)


def lose(pattern: Pattern, peer: Peer) -> None:
    """The link of a dialled peer is lost."""
    peer.connected = False
    pattern.disconnected(peer)


def sent(peer: Peer) -> list[Message]:
    """What the pattern has sent to the peer, taken out as the connection would."""
    taken = []
    while peer.outbound.messages:
        taken.append(peer.outbound.pop())
    peer.outbound.sleep()
    return taken


def received(pattern: Pattern) -> list[Message]:
    """All that can be received now."""
    messages = []
    while pattern.can_receive_now():
        messages.append(pattern.receive())
    return messages


class EmptiedWhenFull(deque):
    """A queue that a reader on another thread empties right after it was counted as full."""

    def __init__(self, hwm):
        super().__init__()
        self._hwm = hwm

    def __len__(self):
        count = super().__len__()
        if count >= self._hwm:
            self.clear()
        return count


class World:
    """Patterns joined by shared pipes; after each step call :meth:`settle`."""

    def __init__(self) -> None:
        self.readable: list[Peer] = []
        self.writable: list[Peer] = []
        self.owners: dict[Peer, Pattern] = {}

    def join(self, a: Pattern, b: Pattern, *, hwm: int = 0) -> tuple[Peer, Peer]:
        """Connect ``a`` to ``b``; return b as a sees it, and a as b sees it."""
        there, back = Pipe(hwm), Pipe(hwm)
        b_at_a, a_at_b = Peer(there, back), Peer(back, there)
        for pipe, writer, reader in ((there, b_at_a, a_at_b), (back, a_at_b, b_at_a)):
            pipe.writer, pipe.reader = writer, reader
            pipe.writer_signals, pipe.reader_signals = self.writable, self.readable
        b_at_a.link, a_at_b.link = a_at_b, b_at_a
        for pattern, peer in ((a, b_at_a), (b, a_at_b)):
            self.owners[peer] = pattern
            peer.inproc = True
            pattern.attach(peer)
        b_at_a.routing_id = b.options.routing_id
        a_at_b.routing_id = a.options.routing_id
        connect(a, b_at_a)
        connect(b, a_at_b)
        for pattern, peer in ((a, b_at_a), (b, a_at_b)):
            for topic in pattern.topics():
                self.owners[peer.link].subscription(peer.link, topic, subscribe=True)
        self.settle()
        return b_at_a, a_at_b

    def part(self, peer: Peer) -> None:
        """End a connection, seen from either side."""
        for end in (peer, peer.link):
            self.owners.pop(end).detach(end)
        self.settle()

    def settle(self) -> None:
        """Hand over notes and announcements until there are none."""
        while self.readable or self.writable:
            while self.readable:
                peer = self.readable.pop(0)
                if peer in self.owners:
                    self.owners[peer].readable(peer)
            while self.writable:
                peer = self.writable.pop(0)
                if peer in self.owners:
                    self.owners[peer].writable(peer)
        for pattern in set(self.owners.values()):
            for announcement in pattern.announcements:
                for peer, owner in self.owners.items():
                    if owner is pattern:
                        self.owners[peer.link].subscription(
                            peer.link, announcement.topic, announcement.subscribe
                        )
            pattern.announcements = []


def calls_during(function, *args) -> int:
    """How many Python and C calls happen while ``function(*args)`` runs, its own included."""
    count = 0

    def profiler(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    gc.disable()  # a collection would be counted, with whatever is told of it
    sys.setprofile(profiler)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
        gc.enable()
    return count - 1  # the call of sys.setprofile that ends the counting
