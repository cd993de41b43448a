"""Bytes -> batches of events, from every engine and version that publishes them.

    vLLM 0.9.1 to 0.23, SGLang to 0.5.19  [ts, [event, ...], dp_rank], event = [tag, field, ...]
    vLLM from 0.24, SGLang from 0.5.20,   the same batch, event = {"type": tag, name: field, ...}
        TensorRT-LLM
    vLLM 0.9.0, SGLang 0.4                [ts, [event, ...]]
    llm-d's file system backend           [ts, [bin(event), ...]]
    some that were never released         {"ts": ..., "events": ..., "data_parallel_rank": ...}
    LMCache                               an event with "kind" for "type", or neither; "parent"

The common forms are decoded by msgspec, typed, in one call. Whatever does not fit, for a field more
or a value of another type, goes the tolerant way, which knows any length, order and mixture, keeps
what it does not know, and refuses only what cannot be understood: a batch without time or events,
an event without a type that we know and without its hashes. Nothing of a refused batch is applied:
half of a batch would be a state that the engine never had.
"""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import Any, get_type_hints

import msgspec

from zerohop.serving.codec import MAX_OCTETS, unpack
from zerohop.serving.errors import Malformed
from zerohop.serving.kv.events import (
    NO_EXTRA,
    AllBlocksCleared,
    BlockHash,
    BlockRemoved,
    BlockStored,
    EventBatch,
    KvEvent,
    TokenId,
    UnknownEvent,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BatchDecoder"]


class _Row(msgspec.Struct, array_like=True, tag=True, gc=False):
    """Base of the events in array form.

    ``more`` is of a type that nothing decodes to: longer arrays are left to the tolerant way.
    """


class _StoredRow(_Row, tag="BlockStored"):
    block_hashes: list[BlockHash]
    parent_block_hash: BlockHash | None
    token_ids: list[TokenId]
    block_size: int
    lora_id: int | None = None
    medium: str | None = None
    lora_name: str | None = None
    extra_keys: list[Any] | None = None
    group_idx: int | None = None
    kv_cache_spec_kind: str | None = None
    kv_cache_spec_sliding_window: int | None = None
    more: MappingProxyType[str, Any] = NO_EXTRA


class _RemovedRow(_Row, tag="BlockRemoved"):
    block_hashes: list[BlockHash]
    medium: str | None = None
    group_idx: int | None = None
    more: MappingProxyType[str, Any] = NO_EXTRA


class _ClearedRow(_Row, tag="AllBlocksCleared"):
    more: MappingProxyType[str, Any] = NO_EXTRA


_MapBatch = tuple[float, list[BlockStored | BlockRemoved | AllBlocksCleared], int | None]
_RowBatch = tuple[float, list[_StoredRow | _RemovedRow | _ClearedRow], int | None]

_MISFITS = (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError, MemoryError)

_TYPES: dict[str, type] = {
    **dict.fromkeys(("BlockStored", "CacheStoreEvent", "stored"), BlockStored),
    **dict.fromkeys(("BlockRemoved", "removed"), BlockRemoved),
    **dict.fromkeys(("AllBlocksCleared", "cleared"), AllBlocksCleared),
}
_OTHER_NAMES = {"parent": "parent_block_hash", "parent_hash": "parent_block_hash"}
_RANK_NAMES = ("data_parallel_rank", "attn_dp_rank", "dp_rank")
_REQUIRED = {"block_hashes", "parent_block_hash", "token_ids", "block_size"}
_FIELDS: dict[type, dict[str, Any]] = {
    each: {name: hint for name, hint in get_type_hints(each).items() if name != "extra"}
    for each in (BlockStored, BlockRemoved, AllBlocksCleared)
}

_MAX_NAMES = 64  # of unknown types that are counted apart; more are counted under "..."


class BatchDecoder:
    """Decodes what one source publishes; remembers which form it speaks.

    Attributes:
        unknown: how many events of each unknown type there were.
        tolerated: how many batches had to go the tolerant way.
        malformed: how many batches were refused.
    """

    __slots__ = ("_limit", "_others", "_usual", "malformed", "tolerated", "unknown")

    def __init__(self, limit: int = MAX_OCTETS) -> None:
        self.unknown: Counter[str] = Counter()
        self.tolerated = 0
        self.malformed = 0
        self._limit = limit
        self._usual: Callable[[bytes | memoryview], EventBatch] = _decode_maps
        self._others: Callable[[bytes | memoryview], EventBatch] = _decode_rows

    def decode(self, payload: bytes | memoryview) -> EventBatch:
        """Decode the last frame of a message.

        Raises:
            Malformed: with the bytes and the reason, and the offset where there is one. Nothing
                else, whatever the bytes are.
        """
        if len(payload) <= self._limit:
            try:
                return self._usual(payload)
            except _MISFITS:
                self._usual, self._others = self._others, self._usual
            try:
                return self._usual(payload)
            except _MISFITS:
                self._usual, self._others = self._others, self._usual
        try:
            value = unpack(payload, self._limit)
            batch = self._tolerate_batch(bytes(payload), value)
        except Malformed:
            self.malformed += 1
            raise
        self.tolerated += 1
        self._count_unknown(batch.events)
        return batch

    def _count_unknown(self, events: list[KvEvent]) -> None:
        for event in events:
            if isinstance(event, UnknownEvent):
                known = event.name in self.unknown or len(self.unknown) < _MAX_NAMES
                self.unknown[event.name if known else "..."] += 1

    def _tolerate_batch(self, payload: bytes, value: Any) -> EventBatch:
        extra: dict[str, Any]
        match value:
            case [ts, events, *rest]:
                extra = {str(at): each for at, each in enumerate(rest, 2)}
                rank = extra.pop("2", None)
            case dict():
                extra = _by_name(value)
                ts, events = extra.pop("ts", None), extra.pop("events", None)
                ranks = [extra.pop(name) for name in _RANK_NAMES if name in extra]
                rank = ranks[0] if ranks else None
            case _:
                raise Malformed(payload, "a batch is an array or a map, with a time and events")
        if not isinstance(ts, int | float) or not isinstance(events, list):
            raise Malformed(payload, "a batch has a time, a number, and an array of events")
        if rank is not None and type(rank) is not int:
            extra["dp_rank"], rank = rank, None
        made = [_tolerate_event(payload, at, event) for at, event in enumerate(events)]
        return EventBatch(float(ts), made, rank, _kept(extra))


def _decode_maps(payload: bytes | memoryview) -> EventBatch:
    ts, events, rank = _map_decoder(payload)
    return EventBatch(ts, events, rank)  # type: ignore[arg-type] # a list of three of the four


_map_decoder = msgspec.msgpack.Decoder(_MapBatch).decode
_row_decoder = msgspec.msgpack.Decoder(_RowBatch).decode


def _decode_rows(payload: bytes | memoryview) -> EventBatch:
    ts, rows, rank = _row_decoder(payload)
    return EventBatch(ts, [_from_row(row) for row in rows], rank)


def _from_row(row: _StoredRow | _RemovedRow | _ClearedRow) -> KvEvent:
    if type(row) is _RemovedRow:  # the most frequent: vLLM sends one for each block
        return BlockRemoved(row.block_hashes, row.medium, row.group_idx)
    if type(row) is _ClearedRow:
        return AllBlocksCleared()
    assert type(row) is _StoredRow
    return BlockStored(
        row.block_hashes,
        row.parent_block_hash,
        row.token_ids,
        row.block_size,
        row.lora_id,
        row.medium,
        row.lora_name,
        row.extra_keys,
        row.group_idx,
        row.kv_cache_spec_kind,
        row.kv_cache_spec_sliding_window,
    )


def _kept(extra: dict[str, Any]) -> MappingProxyType[str, Any]:
    return MappingProxyType(extra) if extra else NO_EXTRA


def _by_name(fields: dict[Any, Any]) -> dict[str, Any]:
    """Return a map with text for keys: some writers make them bytes."""
    return {
        each.decode("utf-8", "replace") if isinstance(each, bytes) else str(each): value
        for each, value in fields.items()
    }


def _tolerate_event(payload: bytes, at: int, event: Any) -> KvEvent:
    if isinstance(event, bytes):  # llm-d's file system backend
        try:
            event = unpack(event)
        except Malformed as error:
            raise Malformed(payload, f"event {at}: {error.reason}") from error
    kind: type | None
    match event:
        case [str() as name, *values]:
            kind = _TYPES.get(name)
            fields = {} if kind is None else _from_positions(kind, values)
        case dict():
            fields = _by_name(event)
            name, kind = _type_of(fields)
        case _:
            raise Malformed(payload, f"event {at} is neither a map nor an array with a type")
    if kind is None:
        return UnknownEvent(name, event)
    try:
        return _tolerate_fields(kind, fields)
    except msgspec.ValidationError as error:
        raise Malformed(payload, f"event {at}, {name}: {error}") from error


def _from_positions(kind: type, values: list[Any]) -> dict[str, Any]:
    """Name the values of the array form; those beyond the last known one by their position."""
    fields = {}
    if values and isinstance(
        values[-1], dict
    ):  # SGLang 0.5.18: what is salted has a map at the end
        fields = _by_name(values.pop())
    names = list(_FIELDS[kind])
    names += [str(at) for at in range(len(names) + 1, len(values) + 1)]
    return dict(zip(names, values, strict=False)) | fields


def _type_of(fields: dict[str, Any]) -> tuple[str, type | None]:
    """Take the type out of a map; recognise what has none by its fields."""
    for key in ("type", "kind"):
        name = fields.get(key)
        if isinstance(name, str):
            del fields[key]
            return name, _TYPES.get(name)
    if "block_hashes" in fields and "token_ids" in fields:
        return "", BlockStored
    return "", None


def _tolerate_fields(kind: type, fields: dict[str, Any]) -> KvEvent:
    """Make an event of named values.

    Raises:
        msgspec.ValidationError: a required one is missing or of another type.
    """
    types = _FIELDS[kind]
    known: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in fields.items():
        to = _OTHER_NAMES.get(name, name)
        if to not in types:
            extra[name] = value
        elif value is not None:
            try:
                known[to] = msgspec.convert(value, types[to], builtin_types=(bytes,))
            except _MISFITS as error:
                if to in _REQUIRED:
                    raise msgspec.ValidationError(f"{name}: {error}") from error
                extra[name] = value
    if "block_hashes" in types and "block_hashes" not in known:
        raise msgspec.ValidationError("it has no block_hashes")
    if kind is BlockStored:  # hash-only events are no error; some do not send these fields then
        known = {"parent_block_hash": None, "token_ids": [], "block_size": 0, **known}
    made: KvEvent = kind(**known, extra=_kept(extra))
    return made
