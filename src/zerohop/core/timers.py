"""What is due when: a heap of moments, some of them out of date.

Timers move all the time (a link hears from its peer, a dialler gets through), and taking an entry
out of the middle of a heap is dear. So ``due_at`` of the link or dialler is what holds; an entry of
the heap that says otherwise is passed over when its turn comes. When entries out of date could be
the larger part, they are swept out: strangers who connect and leave at once cost no memory.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.core.link import Dialer, Link

_SWEEP_AT = 64  # entries: below that, sweeping costs more than keeping


class Timers:
    """The moments at which the links and diallers of one socket want to be looked at.

    Attributes:
        stale: :meth:`next` may have changed since it was asked last; the driver's to look at.
    """

    __slots__ = ("_count", "_heap", "_sweep_at", "stale")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Link | Dialer]] = []
        self._count = 0  # breaks ties: links have no order
        self._sweep_at = _SWEEP_AT
        self.stale = False

    def __len__(self) -> int:
        """Entries, those out of date too."""
        return len(self._heap)

    def arm(self, what: Link | Dialer, when: float) -> None:
        """Have ``what`` looked at ``when`` it is due, or sooner if it is to be sooner already."""
        if what.due_at is not None and what.due_at <= when:
            return
        what.due_at = when
        if len(self._heap) >= self._sweep_at:
            self._heap = [entry for entry in self._heap if entry[0] == entry[2].due_at]
            heapify(self._heap)
            self._sweep_at = 2 * len(self._heap) + _SWEEP_AT
        self._count += 1
        heappush(self._heap, (when, self._count, what))
        self.stale = True

    def mend(self, everybody: list[Link | Dialer]) -> None:
        """Begin anew with those who are due at some time: see ``io.mending``."""
        self._heap = []
        for what in everybody:
            when, what.due_at = what.due_at, None
            if when is not None:
                self.arm(what, when)
        self.stale = True

    def clear(self) -> None:
        """Forget all."""
        self._heap.clear()

    def next(self) -> float | None:
        """When something is due, at the earliest; None: nothing is."""
        self.stale = False
        heap = self._heap
        while heap and heap[0][0] != heap[0][2].due_at:
            heappop(heap)
        return heap[0][0] if heap else None

    def pop(self, now: float) -> Link | Dialer | None:
        """Take something that is due by ``now``, the most overdue first; None: nothing is."""
        self.stale = True
        heap = self._heap
        while heap and heap[0][0] <= now:
            when, _, what = heappop(heap)
            if when == what.due_at:
                what.due_at = None
                return what
        return None
