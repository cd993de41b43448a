"""Which blocks are present: a publisher's own, for snapshots; a consumer's view of its workers.

A block may have several copies, each stored and removed by events of its own: in another medium, in
another KV cache group, or twice in the same place. A copy is counted where it is; a removal takes
one away there.

A block that is stored for the first time only refers to the event that told of it: most blocks go
without anybody asking for more than their hash. What is known of it (its parent, its tokens) is
taken out of the event when it is asked for, or when most of the event's blocks are gone: the last
of them do not keep the tokens of all in memory.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple, TypeAlias

import msgspec

from zerohop.serving.kv.deliveries import Applied, Lost, Restarted, Snapshot
from zerohop.serving.kv.events import (
    AllBlocksCleared,
    BlockHash,
    BlockRemoved,
    BlockStored,
    EventBatch,
    KvEvent,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from zerohop.serving.kv.deliveries import Delivery

__all__ = ["Copies", "PresentBlocks"]

_DEFAULT_MEDIUM = "GPU"  # what vLLM means where it tells none
_BLOCKS_OF_A_BATCH = 512


class Copies(NamedTuple):
    """Where copies of blocks are.

    Attributes:
        dp_rank: the engine's data parallel rank; ``None``: it does not tell.
        medium: ``"GPU"`` where the engine does not tell.
        group_idx: the KV cache group of a hybrid model.
    """

    dp_rank: int | None
    medium: str
    group_idx: int | None


class _Terms(NamedTuple):
    """What the blocks of one event have in common."""

    block_size: int
    lora_id: int | None
    medium: str | None
    lora_name: str | None
    group_idx: int | None
    kv_cache_spec_kind: str | None
    kv_cache_spec_sliding_window: int | None
    locality: str | None
    ownership: str | None
    session_id: str | None
    cache_salt: str | None
    extra: Any
    has_extra_keys: bool
    has_mm_keys: bool


class _Block(msgspec.Struct, gc=False):
    """One block in one place. Out of the garbage collector's sight: there may be a million."""

    parent: BlockHash | None
    tokens: tuple[Any, ...]
    extra_key: Any
    mm_key: Any
    terms: _Terms
    copies: int = 1


class _Run:
    """The blocks of an event that are still as it told them.

    Attributes:
        event: what told of them.
        present: how many there are.
    """

    __slots__ = ("event", "present")

    def __init__(self, event: BlockStored) -> None:
        self.event = event
        self.present = len(event.block_hashes)


_Blocks: TypeAlias = dict[BlockHash, _Block | _Run]


