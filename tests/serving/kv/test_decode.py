"""Bytes -> batches: every engine, every version, and whatever else may come."""

from collections import Counter
from contextlib import suppress
from itertools import permutations
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serving.kv import samples
from zerohop.serving.errors import Malformed
from zerohop.serving.kv.decode import BatchDecoder
from zerohop.serving.kv.encode import BatchEncoder
from zerohop.serving.kv.events import AllBlocksCleared, BlockRemoved, BlockStored, UnknownEvent

pack = msgspec.msgpack.encode
BIG = 2**63 + 5


def decode(value):
    return BatchDecoder().decode(value if isinstance(value, bytes) else pack(value))


def event(value):
    return decode([1.5, [value], 0]).events[0]


# ---- vLLM ----


@pytest.mark.parametrize("version", samples.GOLDEN)
def test_every_schema_of_vllm_is_understood(version):
    batch = decode(samples.GOLDEN[version])
    stored, removed, cleared = batch.events
    assert batch.ts == 1.5
    assert (stored.block_hashes, stored.parent_block_hash) == (samples.HASHES, None)
    assert (stored.token_ids, stored.block_size) == (samples.TOKENS, 16)
    assert removed.block_hashes == [1]
    assert cleared == AllBlocksCleared()
    known = version.split(".")[1]
    assert batch.dp_rank == (None if known == "9" else 0)
    assert stored.medium == removed.medium == (None if known == "9" else "GPU")
    assert stored.extra_keys == ([None, None] if int(known) >= 17 else None)
    assert stored.group_idx == removed.group_idx == (0 if int(known) >= 22 else None)


def test_what_a_running_vllm_sends_is_decoded_without_tolerance():
    decoder = BatchDecoder()
    first, second = [decoder.decode(message[-1]) for message in samples.CAPTURED]
    assert decoder.tolerated == 0
    assert first.events[0].kv_cache_spec_kind == "full_attention"
    assert second.events[0].parent_block_hash == first.events[0].block_hashes[0]


def test_fields_of_later_vllm_are_known_by_name():
    told = {"locality": "LOCAL", "ownership": "SHARED", "session_id": "s"}
    stored = event({"type": "BlockStored", "block_hashes": [1], "parent_block_hash": None,
                    "token_ids": [], "block_size": 0, **told})  # fmt: skip
    assert (stored.locality, stored.ownership, stored.session_id) == tuple(told.values())
    assert dict(stored.extra) == {}


def test_hash_only_events_are_no_errors():
    assert event(["BlockStored", [5], None, [], 0, None, "CPU"]).token_ids == []
    stored = event({"type": "BlockStored", "block_hashes": [5], "medium": "CPU"})
    assert (stored.parent_block_hash, stored.token_ids, stored.block_size) == (None, [], 0)


def test_extra_keys_may_be_raw_bytes():
    keys = [[b"\xff" * 32], None]
    stored = event(["BlockStored", [1, 2], None, [], 0, None, "GPU", None, keys])
    assert stored.extra_keys == keys


def test_hashes_may_be_bytes():
    assert event(["BlockRemoved", [b"\x01" * 32], "GPU"]).block_hashes == [b"\x01" * 32]


# ---- SGLang ----


def test_sglang_has_signed_hashes_and_other_names_of_media():
    stored = event(["BlockStored", [-5], -(2**63), [1, 2], 2, None, "CPU_PINNED"])
    assert (stored.block_hashes, stored.parent_block_hash) == ([-5], -(2**63))
    assert stored.medium == "CPU_PINNED"


def test_sglang_0_5_18_has_a_map_at_the_end_of_what_is_salted():
    row = ["BlockStored", [1], None, [7], 1, None, "GPU", {"cache_salt": "s", "colour": 3}]
    assert event(row) == BlockStored(
        [1], None, [7], 1, None, "GPU", cache_salt="s", extra={"colour": 3}
    )


def test_sglang_with_eagle_has_pairs_of_tokens():
    pairs = [[1, 2], [2, 3]]
    assert event(["BlockStored", [1], None, pairs, 2, None]).token_ids == pairs


