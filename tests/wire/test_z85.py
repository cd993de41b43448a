"""Z85 (RFC 32): the text form of CURVE keys."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zmq.utils import z85 as reference

from zerohop.wire import z85


def test_the_example_of_the_rfc():
    octets = bytes.fromhex("864fd26fb559f75b")
    assert z85.encode(octets) == b"HelloWorld"
    assert z85.decode(b"HelloWorld") == octets


def test_the_ends_of_the_range():
    assert z85.encode(b"\0\0\0\0") == b"00000"
    assert z85.encode(b"\xff\xff\xff\xff") == b"%nSc0"
    assert z85.encode(b"") == b"" == z85.decode(b"")


@pytest.mark.parametrize("data", [bytearray(b"abcd"), memoryview(b"abcd")])
def test_any_bytes_are_taken(data):
    assert z85.encode(data) == b"vpA.S"
    assert z85.decode(type(data)(b"vpA.S")) == b"abcd"


def test_a_text_is_decoded_too():
    assert z85.decode("vpA.S") == b"abcd"


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_octets_come_in_fours(length):
    with pytest.raises(ValueError, match=f"^length must be multiple of 4, not {length}$"):
        z85.encode(bytes(length))


@pytest.mark.parametrize("length", [1, 4, 6])
def test_characters_come_in_fives(length):
    with pytest.raises(ValueError, match=f"^Z85 length must be multiple of 5, not {length}$"):
        z85.decode(b"0" * length)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"hell ", "not a Z85 character in the group at 0"),
        (b'vpA.Shell"', "not a Z85 character in the group at 5"),
        (b"hell\xff", "not a Z85 character"),
        ("hell\xe9", "string argument should contain only ASCII characters"),
        (b"%nSc1", "exceeds 4 octets"),
        (b"#####", "exceeds 4 octets"),
    ],
)
def test_a_bad_text_says_what_is_wrong_without_repeating_it(text, problem):
    with pytest.raises(ValueError, match=problem) as caught:
        z85.decode(text)
    shown = text if isinstance(text, str) else text.decode("latin-1")
    assert shown not in str(caught.value)


@pytest.mark.parametrize("function", [z85.encode, z85.decode])
@pytest.mark.parametrize("nonsense", [5, None])
def test_what_is_not_bytes_is_a_type_error(function, nonsense):
    with pytest.raises(TypeError):
        function(nonsense)


def test_octets_are_not_given_as_a_str():
    with pytest.raises(TypeError, match="a bytes-like object is required, not 'str'"):
        z85.encode("abcd")


@given(groups=st.lists(st.binary(min_size=4, max_size=4), max_size=20))
def test_round_trip_and_the_same_text_as_pyzmq(groups):
    octets = b"".join(groups)
    text = z85.encode(octets)
    assert z85.decode(text) == octets
    assert text == reference.encode(octets)


@given(text=st.binary(max_size=60))
def test_any_bytes_decode_or_raise_value_error(text):
    try:
        octets = z85.decode(text)
    except ValueError:
        return
    assert z85.encode(octets) == text
