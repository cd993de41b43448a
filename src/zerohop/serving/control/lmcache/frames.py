"""The frames of LMCache's MP server: a DEALER asks, a ROUTER answers.

    request = uid operation argument*
    reply   = uid operation [result]
    credit  = uid "" ("ack" | "cancel")         of a stream, from 0.5.6 on

``uid``, ``operation``, each ``argument`` and the ``result`` are msgpack, one value a frame. The
asker chooses the ``uid``, an integer. The ``operation`` is a number that depends on the release
(see ``releases``), or from 0.5.6 on a name. A result of ``None`` has no frame.

**A server that lacks an operation does not say so**, and there are worse ways to ask. Up to 0.5.3 a
name, or a number above the release's last, ends the thread that answers, for everybody; a number of
another release may run CLEAR. In every release a message of one frame ends that thread. So:

* :func:`ping_request` for 0.5.3 or 0.5.6, ``[uid][22][nil]``, is answered by both, and is without
  effect on 0.4.3 to 0.5.0, where number 22 is of an operation with other arguments. Before, up to
  0.4.2, the last number is 20 or less, and no question is safe but that release's own;
* no other number is sent unless somebody says which release is there;
* and the reply is looked at: its operation must be the one that was asked for, and it must be a
  truth value; of the latest release an integer, too (LMCache#4687: one day the boot token of the
  server). Of an older one an integer is something else: 0.5.0 answers 0.4.7's PING with its chunk
  size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from zerohop.serving.codec import pack, unpack
from zerohop.serving.control.lmcache.releases import LATEST, operation_number
from zerohop.serving.errors import Malformed, ProtocolMismatch, RequestRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "PINGABLE",
    "PING_HAS_NO_ARGUMENT",
    "Credit",
    "Operation",
    "PingReply",
    "Pong",
    "Refused",
    "Reply",
    "Request",
    "WrongReply",
    "classify_ping_reply",
    "encode_call",
    "encode_reply",
    "encode_request",
    "operation_in",
    "parse_reply",
    "parse_request",
    "ping_arguments",
    "ping_request",
    "refusal",
    "refused_because",
    "result_of",
]

Operation: TypeAlias = int | str

PINGABLE: tuple[str, ...] = (
    *("0.4.2", "0.4.3", "0.4.4", "0.4.5", "0.4.6", "0.4.7"),
    *("0.5.0", "0.5.3", "0.5.6"),
)
"""The releases that have a PING."""

PING_HAS_NO_ARGUMENT = frozenset({"0.4.2", "0.4.3", "0.4.4", "0.4.5", "0.4.6", "0.4.7"})
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
    operation: Operation
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
    operation: Operation
    result: Any = None
    has_result: bool = False


@dataclass(frozen=True, slots=True)
class Pong:
    """The ping was answered.

    Attributes:
        boot_token: of the server, where it is one that says so.
    """

    boot_token: int | None = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The server says that it does not do this; only Zerohop's do.

    Attributes:
        reason: the server's words.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class WrongReply:
    """Something came back that does not answer a ping: it is a server of another release.

    Attributes:
        reason: what is wrong with it.
        reply: what came; ``None`` where it could not be read.
    """

    reason: str
    reply: Reply | None


PingReply: TypeAlias = Pong | Refused | WrongReply


def encode_call(uid: int, operation: Operation, *arguments: Any) -> list[bytes]:
    """Return the frames of a request as it stands, of whatever protocol.

    Raises:
        Unencodable: an argument has no form in msgpack.
    """
    return [pack(uid), pack(operation), *map(pack, arguments)]


def operation_in(release: str, name: str) -> Operation:
    """Return what a release knows an operation by.

    Raises:
        ValueError: the release does not have it.
        KeyError: a release that is not in ``RELEASES``.
    """
    number = operation_number(name, release)
    if number is None and release != LATEST:
        raise ValueError(f"LMCache {release} has no operation {name!r}")
    return name if number is None else number


def ping_arguments(release: str, instance_id: int | None) -> tuple[int | None, ...]:
    """Return the arguments of a release's PING.

    Raises:
        ValueError: the release has no PING.
    """
    if release not in PINGABLE:
        raise ValueError(f"LMCache {release} has no PING; those that do: {', '.join(PINGABLE)}")
    return () if release in PING_HAS_NO_ARGUMENT else (instance_id,)


def encode_request(uid: int, operation: str, *arguments: Any, release: str = LATEST) -> list[bytes]:
    """Return the frames with which an operation of a release is asked for.

    Raises:
        ValueError: the release does not have it.
        Unencodable: an argument has no form in msgpack.
        KeyError: a release that is not in ``RELEASES``.
    """
    return encode_call(uid, operation_in(release, operation), *arguments)


def ping_request(uid: int, release: str = LATEST, *, instance_id: int | None = None) -> list[bytes]:
    """Return the frames of a PING as a release expects it.

    Args:
        uid: given back with the reply.
        release: one of :data:`PINGABLE`. What is sent to another release than this may do harm.
        instance_id: of the worker that pings, which tells the server that it is alive; ``None``:
            nobody in particular. Up to 0.4.7 there is no room for it, and it is not sent.

    Raises:
        ValueError: the release has no PING.
    """
    return encode_request(uid, "ping", *ping_arguments(release, instance_id), release=release)


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


def refusal(request: Request, reason: str, release: str = LATEST) -> list[bytes]:
    """Return the frames that say that a request is not carried out, so that its client fails soon.

    The protocol has no form for it. A client of 0.5.6 raises where a reply is of another operation
    than the one that it asked for, and shows both, so the reason goes where the operation is. What
    a client up to 0.5.3 cannot read ends its receiving thread, and with it all that it waits for;
    there a reply without a result is the most that can be said: a PING that failed.
    """
    if release == LATEST:
        return [request.uid, pack(_REFUSED + reason)]
    return [request.uid, pack(request.operation)]


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


def result_of(reply: Reply, operation: Operation) -> Any:
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


def classify_ping_reply(frames: Sequence[bytes], uid: int, release: str = LATEST) -> PingReply:
    """Say whether what came back answers :func:`ping_request`.

    Never raises: whatever a server says is an answer of some kind.

    Args:
        frames: what the DEALER received.
        uid: of the ping.
        release: the ping was made for.
    """
    try:
        reply = parse_reply(frames)
    except Malformed as error:
        return WrongReply(f"it is no reply of an LMCache server: {error.reason}", None)
    if reply.uid != uid:
        return WrongReply(f"it answers request {reply.uid}, not {uid}", reply)
    reason = refused_because(reply)
    if reason is not None:
        return Refused(reason)
    if reply.operation not in (operation_number("ping", release), "ping"):
        return WrongReply(f"it is of operation {reply.operation!r}, not of PING", reply)
    match reply.result:
        case True:
            return Pong()
        case False:
            return WrongReply("the server says that it is not well", reply)
        case int() as token if release == LATEST:
            return Pong(token)
    return WrongReply(f"a ping of {release} is not answered by {reply.result!r:.64}", reply)


def _integer(frame: bytes, what: str) -> int:
    value = unpack(frame)
    if not isinstance(value, int) or isinstance(value, bool):
        raise Malformed(frame, f"the {what} is an integer, not a {type(value).__name__}")
    return value


def _operation(frame: bytes) -> Operation:
    value = unpack(frame)
    if not isinstance(value, int | str) or isinstance(value, bool):
        raise Malformed(frame, f"an operation is a number or a name, not a {type(value).__name__}")
    return value