def test_sglang_names_the_rank_in_its_own_way():
    assert decode({"ts": 1, "events": [], "attn_dp_rank": 3}).dp_rank == 3


# ---- others ----


def test_tensorrt_llm_has_tokens_that_are_text_and_multimodal_keys():
    keys = [[{"type": "mm_key", "hash": "ab", "start_offset": 0, "uuid": None}]]
    stored = event({"type": "BlockStored", "block_hashes": [1], "parent_block_hash": None,
                    "token_ids": ["a", 5], "block_size": 2, "lora_id": None, "medium": "GPU",
                    "lora_name": None, "mm_keys": keys})  # fmt: skip
    assert (stored.token_ids, stored.mm_keys) == (["a", 5], keys)


def test_llm_d_has_events_in_bytes_and_two_elements():
    inner = ["BlockStored", [1], None, [7], 1, None]
    batch = decode([1.5, [pack(inner), pack({"type": "AllBlocksCleared"})]])
    assert batch.events == [BlockStored([1], None, [7], 1), AllBlocksCleared()]
    assert batch.dp_rank is None


@pytest.mark.parametrize(
    "value",
    [
        {"type": "CacheStoreEvent", "parent_block_hash": 4},
        {"kind": "stored", "parent": 4},
        {"parent_hash": 4},
    ],
)
def test_lmcache_has_other_names(value):
    told = {"block_hashes": [5], "token_ids": [7], "block_size": 1, "medium": "cpu"}
    assert event(value | told) == BlockStored([5], 4, [7], 1, medium="cpu")


def test_lmcache_says_kind():
    assert event({"kind": "removed", "block_hashes": [b"x"], "seq": 4}) == BlockRemoved(
        [b"x"], extra={"seq": 4}
    )


def test_a_batch_may_be_a_map():
    batch = decode(
        {"events": [["AllBlocksCleared"]], "colour": 3, "data_parallel_rank": 2, "ts": 1}
    )
    assert (batch.ts, batch.dp_rank, batch.extra) == (1.0, 2, {"colour": 3})
    assert batch.events == [AllBlocksCleared()]


def test_maps_and_arrays_may_be_mixed():
    batch = decode([1, [["BlockRemoved", [1]], {"type": "AllBlocksCleared"}], 0])
    assert batch.events == [BlockRemoved([1]), AllBlocksCleared()]


def test_keys_may_be_bytes():
    batch = decode({b"ts": 1.0, b"events": [{b"type": "BlockRemoved", b"block_hashes": [1]}]})
    assert batch.events == [BlockRemoved([1])]


# ---- what is unknown is kept ----


def test_unknown_fields_are_kept_by_name():
    removed = event({"type": "BlockRemoved", "block_hashes": [1], "colour": [1, {"a": None}]})
    assert removed == BlockRemoved([1], extra={"colour": [1, {"a": None}]})


def test_further_elements_are_kept_by_position():
    assert event(["BlockRemoved", [1], "GPU", 0, "LOCAL", None, 7]) == BlockRemoved(
        [1], "GPU", 0, "LOCAL", extra={"6": 7}
    )
    assert decode([1.5, [], 0, "more"]).extra == {"3": "more"}


def test_a_field_of_another_type_than_its_own_is_kept_as_if_it_were_unknown():
    removed = event({"type": "BlockRemoved", "block_hashes": [1], "medium": 3})
    assert removed == BlockRemoved([1], extra={"medium": 3})
    assert decode([1.5, [], "zero"]).extra == {"dp_rank": "zero"}


def test_unknown_events_are_kept_and_counted():
    decoder = BatchDecoder()
    raw = [["Moved", 1], {"type": "Moved", "to": 2}, {"nothing": 1}, {"type": 5}]
    raw += [{"block_hashes": [1]}, {"token_ids": [1]}]  # which of the events, nobody can tell
    batch = decoder.decode(pack([1.5, [*raw, ["AllBlocksCleared"]], 0]))
    assert batch.events == [
        UnknownEvent("Moved", raw[0]),
        UnknownEvent("Moved", raw[1]),
        UnknownEvent("", raw[2]),
        UnknownEvent("", raw[3]),
        UnknownEvent("", raw[4]),
        UnknownEvent("", raw[5]),
        AllBlocksCleared(),
    ]
    assert decoder.unknown == Counter({"Moved": 2, "": 4})
    assert decoder.tolerated == 1


