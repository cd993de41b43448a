"""msgpack within limits."""

import msgspec
import pytest

from zerohop.serving.codec import decode_with, pack, unpack
from zerohop.serving.errors import Malformed, Unencodable


def test_values_come_back():
    value = {"a": [1, 2.5, None, True, b"x"], "b": {"c": "d"}}
    assert unpack(pack(value)) == value
    assert unpack(memoryview(pack(value))) == value


def test_a_typed_decoder_says_where_the_types_differ():
    decode = msgspec.msgpack.Decoder(list[int]).decode
    with pytest.raises(Malformed, match=r"Expected `int`, got `str` - at `\$\[1\]`"):
        decode_with(decode, pack([1, "2"]))


@pytest.mark.parametrize(
    ("octets", "reason", "offset"),
    [
        (b"", "truncated", None),
        (b"\x92\xc1", "invalid opcode", 1),
        (b"\x91" * 100_000, "nested too deeply", None),
        (b"\xa1\xff", "UTF-8", None),
    ],
)
def test_what_is_not_msgpack_is_malformed(octets, reason, offset):
    with pytest.raises(Malformed) as caught:
        unpack(octets)
    assert reason in caught.value.reason
    assert (caught.value.data, caught.value.offset) == (octets, offset)


def test_what_a_value_makes_of_itself_is_the_peers_fault_too():
    def decode(data):
        raise OverflowError

    with pytest.raises(Malformed, match="OverflowError"):
        decode_with(decode, b"x")


def test_a_message_has_a_limit():
    assert unpack(pack("four"), limit=5) == "four"
    with pytest.raises(Malformed, match="more than the limit of 4 octets") as caught:
        unpack(pack("four"), limit=4)
    assert caught.value.__notes__ == ["raise the limit if such messages are expected"]


@pytest.mark.parametrize("value", [object(), 2**64, {"a": [lambda: 0]}])
def test_what_msgpack_has_no_form_for_is_refused(value):
    with pytest.raises(Unencodable) as caught:
        pack(value)
    assert caught.value.value is value
