"""What API servers and engines say to each other: msgpack arrays, the first element a tag.

    ROUTER <- DEALER of the pulse      Hello, Beat                                 (engine)
    ROUTER -> DEALER of the pulse      Welcome, Refusal, BeatSeen, HelloAgain, Goodbye
    ROUTER -> DEALER of the engine     Start, Request, Abort, UtilityCall
    PUSH   -> PULL                     Ready, Outputs, Leaving                     (engine)

The frame of the message comes first; buffers of its payloads follow as frames of their own
(:mod:`zerohop.serving.engine.buffers`). New fields go to the end and have defaults: msgspec takes
arrays that are longer or shorter than it expects, so a minor version needs no negotiation.

A request's number is unique within the engine: ``slot << SLOT_SHIFT | count``. The engine gives
each API server that joins a slot of its own, and the API server counts.
"""

from __future__ import annotations

from typing import Annotated, Any, Generic, TypeAlias, TypeVar

import msgspec

from zerohop.serving.codec import decode_with, pack
from zerohop.serving.errors import Malformed, Unencodable

T = TypeVar("T")

__all__ = [
    "PROTOCOL",
    "SLOT_SHIFT",
    "Abort",
    "Beat",
    "BeatSeen",
    "Delta",
    "Ended",
    "FromEngine",
    "FromEngineOutputs",
    "FromServer",
    "Goodbye",
    "Hello",
    "HelloAgain",
    "Leaving",
    "Outputs",
    "Ready",
    "Refusal",
    "Request",
    "Start",
    "UtilityCall",
    "UtilityResult",
    "Welcome",
    "as_read",
    "first_numbers",
]

PROTOCOL = 1
SLOT_SHIFT = 40  # requests of one API server: 2^40; API servers that join an engine: 2^24
_YEAR = 366 * 24 * 3600.0

Seconds: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=_YEAR)]
"""A time to wait that timers can be set to: what a peer says must not end who waits."""

_WIDTHS = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}  # of unsigned numbers in msgpack, in octets

Slot: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 64 - SLOT_SHIFT)]
"""A slot with which the numbers of requests can be encoded."""


class Hello(msgspec.Struct, array_like=True, tag=1, frozen=True):
    """An engine introduces itself; each Hello begins a life of its own.

    Attributes:
        protocol: the version that it speaks.
        engine: its id.
        boot: its boot token, another in each process.
        features: what it can do beyond the protocol.
        requires: features without which it does not work with an API server.
        info: what it tells of itself: model, block size, limits.
    """

    protocol: int
    engine: str
    boot: int
    features: list[str] = []
    requires: list[str] = []
    info: dict[str, Any] = {}


class Welcome(msgspec.Struct, array_like=True, tag=2, frozen=True):
    """An API server takes the engine.

    Attributes:
        protocol: the version that it speaks.
        server: its name.
        boot: its boot token.
        features: what it can do beyond the protocol.
        outputs: the endpoint of its PULL.
        beat_every: seconds between two beats of the engine.
        gone_after: seconds of silence after which the API server is gone, for the engine.
        life: which of the engine's lives has begun with this; it is borne by what is of it.
    """

    protocol: int
    server: str
    boot: int
    features: list[str]
    outputs: str
    beat_every: Seconds
    gone_after: Seconds
    life: int


class Refusal(msgspec.Struct, array_like=True, tag=3, frozen=True):
    """An API server does not take the engine: they do not fit together.

    Attributes:
        what: they differ in.
        server: what the API server has.
        engine: what the engine has.
    """

    what: str
    server: Any
    engine: Any


class Beat(msgspec.Struct, array_like=True, tag=4, frozen=True):
    """The engine's I/O is alive.

    Attributes:
        server: boot token of the API server that it has joined.
        progress: grows with each turn of the engine's loop.
        work: how many requests it has open, of all API servers.
        life: as of the Welcome.
    """

    server: int
    progress: int
    work: int
    life: int


class BeatSeen(msgspec.Struct, array_like=True, tag=5, frozen=True):
    """The API server's I/O is alive, too.

    Attributes:
        server: its boot token.
        ready: whether the engine has answered its Start.
    """

    server: int
    ready: bool


class HelloAgain(msgspec.Struct, array_like=True, tag=6, frozen=True):
    """The API server does not know the engine, or not any more."""


class Goodbye(msgspec.Struct, array_like=True, tag=7, frozen=True):
    """The API server is about to go; nobody reads the outputs any more.

    Attributes:
        reason: in words.
    """

    reason: str


class Start(msgspec.Struct, array_like=True, tag=8, frozen=True):
    """Asks the engine's loop whether it is there; the answer is Ready.

    Attributes:
        server: boot token of the API server.
    """

    server: int


