"""What each release of LMCache's MP server is asked, and how a PING is answered.

The frames are those of ``control.frames``. An operation is asked for by its number in the release
(see ``releases``), or from 0.5.6 on by its name; from 0.5.6 on there are streams, and credit, too.

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

from zerohop.serving.control.frames import (
    OperationName,
    Reply,
    encode_call,
    parse_reply,
    refused_because,
)
from zerohop.serving.control.lmcache.releases import LATEST, operation_number
from zerohop.serving.errors import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "PINGABLE",
    "PING_HAS_NO_ARGUMENT",
    "PingReply",
    "Pong",
    "Refused",
    "WrongReply",
    "classify_ping_reply",
    "encode_request",
    "operation_in",
    "ping_arguments",
    "ping_request",
]

PINGABLE: tuple[str, ...] = (
    *("0.4.2", "0.4.3", "0.4.4", "0.4.5", "0.4.6", "0.4.7"),
    *("0.5.0", "0.5.3", "0.5.6"),
)
"""The releases that have a PING."""

PING_HAS_NO_ARGUMENT = frozenset({"0.4.2", "0.4.3", "0.4.4", "0.4.5", "0.4.6", "0.4.7"})


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


def operation_in(release: str, name: str) -> OperationName:
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
