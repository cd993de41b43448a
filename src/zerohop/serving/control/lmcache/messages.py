"""What LMCache's workers and its controller say to each other: msgpack maps, tagged ``type``.

    worker PUSH   -> PULL     [map] [map] ...   Operations, Deregister, SyncBatch, SyncEnd
    worker DEALER -> ROUTER   [""] [map]        Register, Lookup, SyncStart, SyncStatus
    worker DEALER -> ROUTER   [""] [map]        Heartbeat, at an endpoint of its own

Each request has one reply. A message that begins with ``{`` is JSON, of the same form. The tags are
LMCache's; the names here are in this project's words.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from zerohop.serving.codec import decode_with, pack
from zerohop.serving.errors import Malformed

__all__ = [
    "Deregister",
    "Failure",
    "FullSync",
    "Heartbeat",
    "HeartbeatReply",
    "Lookup",
    "LookupReply",
    "Message",
    "Operations",
    "Register",
    "RegisterReply",
    "SyncBatch",
    "SyncEnd",
    "SyncStart",
    "SyncStartReply",
    "SyncStatus",
    "SyncStatusReply",
    "WorkerOperation",
    "decode_message",
    "encode_message",
    "request_of",
]


class Register(msgspec.Struct, tag="RegisterMsg", frozen=True):
    """A worker starts; it has nothing yet.

    Attributes:
        instance_id: of the engine.
        worker_id: which of its workers.
        ip: the worker's.
        port: the worker's.
        peer_init_url: where other workers reach it; ``None``: nowhere.
    """

    instance_id: str
    worker_id: int
    ip: str
    port: int
    peer_init_url: str | None = None


class RegisterReply(msgspec.Struct, tag="RegisterRetMsg", frozen=True):
    """The controller knows it; ``heartbeat_url`` in ``extra_config`` says where it beats."""

    extra_config: dict[str, str] = {}


class Deregister(msgspec.Struct, tag="DeRegisterMsg", frozen=True):
    """A worker goes."""

    instance_id: str
    worker_id: int
    ip: str
    port: int


class Heartbeat(msgspec.Struct, tag="HeartbeatMsg", frozen=True):
    """A worker is alive; it says all that a registration does."""

    instance_id: str
    worker_id: int
    ip: str
    port: int
    peer_init_url: str | None = None


class FullSync(msgspec.Struct, tag_field="command_type", tag="full_sync", frozen=True):
    """A command: send all keys."""

    reason: str | None = None
    args: dict[str, Any] | None = None


class HeartbeatReply(msgspec.Struct, tag="HeartbeatRetMsg", frozen=True):
    """What the worker is to do, in this order."""

    commands: list[FullSync] = []


class WorkerOperation(msgspec.Struct, frozen=True):
    """A chunk has come into a worker's cache, or has left it; numbered for each location."""

    op_type: Literal["admit", "evict"]
    key: int
    seq_num: int


class Operations(msgspec.Struct, tag="BatchedKVOperationMsg", frozen=True):
    """What happened at one location of a worker, in order."""

    instance_id: str
    worker_id: int
    location: str
    operations: list[WorkerOperation]


class Lookup(msgspec.Struct, tag="BatchedP2PLookupMsg", frozen=True):
    """Who else has these chunks, from the first on?"""

    hashes: list[int]
    instance_id: str
    worker_id: int


class LookupReply(msgspec.Struct, tag="BatchedP2PLookupRetMsg", frozen=True):
    """One entry: instance, location, how many chunks, and where to get them; or all empty."""

    layout_info: list[tuple[str, str, int, str]]


class SyncStart(msgspec.Struct, tag="FullSyncStartMsg", frozen=True):
    """A worker is about to send all keys of a location."""

    instance_id: str
    worker_id: int
    location: str
    sync_id: str
    total_keys: int
    batch_count: int


class SyncStartReply(msgspec.Struct, tag="FullSyncStartRetMsg", frozen=True):
    """Whether it may."""

    sync_id: str
    accepted: bool
    error_msg: str | None = None


class SyncBatch(msgspec.Struct, tag="FullSyncBatchMsg", frozen=True):
    """Some of the keys; batches are numbered from 0."""

    instance_id: str
    worker_id: int
    location: str
    sync_id: str
    batch_id: int
    keys: list[int]


class SyncEnd(msgspec.Struct, tag="FullSyncEndMsg", frozen=True):
    """All have been sent."""

    instance_id: str
    worker_id: int
    location: str
    sync_id: str
    actual_total_keys: int


class SyncStatus(msgspec.Struct, tag="FullSyncStatusMsg", frozen=True):
    """Have all arrived?"""

    instance_id: str
    worker_id: int
    sync_id: str


class SyncStatusReply(msgspec.Struct, tag="FullSyncStatusRetMsg", frozen=True):
    """Which have not, and whether the worker may go on."""

    sync_id: str
    is_complete: bool
    global_progress: float
    can_exit_freeze: bool
    missing_batches: list[int] = []


class Failure(msgspec.Struct, tag="ErrorMsg", frozen=True):
    """The request could not be carried out."""

    error: str


Message: TypeAlias = (
    Register
    | RegisterReply
    | Deregister
    | Heartbeat
    | HeartbeatReply
    | Operations
    | Lookup
    | LookupReply
    | SyncStart
    | SyncStartReply
    | SyncBatch
    | SyncEnd
    | SyncStatus
    | SyncStatusReply
    | Failure
)

_from_msgpack = msgspec.msgpack.Decoder(Message).decode
_from_json = msgspec.json.Decoder(Message).decode


def decode_message(data: bytes) -> Message:
    """Read one message.

    Raises:
        Malformed: it is none of these.
    """
    return decode_with(_from_json if data.startswith(b"{") else _from_msgpack, data)


def encode_message(message: Message) -> bytes:
    """Return the octets of a message.

    Raises:
        Unencodable: something in it has no form in msgpack.
    """
    return pack(message)


def request_of(frames: list[bytes]) -> bytes:
    """Return the message among what a ROUTER or a DEALER received, without the routing id.

    With LMCache there is an empty frame before it; who leaves that out is understood, too.

    Raises:
        Malformed: there is no message, or more than one.
    """
    parts = frames[1:] if frames[:1] == [b""] else frames
    if len(parts) != 1:
        raise Malformed(b"".join(parts), f"a request has one message, this has {len(parts)}")
    return parts[0]
