"""What users give: encoded at once, within limits, and what does not fit is told to them."""

import pytest

from zerohop.serving.codec import MAX_OCTETS, pack, unpack
from zerohop.serving.control.values import MAX_VALUE, encoded, how_many, octets_of, words_for
from zerohop.serving.errors import Unencodable


def test_a_value_goes_into_a_message_as_it_was_when_it_was_given():
    value = {"blocks": [1, 2]}
    kept = encoded(value)
    value["blocks"].append(object())
    assert unpack(pack({"value": kept})) == {"value": {"blocks": [1, 2]}}


@pytest.mark.parametrize("value", [object(), {"a": 2**64}, "\udc80"])
def test_what_has_no_form_is_told_to_who_gives_it(value):
    with pytest.raises(Unencodable):
        encoded(value)


def test_a_value_has_a_limit():
    assert encoded(b"x" * (MAX_VALUE - 5)) is not None
    with pytest.raises(Unencodable, match=f"more than {MAX_VALUE}"):
        encoded(b"x" * MAX_VALUE)


@pytest.mark.parametrize("value", [0, 2**64 - 1, -(2**63), "", "kéy", "\U0001f600" * 9])
def test_keys_are_no_larger_than_is_said(value):
    assert len(pack(value)) <= octets_of(value)


@pytest.mark.parametrize("value", [2**64 - 1, "\U0001f600" * 20_000])
def test_nor_is_less_said_than_the_largest_take(value):
    assert octets_of(value) == len(pack(value))


def test_values_are_as_large_as_is_said():
    assert octets_of(encoded({"a": 1})) == len(pack({"a": 1}))


@pytest.mark.parametrize(
    ("octets", "count"),
    [
        ([], 0),
        ([1, 2, 3], 3),
        ([MAX_VALUE, 1], 1),
        ([MAX_VALUE + 1, 1], 1),  # it has to go some time
        ([MAX_VALUE // 2] * 3, 2),
    ],
)
def test_a_message_takes_what_is_within_the_limit_and_one_at_least(octets, count):
    assert how_many(octets) == count


def test_a_full_message_is_one_that_is_read():
    assert 2 * MAX_VALUE < MAX_OCTETS


class Speechless(Exception):
    def __str__(self):
        raise LookupError


class Leaving(Exception):
    def __str__(self):
        raise SystemExit


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("no such block"), "ValueError: no such block"),
        (ValueError(), "ValueError"),
        (ValueError("a\udc80b"), "ValueError: a\\udc80b"),
        (Speechless(), "Speechless: (its text raised LookupError)"),
        (Leaving(), "Leaving: (its text raised SystemExit)"),
        (ValueError("x" * 1000), "ValueError: " + "x" * 300),
        (ValueError("\udc80" * 5000), "ValueError: " + ("\\udc80" * 60)[:300]),
    ],
)
def test_every_error_has_words_that_have_a_form(error, words):
    assert words_for(error) == words
    assert unpack(pack(words_for(error))) == words
