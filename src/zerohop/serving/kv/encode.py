"""Batches of events -> bytes, in the forms that vLLM sends and its readers understand.

    batch = array of three: ts (float 64), events (array), dp_rank

Always three: Dynamo's reader refuses two. Hashes are numbers unless asked otherwise: it refuses
bytes, too. An event is a map (vLLM from 0.24: nil fields left out, but for the four that vLLM calls
required) or an array (0.22 and 0.23: all twelve, or four, or one).
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from zerohop.serving.errors import Unencodable
from zerohop.serving.kv.events import (
    NO_EXTRA,
    AllBlocksCleared,
    BlockHash,
    BlockRemoved,
    BlockStored,
    EventBatch,
    KvEvent,
    UnknownEvent,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Write = Callable[[Any, bool], Any]

__all__ = ["MISTAKES", "BatchEncoder", "EventForm", "HashForm", "low_64_bits"]

# What comes of values that are not what an event's fields are said to be.
MISTAKES = (
    *(ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError),
    msgspec.MsgspecError,
)
_encode = msgspec.msgpack.Encoder().encode
_encode_into = msgspec.msgpack.Encoder().encode_into
_ARRAY_16, _ARRAY_32 = 1 << 4, 1 << 16  # lengths from which msgpack's header of an array is longer
_UINT_64_AND_INT_64 = b"\xcf\xd3"  # first octets of numbers in nine
EventForm = Literal["map", "array"]
HashForm = Literal["int", "as_is"]


def low_64_bits(block_hash: BlockHash) -> int:
    """Return a hash as the number that vLLM sends for it: the digest's last eight octets."""
    if isinstance(block_hash, int):
        return block_hash
    return int.from_bytes(block_hash[-8:], "big")


class BatchEncoder:
    """Encodes batches in one form. For one thread.

    Args:
        events: ``"map"``, as vLLM from 0.24 and all current engines; or ``"array"``, as vLLM 0.22,
            for older readers: what came after 0.22 (locality, ownership, ...) is not in it.
        hashes: ``"int"`` turns bytes into their low 64 bits, as vLLM does; ``"as_is"`` sends what
            the events have.
    """

    __slots__ = ("_buffer", "_int_hashes", "_writers")

    def __init__(self, events: EventForm = "map", hashes: HashForm = "int") -> None:
        if events not in ("map", "array"):
            raise ValueError(f"events={events!r}: must be 'map' or 'array'")
        if hashes not in ("int", "as_is"):
            raise ValueError(f"hashes={hashes!r}: must be 'int' or 'as_is'")
        self._writers = _MAPS if events == "map" else _ROWS
        self._int_hashes = hashes == "int"
        # What grows while it is written is always the same memory, and the batch is one of its own
        # size: a tenth quicker at 64 blocks than to encode into octets that have yet to be grown.
        self._buffer = bytearray()

    def encode(self, batch: EventBatch) -> bytes:
        """Encode a batch.

        Raises:
            Unencodable: a number of more than 64 bits, a value that msgpack has no form for, or
                something that is not an event.
        """
        return self.encode_events(batch.ts, batch.events, batch.dp_rank)

    def encode_events(self, ts: float, events: Sequence[KvEvent], dp_rank: int | None) -> bytes:
        """Encode what a batch consists of, without making one.

        Raises:
            Unencodable: see :meth:`encode`.
        """
        writers, int_hashes, buffer = self._writers, self._int_hashes, self._buffer
        try:
            made = [writers[type(event)](event, int_hashes) for event in events]
            _encode_into([float(ts), made, dp_rank], buffer)
        except KeyError as error:
            raise Unencodable(error.args[0], "events of this type have no form") from error
        except MISTAKES as error:
            raise Unencodable(events, f"{type(error).__name__}: {error}") from error
        return bytes(buffer)


class _StoredMap(msgspec.Struct, tag_field="type", tag="BlockStored", omit_defaults=True, gc=False):
    """vLLM's own fields alone: with more than fifteen, msgspec writes a longer map header."""

    block_hashes: list[BlockHash]
    parent_block_hash: BlockHash | None
    token_ids: list[Any]
    block_size: int
    lora_id: int | None
    medium: str | None
    lora_name: str | None
    extra_keys: list[Any] | None = None
    group_idx: int | None = None
    kv_cache_spec_kind: str | None = None
    kv_cache_spec_sliding_window: int | None = None
    locality: str | None = None
    ownership: str | None = None
    session_id: str | None = None


