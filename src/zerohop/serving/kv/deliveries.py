"""What a consumer of KV events is told, and how far it can trust its view.

Each delivery is of one worker and one of its dp ranks (``None`` where the engine does not tell it,
or before its first batch). ``Restarted``, ``Lost`` and ``Snapshot`` mean: drop all that is known of
these two, and go on from nothing, or from what the snapshot has.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.serving.errors import Malformed
    from zerohop.serving.kv.events import EventBatch

__all__ = [
    "Applied",
    "Delivery",
    "Health",
    "HealthChanged",
    "Lost",
    "Restarted",
    "Snapshot",
    "Undecodable",
]


class Health(Enum):
    """What a view is worth that was made of the deliveries.

    Attributes:
        LIVE: it is the worker's state, at the last number that was heard.
        CATCHING_UP: it is the worker's state at an earlier number; what is missing is asked for, or
            there has never been a connection to bring it.
        LOST: it is a part of the worker's state. No block is too many, but there may be others.
    """

    LIVE = "live"
    CATCHING_UP = "catching up"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Applied:
    """The next batch, in the order of the numbers, and told once.

    Attributes:
        seq: its number.
        batch: what it tells.
    """

    worker: str
    dp_rank: int | None
    seq: int
    batch: EventBatch


@dataclass(frozen=True, slots=True)
class Restarted:
    """The worker has begun anew, with no blocks.

    Attributes:
        reason: what shows it, in words.
    """

    worker: str
    dp_rank: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Lost:
    """What was missed can't be had any more.

    Attributes:
        reason: why not, in words.
    """

    worker: str
    dp_rank: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All blocks that are present before a batch.

    Attributes:
        next_seq: the number of that batch.
        batches: the blocks, to be applied in this order to a view that has none.
    """

    worker: str
    dp_rank: int | None
    next_seq: int
    batches: tuple[EventBatch, ...]


@dataclass(frozen=True, slots=True)
class HealthChanged:
    """What the view is worth from here on; after the other deliveries of the same moment.

    Attributes:
        health: that.
    """

    worker: str
    dp_rank: int | None
    health: Health


@dataclass(frozen=True, slots=True)
class Undecodable:
    """A message that could not be read. Where it had a number, ``Lost`` follows in its place.

    Attributes:
        seq: its number; ``None`` where it had none.
        error: has the bytes and the reason.
    """

    worker: str
    dp_rank: int | None
    seq: int | None
    error: Malformed


Delivery: TypeAlias = Applied | Restarted | Lost | Snapshot | HealthChanged | Undecodable
"""What a consumer is told of ``worker``, as the subscriber names it, and its ``dp_rank``; ``None``
where the engine does not tell the rank, or before its first batch."""
