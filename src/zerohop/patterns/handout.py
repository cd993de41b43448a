"""A publisher's lane: one pipe that stands for all peers, and is handed out in batches.

To queue a message for each of many peers costs as much as all the rest, and more when each is woken
for it. So what is sent waits in one pipe, until it is handed out by runs of messages that the same
peers want. Whatever may change who gets a message comes after those that were sent before it, so
they are handed out first::

    send on the lane ──► lane ──► hand_out ──► index: who wants it ──► the pipe of each peer
    send past it     ──────────────────────────────────┘

The lane takes no more than every peer's pipe has room for. Where messages may be dropped that is
what a pipe takes that is empty: a burst shall not be dropped before it was tried to write some of
it. Where they must not be (XPUB_NODROP) it is what there is room for now.
"""

from __future__ import annotations

from zerohop.patterns.pipe import Pipe
from zerohop.patterns.routing import fan_out_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

    from zerohop.patterns.pattern import PatternOptions, Peer
    from zerohop.patterns.pipe import Message
    from zerohop.patterns.subscriptions import SubscriptionIndex

_LEAST = 8  # messages; with less room a batch is not worth its trouble


class _Everybody:
    """Who reads the lane, as far as whoever writes it wants to know: all peers, over the net."""

    inproc = False
    connected = True


class Handout:
    """What was sent to all, and not yet given to each.

    Args:
        index: who wants what.
        options: the pattern's; XPUB_NODROP is looked at.

    Attributes:
        lane: where messages wait.
        has_room: whether the lane may be used.
        runs: who is still to be given what: an interrupted hand_out is finished by the next one.
    """

    __slots__ = (
        "_index", "_limit_unknown", "_never_drops", "_notes", "_options", "has_room", "lane",
        "runs",
    )  # fmt: skip

    def __init__(self, index: SubscriptionIndex, options: PatternOptions) -> None:
        self._index = index
        self._options = options
        self._notes: list[Any] = []  # for nobody: hand_out looks
        self.lane = Pipe(0)
        self.lane.reader = self.lane.writer = _Everybody
        self.lane.reader_signals = self.lane.writer_signals = self._notes
        self.runs: list[tuple[Iterator[Peer], list[Message]]] = []
        self._never_drops = False
        self._limit_unknown = True
        self.has_room = True

    def hand_out(self, peers: Collection[Peer]) -> None:
        """Give what waits to those who want it; find out how much the lane may take.

        Args:
            peers: everybody.
        """
        lane = self.lane
        if self._options.xpub_nodrop is not self._never_drops:
            self._never_drops = self._options.xpub_nodrop
            self._limit_unknown = True
        # Noted and empty: another thread's hand_out was quicker than the note. It sleeps again.
        if lane.messages or self._notes or self.runs:
            while True:
                self._notes.clear()
                self._give()
                lane.full = False
                if self._never_drops:
                    self._find_limit(peers)
                    self._limit_unknown = True  # more, once the peers' pipes have been emptied
                if lane.sleep():  # else another thread has sent meanwhile
                    break
        elif self._limit_unknown:
            self._find_limit(peers)

    def _give(self) -> None:
        runs, queue = self.runs, self.lane.messages
        if not runs:
            batch = [queue.popleft() for _ in range(len(queue))]
            runs += [(iter(route), run) for route, run in self._index.split(batch)]
            runs.reverse()
        while runs:
            route, messages = runs[-1]
            fan_out_all(messages, route, drop=not self._never_drops)
            runs.pop()

    def _find_limit(self, peers: Collection[Peer]) -> None:
        """Let the lane take as many messages as the pipe of every peer."""
        lane = self.lane
        pipes = [peer.outbound for peer in peers if peer.outbound.hwm]
        if self._never_drops:
            limits = [0 if pipe.full else pipe.hwm - len(pipe.messages) for pipe in pipes]
        else:
            limits = [pipe.hwm for pipe in pipes]
        limit = min(limits, default=0)
        self.has_room = not (self._never_drops and limits and limit < _LEAST)
        lane.set_hwm(limit)
        lane.full = not self.has_room  # for threads that have looked before
        self._limit_unknown = False

    def one_more(self, peer: Peer) -> None:
        """A peer has come, with a pipe of its own limit."""
        self.less_room()
        hwm, limit = peer.outbound.hwm, self.lane.hwm
        # Not by looking at all of them, for each that comes.
        if hwm and not self._never_drops and (not limit or hwm < limit):
            self.lane.set_hwm(hwm)

    def less_room(self) -> None:
        """Something took room that the lane was promised: it takes nothing until it is told again.

        Where messages may be dropped that does not matter.
        """
        if self._options.xpub_nodrop:
            self.lane.full = self._limit_unknown = True

    def more_room(self) -> None:
        """A pipe that was full has room again."""
        if self._never_drops:
            self._limit_unknown = True

    def limits_changed(self) -> None:
        """The pipes have got new limits."""
        self._limit_unknown = True

    def mend(self) -> None:
        """See ``Pattern.mend``: an interrupted call may have left the lane awake."""
        self._limit_unknown = True
        self._notes.append(_Everybody)
