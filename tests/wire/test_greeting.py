"""RFC 37, "Version Negotiation": 64 octets each way, refused at the first one that cannot be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.kit import cuts, octet_by_octet, octets, pieces
from zerohop.constants import Event
from zerohop.errors import HandshakeError, ProtocolError
from zerohop.wire.greeting import Greeting, GreetingDecoder, decode_greeting, encode_greeting

VERSION = pytest.mark.rfc(37, "Version Negotiation")
MECHANISM = pytest.mark.rfc(37, "Authentication and Confidentiality")

NULL = octets("""
    ff 0000000000000000 7f                      # signature
    03 01                                       # version
    4e554c4c 00000000000000000000000000000000   # "NULL", padded to 20 octets
    00                                          # as-server
    00000000000000000000000000000000000000000000000000000000000000  # filler, 31 octets
""")


def decode(*chunks: bytes) -> tuple[Greeting | None, bytes]:
    decoder = GreetingDecoder()
    rest = b"".join([decoder.receive_data(chunk) for chunk in chunks])
    return decoder.greeting, rest


def test_the_same_greeting_need_not_be_read_twice():
    assert decode_greeting(NULL) is decode_greeting(bytes(bytearray(NULL)))


def with_octets(changes: dict[int, int]) -> bytes:
    changed = bytearray(NULL)
    for place, value in changes.items():
        changed[place] = value
    return bytes(changed)


@pytest.mark.rfc(37, "Formal Grammar")
def test_our_greeting():
    assert encode_greeting("NULL") == NULL
    assert encode_greeting("CURVE", as_server=True)[12:33] == b"CURVE" + bytes(15) + b"\1"


@pytest.mark.parametrize("name", ["", "A" * 21, "null", "A B"])
def test_a_mechanism_of_ours_has_a_proper_name(name):
    with pytest.raises(AssertionError):
        encode_greeting(name)


@VERSION
def test_our_greeting_is_understood():
    assert decode(NULL) == (Greeting(minor=1, mechanism="NULL", as_server=False), b"")


def test_what_follows_the_greeting_is_handed_back():
    assert decode(NULL + b"\4\5READY")[1] == b"\4\5READY"
    assert decode(NULL[:30], NULL[30:] + b"x", b"yz")[1] == b"xyz"


@VERSION
@pytest.mark.parametrize(
    ("major", "minor", "spoken"),
    [
        pytest.param(3, 0, 0, id="3.0"),
        pytest.param(3, 1, 1, id="3.1"),
        pytest.param(3, 2, 1, id="3.2 is treated as 3.1"),
        pytest.param(4, 0, 1, id="4.0 is treated as 3.1"),
        pytest.param(255, 255, 1, id="255.255 is treated as 3.1"),
    ],
)
def test_higher_versions_are_accepted(major, minor, spoken):
    greeting, _ = decode(with_octets({10: major, 11: minor}))
    assert greeting.minor == spoken


@VERSION
def test_padding_filler_and_as_server_have_no_significance():
    changes = dict.fromkeys([*range(1, 9), *range(33, 64)], 0xAA)
    assert decode(with_octets(changes))[0] == decode(NULL)[0]
    assert decode(with_octets({32: 1}))[0].as_server
    assert not decode(with_octets({32: 7}))[0].as_server


@VERSION
@pytest.mark.parametrize(
    ("stream", "needed", "version"),
    [
        pytest.param("01 00", 2, "1.0", id="1.0, no identity"),
        pytest.param("06 00 6162636465", 2, "1.0", id="1.0 with an identity"),
        pytest.param("ff 0000000000000001 00", 10, "1.0", id="1.0, long form of the length"),
        pytest.param("ff 0000000000000001 7f 00", 11, "1.0", id="revision 0"),
        pytest.param("ff 0000000000000001 7f 01", 11, "2.0", id="2.0"),
        pytest.param("ff 0000000000000001 7f 02", 11, "2.0", id="2.1"),
    ],
)
def test_older_peers_are_refused_by_name_as_soon_as_they_show(stream, needed, version):
    stream = octets(stream)
    with pytest.raises(HandshakeError, match=rf"ZMTP {version}, and at least 3\.0 is needed") as e:
        decode(stream)
    assert "libzmq 4.0" in e.value.__notes__[0]
    with pytest.raises(ProtocolError):
        decode(*octet_by_octet(stream[:needed]))


@pytest.mark.parametrize(
    ("stream", "name"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n", "an HTTP request"),
        (b"POST /v1/completions HTTP/1.1\r\n", "an HTTP request"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "an HTTP request"),
        (b"HTTP/1.1 400 Bad Request\r\n", "an HTTP response"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "a TLS handshake"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "a TLS alert"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "an SSH banner"),
    ],
)
def test_a_stranger_is_called_by_its_name(stream, name):
    with pytest.raises(ProtocolError, match=f"does not speak ZMTP but sent {name}") as caught:
        decode(stream)
    assert "which program has this port" in caught.value.__notes__[0]


@pytest.mark.parametrize("stream", [bytes(64), b"G", b"\x05hello", b"\xfe" * 64])
def test_anything_else_is_shown(stream):
    with pytest.raises(ProtocolError, match="does not speak ZMTP: it began with b'") as caught:
        decode(stream)
    assert not isinstance(caught.value, HandshakeError)
    assert caught.value.source == "RFC 37, Version Negotiation"


@MECHANISM
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(bytes(20), id="empty"),
        pytest.param(b"null".ljust(20, b"\0"), id="small letters"),
        pytest.param(b"NU\0LL".ljust(20, b"\0"), id="not padded at the end"),
        pytest.param(b"\xff" * 20, id="no text"),
        pytest.param(b"NULL".ljust(20, b" "), id="padded with spaces"),
    ],
)
def test_a_mechanism_that_is_no_name_is_refused(name):
    with pytest.raises(ProtocolError, match="which is no name of one") as caught:
        decode(NULL[:12] + name + NULL[32:])
    assert caught.value.code == Event.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH


@MECHANISM
def test_a_mechanism_may_fill_its_place():
    name = b"ABCDEFGHIJKLM-_.+019"
    assert decode(NULL[:12] + name + NULL[32:])[0].mechanism == name.decode()


def outcome(chunks: list[bytes]):
    """What came out, or what kind of error."""
    try:
        return decode(*chunks)
    except ProtocolError as error:
        return type(error)


@given(
    stream=st.one_of(
        st.binary(max_size=100),
        st.dictionaries(st.integers(0, 63), st.integers(0, 255), max_size=3).map(with_octets),
    ),
    places=cuts,
)
def test_how_the_stream_is_cut_does_not_matter(stream, places):
    whole, cut = outcome([stream]), outcome(pieces(stream, places))
    # A stranger may be told from an old peer by a second octet, which is not waited for.
    assert cut == whole or {whole, cut} == {ProtocolError, HandshakeError}


@given(st.dictionaries(st.integers(12, 63), st.integers(0, 255), max_size=40))
def test_whatever_it_says_it_is_a_greeting_or_refused(changes):
    try:
        greeting, rest = decode(with_octets(changes))
    except ProtocolError:
        return
    assert greeting.mechanism.isascii()
    assert rest == b""
