"""The messages: each comes back, and grows at its end without breaking older readers."""

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerohop.serving.engine import messages
from zerohop.serving.engine.messages import (
    Abort,
    Beat,
    BeatSeen,
    Delta,
    Ended,
    FromEngine,
    FromEngineOutputs,
    FromServer,
    Goodbye,
    Hello,
    HelloAgain,
    Leaving,
    Outputs,
    Ready,
    Refusal,
    Request,
    Start,
    UtilityCall,
    UtilityResult,
    Welcome,
    as_read,
    first_numbers,
)
from zerohop.serving.errors import Unencodable

TO_LOOP = Request[Any] | Start | Abort | UtilityCall
DELTAS = [Delta(1, [5, 6]), Delta(2, [7], "stop", {"text": "x"})]
SAMPLES = [
    (FromEngine, Hello(1, "e0", 7, ["buffers"], [], {"model": "m"})),
    (FromEngine, Beat(1, 2, 3, 4)),
    (FromServer, Welcome(1, "api", 2, ["buffers"], "ipc:///o", 1.0, 5.0, 4)),
    (FromServer, Refusal("protocol version", 1, 2)),
    (FromServer, BeatSeen(1, True)),
    (FromServer, HelloAgain()),
    (FromServer, Goodbye("closed")),
    (TO_LOOP, Start(1)),
    (TO_LOOP, Request(1 << 40 | 1, {"ids": [1]}, 3, 2.5)),
    (TO_LOOP, Abort([1, 2])),
    (TO_LOOP, UtilityCall(1, "reset", [1, "x"])),
    (FromEngineOutputs, Ready(1, 2, 3, 4)),
    (FromEngineOutputs, Leaving(1, 2, "closed")),
    (
        FromEngineOutputs,
        Outputs(
            1,
            2,
            3,
            4,
            msgspec.Raw(b"\x91\x05"),
            [6],
            DELTAS,
            [Ended(4, "slow", limit=9)],
            [UtilityResult(5, None, [1])],
        ),
    ),
]
named = pytest.mark.parametrize("kind, message", SAMPLES, ids=lambda x: type(x).__name__)


@named
def test_a_message_comes_back(kind, message):
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=kind) == message


@named
def test_a_later_version_may_add_fields_at_the_end(kind, message):
    longer = [*msgspec.msgpack.decode(msgspec.msgpack.encode(message)), "new", {"x": 1}]
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(longer), type=kind) == message


def test_every_message_has_a_sample():
    tagged = {
        name
        for name in messages.__all__
        if isinstance(kind := getattr(messages, name), type)
        and kind.__struct_config__.tag is not None
    }
    assert {type(message).__name__ for _, message in SAMPLES} == tagged


def test_a_delta_of_one_token_costs_a_few_octets():
    assert len(msgspec.msgpack.encode(Delta(300, [5]))) == 8


def test_an_engine_of_an_older_version_need_not_say_what_it_requires():
    short = msgspec.msgpack.encode([1, 1, "e0", 7])
    assert msgspec.msgpack.decode(short, type=FromEngine) == Hello(1, "e0", 7)


@pytest.mark.parametrize("kind", [FromEngine, FromServer, FromEngineOutputs, TO_LOOP])
@given(data=st.binary(max_size=60))
def test_any_octets_are_a_message_or_an_error_of_msgspec(kind, data):
    with contextlib.suppress(msgspec.MsgspecError):
        msgspec.msgpack.decode(data, type=kind)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf"), 1e300])
def test_a_time_that_no_timer_can_be_set_to_is_no_message(seconds):
    for times in ((seconds, 5.0), (1.0, seconds)):
        welcome = msgspec.msgpack.encode(Welcome(1, "api", 2, [], "ipc:///o", *times, 1))
        with pytest.raises(msgspec.ValidationError):
            msgspec.msgpack.decode(welcome, type=FromServer)


@pytest.mark.parametrize("slot", [-1, 1 << 24])
def test_a_slot_whose_numbers_could_not_be_sent_is_no_message(slot):
    ready = msgspec.msgpack.encode(Ready(1, 2, slot, 3))
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(ready, type=FromEngineOutputs)


def test_what_is_sent_later_is_read_now_and_does_not_change():
    told = {"model": "m", "limits": [1, 2]}
    hello = as_read(Hello(1, "e0", 7, info=told), FromEngine)
    told["limits"].append(3)
    assert hello == Hello(1, "e0", 7, info={"model": "m", "limits": [1, 2]})


@pytest.mark.parametrize("told", [{"blocks": object()}, {1: "x"}, {"name": "caf\udce9"}])
def test_what_could_not_be_sent_or_read_later_is_told_now(told):
    with pytest.raises(Unencodable):
        as_read(Hello(1, "e0", 7, info=told), FromEngine)


@given(numbers=st.lists(st.integers(0, 2**64 - 1), max_size=10), rest=st.binary(max_size=5))
def test_the_numbers_that_a_message_begins_with_can_be_read_whatever_follows(numbers, rest):
    header = msgspec.msgpack.encode([*numbers, "the rest"])[: -len("the rest")] + rest
    assert first_numbers(header, 10) == numbers
    assert first_numbers(header, 3) == numbers[:3]


@given(header=st.binary(max_size=40))
def test_any_octets_begin_with_some_numbers_or_none(header):
    assert all(0 <= number < 2**64 for number in first_numbers(header, 5))


@pytest.mark.parametrize("header", [b"", b"\x09", b"\x95", b"\xdc\x00\x05\x01", b"\x95\xcd\x01"])
def test_what_is_cut_off_or_no_array_begins_with_none(header):
    assert first_numbers(header, 5) == []
