"""RFC 37: the bodies of commands, octet by octet, and what they may not be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.kit import octets
from zerohop.constants import Event
from zerohop.errors import ProtocolError
from zerohop.wire import commands
from zerohop.wire.commands import (
    decode_error,
    decode_metadata,
    decode_ping,
    encode_command,
    encode_error,
    encode_metadata,
    encode_ping,
    encode_pong,
    encode_ready,
    encode_subscription,
    split_command,
)

GRAMMAR = pytest.mark.rfc(37, "Formal Grammar")
NULL = pytest.mark.rfc(37, "The NULL Security Mechanism")
PUBSUB = pytest.mark.rfc(37, "The Publish-Subscribe Pattern")
HEARTBEAT = pytest.mark.rfc(37, "Connection Heartbeating")

MALFORMED = Event.PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_UNSPECIFIED


@GRAMMAR
def test_a_command_is_a_name_with_its_length_and_data():
    assert encode_command(b"PONG", b"ab") == octets("04 504f4e47 6162")
    assert split_command(octets("04 504f4e47 6162")) == (b"PONG", b"ab")
    assert split_command(octets("01 41")) == (b"A", b"")
    assert split_command(b"\xff" + b"A" * 255) == (b"A" * 255, b"")


@GRAMMAR
@pytest.mark.parametrize("body", ["", "00", "00 41", "02 41", "ff"])
def test_a_name_has_at_least_one_octet_and_is_within_the_body(body):
    with pytest.raises(ProtocolError) as caught:
        split_command(octets(body))
    assert caught.value.code == MALFORMED
    assert caught.value.source == "RFC 37, Formal Grammar"


@NULL
def test_ready_is_a_list_of_properties():
    assert encode_ready({"Socket-Type": b"PUSH", "Identity": b""}) == octets("""
        05 5245414459               # READY
        0b 536f636b65742d54797065   # Socket-Type
        00000004 50555348           # PUSH
        08 4964656e74697479         # Identity
        00000000
    """)


@NULL
def test_names_of_properties_have_no_case():
    metadata = encode_metadata({"SOCKET-type": b"PUSH", "x-Me": b"\0\xff"})
    assert decode_metadata(metadata) == {"socket-type": b"PUSH", "x-me": b"\0\xff"}


def test_of_a_property_that_comes_twice_the_last_counts():
    assert decode_metadata(encode_metadata({"A": b"1", "a": b"2"})) == {"a": b"2"}


def test_no_metadata():
    assert encode_metadata({}) == b""
    assert decode_metadata(b"") == {}


@NULL
@pytest.mark.parametrize(
    "data",
    [
        pytest.param("00 00000000", id="name of no octets"),
        pytest.param("05 6162", id="name beyond the data"),
        pytest.param("01", id="no name"),
        pytest.param("01 61", id="no length of the value"),
        pytest.param("01 61 000000", id="length of the value cut short"),
        pytest.param("01 61 00000002 62", id="value beyond the data"),
        pytest.param("01 61 ffffffff", id="value over 2^31 - 1"),
        pytest.param("01 ff 00000000", id="name not ASCII"),
        pytest.param("01 61 00000001 62 01", id="second property cut short"),
    ],
)
def test_metadata_may_not_be(data):
    with pytest.raises(ProtocolError, match="bad metadata: property .* is malformed") as caught:
        decode_metadata(octets(data))
    assert caught.value.code == Event.PROTOCOL_ERROR_ZMTP_INVALID_METADATA


def test_properties_are_limited_in_number(monkeypatch):
    monkeypatch.setattr(commands, "MAX_PROPERTIES", 5)
    assert len(decode_metadata(b"".join(octets(f"01 6{i} 00000000") for i in range(5)))) == 5
    with pytest.raises(ProtocolError, match="over 5 properties"):
        decode_metadata(b"".join(octets(f"01 6{i} 00000000") for i in range(6)))


@pytest.mark.parametrize("name", ["", "a" * 256])
def test_a_property_of_ours_has_a_proper_name(name):
    with pytest.raises(ValueError, match=f"1 to 255 characters, not {len(name)}"):
        encode_metadata({name: b""})


def test_a_value_of_ours_is_below_two_gigabytes():
    class Huge(bytes):
        def __len__(self):
            return 2**31

    with pytest.raises(ValueError, match="the value of X-a has 2147483648 octets"):
        encode_metadata({"X-a": Huge()})


names = st.text(st.characters(codec="ascii"), min_size=1, max_size=255)


@given(st.dictionaries(names, st.binary(max_size=300), max_size=10))
def test_metadata_comes_back(properties):
    decoded = decode_metadata(encode_metadata(properties))
    assert decoded == {name.lower(): value for name, value in properties.items()}


@given(st.binary(max_size=200))
def test_any_octets_are_metadata_or_refused(junk):
    try:
        properties = decode_metadata(junk)
    except ProtocolError:
        return
    assert sum(len(name) + len(value) for name, value in properties.items()) <= len(junk)


@NULL
def test_error_is_a_reason_with_its_length():
    assert encode_error("400") == octets("05 4552524f52 03 343030")
    assert decode_error(octets("03 343030")) == "400"
    assert decode_error(octets("00")) == ""


def test_a_reason_is_cut_and_escaped_when_sent():
    assert encode_error("x" * 300) == b"\x05ERROR\xff" + b"x" * 255
    assert encode_error("\xfc") == b"\x05ERROR\x04\\xfc"


def test_a_reason_is_fit_to_print_when_received():
    """It ends in logs and on terminals."""
    assert decode_error(b"\x06a\x1b[2J\xff") == "a\\x1b[2J\\xff"


@pytest.mark.parametrize("data", ["", "01", "04 343030"])
def test_a_reason_beyond_the_data_is_refused(data):
    with pytest.raises(ProtocolError, match="cut short") as caught:
        decode_error(octets(data))
    assert caught.value.code == Event.PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_ERROR


@PUBSUB
def test_subscriptions():
    assert encode_subscription(b"kv", subscribe=True) == octets("09 535542534352494245 6b76")
    assert encode_subscription(b"kv", subscribe=False) == octets("06 43414e43454c 6b76")


@HEARTBEAT
def test_ping_is_a_ttl_in_tenths_of_seconds_and_a_context():
    assert encode_ping(655, b"ab") == octets("04 50494e47 028f 6162")
    assert encode_ping(0) == octets("04 50494e47 0000")
    assert decode_ping(octets("028f 6162")) == (655, b"ab")
    assert decode_ping(octets("ffff")) == (65535, b"")


@HEARTBEAT
def test_a_context_is_cut_to_16_octets():
    assert decode_ping(bytes(2) + b"c" * 30) == (0, b"c" * 16)


@HEARTBEAT
@pytest.mark.parametrize("data", ["", "00"])
def test_a_ping_has_room_for_its_ttl(data):
    with pytest.raises(ProtocolError, match="its TTL takes 2") as caught:
        decode_ping(octets(data))
    assert caught.value.code == MALFORMED


@HEARTBEAT
def test_pong_echoes_the_context():
    assert encode_pong(b"ab") == octets("04 504f4e47 6162")
