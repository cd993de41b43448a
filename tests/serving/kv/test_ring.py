"""The last batches by number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerohop.serving.kv.ring import ReplayRing


def filled(numbers, **limits):
    ring = ReplayRing(**limits)
    for seq in numbers:
        ring.append(seq, b"%d" % seq)
    return ring


def test_a_new_ring_has_nothing_and_misses_nothing():
    replay = ReplayRing().replay(0)
    assert (replay.batches, replay.oldest, replay.next_seq, replay.too_old) == ([], 0, 0, False)


def test_a_replay_has_all_from_a_number_on_oldest_first():
    replay = filled(range(5)).replay(3)
    assert replay.batches == [(3, b"3"), (4, b"4")]
    assert (replay.start, replay.oldest, replay.next_seq, replay.too_old) == (3, 0, 5, False)


def test_a_number_that_is_yet_to_come_has_nothing_and_is_not_too_old():
    for start in (5, 2**63 - 1, 2**200):
        replay = filled(range(5)).replay(start)
        assert (replay.batches, replay.too_old) == ([], False)


def test_the_oldest_go_when_there_are_too_many():
    ring = filled(range(5), max_batches=2)
    assert (len(ring), ring.oldest, ring.next_seq) == (2, 3, 5)
    assert ring.replay(2).too_old
    assert ring.replay(2).batches == [(3, b"3"), (4, b"4")]
    assert not ring.replay(3).too_old


def test_the_oldest_go_when_they_have_too_many_octets():
    ring = ReplayRing(max_octets=10)
    for seq, size in enumerate([4, 4, 4]):
        ring.append(seq, bytes(size))
    assert (len(ring), ring.octets, ring.oldest) == (2, 8, 1)
    ring.append(3, bytes(11))
    assert (len(ring), ring.octets, ring.oldest) == (0, 0, 4)


def test_a_ring_that_keeps_nothing_knows_that_it_did():
    ring = filled(range(3), max_batches=0)
    assert (len(ring), ring.replay(0).too_old, ring.replay(3).too_old) == (0, True, False)


def test_a_replay_keeps_what_the_ring_lets_go_of():
    ring = filled(range(3), max_batches=3)
    replay = ring.replay(0)
    for seq in range(3, 10):
        ring.append(seq, b"")
    assert replay.batches == [(0, b"0"), (1, b"1"), (2, b"2")]


def test_numbers_may_be_left_out():
    ring = filled([0, 1, 4, 5])
    assert ring.replay(2).batches == [(4, b"4"), (5, b"5")]
    assert filled([3, 4]).replay(0).too_old


def test_numbers_go_up():
    ring = filled([3])
    with pytest.raises(ValueError, match="batch 3 comes after batch 3: numbers go up"):
        ring.append(3, b"")


@pytest.mark.parametrize("limits", [{"max_batches": -1}, {"max_octets": -1}])
def test_a_limit_is_not_negative(limits):
    with pytest.raises(ValueError, match="neither can be negative"):
        ReplayRing(**limits)


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 9)), max_size=30),
    *(st.integers(0, 6), st.integers(0, 40), st.integers(0, 60)),
)
def test_it_is_the_end_of_what_was_appended(steps, max_batches, max_octets, start):
    ring, model, seq = ReplayRing(max_batches, max_octets), [], -1
    for step, size in steps:
        seq += step
        ring.append(seq, bytes(size))
        model.append((seq, bytes(size)))
        while len(model) > max_batches or sum(len(p) for _, p in model) > max_octets:
            model.pop(0)
        assert ring.octets == sum(len(payload) for _, payload in model)
    replay = ring.replay(start)
    assert replay.batches == [each for each in model if each[0] >= start]
    assert replay.next_seq == seq + 1
    assert replay.too_old == (start < (model[0][0] if model else seq + 1))
