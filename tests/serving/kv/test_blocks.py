"""Present blocks: copies counted, and a snapshot that leads to the same view."""

import gc
import weakref
from collections import Counter
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serving.kv import samples
from zerohop.serving.errors import Malformed
from zerohop.serving.kv.blocks import Copies, PresentBlocks
from zerohop.serving.kv.deliveries import (
    Applied,
    Health,
    HealthChanged,
    Lost,
    Restarted,
    Snapshot,
    Undecodable,
)
from zerohop.serving.kv.events import (
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    EventBatch,
    UnknownEvent,
)

GPU = Copies(0, "GPU", None)
CPU = Copies(0, "CPU", None)


def store(*hashes, parent=None, medium="GPU", **fields):
    tokens = [10 * h + at for h in hashes for at in range(2)]
    return BlockStored(list(hashes), parent, tokens, 2, medium=medium, **fields)


def blocks_after(*events, rank=0):
    blocks = PresentBlocks()
    blocks.apply(events, rank)
    return blocks


def again(blocks, max_blocks=512):
    fresh = PresentBlocks()
    for batch in blocks.snapshot(1.0, max_blocks):
        fresh.apply(batch.events, batch.dp_rank)
    return fresh


def test_what_is_stored_is_there_and_what_is_removed_is_not():
    blocks = blocks_after(store(1, 2), BlockRemoved([1], "GPU"))
    assert blocks.copies() == {GPU: {2: 1}}
    assert (len(blocks), 1 in blocks, 2 in blocks) == (1, False, True)


def test_each_copy_is_counted_where_it_is():
    blocks = blocks_after(store(1), store(1), store(1, medium="CPU"), store(1, group_idx=3))
    assert blocks.copies() == {GPU: {1: 2}, CPU: {1: 1}, Copies(0, "GPU", 3): {1: 1}}
    blocks.apply([BlockRemoved([1], "GPU")], 0)
    assert blocks.copies()[GPU] == {1: 1}
    blocks.apply([BlockRemoved([1], "GPU")], 0)
    assert GPU not in blocks.copies()
    assert blocks.by_medium() == Counter(CPU=1, GPU=1)


def test_a_block_that_one_event_tells_twice_has_two_copies():
    blocks = blocks_after(store(1, 2, 1), store(5))
    assert blocks.copies() == {GPU: {1: 2, 2: 1, 5: 1}}
    assert again(blocks).copies() == blocks.copies()


def test_what_is_left_of_an_event_does_not_keep_all_of_its_tokens():
    event = BlockStored([*range(8)], None, [Token() for _ in range(16)], 2, medium="GPU")
    first, last = weakref.ref(event.token_ids[0]), weakref.ref(event.token_ids[15])
    blocks = blocks_after(event)
    del event
    blocks.apply([BlockRemoved([*range(7, 0, -1)], "GPU")], 0)
    gc.collect()
    assert (blocks.copies(), last()) == ({GPU: {0: 1}}, None)
    assert first() is not None


class Token:
    """Stands for a token, and can be seen to be gone."""


def test_no_medium_is_the_gpu():
    assert blocks_after(store(1, medium=None), BlockRemoved([1], "GPU")).copies() == {}


def test_a_removal_of_what_is_not_there_is_counted_and_takes_nothing():
    blocks = blocks_after(store(1), BlockRemoved([1], "CPU"), BlockRemoved([2], "GPU"))
    assert blocks.copies() == {GPU: {1: 1}}
    assert blocks.unknown_removals == 2


def test_all_cleared_is_all_of_one_rank():
    blocks = blocks_after(store(1), store(1, medium="CPU"))
    blocks.apply([store(1)], 1)
    blocks.apply([AllBlocksCleared()], 0)
    assert blocks.copies() == {Copies(1, "GPU", None): {1: 1}}


def test_unknown_events_change_nothing():
    assert blocks_after(store(1), UnknownEvent("Moved", ["Moved"])).copies() == {GPU: {1: 1}}


# ---- deliveries ----


def test_a_view_does_what_deliveries_ask():
    view = PresentBlocks()
    view.deliver(Applied("w", 0, 0, EventBatch(1.0, [store(1)], 0)))
    assert view.copies() == {GPU: {1: 1}}
    view.deliver(Snapshot("w", 0, 5, (EventBatch(1.0, [store(2)], 0),)))
    assert view.copies() == {GPU: {2: 1}}


@pytest.mark.parametrize("kind", [Lost, Restarted])
def test_what_is_lost_or_restarted_is_dropped_and_other_ranks_stay(kind):
    view = blocks_after(store(1))
    view.apply([store(1)], 1)
    view.deliver(kind("w", 0, "why"))
    assert view.copies() == {Copies(1, "GPU", None): {1: 1}}


@pytest.mark.parametrize(
    "delivery",
    [HealthChanged("w", 0, Health.LIVE), Undecodable("w", 0, None, Malformed(b"", "why"))],
)
def test_health_and_errors_change_no_view(delivery):
    view = blocks_after(store(1))
    view.deliver(delivery)
    assert view.copies() == {GPU: {1: 1}}


# ---- snapshots ----


def test_blocks_that_follow_one_another_share_an_event():
    blocks = blocks_after(store(1, 2), store(3, parent=2))
    [batch] = blocks.snapshot(7.0)
    assert (batch.ts, batch.dp_rank) == (7.0, 0)
    assert batch.events == [store(1, 2, 3)]


