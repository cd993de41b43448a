"""What each release of LMCache is asked, octet by octet, and what answers a PING."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerohop.serving.control.frames import (
    Request,
    encode_reply,
    parse_reply,
    parse_request,
    refusal,
)
from zerohop.serving.control.lmcache.frames import (
    PINGABLE,
    Pong,
    Refused,
    WrongReply,
    classify_ping_reply,
    encode_request,
    ping_request,
)

TRUE, FALSE, NIL = b"\xc3", b"\xc2", b"\xc0"
PING = Request(b"\x07", 22, (NIL,))


def octets(text):
    return [bytes.fromhex(each) for each in text.split()]


class TestPing:
    def test_of_0_5_6_is_as_it_was_captured(self):
        assert ping_request(0) == octets("00 16 c0")

    @pytest.mark.parametrize(
        ("release", "frames"),
        [
            ("0.4.2", "07 0b"),
            ("0.4.5", "07 0c"),
            ("0.4.6", "07 11"),
            ("0.4.7", "07 12"),
            ("0.5.0", "07 13 c0"),
            ("0.5.3", "07 16 c0"),
        ],
    )
    def test_has_an_argument_from_0_5_0_on(self, release, frames):
        assert ping_request(7, release) == octets(frames)

    def test_may_say_which_worker_is_alive(self):
        assert ping_request(7, instance_id=3) == octets("07 16 03")

    def test_of_a_release_without_it_cannot_be_made(self):
        with pytest.raises(ValueError, match=r"0\.4\.1 has no PING; those that do: 0\.4\.2"):
            ping_request(7, "0.4.1")

    @pytest.mark.parametrize("release", PINGABLE)
    def test_is_answered_by_a_truth_value(self, release):
        request = parse_request(ping_request(7, release))
        assert classify_ping_reply(encode_reply(request, True), 7, release) == Pong()

    def test_is_answered_by_a_boot_token(self):
        assert classify_ping_reply(encode_reply(PING, 1234), 7) == Pong(1234)

    def test_of_an_older_release_is_not_answered_by_an_integer(self):
        """0.5.0 answers 0.4.7's PING with its chunk size."""
        request = parse_request(ping_request(7, "0.4.7"))
        found = classify_ping_reply(encode_reply(request, 256), 7, "0.4.7")
        assert found.reason == "a ping of 0.4.7 is not answered by 256"

    @pytest.mark.parametrize("token", [0, 1])
    def test_is_answered_by_a_boot_token_that_looks_like_a_truth_value(self, token):
        assert classify_ping_reply(encode_reply(PING, token), 7) == Pong(token)

    def test_by_its_name_is_answered_as_by_its_number(self):
        by_name = Request(b"\x07", "ping")
        assert classify_ping_reply(encode_reply(by_name, True), 7) == Pong()

    def test_is_refused_by_who_says_so(self):
        frames = refusal(PING, "no handler for 'ping'")
        assert classify_ping_reply(frames, 7) == Refused("no handler for 'ping'")

    @pytest.mark.parametrize(
        ("frames", "reason"),
        [
            ([], "it is no reply of an LMCache server"),
            ([b"x"], "it is no reply of an LMCache server"),
            ([b"\x07", b"\x16", TRUE, TRUE], "it is no reply of an LMCache server"),
            ([b"\xa1x", b"\x16", TRUE], "the request id is an integer, not a str"),
            ([TRUE, b"\x16", TRUE], "the request id is an integer, not a bool"),
            ([b"\x07", NIL, TRUE], "an operation is a number or a name, not a NoneType"),
            ([b"\x07", b"\x16", b"\xc1"], "it is no reply of an LMCache server"),
            ([b"\x08", b"\x16", TRUE], "it answers request 8, not 7"),
            ([b"\x07", b"\x14", TRUE], "it is of operation 20, not of PING"),
            ([b"\x07", b"\x16", FALSE], "the server says that it is not well"),
            ([b"\x07", b"\x16"], "a ping of 0.5.6 is not answered by None"),
            ([b"\x07", b"\x16", b"\xa2OK"], "is not answered by 'OK'"),
        ],
    )
    def test_is_not_answered_by_anything_else(self, frames, reason):
        found = classify_ping_reply(frames, 7)
        assert isinstance(found, WrongReply)
        assert reason in found.reason


class TestRequest:
    def test_has_a_number_where_the_release_gives_it_one(self):
        assert encode_request(1, "get_chunk_size") == octets("01 15")
        assert encode_request(1, "get_chunk_size", release="0.5.0") == octets("01 12")

    def test_goes_by_its_name_where_it_has_no_number(self):
        frames = encode_request(1, "subscribe_kv_events", 4, "m", 0, 10)
        assert frames == [b"\x01", b"\xb3subscribe_kv_events", b"\x04", b"\xa1m", b"\x00", b"\x0a"]

    def test_never_goes_by_its_name_to_a_release_that_would_stop_answering(self):
        with pytest.raises(ValueError, match=r"LMCache 0\.5\.3 has no operation"):
            encode_request(1, "subscribe_kv_events", release="0.5.3")


@given(st.lists(st.binary(max_size=24), max_size=5), st.sampled_from(PINGABLE))
def test_whatever_came_is_a_finding(frames, release):
    assert isinstance(classify_ping_reply(frames, 7, release), Pong | Refused | WrongReply)


@given(
    st.integers(0, 2**64 - 1),
    st.lists(st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(), max_size=4),
)
def test_what_was_asked_is_what_is_read(uid, arguments):
    request = parse_request(encode_request(uid, "noop", *arguments))
    assert request.operation == 24
    assert len(request.arguments) == len(arguments)
    reply = parse_reply(encode_reply(request, arguments))
    assert (reply.uid, reply.operation, reply.result) == (uid, 24, arguments)
