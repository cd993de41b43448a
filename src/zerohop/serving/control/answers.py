"""What an answer to a PING says of who gave it."""

from __future__ import annotations

import re

import msgspec

from zerohop.serving.control.findings import Finding, find
from zerohop.serving.control.frames import Reply
from zerohop.serving.control.lmcache.frames import (
    PINGABLE,
    Pong,
    Refused,
    WrongReply,
    classify_ping_reply,
    ping_request,
)
from zerohop.serving.control.messages import Presence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final

__all__ = ["PING_UID", "read_answer"]

PING_UID: Final = 1
_SHOWN, _SHOWN_FRAMES = 64, 4  # of an answer: octets of a frame, and frames
_ERROR = re.compile(
    rb"error|unknown|unsupported|invalid|not (?:found|implemented)|no handler", re.I
)


def read_answer(
    where: str, kind: str, request: list[bytes], frames: Sequence[bytes], release: str
) -> Finding:
    """Return what is there.

    Args:
        where: the endpoint, as it is shown.
        kind: the type of its socket.
        request: the PING that was sent, with :data:`PING_UID`.
        frames: what came back, with or without a delimiter.
        release: of LMCache, that the PING was made for.
    """
    answer = list(frames)
    if answer[:1] == [b""]:
        del answer[0]
    shown = " ".join(repr(frame[:_SHOWN]) for frame in answer[:_SHOWN_FRAMES])
    match classify_ping_reply(answer, PING_UID, release):
        case Pong(boot_token):
            token = "" if boot_token is None else f", boot token {boot_token}"
            alike = [each for each in PINGABLE if ping_request(PING_UID, each) == request]
            who = f"LMCache {' or '.join(alike)}"
            return find("answered_lmcache", f"{where} answers a PING as {who} does{token}")
        case Refused(reason):
            return find("no_ping_handler", f"{where} refuses a PING: {reason!r:.200}")
        case WrongReply(reply=Reply(result=dict() as told)) if answer[:2] == request[:2]:
            presence = _presence(told)
            if presence is not None:
                return find(
                    "answered_control",
                    f"{where} is a control server of Zerohop, protocol {presence.protocol!r:.80}, "
                    f"boot token {presence.boot.hex()}: PING answered",
                )
    if answer == request:
        return find("unknown_answer", f"{where} is a {kind} that sends back what it is sent")
    if answer[:2] == request[:2]:  # of the same request and operation
        return find("unwell", f"{where} answers a PING as LMCache does, but with {shown}")
    if _ERROR.search(b" ".join(answer)):
        return find(
            "no_ping_handler", f"{where} is a {kind} that answers a PING with an error: {shown}"
        )
    return find("unknown_answer", f"{where} is a {kind} that answers a PING with {shown}")


def _presence(told: dict[Any, Any]) -> Presence | None:
    try:
        return msgspec.convert(told, Presence)
    except msgspec.ValidationError:
        return None
