"""What an order works with: batches with their numbers, those that are held, and questions.

A :class:`Question` is one that is open; :class:`Questions` is what is known of the publisher, from
which follows whether it is asked, and in which form.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from zerohop.serving.arguments import seconds, whole
from zerohop.serving.errors import Malformed
from zerohop.serving.kv.replies import replay_request, snapshot_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from zerohop.serving.kv.events import EventBatch
    from zerohop.serving.kv.replies import Head

__all__ = ["Ask", "Held", "Item", "OrderOptions", "Question", "Questions"]


@dataclass(frozen=True, slots=True)
class OrderOptions:
    """How patient an order is, and what it may hold.

    Attributes:
        replay: whether there is a replay socket to ask.
        silence: seconds without a reply that helps, after which a question is given up.
        attempts: how many questions in a row may bring nothing.
        pause: seconds for which nothing is asked after a silence.
        check: after so many seconds without a live batch it is asked whether there were any: the
            last ones may have been dropped, and no later number shows it. Sooner, and then less
            and less often, after a new connection. ``None``: never.
        max_held: live batches that are held while a question is open.
        max_held_octets: of their payloads; of a snapshot's, too.
        first: the number of a worker's first batch; llm-d's file system backend begins at 1.

    Raises:
        TypeError: one of them is no number.
        ValueError: one is below 0; 0, where it is a silence or a check.
    """

    replay: bool = True
    silence: float = 5.0
    attempts: int = 3
    pause: float = 30.0
    check: float | None = 30.0
    max_held: int = 10_000
    max_held_octets: int = 256 * 1024 * 1024
    first: int = 0

    def __post_init__(self) -> None:
        seconds("silence", self.silence, above_zero=True)
        seconds("pause", self.pause)
        if self.check is not None:
            seconds("check", self.check, above_zero=True)
        for name in ("attempts", "max_held", "max_held_octets", "first"):
            whole(name, getattr(self, name))


@dataclass(frozen=True, slots=True)
class Ask:
    """A question that should be open now.

    Attributes:
        id: never the same twice; the replies are handed over with it.
        frames: what a DEALER sends.
        what: the question in words.
    """

    id: int
    frames: list[bytes]
    what: str


@dataclass(frozen=True, slots=True)
class Item:
    """A batch with its number.

    Attributes:
        seq: the number.
        payload: its octets.
        batch: decoded, or what is wrong with it.
        live: whether the live stream brought it, and not a replay.
    """

    seq: int
    payload: bytes
    batch: EventBatch | Malformed
    live: bool


@dataclass(slots=True)
class Question:
    """The open question, and what came of it so far.

    Attributes:
        ask: what the driver sends.
        kind: what is asked for.
        extended: whether it has our form, that only our publisher answers.
        proved: whether the publisher is of the same life as what was applied.
        next_seq: the order's next number, when it was asked.
        joined: whether the live stream was joined, when it was asked.
        deadline: when it is given up.
        head: what our publisher said.
        last_seq: the highest number that came.
        fits: whether one came that was applied, or will be once those before it are there.
        parts: of a snapshot; ``None`` where it can't be had, or not be read.
        octets: of the parts.
        routine: whether nothing is known to be missing, and it is asked all the same.
    """

    ask: Ask
    kind: Literal["replay", "snapshot"]
    extended: bool
    proved: bool
    next_seq: int
    joined: bool
    deadline: float
    head: Head | None = None
    last_seq: int = -1
    fits: bool = False
    parts: list[EventBatch] | None = field(default_factory=list)
    octets: int = 0
    routine: bool = False

    def take_part(self, item: Item, max_octets: int) -> None:
        """Keep a part of a snapshot; if that can't be, there is no snapshot."""
        self.octets += len(item.payload)
        if isinstance(item.batch, Malformed) or self.octets > max_octets:
            self.parts = None
        elif self.parts is not None:
            self.parts.append(item.batch)


