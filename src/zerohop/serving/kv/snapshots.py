"""A publisher's present blocks, which follow what it sends at some distance.

Bringing them up to date costs more than sending does, so it is done where nothing is to be sent,
and by whoever makes a snapshot. What can't be applied spoils them until the next clear.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TypeAlias

from zerohop.serving.kv.blocks import PresentBlocks
from zerohop.serving.kv.encode import MISTAKES
from zerohop.serving.kv.events import AllBlocksCleared, EventBatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from zerohop.serving.kv.events import KvEvent

__all__ = ["Numbered", "SnapshotTable"]

Numbered: TypeAlias = "tuple[int, float, Sequence[KvEvent]]"  # and the time


class SnapshotTable:
    """The present blocks, and the batches that are not in them yet.

    Attributes:
        lock: of the blocks. The sending thread never waits for it.
        pending: what was sent and is not in the blocks yet; appended to under the ring's lock.
        missed_seq: the last batch that had no room in the queue, and never comes to the blocks.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pending: deque[Numbered] = deque()
        self.missed_seq = -1
        self._blocks = PresentBlocks()
        self._failed_seq = self._cleared_seq = -1

    def bring_up_if_free(self, count: int) -> bool:
        """Apply so many of those that are pending, and say so; not while a snapshot is made."""
        if not self.lock.acquire(blocking=False):
            return False
        try:
            self.bring_up(min(count, len(self.pending)))
        finally:
            self.lock.release()
        return True

    def bring_up(self, count: int) -> None:
        """Apply so many of those that are pending. Whoever calls it has the lock."""
        for _ in range(count):
            seq, _, events = self.pending.popleft()
            try:
                if any(type(event) is AllBlocksCleared for event in events):
                    self._cleared_seq = seq
                self._blocks.apply(events, None)
            except MISTAKES:  # it could not be encoded either
                self._failed_seq = seq

    def snapshot(self, ts: float, dp_rank: int | None) -> list[EventBatch] | None:
        """Return the truth, or ``None``: there are none after a missed batch, until a clear."""
        if max(self.missed_seq, self._failed_seq) >= max(self._cleared_seq, 0):
            return None
        return [EventBatch(ts, b.events, dp_rank) for b in self._blocks.snapshot(ts)]
