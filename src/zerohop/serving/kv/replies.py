"""The frames of both sockets: what is asked for, what is answered, and how it ends.

    live      [topic][seq][batch]
    request   [""][start]                     vLLM's; a REQ's comes without the delimiter
              [""][FAR ‖ msgpack map]         ours: to every other publisher a start never reached
    reply     [""][topic][seq][batch]         vLLM from 0.26, SGLang 0.5.23, TensorRT-LLM, ours
              [""][seq][batch]                before
    head      [""][""][FAR][msgpack map]      ours, the first reply to a request of ours
    end       [""](topic "")[END][""]         to a request of ours a msgpack map in the last frame

``seq`` and ``start`` are 8 octets, big-endian; END is eight ``ff``, FAR is 2^63 - 1. The last two
frames of a reply are number and payload in each of these forms, so that is how they are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

from zerohop.serving.codec import MAX_OCTETS, decode_with, pack
from zerohop.serving.errors import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from zerohop.serving.kv.ring import Replay

__all__ = [
    "Head",
    "Live",
    "Reply",
    "Request",
    "answer_replay",
    "answer_snapshot",
    "parse_live",
    "parse_reply",
    "parse_request",
    "replay_request",
    "seq_octets",
    "snapshot_request",
]

END = b"\xff" * 8
FAR = (2**63 - 1).to_bytes(8, "big")  # above every number, whether read as signed or not
VERSION = 1

_MAX_REQUEST = 4096  # octets


class Head(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What our publisher says before the batches, and at the end of them (``id`` alone).

    Attributes:
        zerohop: the version of this form.
        id: the asker's, from its request.
        incarnation: octets that are another after each restart of the publisher.
        oldest: the first number that a replay can begin with.
        next: the number that the next batch will have.
        too_old: batches that were asked for are missing; or there is no snapshot to be had.
    """

    zerohop: int
    id: int
    incarnation: bytes = b""
    oldest: int = 0
    next: int = 0
    too_old: bool = False


class _Question(msgspec.Struct, gc=False, omit_defaults=True):
    zerohop: int
    id: int
    ask: Literal["replay", "snapshot"]
    start: int = msgspec.field(default=0, name="from")


@dataclass(frozen=True, slots=True)
class Live:
    """A message of the PUB socket."""

    topic: bytes
    seq: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """A message of the replay socket.

    Attributes:
        kind: what it is.
        seq: the batch's number; of a snapshot, its place.
        payload: the batch; empty in heads and ends.
        head: what our publisher says; ``None`` in batches, and in ends of other publishers.
    """

    kind: Literal["head", "batch", "end"]
    seq: int = -1
    payload: bytes = b""
    head: Head | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What a reader asks the publisher for.

    Attributes:
        ask: batches from a number on, or the present blocks.
        start: the number.
        id: the asker's, to be sent back; ``None`` where the request is in vLLM's form, and gets an
            answer in that form: no head, and a bare end.
    """

    ask: Literal["replay", "snapshot"]
    start: int
    id: int | None


_decode_head = msgspec.msgpack.Decoder(Head).decode
_decode_question = msgspec.msgpack.Decoder(_Question).decode


def seq_octets(seq: int) -> bytes:
    """Return a number as it stands in a frame."""
    return seq.to_bytes(8, "big")


def replay_request(start: int, id: int | None) -> list[bytes]:
    """Return the frames that a DEALER sends; in vLLM's form where ``id`` is ``None``."""
    if id is None:
        return [b"", seq_octets(start)]
    return [b"", FAR + pack(_Question(VERSION, id, "replay", start))]


def snapshot_request(id: int) -> list[bytes]:
    """Return the frames with which a DEALER asks for the present blocks."""
    return [b"", FAR + pack(_Question(VERSION, id, "snapshot"))]