def test_a_peer_with_ever_new_types_fills_no_memory():
    decoder = BatchDecoder()
    for number in range(200):
        decoder.decode(pack([1.5, [[f"type {number}"]], 0]))
    assert len(decoder.unknown) <= 65
    assert decoder.unknown.total() == 200


def test_a_field_named_extra_is_an_unknown_field_like_any_other():
    assert event({"type": "AllBlocksCleared", "extra": {}}).extra == {"extra": {}}


# ---- what cannot be understood ----


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (5, "a batch is an array or a map"),
        ([], "a batch is an array or a map"),
        ([1.5], "a batch is an array or a map"),
        (["then", [], 0], "a batch has a time"),
        ([1.5, "events", 0], "a batch has a time"),
        ({"events": []}, "a batch has a time"),
        ([1.5, [5], 0], "event 0 is neither a map nor an array"),
        ([1.5, [["AllBlocksCleared"], [5]], 0], "event 1 is neither a map nor an array"),
        ([1.5, [["BlockRemoved"]], 0], "event 0, BlockRemoved: it has no block_hashes"),
        ([1.5, [["BlockRemoved", None]], 0], "event 0, BlockRemoved: it has no block_hashes"),
        ([1.5, [["BlockRemoved", ["aGFzaA=="]]], 0], "event 0, BlockRemoved: block_hashes: Exp"),
        ([1.5, [["BlockStored", [1], "p", [], 0]], 0], "event 0, BlockStored: parent_block_hash"),
        ([1.5, [["BlockStored", [1], None, [], "x"]], 0], "event 0, BlockStored: block_size"),
        ([1.5, [["BlockStored", [1], None, [1.5], 1]], 0], "event 0, BlockStored: token_ids"),
        ([1.5, [b"\xc1"], 0], "event 0: "),
    ],
)
def test_what_cannot_be_understood_is_refused_with_its_bytes_and_a_reason(value, reason):
    decoder = BatchDecoder()
    with pytest.raises(Malformed) as caught:
        decoder.decode(pack(value))
    assert caught.value.data == pack(value)
    assert caught.value.reason.startswith(reason)
    assert decoder.malformed == 1


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"\xc1",
        b"\xdd\xff\xff\xff\xff",  # an array of four billion
        b"\x91" * 100_000,  # nested
        b"\x81\x91\x01\x02",  # a key that is an array
        b"\x81\x80\x02",  # a key that is a map
        b"\xd6\xff\x00\x00\x00\x00",  # a time of msgpack's own
        b"\xc7\x0c\xff" + b"\xff" * 12,  # such a time, out of range
        b"\xa1\xff",  # text that is not UTF-8
        pack([1.5, [], 0]) + b"\x00",  # an octet too many
    ],
)
def test_bytes_that_are_no_batch_are_refused_and_nothing_else_happens(octets):
    with pytest.raises(Malformed) as caught:
        BatchDecoder().decode(octets)
    assert caught.value.data == octets


def test_a_batch_over_the_limit_is_refused():
    assert BatchDecoder(limit=12).decode(pack([1.5, [], 0])).events == []
    with pytest.raises(Malformed, match="more than the limit of 11 octets"):
        BatchDecoder(limit=11).decode(pack([1.5, [], 0]))


def test_an_offset_is_told_where_there_is_one():
    with pytest.raises(Malformed) as caught:
        BatchDecoder().decode(b"\x92\xc1")
    assert caught.value.offset == 1


# ---- whatever may come ----


def assert_is_a_batch_or_malformed(octets):
    error = None
    try:
        BatchDecoder().decode(octets)
    except Malformed as caught:
        error = caught
    assert error is None or (error.data == octets and error.reason)


