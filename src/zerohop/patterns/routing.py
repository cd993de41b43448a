"""Who is next: fair queueing of what comes in, round robin and fan-out of what goes out.

Every pattern is put together from these three (RFC 28-31 name them). None of them makes an object
for a message, and none looks at a peer that has nothing to say: peers move between "ready" and
"waiting" when their pipes leave notes, and the loops below touch the ready ones only.

``LoadBalancer`` and ``FanOut`` spell out ``Pipe.push`` instead of calling it: with many peers
that call is the larger part of the cost (``bench/micro``).
"""

from __future__ import annotations

from collections import deque
from functools import partial

from zerohop.errors import Again
from zerohop.patterns.pattern import HWM_REACHED
from zerohop.value import NOTHING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from zerohop.patterns.pattern import Peer
    from zerohop.patterns.pipe import Message, Pipe

would_block = partial(Again.__new__, Again)
"""Makes an Again without its ``__init__``: each wait for an answer begins with one."""

_FEW = 16  # ready peers, among which one is looked for


class FairQueue:
    """Receives one message from each peer that has any, in turn.

    A peer is *ready* (its pipe may hold messages) or *asleep* (its pipe was seen empty and will
    leave a note, upon which :meth:`wake` must be called). The only one that is ready stays so when
    its pipe is empty; not an inproc peer, whose writer tells only a reader that sleeps. A peer that
    was removed stays until what it had sent before has been taken.

    Attributes:
        peer: where the message came from that :meth:`take` returned last.
        sole: the network peer that everything comes from, if there is exactly one and nobody else,
            leaving or not. Whoever has the lock may take from its pipe past :meth:`take`.
    """

    __slots__ = ("_asleep", "_here", "_leaving", "_ready", "peer", "sole")

    def __init__(self) -> None:
        self._ready: deque[Peer] = deque()  # the next one to be asked first
        self._asleep: set[Peer] = set()
        self._here: dict[Peer, None] = {}  # both, but for those that are leaving
        self._leaving: set[Peer] = NOTHING  # some of the ready ones
        self.peer: Peer | None = None
        self.sole: Peer | None = None

    def __contains__(self, peer: object) -> bool:
        return peer in self._here or peer in self._leaving

    def __iter__(self) -> Iterator[Peer]:
        yield from self._ready
        yield from self._asleep

    @property
    def lane(self) -> Pipe | None:
        """The pipe that all messages come from, if there is exactly one peer and it is here."""
        if len(self._ready) + len(self._asleep) != 1 or self._leaving:
            return None
        return (self._ready[0] if self._ready else next(iter(self._asleep))).inbound

    def add(self, peer: Peer) -> None:
        """Receive from this peer too, beginning with what its pipe holds already."""
        self._here[peer] = None
        if peer.inbound.sleep():
            self._asleep.add(peer)
        else:
            self._ready.append(peer)
        self._find_sole()

    def remove(self, peer: Peer) -> None:
        """Forget the peer, which writes no more, once its pipe is empty. Unknown: ignored."""
        if peer not in self._here:
            return
        del self._here[peer]
        unread = bool(peer.inbound.messages)
        if unread:
            self.wake(peer)
        # Of a thousand that leave together each would look for itself.
        if unread or (peer not in self._asleep and len(self._ready) > _FEW):
            if not self._leaving:
                self._leaving = set()
            self._leaving.add(peer)
        elif peer in self._asleep:
            self._asleep.discard(peer)
        elif peer in self._ready:  # or in neither, after an exception in the middle of add()
            self._ready.remove(peer)
        self._find_sole()

    def put(self, peer: Peer, messages: list[Message]) -> None:
        """Messages have come from a network peer: put them into its pipe, and :meth:`wake` it."""
        pipe = peer.inbound
        queue = pipe.messages
        queue.extend(messages)
        if 0 < pipe.hwm <= len(queue):
            pipe.mark_full()
        if pipe.asleep and messages:
            pipe.reader_signals.append(pipe.reader)
            pipe.asleep = False
        if peer in self._asleep:
            self._asleep.discard(peer)
            self._ready.append(peer)

    def wake(self, peer: Peer) -> None:
        """The peer's pipe has messages; it queues up behind the others that have."""
        if peer in self._asleep:
            self._asleep.discard(peer)
            self._ready.append(peer)

    def mend(self, peers: Iterable[Peer]) -> None:
        """See ``Pattern.mend``. Who is here and not among ``peers`` is leaving."""
        here = dict.fromkeys(peers)
        ready = dict.fromkeys(self._ready)
        self._leaving = {peer for peer in ready if peer not in here and peer.inbound.messages}
        self._asleep = set()
        self._here = here
        self._ready.clear()
        self._ready.extend(peer for peer in ready if peer in here or peer in self._leaving)
        self._ready.extend(peer for peer in here if peer not in ready)
        self._find_sole()

    def take(self) -> Message:
        """Take the next message; :attr:`peer` tells where it came from.

        Raises:
            Again: no peer has any, and all of them are asleep.
        """
        ready = self._ready
        while ready:
            peer = ready[0]
            pipe = peer.inbound
            messages = pipe.messages
            if not messages:  # asked first: whoever waits for an answer comes here each time
                if len(ready) == 1 and not (peer.inproc or self._leaving):
                    break  # see "ready": a round trip would move it to and fro
                self._set_aside(peer)
                continue
            try:
                message = messages.popleft()
            except IndexError:  # another thread was quicker, on its lane
                continue
            if pipe.full:
                pipe.drained()
            if ready[-1] is not peer:
                ready.rotate(-1)
            self.peer = peer
            return message
        raise would_block()

    def peek(self) -> Message | None:
        """Return what :meth:`take` would take now, or None; :attr:`peer` tells whose it is."""
        ready = self._ready
        while ready:
            peer = ready[0]
            try:
                message = peer.inbound.messages[0]
            except IndexError:
                if len(ready) == 1 and not (peer.inproc or self._leaving):
                    break
                self._set_aside(peer)
                continue
            self.peer = peer
            return message
        return None

    def has_messages(self) -> bool:
        """Whether :meth:`take` would return one; if not, all peers are asleep."""
        return self.peek() is not None

    def discard(self, reason: str) -> None:
        """Throw away all that has come so far, and count it with the peers it came from."""
        for peers in (self._ready, self._asleep):  # not self: a generator costs two calls a request
            for peer in peers:
                messages = peer.inbound.messages
                if messages:
                    peer.dropped[reason] += len(messages)
                    messages.clear()
                    peer.inbound.drained()

    def _find_sole(self) -> None:
        self.sole = None
        if len(self._here) == 1 and not self._leaving:
            (peer,) = self._here
            if not peer.inproc:
                self.sole = peer

    def _set_aside(self, peer: Peer) -> None:
        """Move the first of the ready peers, found empty, to where it belongs."""
        if peer in self._leaving:
            self._leaving.discard(peer)
            self._ready.popleft()
            self._find_sole()
        elif peer.inbound.sleep():
            self._ready.popleft()
            self._asleep.add(peer)