_ALWAYS_TOLD = {"parent_block_hash", "lora_id", "medium", "lora_name"}  # nil or not


def _numbers(hashes: list[BlockHash]) -> list[BlockHash]:
    """Return the hashes as numbers: the same list, where there is nothing but numbers in it."""
    try:
        # To compare them is a quick way to find out whether there are bytes among them.
        if not hashes or type(min(hashes)) is int:
            return hashes
    except TypeError:  # numbers have no order among bytes
        pass
    return [low_64_bits(each) for each in hashes]


def _many_numbers(hashes: list[BlockHash]) -> Any:
    """As :func:`_numbers`, encoded already where that shows what they are.

    Real hashes have 64 bits. Encoded they take nine octets each, and the first of them tells that
    a number follows. To look at these costs half as much as to compare numbers.
    """
    count = len(hashes)
    if _ARRAY_16 <= count < _ARRAY_32:
        octets = _encode(hashes)
        if len(octets) == 3 + 9 * count and not octets[3::9].strip(_UINT_64_AND_INT_64):
            return msgspec.Raw(octets)
    return _numbers(hashes)


def _hashes(event: BlockStored, int_hashes: bool) -> tuple[Any, BlockHash | None]:
    """The blocks' and the parent's, as they are to be sent."""
    hashes, parent = event.block_hashes, event.parent_block_hash
    if not int_hashes:
        return hashes, parent
    return _many_numbers(hashes), low_64_bits(parent) if isinstance(parent, bytes) else parent


def _stored_map(event: BlockStored, int_hashes: bool) -> Any:
    hashes, parent = _hashes(event, int_hashes)
    if event.cache_salt is not None or event.mm_keys is not None or event.extra is not NO_EXTRA:
        return _whole_map(event, block_hashes=hashes, parent_block_hash=parent)
    return _StoredMap(
        hashes,
        parent,
        event.token_ids,
        event.block_size,
        event.lora_id,
        event.medium,
        event.lora_name,
        event.extra_keys,
        event.group_idx,
        event.kv_cache_spec_kind,
        event.kv_cache_spec_sliding_window,
        event.locality,
        event.ownership,
        event.session_id,
    )


def _removed_map(event: BlockRemoved, int_hashes: bool) -> Any:
    hashes = _numbers(event.block_hashes) if int_hashes else event.block_hashes
    if hashes is event.block_hashes and event.extra is NO_EXTRA:
        return event  # a step may remove hundreds of blocks, each by an event of its own
    return _whole_map(event, block_hashes=hashes)


def _cleared_map(event: AllBlocksCleared, int_hashes: bool) -> Any:
    return _whole_map(event)


def _whole_map(event: BlockStored | BlockRemoved | AllBlocksCleared, **other: Any) -> Any:
    fields = msgspec.structs.asdict(event) | other
    extra = fields.pop("extra")
    told = {n: v for n, v in fields.items() if v is not None or n in _ALWAYS_TOLD}
    return {"type": type(event).__name__, **told, **extra}


def _stored_row(event: BlockStored, int_hashes: bool) -> Any:
    hashes, parent = _hashes(event, int_hashes)
    return [
        "BlockStored",
        hashes,
        parent,
        event.token_ids,
        event.block_size,
        event.lora_id,
        event.medium,
        event.lora_name,
        event.extra_keys,
        event.group_idx,
        event.kv_cache_spec_kind,
        event.kv_cache_spec_sliding_window,
    ]


def _removed_row(event: BlockRemoved, int_hashes: bool) -> Any:
    hashes = _numbers(event.block_hashes) if int_hashes else event.block_hashes
    return ["BlockRemoved", hashes, event.medium, event.group_idx]


def _cleared_row(event: AllBlocksCleared, int_hashes: bool) -> Any:
    return ["AllBlocksCleared"]


def _raw(event: UnknownEvent, int_hashes: bool) -> Any:
    return event.raw


_MAPS: dict[type, Write] = {
    BlockStored: _stored_map,
    BlockRemoved: _removed_map,
    AllBlocksCleared: _cleared_map,
    UnknownEvent: _raw,
}
_ROWS: dict[type, Write] = {
    BlockStored: _stored_row,
    BlockRemoved: _removed_row,
    AllBlocksCleared: _cleared_row,
    UnknownEvent: _raw,
}
