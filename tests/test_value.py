"""A value is made of its fields, compared and shown by them, and does not change."""

import copy
import pickle
from dataclasses import FrozenInstanceError

import pytest

from tests.wire.kit import calls_during
from zerohop.value import Value


class Point(Value):
    x: int
    y: int = 0


class Account(Value):
    name: str
    password: str = ""
    note: str = ""

    not_compared = frozenset({"note"})
    not_shown = frozenset({"password", "note"})


class Topic(Value):
    name: str
    count: int = 1

    many = True


class Longer(Topic):
    name: str
    count: int
    end: str


class Other(Value):
    x: int
    y: int = 0


@pytest.mark.parametrize("made", [Point(1, 0), Point(1), Point(x=1), Point(1, y=0)])
def test_fields_are_given_in_order_or_by_name_or_have_their_default(made):
    assert (made.x, made.y) == (1, 0)


@pytest.mark.parametrize(
    ("values", "named"),
    [((), {}), ((), {"y": 1}), ((1, 2, 3), {}), ((1,), {"x": 1}), ((1,), {"z": 1})],
    ids=["nothing", "one missing", "too many", "twice", "unknown"],
)
def test_a_field_that_is_missing_unknown_or_given_twice_is_a_type_error(values, named):
    with pytest.raises(TypeError, match="Point is made of x, y; got"):
        Point(*values, **named)


def test_many_are_made_by_a_function_of_their_own_fields():
    for made in Topic("a"), Topic("a"), Topic(name="a"), Topic("a", 1), Topic("a", count=1):
        assert (made.name, made.count) == ("a", 1)
    assert calls_during(Topic, "b", 2) == 1
    for values, named in [((), {}), ((1, 2, 3), {}), ((1,), {"name": 1}), ((1,), {"z": 1})]:
        with pytest.raises(TypeError, match="argument"):
            Topic(*values, **named)
    assert vars(Longer("a", 1, "b")) == {"name": "a", "count": 1, "end": "b"}


def test_a_class_that_has_an_init_of_its_own_is_refused():
    """It would never be called."""
    with pytest.raises(TypeError, match="Odd has an __init__ of its own"):

        class Odd(Value):
            def __init__(self):
                pass


def test_values_are_equal_when_their_fields_and_classes_are():
    assert Point(1, 2) == Point(1, 2)
    assert hash(Point(1, 2)) == hash(Point(1, 2))
    assert Point(1, 2) != Point(2, 1)
    assert Point(1, 2) != Other(1, 2)
    assert Point(1, 2) != (1, 2)


def test_a_field_can_be_left_out_of_comparison_and_of_repr():
    assert Account("a", "secret", "one") == Account("a", "secret", "two")
    assert hash(Account("a", "secret", "one")) == hash(Account("a", "secret", "two"))
    assert Account("a", "secret") != Account("a", "other")
    assert repr(Account("a", "secret", "one")) == "Account(name='a')"


def test_repr_says_how_to_make_it():
    assert repr(Point(1)) == "Point(x=1, y=0)"


def test_a_value_does_not_change():
    point = Point(1, 2)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 5
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'z'"):
        point.z = 5
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x
    assert point == Point(1, 2)


def test_match_takes_the_fields_in_their_order():
    match Point(1, 2):
        case Point(1, y):
            assert y == 2


def test_a_value_can_be_copied_and_pickled():
    point = Point(1, 2)
    assert copy.copy(point) == point
    assert pickle.loads(pickle.dumps(point)) == point
