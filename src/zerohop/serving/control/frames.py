"""The frames of requests and replies: a DEALER asks, a ROUTER answers.

    request = uid operation argument*
    reply   = uid operation [result]
    credit  = uid "" ("ack" | "cancel")         of a stream

``uid``, ``operation``, each ``argument`` and the ``result`` are msgpack, one value a frame. The
asker chooses the ``uid``, an integer. The ``operation`` is a number or a name. A result of ``None``
has no frame.

They are those of LMCache's MP server, so that one question finds out who is there. What its
releases differ in is in ``lmcache.frames``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from zerohop.serving.codec import pack, unpack
from zerohop.serving.errors import Malformed, ProtocolMismatch, RequestRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "Credit",
    "OperationName",
    "Reply",
    "Request",
    "encode_call",
    "encode_reply",
    "parse_reply",
    "parse_request",
    "refusal",
    "refused_because",
    "result_of",
]

OperationName: TypeAlias = int | str

_REFUSED = "refused: "  # how the operation of a refusal begins
_CREDITS = (b"ack", b"cancel")


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked.

    Attributes:
        uid: the first frame as it came; the reply begins with it.
        operation: its number or name.
        arguments: each still as msgpack.
    """

    uid: bytes
    operation: OperationName
    arguments: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class Credit:
    """A reader of a stream is ready for one more item, or wants no more.

    Attributes:
        uid: of the request that the stream answers, as it came.
        more: whether it wants more.
    """

    uid: bytes
    more: bool


@dataclass(frozen=True, slots=True)
class Reply:
    """What was answered.

    Attributes:
        uid: of the request.
        operation: its number or name; of a refusal, a text.
        result: decoded; ``None`` where there was no frame for it.
        has_result: whether there was one. A stream ends with a reply that has none.
    """

    uid: int
    operation: OperationName
    result: Any = None
    has_result: bool = False


def encode_call(uid: int, operation: OperationName, *arguments: Any) -> list[bytes]:
    """Return the frames of a request as it stands, of whatever protocol.

    Raises:
        Unencodable: an argument has no form in msgpack.
    """
    return [pack(uid), pack(operation), *map(pack, arguments)]


def parse_request(frames: Sequence[bytes]) -> Request | Credit:
    """Read what a ROUTER received, without the routing id.

    Raises:
        Malformed: of one frame or none, or its first two frames are not what they should be.
    """
    if len(frames) < 2:
        data = frames[0] if frames else b""
        raise Malformed(data, f"a request has two frames at least, this has {len(frames)}")
    uid, operation, *arguments = frames
    _integer(uid, "request id")
    if operation == b"":
        if len(arguments) != 1 or arguments[0] not in _CREDITS:
            raise Malformed(b"".join(arguments), "a stream's credit is 'ack' or 'cancel'")
        return Credit(uid, arguments[0] == b"ack")
    return Request(uid, _operation(operation), tuple(arguments))


def encode_reply(request: Request, result: Any = None) -> list[bytes]:
    """Return the frames that answer a request: three, or two where the result is ``None``.

    Raises:
        Unencodable: the result has no form in msgpack.
    """
    frames = [request.uid, pack(request.operation)]
    return frames if result is None else [*frames, pack(result)]


def refusal(request: Request, reason: str) -> list[bytes]:
    """Return the frames that say why a request is not carried out, so that its client fails soon.

    The protocol has no form for it. A client of LMCache 0.5.6 raises where a reply is of another
    operation than the one that it asked for, and shows both, so the reason goes where the operation
    is. What a client up to 0.5.3 cannot read ends its receiving thread, and with it all that it
    waits for; there a reply without a result is the most that can be said: a PING that failed.
    """
    return [request.uid, pack(_REFUSED + reason)]


def parse_reply(frames: Sequence[bytes]) -> Reply:
    """Read what a DEALER received.

    Raises:
        Malformed: it is not a reply.
    """
    if not 2 <= len(frames) <= 3:
        data = frames[0] if frames else b""
        raise Malformed(data, f"a reply has two or three frames, this has {len(frames)}")
    uid, operation = _integer(frames[0], "request id"), _operation(frames[1])
    if len(frames) == 2:
        return Reply(uid, operation)
    return Reply(uid, operation, unpack(frames[2]), has_result=True)


def refused_because(reply: Reply) -> str | None:
    """Return why a server of Zerohop does not carry out a request; ``None``: it is no refusal."""
    if isinstance(reply.operation, str) and reply.operation.startswith(_REFUSED):
        return reply.operation.removeprefix(_REFUSED)
    return None


def result_of(reply: Reply, operation: OperationName) -> Any:
    """Return the result, if the reply is of the operation that was asked for.

    Raises:
        RequestRefused: the server says why it does not do it.
        ProtocolMismatch: it did something else: it is of another release.
    """
    reason = refused_because(reply)
    if reason is not None:
        raise RequestRefused(str(operation), reason)
    if reply.operation != operation:
        raise ProtocolMismatch(
            "the operation",
            operation,
            reply.operation,
            hint="the server is of another release: ask only what is known to be harmless there",
        )
    return reply.result


def _integer(frame: bytes, what: str) -> int:
    value = unpack(frame)
    if not isinstance(value, int) or isinstance(value, bool):
        raise Malformed(frame, f"the {what} is an integer, not a {type(value).__name__}")
    return value


def _operation(frame: bytes) -> OperationName:
    value = unpack(frame)
    if not isinstance(value, int | str) or isinstance(value, bool):
        raise Malformed(frame, f"an operation is a number or a name, not a {type(value).__name__}")
    return value
