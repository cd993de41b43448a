"""Batches -> bytes: vLLM's, to the octet."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serving.kv import samples
from zerohop.serving.errors import Unencodable
from zerohop.serving.kv.decode import BatchDecoder
from zerohop.serving.kv.encode import BatchEncoder, low_64_bits
from zerohop.serving.kv.events import (
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    EventBatch,
    UnknownEvent,
)

DIGEST = bytes(range(24)) + (2**63 + 5).to_bytes(8, "big")

golden = EventBatch(
    1.5,
    [
        BlockStored(
            *(samples.HASHES, None, samples.TOKENS, 16, None, "GPU", None, [None, None], 0)
        ),
        BlockRemoved([1], "GPU", 0),
        AllBlocksCleared(),
    ],
    0,
)


def shape(octets):
    return msgspec.msgpack.decode(octets)


@pytest.mark.parametrize("version", ["0.24.0", "0.32.0"])
def test_the_map_form_is_vllms_to_the_octet(version):
    assert BatchEncoder().encode(golden) == samples.GOLDEN[version]


def test_the_array_form_is_that_of_vllm_0_22_to_the_octet():
    assert BatchEncoder("array").encode(golden) == samples.GOLDEN["0.22.0"]


@pytest.mark.parametrize("message", samples.CAPTURED)
def test_what_a_running_vllm_sent_is_encoded_to_the_same_octets(message):
    assert BatchEncoder().encode(BatchDecoder().decode(message[-1])) == message[-1]


@pytest.mark.parametrize("events", ["map", "array"])
def test_a_batch_has_three_elements_even_without_a_rank(events):
    assert shape(BatchEncoder(events).encode(EventBatch(1.0, []))) == [1.0, [], None]


def test_a_time_is_a_float():
    assert BatchEncoder().encode(EventBatch(1, []))[1] == 0xCB


def test_four_fields_are_on_the_wire_though_they_are_nil_and_the_others_are_not():
    [_, [event], _] = shape(BatchEncoder().encode(EventBatch(1.0, [BlockStored([1], None, [], 0)])))
    assert event == {
        "type": "BlockStored",
        "block_hashes": [1],
        "parent_block_hash": None,
        "token_ids": [],
        "block_size": 0,
        "lora_id": None,
        "medium": None,
        "lora_name": None,
    }


@pytest.mark.parametrize("events", ["map", "array"])
def test_hashes_of_bytes_become_their_low_64_bits(events):
    batch = EventBatch(
        1.0, [BlockStored([DIGEST, 3], DIGEST, [], 0), BlockRemoved([DIGEST], "GPU")], 0
    )
    decoded = BatchDecoder().decode(BatchEncoder(events).encode(batch))
    assert decoded.events[0].block_hashes == [2**63 + 5, 3]
    assert decoded.events[0].parent_block_hash == 2**63 + 5
    assert decoded.events[1].block_hashes == [2**63 + 5]


@given(
    hashes=st.lists(
        st.one_of(
            st.integers(-(2**63), 2**64 - 1),
            st.integers(2**63, 2**64 - 1),
            st.binary(min_size=1, max_size=9),
            st.sampled_from([b"\xcf" * 7, b"\xd3" * 7, 0, -1, 2**32 - 1, 2**32]),
        ),
        max_size=40,
    )
    | st.lists(st.integers(2**32, 2**64 - 1), min_size=12, max_size=40),
    events=st.sampled_from(["map", "array"]),
)
def test_whatever_is_among_the_hashes_each_is_sent_as_its_number(hashes, events):
    [_, [event], _] = shape(
        BatchEncoder(events).encode(EventBatch(1.0, [BlockStored(hashes, None, [], 0)]))
    )
    sent = event["block_hashes"] if events == "map" else event[1]
    assert sent == [low_64_bits(each) for each in hashes]


@pytest.mark.parametrize("odd", [b"\xcf" * 7, b"seven..", b"", DIGEST, 5, -5])
@pytest.mark.parametrize("at", [0, 7, 63])
def test_one_odd_hash_among_many_is_sent_as_its_number(odd, at):
    hashes = [2**63 + each for each in range(64)]
    hashes[at] = odd
    [_, [event], _] = shape(
        BatchEncoder().encode(EventBatch(1.0, [BlockStored(hashes, None, [], 0)]))
    )
    assert event["block_hashes"] == [low_64_bits(each) for each in hashes]


@pytest.mark.parametrize("events", ["map", "array"])
def test_hashes_stay_bytes_where_that_is_asked_for(events):
    batch = EventBatch(1.0, [BlockStored([DIGEST], DIGEST, [], 0), BlockRemoved([DIGEST])], 0)
    assert BatchDecoder().decode(BatchEncoder(events, hashes="as_is").encode(batch)) == batch


def test_low_64_bits_of_a_number_are_the_number():
    assert [low_64_bits(h) for h in (7, -7, b"\x01", DIGEST)] == [7, -7, 1, 2**63 + 5]


def test_unknown_fields_stand_beside_the_known_ones():
    events = [
        BlockStored([1], None, [], 0, cache_salt="s", extra={"colour": "red"}),
        BlockRemoved([1], "GPU", extra={"why": 1}),
        AllBlocksCleared(extra={"all": True}),
        UnknownEvent("Moved", {"type": "Moved", "to": 3}),
    ]
    [_, encoded, _] = shape(BatchEncoder().encode(EventBatch(1.0, events, 0)))
    assert encoded[0]["cache_salt"] == "s"
    assert encoded[0]["colour"] == "red"
    assert encoded[0]["lora_id"] is None
    assert encoded[1] == {"type": "BlockRemoved", "block_hashes": [1], "medium": "GPU", "why": 1}
    assert encoded[2] == {"type": "AllBlocksCleared", "all": True}
    assert encoded[3] == {"type": "Moved", "to": 3}


def test_an_unknown_event_is_sent_as_it_came():
    batch = EventBatch(1.0, [UnknownEvent("Moved", ["Moved", 3])], 0)
    assert shape(BatchEncoder("array").encode(batch)) == [1.0, [["Moved", 3]], 0]


@pytest.mark.parametrize(
    "event",
    [BlockRemoved([2**64]), BlockRemoved([-(2**63) - 1]), BlockRemoved([object()]), "BlockStored"],
)
@pytest.mark.parametrize("form", ["map", "array"])
def test_what_has_no_form_is_refused_and_says_so(event, form):
    with pytest.raises(Unencodable) as caught:
        BatchEncoder(form, hashes="as_is").encode(EventBatch(1.0, [event], 0))
    assert str(caught.value).startswith("cannot encode")


@pytest.mark.parametrize(("events", "hashes"), [("maps", "int"), ("map", "bytes")])
def test_a_form_that_does_not_exist_is_refused(events, hashes):
    with pytest.raises(ValueError, match="must be"):
        BatchEncoder(events, hashes)


@given(samples.batches)
def test_what_is_encoded_is_decoded_to_the_same(batch):
    assert BatchDecoder().decode(BatchEncoder(hashes="as_is").encode(batch)) == batch
