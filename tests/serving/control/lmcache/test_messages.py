"""The maps of LMCache's controller, as they were captured, and whatever else may come."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerohop.serving.codec import pack, unpack
from zerohop.serving.control.lmcache.messages import (
    FullSync,
    Heartbeat,
    HeartbeatReply,
    Operations,
    Register,
    RegisterReply,
    SyncStatusReply,
    WorkerOperation,
    decode_message,
    encode_message,
    request_of,
)
from zerohop.serving.errors import Malformed, Unencodable

REGISTER = Register("i", 0, "127.0.0.1", 8001)
OPERATIONS = Operations("i", 0, "cpu", [WorkerOperation("admit", 5, 0)])


def test_each_is_a_map_with_its_type():
    assert unpack(encode_message(REGISTER)) == {
        "type": "RegisterMsg",
        "instance_id": "i",
        "worker_id": 0,
        "ip": "127.0.0.1",
        "port": 8001,
        "peer_init_url": None,
    }


def test_what_has_no_form_is_told_to_who_gives_it():
    with pytest.raises(Unencodable):
        encode_message(Operations("i", 0, "cpu", [WorkerOperation("admit", 2**64, 0)]))


def test_operations_are_maps_without_a_type():
    assert unpack(encode_message(OPERATIONS)) == {
        "type": "BatchedKVOperationMsg",
        "instance_id": "i",
        "worker_id": 0,
        "location": "cpu",
        "operations": [{"op_type": "admit", "key": 5, "seq_num": 0}],
    }


def test_a_command_has_a_type_of_its_own():
    assert unpack(encode_message(HeartbeatReply([FullSync("why")]))) == {
        "type": "HeartbeatRetMsg",
        "commands": [{"command_type": "full_sync", "reason": "why", "args": None}],
    }


@pytest.mark.parametrize(
    "message",
    [
        REGISTER,
        OPERATIONS,
        Heartbeat("i", 0, "127.0.0.1", 1),
        RegisterReply({"heartbeat_url": "127.0.0.1:9"}),
        SyncStatusReply("s", False, 0.5, False, [1]),
    ],
)
def test_what_is_said_is_what_is_read(message):
    assert decode_message(encode_message(message)) == message
    assert decode_message(msgspec.json.encode(message)) == message


def test_unknown_fields_are_ignored_and_the_order_does_not_matter():
    fields = unpack(encode_message(REGISTER)) | {"boot_token": 7}
    assert decode_message(pack(dict(reversed(fields.items())))) == REGISTER


@pytest.mark.parametrize("cut", range(len(encode_message(REGISTER))))
def test_what_is_cut_off_is_malformed(cut):
    with pytest.raises(Malformed):
        decode_message(encode_message(REGISTER)[:cut])


@given(st.binary(max_size=40))
def test_whatever_comes_is_a_message_or_malformed(data):
    try:
        found = decode_message(data)
    except Malformed:
        return
    assert decode_message(encode_message(found)) == found


def test_a_request_has_a_delimiter_or_none():
    assert request_of([b"", b"x"]) == request_of([b"x"]) == b"x"


@pytest.mark.parametrize("frames", [[], [b""], [b"", b"x", b"y"], [b"x", b"y"]])
def test_a_request_is_one_message(frames):
    with pytest.raises(Malformed):
        request_of(frames)