class Questions:
    """What is known of the publisher, and whether it is worth while to ask it.

    Attributes:
        open: the question that is open.
        extended: whether the publisher speaks our form; ``None``: that is yet to be seen.
        incarnation: our publisher's, once it is proved that what was applied is of it.
        has_snapshots: as far as is known.
        fruitless: how many questions in a row brought nothing.
        quiet_until: nothing is asked before.
    """

    __slots__ = (
        *("_ids", "_options", "extended", "fruitless", "has_snapshots"),
        *("incarnation", "open", "quiet_until"),
    )

    def __init__(self, ids: Iterator[int], options: OrderOptions) -> None:
        self._ids, self._options = ids, options
        self.open: Question | None = None
        self.extended: bool | None = None
        self.incarnation = b""
        self.has_snapshots = True
        self.fruitless = 0
        self.quiet_until: float | None = None

    def find(self, ask_id: int) -> Question | None:
        """Return the open question, if it is this one."""
        return self.open if self.open is not None and self.open.ask.id == ask_id else None

    def may_ask(self) -> bool:
        """Whether there is somebody to ask, who has not failed to answer too often."""
        patient = self.fruitless < self._options.attempts
        return self._options.replay and patient and self.quiet_until is None

    def ask_replay(
        self, next_seq: int, last: bytes | None, joined: bool, now: float, routine: bool
    ) -> None:
        """Open a question for what comes after the last applied batch."""
        extended = self.extended
        if extended is None:  # every second time in vLLM's form, if ours is not answered
            extended = self.fruitless % 2 == 0
        by_incarnation = extended and self.incarnation != b""
        overlap = last is not None and not by_incarnation
        start = next_seq - overlap
        ask_id = next(self._ids)
        frames = replay_request(start, ask_id if extended else None)
        self.open = Question(
            Ask(ask_id, frames, f"a replay from {start}"),
            "replay",
            extended,
            not overlap and not by_incarnation,
            next_seq,
            joined,
            now + self._options.silence,
            routine=routine,
        )

    def ask_snapshot(self, next_seq: int, joined: bool, now: float) -> None:
        """Open a question for the present blocks."""
        ask_id = next(self._ids)
        ask = Ask(ask_id, snapshot_request(ask_id), "a snapshot")
        deadline = now + self._options.silence
        self.open = Question(ask, "snapshot", True, True, next_seq, joined, deadline)

    def forget(self) -> None:
        """The publisher has restarted: what is open is void, and it has an incarnation anew."""
        self.open, self.incarnation = None, b""
        self.has_snapshots, self.fruitless = self.extended is not False, 0

    def renew(self) -> None:
        """There is a new connection, so there may be another publisher, and it may answer now."""
        self.fruitless, self.quiet_until = 0, None
        self.extended, self.has_snapshots = self.extended or None, True


class Held:
    """Batches that wait for those before them; at most so many, and of so many octets."""

    __slots__ = ("_items", "_max_items", "_max_octets", "octets")

    def __init__(self, max_items: int, max_octets: int) -> None:
        self._items: dict[int, Item] = {}
        self._max_items, self._max_octets = max_items, max_octets
        self.octets = 0

    def __len__(self) -> int:
        return len(self._items)

    def lowest(self) -> int:
        """Return the lowest number; there must be one."""
        return min(self._items)

    def get(self, seq: int) -> Item | None:
        """Return a batch that is held."""
        return self._items.get(seq)

    def add(self, item: Item) -> None:
        """Hold a batch, if there is room, and none of that number is held.

        The newest is let go of, not the oldest: a replay brings it before the others are needed.
        """
        octets = self.octets + len(item.payload)
        room = len(self._items) < self._max_items and octets <= self._max_octets
        if room and item.seq not in self._items:
            self._items[item.seq] = item
            self.octets = octets

    def take(self, seq: int) -> Item | None:
        """Return a batch and hold it no longer."""
        item = self._items.pop(seq, None)
        if item is not None:
            self.octets -= len(item.payload)
        return item

    def drop_below(self, seq: int) -> None:
        """Hold nothing any longer that has a lower number."""
        for each in [each for each in self._items if each < seq]:
            self.take(each)

    def clear(self) -> None:
        """Hold nothing any longer."""
        self._items.clear()
        self.octets = 0
