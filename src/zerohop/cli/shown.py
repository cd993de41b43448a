"""Batches and deliveries as text. No I/O.

JSON has no octets. A hash or an extra key that is bytes is shown as the text ``hex:`` and its
octets in hexadecimal digits; no engine sends a text that begins so. Numbers stay numbers, all 64
bits of them.
"""

from __future__ import annotations

import json
import math
from typing import Any

from zerohop.serving import (
    AllBlocksCleared,
    Applied,
    BlockRemoved,
    BlockStored,
    HealthChanged,
    Lost,
    Restarted,
    Snapshot,
    Undecodable,
)
from zerohop.serving.kv.events import fields_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from zerohop.serving import EventBatch
    from zerohop.serving.kv.deliveries import Delivery
    from zerohop.serving.kv.events import KvEvent

__all__ = ["batch_as_json", "batch_as_line", "notice", "printable"]

_DEEPEST = 32  # levels of what a peer may nest; below, its place is shown and nothing of it

# What is on the wire even where it is nil.
_ALWAYS = {
    "BlockStored": ("parent_block_hash", "lora_id", "medium", "lora_name"),
    "BlockRemoved": ("medium",),
}


def batch_as_json(seq: int | None, batch: EventBatch, dp_rank: int | None) -> str:
    """Return one JSON object, on one line.

    Args:
        seq: the batch's number; ``None``: it is of a snapshot, and has none.
        batch: the events.
        dp_rank: whose they are.
    """
    told = {
        "seq": seq,
        "ts": batch.ts,
        "dp_rank": dp_rank,
        "events": [_event_fields(event) for event in batch.events],
    }
    try:
        return _dumps(told)
    except (TypeError, ValueError, RecursionError):  # which is rare, and ten times as slow
        return _dumps(_plain(told))


def batch_as_line(seq: int, batch: EventBatch, dp_rank: int | None) -> str:
    """Return what happened in a batch, in a few words."""
    rank = "" if dp_rank is None else f" rank {dp_rank}"
    return printable(f"{seq}{rank}: {', '.join(map(_event_words, batch.events)) or 'nothing'}")


def printable(text: str) -> str:
    """Return a peer's words on one line, with nothing in them that a terminal would obey."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def notice(delivery: Delivery) -> str | None:
    """Return a line about what is no batch; ``None`` where it is one."""
    words = _notice_words(delivery)
    return None if words is None else printable(words)


def _notice_words(delivery: Delivery) -> str | None:
    rank = "" if delivery.dp_rank is None else f" rank {delivery.dp_rank}"
    who = f"{delivery.worker}{rank}"
    match delivery:
        case Lost(reason=reason):
            return f"{who}: lost: {reason}"
        case Restarted(reason=reason):
            return f"{who}: restarted: {reason}"
        case Snapshot(next_seq=next_seq, batches=batches):
            return f"{who}: a snapshot of {_stored(batches)} blocks, before batch {next_seq}"
        case HealthChanged(health=health):
            return f"{who}: {health.value}"
        case Undecodable(seq=seq, error=error):
            which = "a message without a number" if seq is None else f"batch {seq}"
            return f"{who}: {which} cannot be read: {error}"
        case Applied():
            return None


def _stored(batches: Sequence[EventBatch]) -> int:
    return sum(
        len(event.block_hashes)
        for batch in batches
        for event in batch.events
        if isinstance(event, BlockStored)
    )


def _event_words(event: KvEvent) -> str:
    match event:
        case BlockStored(block_hashes=hashes, medium=medium):
            return f"{len(hashes)} stored ({medium or 'GPU'})"
        case BlockRemoved(block_hashes=hashes, medium=medium):
            return f"{len(hashes)} removed ({medium or 'GPU'})"
        case AllBlocksCleared():
            return "all cleared"
    return f"unknown event {event.name!r}"


def _event_fields(event: KvEvent) -> dict[str, Any]:
    fields = fields_of(event)
    for name in _ALWAYS.get(fields["type"], ()):
        fields.setdefault(name, None)
    return fields


def _dumps(value: Any) -> str:
    return json.dumps(value, default=_text, separators=(",", ":"), allow_nan=False)


def _text(value: Any) -> str:
    """What JSON has no form for."""
    return f"hex:{value.hex()}" if isinstance(value, bytes) else str(value)


def _plain(value: Any, depth: int = 0) -> Any:
    """The same, of what JSON has."""
    if depth > _DEEPEST:
        return "..."
    match value:
        case dict():
            return {_key(key): _plain(each, depth + 1) for key, each in value.items()}
        case list() | tuple():
            return [_plain(each, depth + 1) for each in value]
        case float() if not math.isfinite(value):
            return str(value)
        case None | bool() | int() | float() | str():
            return value
    return _text(value)


def _key(key: Any) -> str:
    return key if isinstance(key, str) else _text(key)
