"""What a listener's first octets say of it, however they are cut."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.kit.raw import command, greeting, ready
from zerohop.serving.control.findings import ADVICE
from zerohop.serving.control.opening import OPENING, READY, REST, Opening, sound_of

ZMTP_2 = b"\xff" + bytes(7) + b"\x01\x7f"  # libzmq 3's signature: a long frame of one octet
SETTINGS = b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + bytes(18)


def hear(octets, cuts=()):
    """Feed octets; return the opening and what it found."""
    opening = Opening("x")
    edges = [0, *sorted(min(cut, len(octets)) for cut in cuts), len(octets)]
    for begin, end in zip(edges, edges[1:]):
        found = opening.receive_data(octets[begin:end])
        if found is not None or opening.socket_type:
            return opening, found
    return opening, None


def test_ours_is_the_greeting_of_zmtp_3_1_in_two_parts():
    assert greeting() == OPENING + REST
    assert ready(b"DEALER", (b"Identity", b"")) == READY


@pytest.mark.parametrize("kind", [b"ROUTER", b"REP"])
def test_who_can_be_asked_is_no_finding(kind):
    opening, found = hear(greeting() + ready(kind))
    assert found is None
    assert (opening.version, opening.mechanism) == ("3.1", "NULL")
    assert opening.socket_type == kind.decode()


@pytest.mark.parametrize(
    ("octets", "code", "words"),
    [
        (greeting() + ready(b"PUB"), "other_socket_type", "PUB socket"),
        (greeting(minor=0) + ready(b"PULL", (b"Identity", b"me")), "other_socket_type", "PULL"),
        (greeting() + command(b"READY"), "other_socket_type", "nameless"),
        (greeting(mechanism=b"CURVE"), "other_mechanism", "CURVE"),
        (greeting(mechanism=b"PLAIN"), "other_mechanism", "PLAIN"),
        (greeting() + command(b"ERROR", b"\x03400"), "refused", "400"),
        (greeting() + command(b"ERROR"), "refused", "no reason"),
        (greeting() + command(b"PING", b"\0\0"), "no_handshake", "PING where READY"),
        (greeting() + b"\x04\x00", "no_handshake", "where READY"),
        (greeting() + b"\x00\x05hello", "no_handshake", "no command"),
        (greeting() + b"\x05\x00", "no_handshake", "no command"),  # it says that there is more
        (greeting() + b"\x06\x00\x00\x00\x01\x00\x00\x00\x00", "no_handshake", "no command"),
        (ZMTP_2 + b"\x01\x05", "old_zeromq", "2.0 (libzmq 3), its socket is of type DEALER"),
        (ZMTP_2 + b"\x01\xee", "old_zeromq", "2.0 (libzmq 3), and"),
        (ZMTP_2 + b"\x00\x05", "old_zeromq", "1.0"),
        (b"\x01\x00", "old_zeromq", "1.0 (libzmq 2)"),
        (b"HTTP/1.1 400 Bad Request\r\n", "not_zeromq", "HTTP: HTTP/1.1 400 Bad Request"),
        (b"\x15\x03\x01\x00\x02\x02\x46" + bytes(64), "not_zeromq", "TLS"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "not_zeromq", "SSH: SSH-2.0"),
        (b"-ERR unknown command\r\n", "not_zeromq", "Redis"),
        (b"220 mail ESMTP\r\n", "not_zeromq", "SMTP"),
        (b"\x4a\x00\x00\x00\x0a8.0.36\x00", "not_zeromq", "MySQL"),
        (SETTINGS + bytes(64), "not_zeromq", "HTTP/2"),
        (b"hello?\n", "not_zeromq", "not known here: hello?"),
        (b"\n", "not_zeromq", "not known here: \\x0a"),
        (b"\xff" + bytes(63), "not_zeromq", "not known here"),
    ],
    ids=repr,
)
def test_octets_tell_what_is_there(octets, code, words):
    _, found = hear(octets)
    assert found is not None
    assert found.code == code
    assert words in found.detail
    assert found.detail.isprintable()


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        (greeting()[:1], "no_handshake"),
        (greeting()[:10], "no_handshake"),
        (greeting()[:11], "no_handshake"),
        (greeting(), "no_handshake"),
        (greeting() + ready(b"ROUTER")[:1], "no_handshake"),
        (greeting() + b"\x06\x00", "no_handshake"),
        (greeting() + ready(b"ROUTER")[:-1], "no_handshake"),
        (ZMTP_2 + b"\x01", "old_zeromq"),
        (b"\x05\x00name", "old_zeromq"),
        (b"\xff\xfd\x18\xff\xfd\x20\xff\xfd\x23\xff\xfd\x27", "not_zeromq"),
        (SETTINGS, "not_zeromq"),
        (b"HTT", "not_zeromq"),
        (b"\x00", "not_zeromq"),
    ],
)
def test_who_stops_half_way_is_told_by_what_came(octets, code):
    opening, found = hear(octets)
    assert found is None
    found = opening.end("and then closed the connection")
    assert found.code == code
    if code == "no_handshake":
        assert found.detail.endswith("closed the connection")


def test_a_database_is_known_by_its_first_packet():
    assert sound_of(b"\x4a\x00\x00\x00\x0a8.0.36\x00") == "MySQL"
    assert sound_of(b"who knows") == ""


@example(octets=greeting() + ready(b"ROUTER"), cuts=[*range(120)])
@example(octets=greeting(mechanism=b"CURVE"), cuts=[*range(120)])
@given(
    octets=st.sampled_from(
        [
            greeting() + ready(b"ROUTER"),
            greeting() + ready(b"PUB"),
            greeting() + command(b"ERROR", b"\x03400"),
            greeting(mechanism=b"CURVE"),
            b"HTTP/1.1 400 Bad Request\r\n",
        ]
    ),
    cuts=st.lists(st.integers(0, 120), max_size=10),
)
def test_how_the_octets_are_cut_does_not_matter(octets, cuts):
    whole, found = hear(octets)
    pieces, found_in_pieces = hear(octets, cuts)
    assert found_in_pieces == found
    assert pieces.socket_type == whole.socket_type


# What is like an opening, up to some place, and then like nothing.
_beginnings = st.sampled_from(
    [b"", OPENING, greeting(), greeting() + b"\x04\x20\x05READY", greeting() + b"\x06" + bytes(7)]
)


@given(beginning=_beginnings, rest=st.binary(max_size=100))
def test_any_octets_are_a_finding_or_wait_for_more(beginning, rest):
    octets = beginning + rest
    opening, found = hear(octets)
    if octets and found is None:
        found = opening.end("and then said nothing more")
    if found is not None:
        assert found.code in ADVICE
        assert found.detail.isprintable()