def test_what_differs_in_more_than_the_block_has_an_event_of_its_own():
    blocks = blocks_after(store(1), store(2, parent=1, lora_name="a"), store(4, parent=9))
    [batch] = blocks.snapshot(7.0)
    assert batch.events == [store(1), store(2, parent=1, lora_name="a"), store(4, parent=9)]


def test_a_parent_comes_before_its_children_though_it_was_stored_again_later():
    blocks = blocks_after(store(1, 2, 3), BlockRemoved([1], "GPU"), store(1))
    [batch] = blocks.snapshot(7.0)
    assert batch.events == [store(1, 2, 3)]


def test_blocks_whose_parent_is_gone_keep_its_name():
    blocks = blocks_after(store(1, 2), BlockRemoved([1], "GPU"))
    assert blocks.snapshot(7.0)[0].events == [store(2, parent=1)]


def test_numbers_and_bytes_are_hashes_side_by_side():
    octets = b"\x02" * 8
    events = [
        BlockStored([1, octets], None, [1, 2, 3, 4], 2, medium="GPU"),
        BlockStored([3], octets, [5, 6], 2, medium="GPU"),
        BlockStored([b"\x04"], 3, [7, 8], 2, medium="GPU"),
        BlockStored([5], b"\x06", [9, 10], 2, medium="GPU"),
        BlockStored([b"\x07"], 8, [11, 12], 2, medium="GPU"),
    ]
    [batch] = blocks_after(*events).snapshot(7.0)
    together = BlockStored([1, octets, 3, b"\x04"], None, [1, 2, 3, 4, 5, 6, 7, 8], 2, medium="GPU")
    assert batch.events == [together, *events[3:]]


def test_unknown_fields_of_any_type_are_told_by_events_of_their_own():
    said = [MappingProxyType({"note": value}) for value in ("x", b"x")]
    events = [store(1, extra=said[0]), store(2, parent=1, extra=said[1])]
    assert blocks_after(*events).snapshot(7.0)[0].events == events


def test_further_copies_are_told_too():
    blocks = blocks_after(store(1, 2), store(2, parent=1))
    assert blocks.snapshot(7.0)[0].events == [store(1, 2), store(2, parent=1)]


def test_keys_of_blocks_stay_with_them():
    keys = {"extra_keys": [["a"], None], "mm_keys": [[], [{"hash": "x"}]]}
    blocks = blocks_after(store(1, 2, **keys), BlockRemoved([1], "GPU"))
    expected = store(2, parent=1, extra_keys=[None], mm_keys=[[{"hash": "x"}]])
    assert blocks.snapshot(7.0)[0].events == [expected]


def test_too_few_keys_are_no_error():
    assert blocks_after(store(1, 2, extra_keys=[["a"]])).snapshot(7.0)[0].events == [
        store(1, 2, extra_keys=[["a"], None])
    ]


def test_hash_only_blocks_are_told_as_such_and_apart():
    hashes_only = BlockStored([3, 4], 2, [], 0, medium="GPU")
    blocks = blocks_after(store(1, 2), hashes_only)
    assert blocks.snapshot(7.0)[0].events == [store(1, 2), hashes_only]


def test_hashes_without_tokens_and_a_size_are_told_apart_too():
    hashes_only = BlockStored([3], 2, [], 2, medium="GPU")
    assert blocks_after(store(1, 2), hashes_only).snapshot(7.0)[0].events == [
        store(1, 2),
        hashes_only,
    ]


def test_tokens_beyond_the_blocks_stay_with_the_last():
    odd = BlockStored([1, 2], None, [1, 2, 3, 4, 5], 2, medium="GPU")
    blocks = blocks_after(odd, store(3, parent=2))
    assert blocks.snapshot(7.0)[0].events == [odd, store(3, parent=2)]


def test_batches_are_bounded():
    blocks = blocks_after(store(*range(10)), store(20), store(20))
    batches = blocks.snapshot(7.0, max_blocks=4)
    assert [sum(len(e.block_hashes) for e in b.events) for b in batches] == [4, 4, 4]


def test_nothing_has_no_batches():
    assert blocks_after(store(1), BlockRemoved([1], "GPU")).snapshot(7.0) == []


def test_hashes_that_make_a_circle_are_told_once():
    blocks = blocks_after(store(1, parent=2), store(2, parent=1), store(3, parent=3))
    assert again(blocks).copies() == blocks.copies()


@given(st.lists(st.tuples(samples.events, st.sampled_from([None, 0, 1]))), st.integers(1, 5))
def test_a_fresh_consumer_of_a_snapshot_has_the_same_view(steps, max_blocks):
    blocks = PresentBlocks()
    for event, rank in steps:
        blocks.apply([event], rank)
    fresh = again(blocks, max_blocks)
    assert fresh.copies() == blocks.copies()
    assert again(fresh, max_blocks).copies() == blocks.copies()
    assert all(
        sum(len(event.block_hashes) for event in batch.events) <= max_blocks
        for batch in blocks.snapshot(1.0, max_blocks)
    )
    told = [event for batch in blocks.snapshot(1.0) for event in batch.events]
    assert Counter(t for e in told for t in map(str, e.token_ids)) == Counter(
        t for batch in fresh.snapshot(1.0) for e in batch.events for t in map(str, e.token_ids)
    )