class PresentBlocks:
    """The blocks that are present, by where their copies are.

    Attributes:
        unknown_removals: how many blocks were removed that were not there.
    """

    __slots__ = ("_places", "unknown_removals")

    def __init__(self) -> None:
        self._places: dict[Copies, _Blocks] = {}
        self.unknown_removals = 0

    def __len__(self) -> int:
        """How many blocks there are, each place counted apart."""
        return sum(map(len, self._places.values()))

    def __contains__(self, block_hash: BlockHash) -> bool:
        return any(block_hash in blocks for blocks in self._places.values())

    def copies(self) -> dict[Copies, dict[BlockHash, int]]:
        """Return how many copies of each block there are in each place that has any."""
        return {
            place: {
                block_hash: block.copies if type(block) is _Block else 1
                for block_hash, block in blocks.items()
            }
            for place, blocks in self._places.items()
            if blocks
        }

    def by_medium(self) -> Counter[str]:
        """Return how many blocks each medium has, whatever their rank and group."""
        found: Counter[str] = Counter()
        for place, blocks in self._places.items():
            found[place.medium] += len(blocks)
        return +found

    def deliver(self, delivery: Delivery) -> None:
        """Do what a delivery asks of a view; those of health and errors ask nothing."""
        match delivery:
            case Applied(dp_rank=rank, batch=batch):
                self.apply(batch.events, rank)
            case Restarted(dp_rank=rank) | Lost(dp_rank=rank):
                self.clear(rank)
            case Snapshot(dp_rank=rank, batches=batches):
                self.clear(rank)
                for batch in batches:
                    self.apply(batch.events, rank)
            case _:
                pass

    def apply(self, events: Iterable[KvEvent], dp_rank: int | None) -> None:
        """Apply the events of a batch, in their order.

        Args:
            events: must not be changed afterwards.
            dp_rank: of the engine that they are from.
        """
        for event in events:
            match event:
                case BlockStored():
                    self._store(event, dp_rank)
                case BlockRemoved():
                    self._remove(event, dp_rank)
                case AllBlocksCleared():
                    self.clear(dp_rank)
                case _:
                    pass  # of an unknown type: the decoder has counted it

    def clear(self, dp_rank: int | None) -> None:
        """Forget all blocks of one rank, in all places."""
        for place in [place for place in self._places if place.dp_rank == dp_rank]:
            del self._places[place]

    def snapshot(self, ts: float, max_blocks: int = _BLOCKS_OF_A_BATCH) -> list[EventBatch]:
        """Return batches of events that lead a consumer who knows nothing to the same view.

        A parent comes before its children, where it is present; blocks that follow one another
        share an event. Takes time in proportion to the blocks.

        Args:
            ts: the time that the batches get.
            max_blocks: of one batch.
        """
        batches: list[EventBatch] = []
        for place, stored in self._places.items():
            blocks = {block_hash: _block(stored, block_hash) for block_hash in stored}
            events: list[KvEvent] = []
            size = 0
            for run in _runs(blocks, max_blocks):
                if size + len(run) > max_blocks:
                    batches.append(EventBatch(ts, events, place.dp_rank))
                    events, size = [], 0
                events.append(_event(run, blocks))
                size += len(run)
            if events:
                batches.append(EventBatch(ts, events, place.dp_rank))
        return batches

    def _store(self, event: BlockStored, dp_rank: int | None) -> None:
        place = Copies(dp_rank, event.medium or _DEFAULT_MEDIUM, event.group_idx)
        blocks = self._places.setdefault(place, {})
        hashes = event.block_hashes
        if blocks.keys().isdisjoint(hashes):
            known = len(blocks)
            blocks.update(dict.fromkeys(hashes, _Run(event)))
            if len(blocks) == known + len(hashes):
                return
            for block_hash in hashes:  # some are told twice, so each is told by itself
                blocks.pop(block_hash, None)
        if blocks.keys() >= set(hashes):
            for block_hash in hashes:
                _block(blocks, block_hash).copies += 1
            return
        for block_hash, told in zip(hashes, _taken_apart(event), strict=True):
            if block_hash in blocks:
                _block(blocks, block_hash).copies += 1
            else:
                blocks[block_hash] = told

    def _remove(self, event: BlockRemoved, dp_rank: int | None) -> None:
        place = Copies(dp_rank, event.medium or _DEFAULT_MEDIUM, event.group_idx)
        blocks = self._places.get(place, {})
        for block_hash in event.block_hashes:
            block = blocks.get(block_hash)
            if block is None:
                self.unknown_removals += 1
            elif isinstance(block, _Run):
                del blocks[block_hash]
                block.present -= 1
                if 0 < 4 * block.present <= len(block.event.block_hashes):
                    _take_apart(blocks, block)
            elif block.copies > 1:
                block.copies -= 1
            else:
                del blocks[block_hash]


def _block(blocks: _Blocks, block_hash: BlockHash) -> _Block:
    """What is known of a block."""
    block = blocks[block_hash]
    if type(block) is _Run:
        _take_apart(blocks, block)
        block = blocks[block_hash]
    assert type(block) is _Block
    return block


