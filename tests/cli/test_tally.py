"""What was heard, in numbers."""

from zerohop.cli.tally import Tally, table
from zerohop.serving import (
    Applied,
    BlockStored,
    EventBatch,
    Health,
    HealthChanged,
    Lost,
    Malformed,
    Restarted,
    Snapshot,
    Undecodable,
)


def applied(seq, *hashes, rank=0, worker="w"):
    events = [BlockStored(list(hashes), None, [], 0)] if hashes else []
    return Applied(worker, rank, seq, EventBatch(0.0, events, rank))


def tally_of(*deliveries):
    tally = Tally()
    for delivery in deliveries:
        tally.deliver(delivery, 0.0)
    return tally


def row_of(*deliveries):
    [row] = tally_of(*deliveries).rows.values()
    return row


def test_batches_blocks_and_the_last_number_are_counted():
    row = row_of(applied(0, 1, 2), applied(1, 3), HealthChanged("w", 0, Health.LIVE))
    assert (row.batches, row.seq, row.missing, row.health) == (2, 1, 0, Health.LIVE)
    assert row.blocks.by_medium() == {"GPU": 3}


def test_numbers_that_were_jumped_over_are_missing():
    row = row_of(applied(0, 1), Lost("w", 0, "no replay"), applied(4, 9))
    assert (row.gaps, row.missing, row.seq) == (1, 3, 4)
    assert row.blocks.by_medium() == {"GPU": 1}


def test_what_was_before_the_first_batch_is_missing_too():
    assert row_of(applied(5)).missing == 5


def test_after_a_restart_numbers_begin_anew():
    row = row_of(applied(7), Restarted("w", 0, "it is another"), applied(0, 1))
    assert (row.restarts, row.missing, row.seq) == (1, 7, 0)


def test_a_snapshot_stands_for_what_was_before_it():
    row = row_of(Snapshot("w", 0, 9, (EventBatch(0.0, []),)), applied(9))
    assert (row.missing, row.batches) == (0, 1)


def test_what_cannot_be_read_is_no_batch():
    assert row_of(Undecodable("w", 0, 1, Malformed(b"", "no"))).batches == 0


def test_what_was_told_before_the_first_batch_is_of_its_rank():
    row = row_of(Lost("w", None, "late"), applied(3, rank=2))
    assert (row.rank, row.gaps) == (2, 1)


def test_every_worker_and_rank_has_a_row():
    tally = tally_of(applied(0), applied(0, rank=1), applied(0, worker="v"))
    assert list(tally.rows) == [("w", 0), ("w", 1), ("v", 0)]


def test_a_rate_is_over_the_last_seconds():
    tally = tally_of(HealthChanged("w", 0, Health.LIVE))
    for second in range(20):
        tally.deliver(applied(2 * second), float(second))
        tally.deliver(applied(2 * second + 1), float(second))
        tally.sample(float(second))
    [row] = tally.rows.values()
    assert row.rate() == 2.0
    for second in range(20, 30):
        tally.sample(float(second))
    assert row.rate() == 0.0


def test_a_rate_of_no_time_is_none():
    assert row_of(applied(0)).rate() is None


def test_what_a_replay_brings_is_not_of_the_rate():
    tally = Tally()
    for seq in range(1000):
        tally.deliver(applied(seq), seq / 1000)
        tally.sample(seq / 1000)
    [row] = tally.rows.values()
    assert row.rate() is None
    tally.deliver(HealthChanged("w", 0, Health.LIVE), 1.0)
    assert row.rate() is None
    for second in range(2, 6):
        tally.deliver(applied(1000 + second), float(second))
        tally.sample(float(second))
    assert row.rate() == 1.0


def test_while_a_gap_is_repaired_there_is_no_rate():
    tally = tally_of(HealthChanged("w", 0, Health.LIVE), applied(0))
    tally.sample(1.0)
    [row] = tally.rows.values()
    assert row.rate() == 1.0
    tally.deliver(HealthChanged("w", 0, Health.CATCHING_UP), 1.0)
    tally.sample(2.0)
    assert row.rate() is None


def test_a_table_has_a_head_and_a_line_for_each_row():
    tally = tally_of(applied(0, 1, 2), HealthChanged("w", 0, Health.LIVE), Lost("v", None, "late"))
    assert table(tally) == [
        "worker  rank  health       seq  batches  /s  blocks  gaps  missing  restarts",
        "w          0  live           0        1   -  GPU 2      0        0         0",
        "v          -  catching up    -        0   -  none       1        0         0",
    ]


def test_a_table_of_nothing_is_its_head():
    [head] = table(Tally())
    assert head.startswith("worker")


def test_a_table_has_nothing_that_a_terminal_would_obey():
    medium = "\x1b[2JGPU\n"
    stored = BlockStored([1], None, [], 0, medium=medium)
    row = Applied("w\x07", 0, 0, EventBatch(0.0, [stored], 0))
    shown = "".join(table(tally_of(row)))
    assert shown.isprintable()
    assert "w\\x07" in shown
    assert "\\x1b[2JGPU\\n 1" in shown
