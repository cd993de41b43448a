"""The frames of requests and replies, octet by octet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerohop.serving.control.frames import (
    Credit,
    Reply,
    Request,
    encode_call,
    encode_reply,
    parse_reply,
    parse_request,
    refusal,
    refused_because,
    result_of,
)
from zerohop.serving.errors import Malformed, ProtocolMismatch, RequestRefused

NIL = b"\xc0"
PING = Request(b"\x07", 22, (NIL,))


def octets(text):
    return [bytes.fromhex(each) for each in text.split()]


class TestRequest:
    def test_is_a_value_a_frame(self):
        assert encode_call(7, 22, None) == octets("07 16 c0")
        assert encode_call(7, "add", 1, "b") == [b"\x07", b"\xa3add", b"\x01", b"\xa1b"]

    def test_is_read_with_its_arguments_still_encoded(self):
        assert parse_request(octets("07 16 c0")) == PING

    @pytest.mark.parametrize(("word", "more"), [(b"ack", True), (b"cancel", False)])
    def test_of_a_stream_is_credit(self, word, more):
        assert parse_request([b"\x07", b"", word]) == Credit(b"\x07", more)

    @pytest.mark.parametrize(
        "frames",
        [
            [],
            [b"x"],
            [b"", b""],
            [NIL, b"\x16"],
            [b"\x07", NIL],
            [b"\x07", b""],
            [b"\x07", b"", b"more"],
            [b"\x07", b"", b"ack", b"ack"],
        ],
    )
    def test_of_another_form_is_malformed(self, frames):
        with pytest.raises(Malformed):
            parse_request(frames)


class TestReply:
    def test_has_no_frame_for_none(self):
        assert encode_reply(PING, None) == octets("07 16")
        assert parse_reply(octets("07 16")) == Reply(7, 22)

    def test_has_a_frame_for_any_other_result(self):
        assert encode_reply(PING, 256) == octets("07 16 cd0100")
        assert parse_reply(octets("07 16 cd0100")) == Reply(7, 22, 256, has_result=True)

    def test_that_refuses_is_of_another_operation_so_that_the_client_raises(self):
        frames = refusal(PING, "why")
        assert frames == [b"\x07", b"\xacrefused: why"]
        assert refused_because(parse_reply(frames)) == "why"

    @pytest.mark.parametrize(
        "frames", [[], [b"\x07"], [b"\x07", b"\x16", NIL, NIL], [NIL, b"\x16"], [b"\x07", NIL]]
    )
    def test_of_another_form_is_malformed_and_shows_how_it_begins(self, frames):
        with pytest.raises(Malformed) as raised:
            parse_reply(frames)
        assert raised.value.data == (NIL if NIL in frames[:2] else b"".join(frames[:1]))

    def test_of_another_operation_is_a_mismatch(self):
        with pytest.raises(ProtocolMismatch, match="here 'ping', there 22"):
            result_of(Reply(7, 22, True, has_result=True), "ping")

    def test_that_refuses_is_raised_in_its_words(self):
        with pytest.raises(RequestRefused, match="why"):
            result_of(parse_reply(refusal(PING, "why")), 22)


@given(st.lists(st.binary(max_size=24), max_size=5))
def test_whatever_came_is_a_request_or_malformed(frames):
    try:
        found = parse_request(frames)
    except Malformed:
        return
    assert isinstance(found, Request | Credit)