class LoadBalancer:
    """Sends each message to the next peer whose pipe is not full.

    A peer is *ready* or *stopped*: its pipe was found full and will leave a note when it has
    room, upon which :meth:`resume` must be called.
    """

    __slots__ = ("_ready", "_stopped")

    def __init__(self) -> None:
        self._ready: deque[Peer] = deque()  # the next one to be used first
        self._stopped: set[Peer] = NOTHING

    @property
    def lane(self) -> Pipe | None:
        """The pipe that all messages go to, if there is exactly one peer."""
        if len(self._ready) + len(self._stopped) != 1:
            return None
        return (self._ready[0] if self._ready else next(iter(self._stopped))).outbound

    def add(self, peer: Peer) -> None:
        """Send to this peer too; it comes last in this round."""
        self._ready.append(peer)

    def remove(self, peer: Peer) -> None:
        """Send nothing more to this peer. Unknown ones are ignored."""
        if peer in self._stopped:
            self._stopped.discard(peer)
        elif peer in self._ready:
            self._ready.remove(peer)

    def mend(self, peers: Iterable[Peer]) -> None:
        """See ``Pattern.mend``."""
        here = dict.fromkeys(peers)
        ready = dict.fromkeys(peer for peer in self._ready if peer in here)
        self._stopped = set()
        self._ready.clear()
        self._ready.extend(ready | here)

    def resume(self, peer: Peer) -> None:
        """The peer's pipe has room again."""
        if peer in self._stopped:
            self._stopped.discard(peer)
            self._ready.append(peer)

    def send(self, message: Message) -> Peer:
        """Queue the message for the next peer that has room, and return that peer.

        Raises:
            Again: there is no peer, or all are full. Nothing was sent.
        """
        ready = self._ready
        while ready:
            peer = ready[0]
            pipe = peer.outbound
            if pipe.full:
                self._stop_first()
                continue
            messages = pipe.messages
            messages.append(message)
            if 0 < pipe.hwm <= len(messages):
                pipe.mark_full()
            if pipe.asleep:
                pipe.reader_signals.append(pipe.reader)
                pipe.asleep = False
            if ready[-1] is not peer:
                ready.rotate(-1)
            return peer
        raise would_block()

    def has_room(self) -> bool:
        """Whether :meth:`send` would find a peer."""
        ready = self._ready
        while ready:
            if not ready[0].outbound.full:
                return True
            self._stop_first()
        return False

    def _stop_first(self) -> None:
        """Move the first of the ready peers, found full, to where it belongs."""
        self._stopped = self._stopped or set()
        self._stopped.add(self._ready.popleft())


