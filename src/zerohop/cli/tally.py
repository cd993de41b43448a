"""What was heard of each worker and rank, in numbers. No I/O; ``now`` is seconds, monotonic."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from zerohop.cli.shown import printable
from zerohop.serving import Applied, Health, HealthChanged, Lost, PresentBlocks, Restarted, Snapshot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.serving.kv.deliveries import Delivery

__all__ = ["Row", "Tally", "table"]

_SPAN = 5.0  # seconds that a rate is of

_HEADS = (
    *("worker", "rank", "health", "seq", "batches", "/s"),
    *("blocks", "gaps", "missing", "restarts"),
)
_WORDS = {"worker", "health", "blocks"}  # the columns that begin at their left


@dataclass(slots=True)
class Row:
    """One rank of one worker.

    Attributes:
        worker, rank: whose.
        health: what the view is worth.
        seq: the number of the last batch; -1: none yet.
        batches: how many were applied.
        gaps: how often something was lost for good; what a replay brought is no gap.
        missing: how many numbers were never heard of.
        restarts: how often the worker began anew.
        blocks: those that are present.
        samples: times, and how many batches there were by then.
    """

    worker: str
    rank: int | None
    health: Health = Health.CATCHING_UP
    seq: int = -1
    batches: int = 0
    gaps: int = 0
    missing: int = 0
    restarts: int = 0
    blocks: PresentBlocks = field(default_factory=PresentBlocks)
    samples: deque[tuple[float, int]] = field(default_factory=deque)

    def deliver(self, delivery: Delivery) -> None:
        """Count one delivery."""
        self.blocks.deliver(delivery)
        match delivery:
            case Applied(seq=seq):
                self.missing += max(seq - self.seq - 1, 0)
                self.seq = seq
                self.batches += 1
            case Snapshot(next_seq=next_seq):
                self.seq = next_seq - 1
            case Restarted():
                self.restarts += 1
                self.seq = -1
            case Lost():
                self.gaps += 1
            case HealthChanged(health=health):
                self.health = health
            case _:
                pass

    def sample(self, now: float) -> None:
        """Note how many batches there are by now; what is caught up with is not of the rate."""
        if self.health is Health.CATCHING_UP:
            self.samples.clear()
        self.samples.append((now, self.batches))
        while self.samples[0][0] < now - _SPAN:
            self.samples.popleft()

    def rate(self) -> float | None:
        """Return the batches a second, over the last seconds; ``None``: that is yet to be seen."""
        (begun, before), (ended, after) = self.samples[0], self.samples[-1]
        return (after - before) / (ended - begun) if ended > begun else None


class Tally:
    """All ranks of all workers, in the order in which they were heard of.

    Attributes:
        rows: by worker and rank.
    """

    def __init__(self) -> None:
        self.rows: dict[tuple[str, int | None], Row] = {}

    def deliver(self, delivery: Delivery, now: float) -> None:
        """Count one delivery."""
        worker, rank = delivery.worker, delivery.dp_rank
        key = (worker, rank)
        if key not in self.rows:
            # Before its first batch a rank has no number: what was told so far was of this one.
            row = self.rows.pop((worker, None), None) or Row(worker, rank)
            row.rank = rank
            row.sample(now)
            self.rows[key] = row
        row = self.rows[key]
        if isinstance(delivery, HealthChanged):
            row.sample(now)
        row.deliver(delivery)

    def sample(self, now: float) -> None:
        """Note how many batches there are by now, for the rates."""
        for row in self.rows.values():
            row.sample(now)


def table(tally: Tally) -> list[str]:
    """Return the lines of a table, its head first."""
    lines = [_HEADS]
    for row in tally.rows.values():
        blocks = ", ".join(
            f"{medium} {count}" for medium, count in sorted(row.blocks.by_medium().items())
        )
        lines.append(
            (
                printable(row.worker),
                "-" if row.rank is None else str(row.rank),
                row.health.value,
                "-" if row.seq < 0 else str(row.seq),
                str(row.batches),
                "-" if (rate := row.rate()) is None else f"{rate:.1f}",
                printable(blocks) or "none",
                str(row.gaps),
                str(row.missing),
                str(row.restarts),
            )
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if head in _WORDS else cell.rjust(width)
            for head, cell, width in zip(_HEADS, line, widths, strict=True)
        )
        for line in lines
    ]