class Request(msgspec.Struct, Generic[T], array_like=True, tag=9, frozen=True):
    """Something for the engine to do.

    Attributes:
        number: of the request; outputs bear it.
        payload: what is asked for.
        priority: passed through.
        deadline: seconds that were left when it was sent; ``None``: there is none.
    """

    number: int
    payload: T
    priority: int = 0
    deadline: float | None = None


class Abort(msgspec.Struct, array_like=True, tag=10, frozen=True):
    """Nobody wants these requests any more.

    Attributes:
        numbers: of the requests.
    """

    numbers: list[int]


class UtilityCall(msgspec.Struct, array_like=True, tag=11, frozen=True):
    """Calls a function of the engine by its name.

    Attributes:
        number: as of a request.
        name: of the utility.
        args: its arguments.
    """

    number: int
    name: str
    args: list[Any]


class Ready(msgspec.Struct, array_like=True, tag=20, frozen=True):
    """The engine's loop has had a Start; both ways are open.

    Attributes:
        server: boot token of the API server.
        boot: of the engine.
        slot: which numbers of requests are the API server's.
        life: as of the Welcome.
    """

    server: int
    boot: int
    slot: Slot
    life: int


class Delta(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What one step made for one request.

    Attributes:
        number: of the request.
        token_ids: the new tokens.
        finish: why the request has ended with this, in the engine's words; ``None``: it goes on.
        extra: whatever else there is: text, log probabilities, arrays.
    """

    number: int
    token_ids: list[int]
    finish: str | None = None
    extra: Any = None


class Ended(msgspec.Struct, array_like=True, frozen=True):
    """A request has ended with an error.

    Attributes:
        number: of the request.
        kind: ``refused``, ``overloaded`` or ``slow``; any other is shown as ``refused``.
        text: for the first: the engine's words.
        limit: for the others: what was exceeded.
    """

    number: int
    kind: str
    text: str = ""
    limit: int = 0


class UtilityResult(msgspec.Struct, array_like=True, frozen=True):
    """What a utility returned, or how it failed.

    Attributes:
        number: of the call.
        failure: ``None``: it did not fail.
        result: what it returned.
    """

    number: int
    failure: str | None
    result: Any = None


class Outputs(msgspec.Struct, Generic[T], array_like=True, tag=21, frozen=True):
    """What one step made for all requests of one API server.

    Nearly all deltas are one token of a request that goes on. They are two lists of numbers, which
    cost a quarter of what objects do. Who gets them leaves ``numbers`` undecoded, as they are
    mostly those of the step before (:mod:`zerohop.serving.engine.columns`).

    Attributes:
        server: boot token of the API server.
        boot: of the engine.
        life: as of the Welcome.
        seq: of this message, from 0 on: one that is missing shows.
        numbers: of the requests that have made one token and nothing else: ``list[int]``.
        tokens: theirs.
        deltas: what others have made, at most one each.
        ended: requests that have ended otherwise.
        results: of utility calls.
    """

    server: int
    boot: int
    life: int
    seq: int
    numbers: T
    tokens: list[int]
    deltas: list[Delta] = []
    ended: list[Ended] = []
    results: list[UtilityResult] = []


class Leaving(msgspec.Struct, array_like=True, tag=22, frozen=True):
    """The engine is about to go. After its outputs, or those would be overtaken.

    Attributes:
        server: boot token of the API server.
        boot: of the engine.
        reason: in words.
    """

    server: int
    boot: int
    reason: str


FromEngine: TypeAlias = Hello | Beat
FromEngineOutputs: TypeAlias = Outputs[msgspec.Raw] | Ready | Leaving
FromServer: TypeAlias = Welcome | Refusal | BeatSeen | HelloAgain | Goodbye


def as_read(message: T, kind: Any) -> T:
    """Return a message as the other side reads it: a copy, which its author can't change.

    For what users give once, and what is sent many times.

    Args:
        message: to be sent.
        kind: the type by which it is read.

    Raises:
        Unencodable: it can't be sent, or not be read.
    """
    data = pack(message)
    try:
        read: T = decode_with(msgspec.msgpack.Decoder(kind).decode, data)
    except Malformed as error:
        raise Unencodable(message, f"who gets it can't read it: {error.reason}") from error
    return read


def first_numbers(header: bytes, count: int) -> list[int]:
    """Return the numbers that a message begins with, of which the first is its tag.

    They say whose it is where the message can't be read: what is wrong with the rest of it, cut
    off, of another type, nested too deeply, is not looked at.

    Args:
        header: the first frame of the message.
        count: how many numbers, at most.
    """
    numbers: list[int] = []
    at = 1  # behind the head of the array
    while at < len(header) and len(numbers) < count and 0x90 <= header[0] <= 0x9F:
        number, at = header[at], at + 1
        if number >= 0x80:
            width = _WIDTHS.get(number)
            if width is None or at + width > len(header):
                break
            number, at = int.from_bytes(header[at : at + width], "big"), at + width
        numbers.append(number)
    return numbers