@given(samples.batches, st.integers(0, 2**32))
def test_the_order_of_fields_does_not_matter(batch, seed):
    ts, events, rank = msgspec.msgpack.decode(BatchEncoder(hashes="as_is").encode(batch))
    shuffle = Random(seed).shuffle
    shuffled = []
    for each in events:
        fields = list(each.items())
        shuffle(fields)
        shuffled.append(dict(fields))
    assert decode([ts, shuffled, rank]) == batch


@given(samples.batches, st.dictionaries(st.text(max_size=8), st.integers() | st.text(), max_size=3))
def test_unknown_fields_change_nothing_else(batch, unknown):
    ts, events, rank = msgspec.msgpack.decode(BatchEncoder(hashes="as_is").encode(batch))
    new = {f"x-{name}": value for name, value in unknown.items() if _fits(value)}
    decoded = decode([ts, [each | new for each in events], rank])
    assert [dict(each.extra) for each in decoded.events] == [new] * len(events)
    known = [msgspec.structs.replace(each, extra=known.extra) for each, known in
             zip(decoded.events, batch.events)]  # fmt: skip
    assert known == batch.events


def _fits(value):
    return not isinstance(value, int) or -(2**63) <= value < 2**64


@given(samples.batches, st.sampled_from(["map", "array"]), st.floats(0, 1, exclude_max=True))
def test_a_batch_that_is_cut_off_is_refused(batch, form, part):
    octets = BatchEncoder(form, hashes="as_is").encode(batch)
    with pytest.raises(Malformed):
        BatchDecoder().decode(octets[: int(part * len(octets))])


@pytest.mark.parametrize("version", samples.GOLDEN)
def test_a_golden_batch_is_refused_wherever_it_is_cut_off(version):
    octets = samples.GOLDEN[version]
    decoder = BatchDecoder()
    for cut in range(len(octets)):
        with pytest.raises(Malformed):
            decoder.decode(octets[:cut])
    assert decoder.malformed == len(octets)


@given(st.binary(max_size=64), st.sampled_from(list(samples.GOLDEN)), st.integers(0, 300))
def test_any_bytes_are_a_batch_or_malformed(octets, version, at):
    golden = samples.GOLDEN[version]
    at %= len(golden)
    for each in (octets, golden[:at] + octets + golden[at + len(octets) :]):
        assert_is_a_batch_or_malformed(each)


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=4)
    | st.binary(max_size=4) | st.sampled_from(["BlockStored", "BlockRemoved", "type", "events"]),
    lambda inner: st.lists(inner, max_size=5)
    | st.dictionaries(st.text(max_size=3) | st.sampled_from(["type", "block_hashes"]), inner,
                      max_size=4),
)  # fmt: skip


@given(values)
def test_any_value_is_a_batch_or_malformed(value):
    for each in (
        value,
        [1.5, [value], 0],
        [1.5, [["BlockStored", [1], None, value, value]], value],
    ):
        assert_is_a_batch_or_malformed(pack(each))


@pytest.mark.parametrize("forms", list(permutations(["map", "array", "map"], 3)))
def test_a_decoder_follows_a_source_that_changes_its_form(forms):
    decoder = BatchDecoder()
    for form in forms:
        octets = samples.GOLDEN["0.24.0" if form == "map" else "0.22.0"]
        assert decoder.decode(octets).events[1] == BlockRemoved([1], "GPU", 0)
    assert decoder.tolerated == 0


def test_a_memoryview_will_do():
    assert BatchDecoder().decode(memoryview(samples.GOLDEN["0.22.0"])).ts == 1.5


def test_the_same_name_as_text_and_as_bytes_is_no_other_error_than_malformed():
    """Python compares the two, where their octets are the same, and under -bb it raises then."""
    payload = b"\x83" + b"".join(map(pack, ("ts", 1.0, b"ts", 1.0, "events", [])))
    with suppress(Malformed):
        assert BatchDecoder().decode(payload).ts == 1.0
