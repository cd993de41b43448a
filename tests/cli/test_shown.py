"""Batches and deliveries as text and as JSON."""

import datetime
import json
from types import MappingProxyType

import pytest
from hypothesis import given

from tests.serving.kv import samples
from zerohop.cli.shown import batch_as_json, batch_as_line, notice
from zerohop.serving import (
    AllBlocksCleared,
    Applied,
    BlockRemoved,
    BlockStored,
    EventBatch,
    Health,
    HealthChanged,
    Lost,
    Malformed,
    Restarted,
    Snapshot,
    Undecodable,
    UnknownEvent,
)

STORED = BlockStored([1, 2**64 - 1], None, [5, 6], 1)


def as_json(*events, ts=1.5):
    text = batch_as_json(7, EventBatch(ts, list(events), 0), 0)
    assert "\n" not in text
    return json.loads(text)


def test_a_batch_is_an_object_with_its_events_by_name():
    assert as_json(STORED, BlockRemoved([3], "CPU"), AllBlocksCleared()) == {
        "seq": 7,
        "ts": 1.5,
        "dp_rank": 0,
        "events": [
            {
                "type": "BlockStored",
                "block_hashes": [1, 2**64 - 1],
                "parent_block_hash": None,
                "token_ids": [5, 6],
                "block_size": 1,
                "lora_id": None,
                "medium": None,
                "lora_name": None,
            },
            {"type": "BlockRemoved", "block_hashes": [3], "medium": "CPU"},
            {"type": "AllBlocksCleared"},
        ],
    }


def test_octets_are_hexadecimal_digits_after_a_word():
    stored = BlockStored([b"\x01\xff"], b"", [], 1, extra_keys=[["salt", b"\x00"], None])
    [told] = as_json(stored)["events"]
    assert told["block_hashes"] == ["hex:01ff"]
    assert told["parent_block_hash"] == "hex:"
    assert told["extra_keys"] == [["salt", "hex:00"], None]


def test_unknown_fields_and_events_are_shown_as_they_are():
    known = BlockRemoved([3], extra=MappingProxyType({"new": {1: b"\x02"}}))
    told = as_json(known, UnknownEvent("Moved", {"to": "CPU"}), UnknownEvent("", [1, 2]))["events"]
    assert told[0]["new"] == {"1": "hex:02"}
    assert told[1] == {"type": "Moved", "to": "CPU"}
    assert told[2] == {"type": "", "fields": [1, 2]}


def test_what_json_has_no_form_for_is_text():
    when = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)
    told = as_json(UnknownEvent("x", [float("nan"), when, {b"\x01": 1}]), ts=float("inf"))
    assert told["ts"] == "inf"
    assert told["events"] == [
        {"type": "x", "fields": ["nan", "2026-01-02 00:00:00+00:00", {"hex:01": 1}]}
    ]


@pytest.mark.parametrize(
    ("within", "shown"),
    [(lambda deep: [deep], '["..."]'), (lambda deep: {"a": deep}, '{"a":"..."}')],
)
def test_what_is_nested_without_end_is_cut_off(within, shown):
    deep = []
    for _ in range(5000):
        deep = within(deep)
    assert shown in batch_as_json(7, EventBatch(0.0, [UnknownEvent("x", deep)]), None)


@given(samples.batches)
def test_every_batch_is_an_object_on_a_line(batch):
    told = json.loads(batch_as_json(1, batch, batch.dp_rank))
    assert [each["type"] for each in told["events"]] == [
        type(event).__name__ for event in batch.events
    ]


@pytest.mark.parametrize(
    ("events", "rank", "line"),
    [
        ([STORED], 0, "7 rank 0: 2 stored (GPU)"),
        ([BlockRemoved([3], "CPU")], None, "7: 1 removed (CPU)"),
        (
            [AllBlocksCleared(), UnknownEvent("Moved", {})],
            1,
            "7 rank 1: all cleared, unknown event 'Moved'",
        ),
        ([], 0, "7 rank 0: nothing"),
    ],
)
def test_a_line_has_what_happened_in_a_few_words(events, rank, line):
    assert batch_as_line(7, EventBatch(0.0, events, rank), rank) == line


@pytest.mark.parametrize(
    ("delivery", "line"),
    [
        (Lost("w", 0, "too old"), "w rank 0: lost: too old"),
        (Restarted("w", None, "it is another"), "w: restarted: it is another"),
        (HealthChanged("w", 1, Health.CATCHING_UP), "w rank 1: catching up"),
        (
            Snapshot("w", 0, 9, (EventBatch(0.0, [STORED, AllBlocksCleared()]),)),
            "w rank 0: a snapshot of 2 blocks, before batch 9",
        ),
        (
            Undecodable("w", None, None, Malformed(b"\xc1", "no")),
            "w: a message without a number cannot be read: "
            "malformed message of 1 octet: no: b'\\xc1'",
        ),
        (Applied("w", 0, 1, EventBatch(0.0, [])), None),
    ],
)
def test_what_is_no_batch_is_a_notice(delivery, line):
    assert notice(delivery) == line


def test_what_a_peer_says_is_nothing_that_a_terminal_obeys():
    event = BlockRemoved([3], "\x1b[2J")
    assert batch_as_line(7, EventBatch(0.0, [event]), None) == "7: 1 removed (\\x1b[2J)"
    assert notice(Restarted("w", None, "a\r\n\udc80é")) == "w: restarted: a\\r\\n\\udc80é"


def test_a_notice_of_a_batch_that_cannot_be_read_has_its_number():
    assert "w rank 0: batch 4 cannot be read" in notice(
        Undecodable("w", 0, 4, Malformed(b"", "no"))
    )