def _take_apart(blocks: _Blocks, run: _Run) -> None:
    """Have each block of a run known by itself."""
    for block_hash, told in zip(run.event.block_hashes, _taken_apart(run.event), strict=True):
        if blocks.get(block_hash) is run:
            blocks[block_hash] = told


def _taken_apart(event: BlockStored) -> Iterator[_Block]:
    """Yield what an event tells of each of its blocks."""
    size, tokens = event.block_size, event.token_ids
    extra_keys, mm_keys = event.extra_keys or (), event.mm_keys or ()
    terms = _terms(event)
    parent = event.parent_block_hash
    last = len(event.block_hashes) - 1
    for at, block_hash in enumerate(event.block_hashes):
        end = None if at == last else (at + 1) * size  # the last has all that is left
        yield _Block(
            parent,
            tuple(tokens[at * size : end]),
            extra_keys[at] if at < len(extra_keys) else None,
            mm_keys[at] if at < len(mm_keys) else None,
            terms,
        )
        parent = block_hash


def _terms(event: BlockStored) -> _Terms:
    return _Terms(
        event.block_size,
        event.lora_id,
        event.medium,
        event.lora_name,
        event.group_idx,
        event.kv_cache_spec_kind,
        event.kv_cache_spec_sliding_window,
        event.locality,
        event.ownership,
        event.session_id,
        event.cache_salt,
        event.extra,
        event.extra_keys is not None,
        event.mm_keys is not None,
    )


def _runs(blocks: dict[BlockHash, _Block], max_blocks: int) -> Iterator[list[BlockHash]]:
    """Yield all blocks, each copy once, in runs that one event can tell."""
    run: list[BlockHash] = []
    for block_hash in _parents_first(blocks):
        if run and (len(run) >= max_blocks or not _follows(blocks, run[-1], block_hash)):
            yield run
            run = []
        run.append(block_hash)
    if run:
        yield run
    for block_hash, block in blocks.items():
        for _ in range(block.copies - 1):
            yield [block_hash]


def _parents_first(blocks: dict[BlockHash, _Block]) -> Iterator[BlockHash]:
    told: set[BlockHash] = set()
    for each in blocks:
        path: list[BlockHash] = []
        block_hash: BlockHash | None = each
        while block_hash is not None and block_hash in blocks and block_hash not in told:
            told.add(block_hash)  # at once: hashes of a peer could make a circle
            path.append(block_hash)
            block_hash = blocks[block_hash].parent
        yield from reversed(path)


def _follows(blocks: dict[BlockHash, _Block], first: BlockHash, second: BlockHash) -> bool:
    """Whether one event can tell both, the second right after the first."""
    one, two = blocks[first], blocks[second]
    whole = not one.tokens or len(one.tokens) == one.terms.block_size
    # Hash-only and other blocks don't mix: the tokens of an event are split by their number.
    return (
        type(two.parent) is type(first)  # a number and bytes are never the same, and -bb says so
        and two.parent == first
        and whole
        and (not one.tokens) == (not two.tokens)
        and _alike(one.terms, two.terms)
    )


def _alike(one: _Terms, two: _Terms) -> bool:
    """Whether one event can tell them. Unknown fields may be anything: they are not compared."""
    return one is two or (one.extra is two.extra and one == two)


def _event(run: list[BlockHash], blocks: dict[BlockHash, _Block]) -> BlockStored:
    found = [blocks[block_hash] for block_hash in run]
    terms = found[0].terms
    return BlockStored(
        run,
        found[0].parent,
        [token for block in found for token in block.tokens],
        terms.block_size,
        terms.lora_id,
        terms.medium,
        terms.lora_name,
        [block.extra_key for block in found] if terms.has_extra_keys else None,
        terms.group_idx,
        terms.kv_cache_spec_kind,
        terms.kv_cache_spec_sliding_window,
        terms.locality,
        terms.ownership,
        terms.session_id,
        terms.cache_salt,
        [block.mm_key for block in found] if terms.has_mm_keys else None,
        terms.extra,
    )
