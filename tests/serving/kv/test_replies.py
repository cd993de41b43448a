"""The frames of both sockets, in each of their forms."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerohop.serving.codec import MAX_OCTETS, pack
from zerohop.serving.errors import Malformed
from zerohop.serving.kv.replies import (
    END,
    FAR,
    Head,
    Live,
    Reply,
    Request,
    answer_replay,
    answer_snapshot,
    parse_live,
    parse_reply,
    parse_request,
    replay_request,
    seq_octets,
    snapshot_request,
)
from zerohop.serving.kv.ring import ReplayRing

THREE = bytes(7) + b"\x03"
LIFE = b"i" * 16


def ring(*numbers):
    made = ReplayRing()
    for seq in numbers:
        made.append(seq, b"%d" % seq)
    return made


# ---- requests ----


def test_vllms_request_is_a_delimiter_and_a_number():
    assert replay_request(3, None) == [b"", THREE]
    assert parse_request([b"", THREE]) == Request("replay", 3, None)


def test_a_req_needs_no_delimiter_of_its_own():
    assert parse_request([THREE]) == Request("replay", 3, None)


def test_our_request_is_one_frame_that_others_take_for_a_number_never_reached():
    [delimiter, octets] = replay_request(3, 7)
    assert delimiter == b""
    assert int.from_bytes(octets, "big") >= 2**63 - 1  # vLLM, SGLang and TensorRT-LLM read it so
    assert int.from_bytes(octets[:8], "big", signed=True) == 2**63 - 1  # who reads eight octets
    assert parse_request([b"", octets]) == Request("replay", 3, 7)


def test_a_snapshot_is_asked_for_in_the_same_form():
    assert parse_request(snapshot_request(7)) == Request("snapshot", 0, 7)


def test_a_number_may_have_any_length_as_with_vllm():
    assert parse_request([b"", b"\x03"]).start == 3
    assert parse_request([b"", FAR]).start == 2**63 - 1
    assert parse_request([b"", b"\x01" + bytes(8)]).start == 2**64
    assert parse_request([b"", bytes(4095) + b"\x01"]).start == 1
    with pytest.raises(Malformed):
        parse_request([b"", bytes(4096) + b"\x01"])


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [b""],
        [b"", b""],
        [b"", THREE, b""],
        [b"x", THREE],
        [b"", bytes(5000)],
        [b"", FAR + b"\xc1"],
        [b"", FAR + pack({"zerohop": 1, "id": 1, "ask": "everything"})],
        [b"", FAR + pack({"zerohop": 1, "id": 1, "ask": "replay", "from": "start"})],
        [b"", FAR + bytes(5000)],
    ],
)
def test_what_is_no_request_is_malformed(frames):
    with pytest.raises(Malformed):
        parse_request(frames)


# ---- live ----


def test_a_live_message_has_a_topic_a_number_and_a_batch():
    assert parse_live([b"kv", THREE, b"batch"]) == Live(b"kv", 3, b"batch")


def test_the_topic_may_be_missing():
    assert parse_live([THREE, b"batch"]) == Live(b"", 3, b"batch")


@pytest.mark.parametrize("frames", [[], [b"batch"], [b"", b"3", b"batch"], [b""] * 4])
def test_a_live_message_without_a_number_is_malformed(frames):
    with pytest.raises(Malformed):
        parse_live(frames)


# ---- replies ----


@pytest.mark.parametrize(
    "frames",
    [
        [b"", b"kv", THREE, b"batch"],  # vLLM from 0.26, SGLang 0.5.23, TensorRT-LLM
        [b"", b"", THREE, b"batch"],
        [b"", THREE, b"batch"],  # vLLM 0.9 to 0.25
        [b"kv", THREE, b"batch"],  # a REQ's, which takes the delimiter away
        [THREE, b"batch"],
    ],
)
def test_a_batch_is_read_in_each_form(frames):
    assert parse_reply(frames) == Reply("batch", 3, b"batch")


@pytest.mark.parametrize("frames", [[b"", b"", END, b""], [b"", END, b""], [END, b""]])
def test_an_end_is_read_in_each_form(frames):
    assert parse_reply(frames) == Reply("end")


def test_a_head_and_an_end_of_ours_say_more():
    head = {"zerohop": 1, "id": 7, "incarnation": LIFE, "oldest": 2, "next": 9, "too_old": True}
    assert parse_reply([b"", b"", FAR, pack(head)]).head == Head(1, 7, LIFE, 2, 9, True)
    assert parse_reply([b"", b"", END, pack({"zerohop": 1, "id": 7})]) == Reply(
        "end", head=Head(1, 7)
    )


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [THREE],
        [b"", b"3", b"batch"],
        [b"", b"", b"", THREE, b"batch"],
        [b"", b"", END, b"\xc1"],
        [b"", b"", FAR, b""],
        [b"", b"", FAR, pack({"zerohop": "one"})],
        [b"", b"kv", THREE, bytes(MAX_OCTETS + 1)],
    ],
)
def test_what_is_no_reply_is_malformed(frames):
    with pytest.raises(Malformed):
        parse_reply(frames)


@given(st.lists(st.binary(max_size=12) | st.sampled_from([END, FAR, THREE, b""]), max_size=5))
def test_any_frames_are_something_or_malformed(frames):
    for parse in (parse_live, parse_reply, parse_request):
        with suppress(Malformed):
            assert parse(frames) is not None


# ---- answers ----


def test_vllms_request_is_answered_in_vllms_form():
    answer = answer_replay(parse_request([b"", THREE]), ring(2, 3, 4).replay(3), LIFE, b"kv")
    assert list(answer) == [
        [b"", b"kv", seq_octets(3), b"3"],
        [b"", b"kv", seq_octets(4), b"4"],
        [b"", b"", END, b""],
    ]


def test_our_request_is_told_who_answers_and_what_is_missing():
    request = parse_request(replay_request(1, 7))
    head, batch, end = map(parse_reply, answer_replay(request, ring(3).replay(1), LIFE, b"kv"))
    assert head == Reply("head", head=Head(1, 7, LIFE, 3, 4, too_old=True))
    assert batch == Reply("batch", 3, b"3")
    assert end == Reply("end", head=Head(1, 7))


def test_a_snapshot_is_numbered_from_0_and_says_which_batch_comes_next():
    request = parse_request(snapshot_request(7))
    answer = map(parse_reply, answer_snapshot(request, [b"a", b"b"], 9, LIFE))
    assert list(answer) == [
        Reply("head", head=Head(1, 7, LIFE, 9, 9)),
        Reply("batch", 0, b"a"),
        Reply("batch", 1, b"b"),
        Reply("end", head=Head(1, 7)),
    ]


def test_that_there_is_no_snapshot_is_said():
    head, end = map(parse_reply, answer_snapshot(Request("snapshot", 0, 7), None, 9, LIFE))
    assert head.head.too_old
    assert end.kind == "end"
