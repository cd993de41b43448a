"""Events as values."""

import msgspec
import pytest

from zerohop.serving.kv.events import (
    NO_EXTRA,
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    EventBatch,
    UnknownEvent,
    fields_of,
)


def test_the_order_of_the_fields_is_that_of_vllms_array():
    assert BlockStored.__struct_fields__[:14] == (
        *("block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium"),
        *("lora_name", "extra_keys", "group_idx", "kv_cache_spec_kind"),
        *("kv_cache_spec_sliding_window", "locality", "ownership", "session_id"),
    )
    assert BlockRemoved.__struct_fields__[:3] == ("block_hashes", "medium", "group_idx")


def test_events_are_equal_by_value_and_do_not_change():
    event = BlockRemoved([1], "GPU")
    assert event == BlockRemoved([1], "GPU")
    assert event != BlockRemoved([1], "CPU")
    with pytest.raises(AttributeError):
        event.medium = "CPU"


def test_events_are_matched_by_their_class():
    match BlockStored([1], None, [5, 6], 2):
        case BlockStored(block_hashes=[first], medium=None):
            assert first == 1
        case _:
            pytest.fail("no match")


def test_what_is_not_told_is_not_shown():
    assert repr(BlockRemoved([1], "GPU")) == "BlockRemoved(block_hashes=[1], medium='GPU')"
    assert repr(EventBatch(1.0, [])) == "EventBatch(ts=1.0, events=[])"


def test_fields_by_name_are_those_that_are_told():
    event = BlockStored([1], None, [5], 1, medium="GPU", extra={"colour": "red"})
    assert fields_of(event) == {
        "type": "BlockStored",
        "block_hashes": [1],
        "token_ids": [5],
        "block_size": 1,
        "medium": "GPU",
        "colour": "red",
    }
    assert fields_of(AllBlocksCleared()) == {"type": "AllBlocksCleared"}


@pytest.mark.parametrize(
    ("raw", "fields"),
    [
        ({"type": "Moved", "to": 3}, {"type": "Moved", "to": 3}),
        (["Moved", 3], {"type": "Moved", "fields": ["Moved", 3]}),
    ],
)
def test_an_unknown_event_shows_what_it_has(raw, fields):
    assert fields_of(UnknownEvent("Moved", raw)) == fields


def test_no_extra_is_empty_and_stays_so():
    assert dict(NO_EXTRA) == {}
    with pytest.raises(TypeError):
        NO_EXTRA["x"] = 1


def test_a_field_named_extra_on_the_wire_is_not_taken_for_ours():
    wire = msgspec.msgpack.encode({"type": "AllBlocksCleared", "extra": {}})
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(wire, type=AllBlocksCleared)
