"""Steps that are alike are kept as they came, and numbers that are no numbers are found out."""

import msgspec
import pytest

from zerohop.serving.engine.columns import Columns
from zerohop.serving.errors import Malformed


def raw(value):
    return msgspec.Raw(msgspec.msgpack.encode(value))


def test_steps_of_the_same_requests_are_kept_in_their_order():
    columns = Columns()
    columns.begin(raw([1, 2]))
    columns.add([5, 6])
    assert columns.have(raw([1, 2]))
    columns.add([7, 8])
    assert columns.numbers == [1, 2]
    assert columns.take() == [[5, 6], [7, 8]]
    assert columns.take() == []


def test_other_requests_are_others_in_whatever_order():
    columns = Columns()
    columns.begin(raw([1, 2]))
    assert not columns.have(raw([2, 1]))
    assert not columns.have(raw([1]))
    columns.begin(raw([2, 1]))
    assert columns.numbers == [2, 1]


def test_at_first_it_has_the_steps_of_no_request():
    columns = Columns()
    assert columns.have(raw([]))
    columns.add([])
    assert columns.take() == [[]]


@pytest.mark.parametrize("numbers", [["1"], "12", None, 7, {1: 2}, [1.5], [[1]]])
def test_numbers_that_are_none_are_malformed_and_change_nothing(numbers):
    columns = Columns()
    columns.begin(raw([1]))
    with pytest.raises(Malformed):
        columns.begin(raw(numbers))
    assert columns.have(raw([1]))
    assert columns.numbers == [1]


@pytest.mark.parametrize("tokens", [[], [5], [5, 6, 7]])
def test_a_step_has_a_token_for_each_request(tokens):
    columns = Columns()
    columns.begin(raw([1, 2]))
    with pytest.raises(Malformed, match="for 2 requests"):
        columns.add(tokens)
    assert columns.take() == []
