"""What the two processes say to each other.

    message = msgpack array: kind, then the fields of the dataclass in order

Where msgspec cannot be installed (no network), the same arrays travel as JSON: both processes
run in the same environment, so both choose alike.
"""

from __future__ import annotations

import dataclasses
import json

try:
    from msgspec import msgpack
except ImportError:
    CODEC = "JSON (msgspec is not installed)"
else:
    CODEC = "msgpack"


@dataclasses.dataclass(frozen=True, slots=True)
class Prompt:
    """API to engine: answer `text` in at most `max_tokens` tokens."""

    request: int
    text: str
    max_tokens: int


@dataclasses.dataclass(frozen=True, slots=True)
class Token:
    """Engine to API: the next piece of the answer."""

    request: int
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Finished:
    """Engine to API: the answer is complete; `reason` is the model's (`stop`, `length`)."""

    request: int
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Failed:
    """Engine to API: there is no answer; `reason` is for the person who asked."""

    request: int
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Status:
    """Engine to whoever subscribes, at every change and twice a second.

    `load` counts the prompts held; `load_s`, `first_token_s` are seconds; the last two describe
    the latest answer, and are zero before it.
    """

    engine: str
    state: str
    load: int
    answered: int
    load_s: float
    first_token_s: float
    tokens_per_s: float


KINDS = {kind.__name__: kind for kind in (Prompt, Token, Finished, Failed, Status)}
Message = Prompt | Token | Finished | Failed | Status


def pack(message: Message) -> bytes:
    """Encode one message as one frame."""
    fields = (type(message).__name__, *dataclasses.astuple(message))
    return msgpack.encode(fields) if CODEC == "msgpack" else json.dumps(fields).encode()


def unpack(frame: bytes) -> Message:
    """Decode one frame.

    Raises:
        ValueError: the frame is not one of our messages.
    """
    try:
        kind, *fields = msgpack.decode(frame) if CODEC == "msgpack" else json.loads(frame)
        return KINDS[kind](*fields)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"not a message of this demo: {frame[:64]!r}") from error
