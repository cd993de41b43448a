"""What an engine owes one API server."""

import numpy as np
import pytest

from zerohop.serving.engine.messages import SLOT_SHIFT, Delta, Ended, UtilityResult
from zerohop.serving.engine.outbox import Outbox, Step, by_slot


def outbox_with(*numbers):
    outbox = Outbox(slot=0, limit=3)
    outbox.open.update(numbers)
    return outbox


def test_deltas_of_requests_that_are_open_are_wanted():
    outbox = outbox_with(1, 2)
    step = outbox.wanted(
        [Delta(1, [5]), Delta(2, [6], "stop"), Delta(3, [7]), Delta(3, [], "stop")]
    )
    assert step == Step([1], [5], [Delta(2, [6], "stop")])
    assert not outbox.wanted([Delta(3, [7])])


def test_what_is_more_than_one_whole_number_travels_as_a_delta():
    outbox = outbox_with(1, 2, 3)
    deltas = [Delta(1, [5, 6]), Delta(2, []), Delta(3, [7], None, "x"), Delta(1, [True])]
    assert outbox.wanted(deltas) == Step([], [], deltas)


def test_a_request_is_open_until_its_finish_is_out():
    outbox = outbox_with(1, 2)
    outbox.sent(Step([], [], [Delta(1, [5], "stop"), Delta(2, [5, 6])]))
    assert outbox.open == {2}


def test_messages_are_numbered_as_they_go_out():
    outbox = outbox_with(1)
    assert outbox.seq == 0
    outbox.sent(Step([1], [5], []))
    assert outbox.seq == 1
    outbox.end(Ended(1, "refused", "no"))
    outbox.paid()
    assert outbox.seq == 2


def test_what_has_no_room_ends_all_that_is_open_and_that_is_owed():
    outbox = outbox_with(2, 1)
    assert outbox.overflow() == [1, 2]
    assert outbox.open == set()
    assert outbox.owes
    assert outbox.ended == [Ended(1, "slow", limit=3), Ended(2, "slow", limit=3)]
    assert outbox.overflows == 1


def test_what_is_owed_is_kept_until_it_is_out():
    outbox = outbox_with(1)
    outbox.overflow()
    outbox.results += [UtilityResult(5, None, 1), UtilityResult(6, None, 2)]
    assert outbox.overflow() == []
    assert [each.number for each in outbox.ended] == [1]
    outbox.paid()
    assert (outbox.ended, len(outbox.results)) == ([], 2)
    outbox.paid()
    assert [each.number for each in outbox.results] == [6]
    outbox.paid()
    assert not outbox.owes


def test_what_went_out_is_not_forgotten_while_it_is_on_its_way():
    """The lists of a message are its own: what is owed later does not get into it."""
    outbox = outbox_with(1)
    outbox.end(Ended(1, "refused", "no"))
    given = outbox.ended
    outbox.paid()
    outbox.end(Ended(2, "refused", "no"))
    assert [each.number for each in given] == [1]


def test_a_request_that_the_engine_ends_is_open_no_more():
    outbox = outbox_with(1)
    outbox.end(Ended(1, "refused", "no"))
    assert outbox.open == set()
    assert outbox.overflow() == []


def test_only_what_is_open_can_be_aborted():
    outbox = outbox_with(1, 2)
    assert outbox.abort([2, 3]) == [2]
    assert outbox.abort([2]) == []
    assert outbox.open == {1}


def test_deltas_are_sorted_by_the_api_server_whose_requests_they_are_of():
    first, second = 0 << SLOT_SHIFT | 7, 5 << SLOT_SHIFT | 7
    deltas = [Delta(first, [1]), Delta(second, [2]), Delta(first, [3])]
    assert by_slot(deltas) == {0: [deltas[0], deltas[2]], 5: [deltas[1]]}


@pytest.mark.parametrize("tokens", [None, 5, {7}, {0: 7}, {"a": 7}, "7"])
def test_tokens_that_are_no_list_are_for_who_encodes_them(tokens):
    outbox = outbox_with(1, 2)
    deltas = [Delta(1, [5]), Delta(2, tokens), Delta(3, [6])]
    assert outbox.wanted(deltas) == Step([1], [5], [deltas[1]])


@pytest.mark.parametrize("wrong", [3, None, (1, [5])])
def test_what_is_no_delta_is_told_to_who_gave_it(wrong):
    outbox = outbox_with(1)
    for take in (outbox.wanted, by_slot):
        with pytest.raises(TypeError, match="a step is made of Delta, not"):
            take([Delta(1, [5]), wrong])


def test_numbers_that_numpy_has_counted_are_numbers():
    outbox = outbox_with(1, 2)
    step = outbox.wanted([Delta(np.int64(1), [5]), Delta(np.int64(2), [6], "stop")])
    assert step == Step([1], [5], [Delta(2, [6], "stop")])
    assert [type(n) for n in (*step.numbers, step.deltas[0].number)] == [int, int]


@pytest.mark.parametrize("number", [1.0, "1", None])
@pytest.mark.parametrize("tokens", [[5], 5])
def test_a_number_that_no_request_can_have_is_told_to_who_gave_it(number, tokens):
    outbox = outbox_with(1, 2)
    deltas = [Delta(2, [6]), Delta(number, tokens)]
    with pytest.raises(TypeError, match=f"not {number!r}; it is told by Request"):
        outbox.wanted(deltas)
    with pytest.raises(TypeError, match=f"not {number!r}; it is told by Request"):
        by_slot(deltas)
