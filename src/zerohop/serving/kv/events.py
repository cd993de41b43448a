"""What happens to KV blocks, as values. Wire: vLLM's, the form that others derive from.

A map of the field's names with ``type`` first (vLLM from 0.24, SGLang, TensorRT-LLM), or, older, an
array of the fields in their order after the tag. The order below is that order; it is part of the
format. ``parent_block_hash``, ``lora_id``, ``medium`` and ``lora_name`` are on the wire even where
they are nil; the others only where they are not.

A block's hash is an opaque name: an unsigned or signed number of 64 bits, or bytes. The same block
may be stored several times, once for each copy; each removal takes one copy away.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

__all__ = [
    "NO_EXTRA",
    "AllBlocksCleared",
    "BlockHash",
    "BlockRemoved",
    "BlockStored",
    "EventBatch",
    "KvEvent",
    "TokenId",
    "UnknownEvent",
    "fields_of",
]

BlockHash: TypeAlias = int | bytes
"""A block's name: a number of 64 bits, signed or not, or bytes."""
TokenId: TypeAlias = int | str | list[int]
"""TensorRT-LLM may send texts; SGLang with EAGLE sends pairs, each token with the one after it."""

# The fields of a peer that this version does not know. Its type is one that no wire form decodes
# to, so a peer that has a field named "extra" is read like any other with an unknown field.
NO_EXTRA: MappingProxyType[str, Any] = MappingProxyType({})


def _required() -> Any:
    """A field that may be nil and is on the wire even then (msgspec omits plain defaults)."""
    return msgspec.field(default_factory=type(None))


class _Event(
    msgspec.Struct,
    tag_field="type",
    tag=True,
    frozen=True,
    omit_defaults=True,
    repr_omit_defaults=True,
    forbid_unknown_fields=True,  # those take the way that keeps them: see decode.py
    gc=False,  # an event is in no cycle
):
    """Base of the events, with what they share on the wire."""


class BlockStored(_Event, frozen=True):
    """Blocks were stored, each the child of the one before it.

    Attributes:
        block_hashes: the blocks, first to last.
        parent_block_hash: the block before the first; ``None`` where that begins a sequence.
        token_ids: the tokens of all blocks, one after the other; empty where the engine tells
            hashes alone (offloading, Mamba groups).
        block_size: tokens in a block; 0 where the engine tells hashes alone.
        lora_id: deprecated by vLLM in favour of ``lora_name``.
        medium: where the blocks are: GPU, CPU, STORAGE (vLLM), CPU_PINNED, DISK, EXTERNAL (SGLang).
        lora_name: the adapter that the blocks were computed with.
        extra_keys: for each block, what else went into its hash. May hold bytes.
        group_idx: the KV cache group of a hybrid model.
        kv_cache_spec_kind: what kind of group that is.
        kv_cache_spec_sliding_window: the window of such a group, in tokens.
        locality: vLLM from 0.26.
        ownership: vLLM from 0.29.
        session_id: vLLM from 0.30, SGLang.
        cache_salt: SGLang.
        mm_keys: TensorRT-LLM: for each block, the multimodal segments in it.
        extra: fields that are not among these, and values of a type that is not the field's.
    """

    block_hashes: list[BlockHash]
    parent_block_hash: BlockHash | None
    token_ids: list[TokenId]
    block_size: int
    lora_id: int | None = _required()
    medium: str | None = _required()
    lora_name: str | None = _required()
    extra_keys: list[Any] | None = None
    group_idx: int | None = None
    kv_cache_spec_kind: str | None = None
    kv_cache_spec_sliding_window: int | None = None
    locality: str | None = None
    ownership: str | None = None
    session_id: str | None = None
    cache_salt: str | None = None
    mm_keys: list[Any] | None = None
    extra: MappingProxyType[str, Any] = NO_EXTRA


class BlockRemoved(_Event, frozen=True):
    """One copy of each of these blocks is gone from a medium.

    Attributes:
        block_hashes: the blocks.
        medium: where they were.
        group_idx: the KV cache group.
        locality: vLLM from 0.26.
        ownership: vLLM from 0.29.
        extra: fields that are not among these.
    """

    block_hashes: list[BlockHash]
    medium: str | None = _required()
    group_idx: int | None = None
    locality: str | None = None
    ownership: str | None = None
    extra: MappingProxyType[str, Any] = NO_EXTRA


class AllBlocksCleared(_Event, frozen=True):
    """The worker has no blocks any more, in no medium.

    Attributes:
        extra: fields that this version does not know.
    """

    extra: MappingProxyType[str, Any] = NO_EXTRA


class UnknownEvent(msgspec.Struct, frozen=True, gc=False):
    """An event of a type that this version does not know.

    Attributes:
        name: its type; empty where it has none.
        raw: the event as it was decoded, a map or an array.
    """

    name: str
    raw: Any


KvEvent: TypeAlias = BlockStored | BlockRemoved | AllBlocksCleared | UnknownEvent


class EventBatch(msgspec.Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """What one message tells: the events of one step of the engine.

    Attributes:
        ts: when, in seconds since 1970, by the engine's clock.
        events: in the order in which they happened.
        dp_rank: the data parallel rank; ``None`` where the engine does not tell (vLLM 0.9.0).
        extra: what else the batch had, by name or, as ``"3"``, by position.
    """

    ts: float
    events: list[KvEvent]
    dp_rank: int | None = None
    extra: MappingProxyType[str, Any] = NO_EXTRA


def fields_of(event: KvEvent) -> dict[str, Any]:
    """Return an event as its ``type`` and its fields by name, those that are told alone.

    What was unknown stands beside what was known. The values are those of the event: hashes and
    extra keys may be bytes, which JSON has no form for.
    """
    if isinstance(event, UnknownEvent):
        if isinstance(event.raw, dict):
            return {"type": event.name, **event.raw}
        return {"type": event.name, "fields": event.raw}
    fields = {"type": type(event).__name__, **msgspec.structs.asdict(event)}
    fields |= fields.pop("extra")
    return {name: value for name, value in fields.items() if value is not None}
