"""What an order works with: batches with their numbers, those that are held, the open question."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.serving.errors import Malformed
    from zerohop.serving.kv.events import EventBatch
    from zerohop.serving.kv.replies import Head

__all__ = ["Ask", "Held", "Item", "OrderOptions", "Question"]


@dataclass(frozen=True, slots=True)
class OrderOptions:
    """How patient an order is, and what it may hold.

    Attributes:
        replay: whether there is a replay socket to ask.
        silence: seconds without a reply that helps, after which a question is given up.
        attempts: how many questions in a row may bring nothing.
        pause: seconds for which nothing is asked after a silence.
        check: after so many seconds without a live batch it is asked whether there were any: the
            last ones may have been dropped, and no later number shows it. ``None``: never.
        max_held: live batches that are held while a question is open.
        max_held_octets: of their payloads; of a snapshot's, too.
        first: the number of a worker's first batch; llm-d's file system backend begins at 1.
    """

    replay: bool = True
    silence: float = 5.0
    attempts: int = 3
    pause: float = 30.0
    check: float | None = 30.0
    max_held: int = 10_000
    max_held_octets: int = 256 * 1024 * 1024
    first: int = 0


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
