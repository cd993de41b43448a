"""The last batches by sequence number: what a publisher can give again, in bounded memory."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from itertools import islice
from operator import itemgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Replay", "ReplayRing"]

_number = itemgetter(0)


@dataclass(frozen=True, slots=True)
class Replay:
    """What the ring had for one request.

    Attributes:
        start: the number that was asked for.
        batches: number and payload of each batch from ``start`` on, oldest first. They stay, though
            the ring moves on: a slow reader gets all of them. So whoever serves replays limits how
            many are under way at a time.
        oldest: the first number that the ring had; ``next_seq`` where it had none.
        next_seq: the number that the next batch will have.
    """

    start: int
    batches: list[tuple[int, bytes]]
    oldest: int
    next_seq: int

    @property
    def too_old(self) -> bool:
        """Whether batches from ``start`` on are missing, because the ring no longer has them."""
        return self.start < self.oldest


class ReplayRing:
    """The last batches, at most so many and of so many octets together.

    Args:
        max_batches: how many; 10,000 is vLLM's ``buffer_steps``.
        max_octets: of all payloads together.
    """

    __slots__ = ("_batches", "_max_batches", "_max_octets", "_next_seq", "_octets")

    def __init__(self, max_batches: int = 10_000, max_octets: int = 256 * 1024 * 1024) -> None:
        if max_batches < 0 or max_octets < 0:
            raise ValueError(
                f"max_batches={max_batches}, max_octets={max_octets}: neither can be negative; "
                "0 keeps no batch"
            )
        self._batches: deque[tuple[int, bytes]] = deque()
        self._max_batches = max_batches
        self._max_octets = max_octets
        self._octets = 0
        self._next_seq = 0

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def octets(self) -> int:
        """Of the payloads that are in it."""
        return self._octets

    @property
    def next_seq(self) -> int:
        """The number after the last that was appended."""
        return self._next_seq

    @property
    def oldest(self) -> int:
        """The first number that is in it; :attr:`next_seq` where none is."""
        return self._batches[0][0] if self._batches else self._next_seq

    def append(self, seq: int, payload: bytes) -> None:
        """Keep a batch, and let go of the oldest where they become too many.

        Numbers go up. They may leave some out: those of batches that were never encoded.

        Raises:
            ValueError: the number is not above all that came before.
        """
        self.extend([(seq, payload)])

    def extend(self, numbered: Sequence[tuple[int, bytes]]) -> None:
        """Keep some batches, as :meth:`append` does; none of them where one has a wrong number."""
        next_seq, octets = self._next_seq, self._octets
        for seq, payload in numbered:
            if seq < next_seq:
                raise ValueError(f"batch {seq} comes after batch {next_seq - 1}: numbers go up")
            next_seq = seq + 1
            octets += len(payload)
        batches = self._batches
        batches.extend(numbered)
        while len(batches) > self._max_batches or octets > self._max_octets:
            octets -= len(batches.popleft()[1])
        self._next_seq, self._octets = next_seq, octets

    def replay(self, start: int) -> Replay:
        """Return what there is from a number on."""
        count = len(self._batches) - bisect_left(self._batches, start, key=_number)
        batches = list(islice(reversed(self._batches), count))  # none but those are touched
        batches.reverse()
        return Replay(start, batches, self.oldest, self._next_seq)
