"""A publisher's present blocks: brought up to date batch by batch, or not to be had."""

from zerohop.serving.kv.events import AllBlocksCleared, BlockStored, EventBatch
from zerohop.serving.kv.snapshots import SnapshotTable

STORED = BlockStored([1, 2], None, [3, 4], 1)
FAILS_BATCH = [BlockStored(None, None, [3], 1)]  # no hashes


def table(*batches):
    made = SnapshotTable()
    made.pending.extend((seq, 0.0, events) for seq, events in enumerate(batches))
    made.bring_up(len(batches))
    return made


def hashes(snapshot):
    return [each for batch in snapshot for event in batch.events for each in event.block_hashes]


def test_it_has_what_was_stored():
    [batch] = table([STORED]).snapshot(7.0, 3)
    assert (type(batch), batch.ts, batch.dp_rank) == (EventBatch, 7.0, 3)
    assert hashes([batch]) == [1, 2]


def test_a_batch_that_had_no_room_makes_it_none_the_first_one_too():
    made = table([STORED])
    made.missed_seq = 0
    assert made.snapshot(7.0, 0) is None


def test_a_batch_that_is_a_mistake_makes_it_none_until_all_is_cleared():
    assert table([STORED], FAILS_BATCH).snapshot(7.0, 0) is None
    assert table([STORED], FAILS_BATCH, [STORED]).snapshot(7.0, 0) is None
    assert hashes(table(FAILS_BATCH, [AllBlocksCleared(), STORED]).snapshot(7.0, 0)) == [1, 2]


def test_a_batch_that_clears_and_is_a_mistake_makes_it_none():
    assert table([STORED], [AllBlocksCleared(), *FAILS_BATCH]).snapshot(7.0, 0) is None


def test_it_is_brought_up_to_date_in_slices_unless_a_snapshot_is_being_made():
    made = SnapshotTable()
    made.pending.extend((seq, 0.0, [STORED]) for seq in range(3))
    with made.lock:
        assert not made.bring_up_if_free(2)
    assert len(made.pending) == 3
    assert made.bring_up_if_free(2)
    assert len(made.pending) == 1
    assert made.bring_up_if_free(2)
    assert len(made.pending) == 0