def fan_out(message: Message, peers: Iterable[Peer]) -> None:
    """Queue the message for each of these peers; those that are full miss it, which is counted.

    All network peers get the same object, so that it need be encoded only once.
    """
    parts = message if isinstance(message, list) else None
    for peer in peers:
        pipe = peer.outbound
        if pipe.full:
            peer.dropped[HWM_REACHED] += 1
            continue
        messages = pipe.messages
        messages.append(message if parts is None or not peer.inproc else parts.copy())
        if 0 < pipe.hwm <= len(messages):
            pipe.mark_full()
        if pipe.asleep:
            pipe.reader_signals.append(pipe.reader)
            pipe.asleep = False


def fan_out_all(messages: list[Message], peers: Iterable[Peer], *, drop: bool = True) -> None:
    """Queue messages for each of these peers, as :func:`fan_out` does with each of them.

    Args:
        messages: in order; what a peer has no room for are the last of them. From now on nobody
            may change the list: a pipe that was empty has it as its ``whole``.
        peers: whom they are for.
        drop: False: the caller has seen that there is room.
    """
    count = len(messages)
    for peer in peers:
        pipe = peer.outbound
        queue, hwm = pipe.messages, pipe.hwm
        batch = messages
        if drop and (hwm or pipe.full):
            room = 0 if pipe.full else hwm - len(queue)
            if room < count:
                peer.dropped[HWM_REACHED] += count - room
                if room <= 0:
                    continue
                batch = messages[:room]
        if peer.inproc:
            batch = [m.copy() if isinstance(m, list) else m for m in batch]
        whole = None if queue else batch
        pipe.whole = None
        queue.extend(batch)
        pipe.whole = whole  # not before it is: a signal handler may raise
        if 0 < hwm <= len(queue):
            pipe.mark_full()
        if pipe.asleep:
            pipe.reader_signals.append(pipe.reader)
            pipe.asleep = False