def parse_request(frames: Sequence[bytes]) -> Request:
    """Read what came after the identity.

    Raises:
        Malformed: it is no request, of any form. There is nobody to answer then.
    """
    match frames:
        case [b"", octets] | [octets]:
            pass
        case _:
            shown = b"".join(frames)[:_MAX_REQUEST]
            raise Malformed(shown, f"a request is a delimiter and one frame, not {len(frames)}")
    if octets[:8] == FAR and len(octets) > 8:
        question = decode_with(_decode_question, octets[8:], _MAX_REQUEST)
        return Request(question.ask, question.start, question.id)
    if not octets or len(octets) > _MAX_REQUEST:
        raise Malformed(octets[:_MAX_REQUEST], "a start is a number of eight octets")
    return Request("replay", int.from_bytes(octets, "big"), None)  # of any length, as vLLM


def parse_live(frames: Sequence[bytes]) -> Live:
    """Read a message of the PUB socket.

    Raises:
        Malformed: it has no number, so that its place is not known.
    """
    if len(frames) in (2, 3) and len(frames[-2]) == 8:
        topic = frames[0] if len(frames) == 3 else b""
        return Live(topic, int.from_bytes(frames[-2], "big"), frames[-1])
    raise Malformed(
        b"".join(frames),
        f"a topic, a number of eight octets and a batch were expected; "
        f"these are {len(frames)} frames, of {', '.join(str(len(f)) for f in frames)} octets",
    )


def parse_reply(frames: Sequence[bytes]) -> Reply:
    """Read a message of the replay socket, of either form, with the delimiter or without.

    Raises:
        Malformed: it is no reply.
    """
    if not 2 <= len(frames) <= 4 or len(frames[-2]) != 8:
        raise Malformed(b"".join(frames), "a number of eight octets and a batch were expected")
    number, payload = frames[-2:]
    if number == END:
        head = decode_with(_decode_head, payload, _MAX_REQUEST) if payload else None
        return Reply("end", head=head)
    if number == FAR:
        return Reply("head", head=decode_with(_decode_head, payload, _MAX_REQUEST))
    if len(payload) > MAX_OCTETS:
        raise Malformed(payload, f"a batch of more than {MAX_OCTETS} octets")
    return Reply("batch", int.from_bytes(number, "big"), payload)


def answer_replay(
    request: Request, replay: Replay, incarnation: bytes, topic: bytes = b""
) -> Iterator[list[bytes]]:
    """Yield the messages that answer a replay request, without the identity."""
    if request.id is None:
        yield from _batches(replay.batches, topic)
        yield [b"", b"", END, b""]
        return
    head = Head(VERSION, request.id, incarnation, replay.oldest, replay.next_seq, replay.too_old)
    yield from _extended(head, replay.batches, topic)


def answer_snapshot(
    request: Request,
    payloads: Sequence[bytes] | None,
    next_seq: int,
    incarnation: bytes,
    topic: bytes = b"",
) -> Iterator[list[bytes]]:
    """Yield the messages that answer a request for the present blocks, without the identity.

    Args:
        request: whose ``ask`` is ``"snapshot"``.
        payloads: the batches of the snapshot, encoded; ``None`` where there is none to be had.
        next_seq: the number of the first batch that the snapshot has no part of.
        incarnation: this publisher's.
        topic: this publisher's.
    """
    missing = payloads is None
    head = Head(VERSION, request.id or 0, incarnation, next_seq, next_seq, missing)
    yield from _extended(head, enumerate(payloads or ()), topic)


def _batches(batches: Iterable[tuple[int, bytes]], topic: bytes) -> Iterator[list[bytes]]:
    for seq, payload in batches:
        yield [b"", topic, seq_octets(seq), payload]


def _extended(
    head: Head, batches: Iterable[tuple[int, bytes]], topic: bytes
) -> Iterator[list[bytes]]:
    yield [b"", b"", FAR, pack(head)]
    yield from _batches(batches, topic)
    yield [b"", b"", END, pack(Head(VERSION, head.id))]
