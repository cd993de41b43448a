"""How an engine and an API server find each other and agree. Pure: ``now`` is an argument.

    engine's pulse                                  API server
        │── Hello(protocol, engine, boot, info) ──────►│  fits? or Refusal
        │◄── Welcome(protocol, boot, outputs) ─────────│
    PUSH connects to outputs                           │
        │── Beat ─────────────────────────────────────►│  is the DEALER of the loop there?
    engine's loop                                      │
        │◄── Start ────────────────────────────────────│
        │── Ready(slot), over PUSH ───────────────────►│  from here on there are requests
        │── Beat every beat_every ──► ◄── BeatSeen ────│

The engine's side of it is :class:`ServerLink`, one for each API server: it says Hello again and
again until there is a Welcome, and once more when the API server does not know it (any more). Each
side has a boot token, a random number of 63 bits: who has another one is somebody else.

    routing id = kind (1 octet) boot (8 octets, big-endian) engine id (UTF-8)
    kind       = "p", the pulse, or "r", which takes requests
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from zerohop.serving.engine.messages import (
    PROTOCOL,
    Beat,
    BeatSeen,
    Hello,
    HelloAgain,
    Refusal,
    Welcome,
)
from zerohop.serving.errors import ProtocolMismatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from zerohop.serving.engine.messages import FromServer

__all__ = [
    "FEATURES",
    "Identity",
    "Joined",
    "Left",
    "LinkEvent",
    "Refused",
    "ServerLink",
    "find_mismatch",
    "mismatch",
]

FEATURES = ("buffers", "priority", "deadline")
_MAX_ID = 200  # octets of an engine's id: a routing id has at most 255
_HELLO_EVERY = 1.0  # seconds: who is not there hears none, so only a stalled API server hears two
_SHOWN = 100  # of what an engine requires, and characters of each
_BEAT_SOON = 0.05  # seconds between beats at first, until the API server says that it is ready


@dataclass(frozen=True, slots=True)
class Identity:
    """Which process an engine is.

    Attributes:
        engine: its id.
        boot: its boot token.
    """

    engine: str
    boot: int

    def __post_init__(self) -> None:
        if not 0 < len(self.engine.encode()) <= _MAX_ID:
            raise ValueError(f"an engine's id has 1 to {_MAX_ID} octets, not {self.engine!r}")

    def routing_id(self, kind: bytes) -> bytes:
        """Return the routing id of its pulse, ``b"p"``, or of its loop, ``b"r"``."""
        return kind + self.boot.to_bytes(8, "big") + self.engine.encode()

    @classmethod
    def of(cls, routing_id: bytes) -> Identity | None:
        """Return whose routing id it is; ``None``: it is none of an engine's."""
        if routing_id[:1] not in (b"p", b"r") or not 9 < len(routing_id) <= 9 + _MAX_ID:
            return None
        try:
            return cls(routing_id[9:].decode(), int.from_bytes(routing_id[1:9], "big"))
        except UnicodeDecodeError:
            return None


def find_mismatch(hello: Hello, features: Collection[str] = FEATURES) -> Refusal | None:
    """Return why an API server with these features can't work with an engine; ``None``: it can."""
    if hello.protocol != PROTOCOL:
        return Refusal("protocol version", PROTOCOL, hello.protocol)
    if missing := sorted(set(hello.requires) - set(features)):
        shown = [each[:_SHOWN] for each in missing[:_SHOWN]]
        return Refusal("features that the engine requires", sorted(features), shown)
    return None


def mismatch(refusal: Refusal, *, engine: bool) -> ProtocolMismatch:
    """Return the error for one side: the engine's, or the API server's."""
    ours, theirs = refusal.server, refusal.engine
    if engine:
        ours, theirs = theirs, ours
    return ProtocolMismatch(
        refusal.what, ours, theirs,
        hint="of two engines with one id the newer is taken, so give each an id of its own; "
        "otherwise run the same version of zerohop on both sides",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Joined:
    """The API server took the engine.

    Attributes:
        boot: the API server's boot token.
        welcome: all that it said.
    """

    boot: int
    welcome: Welcome


@dataclass(frozen=True, slots=True)
class Left:
    """The API server is gone, or does not know the engine any more: its requests are nobody's.

    Attributes:
        boot: the API server's boot token.
        reason: in words.
    """

    boot: int
    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The API server does not take the engine; it is asked again, as it may be replaced.

    Attributes:
        error: why.
    """

    error: ProtocolMismatch


LinkEvent: TypeAlias = "Joined | Left | Refused"


class ServerLink:
    """An engine's view of one API server.

    Each call returns what has happened. What is to be said is in :attr:`to_send`, which the driver
    empties.

    Args:
        hello: what the engine says of itself.
        now: the time.

    Attributes:
        to_send: messages for the API server.
    """

    def __init__(self, hello: Hello, now: float) -> None:
        self._hello = hello
        self.to_send: list[Hello | Beat] = []
        self._welcome: Welcome | None = None
        self._is_ready = False
        self._said_at = -_HELLO_EVERY + now  # the last Hello or Beat
        self._heard_at = self._joined_at = now

    @property
    def welcome(self) -> Welcome | None:
        """Of the API server that the engine has joined; ``None``: of none."""
        return self._welcome

    def receive(self, message: FromServer, now: float) -> list[LinkEvent]:
        """Take what the API server says."""
        welcome = self._welcome
        match message:
            case Welcome():
                return self._receive_welcome(message, now)
            case Refusal():
                events = self._leave("it refused the engine")
                self._said_at = now
                return [*events, Refused(mismatch(message, engine=True))]
            case BeatSeen() if welcome is not None and message.server == welcome.boot:
                self._heard_at, self._is_ready = now, message.ready
                return []
            case BeatSeen() | HelloAgain():
                events = self._leave("it does not know the engine any more")
                self._say_hello(now)
                return events
        self._said_at = now
        return self._leave(f"it said goodbye: {message.reason}")

    def broke(self, now: float) -> list[LinkEvent]:
        """The connection broke: it may be another API server that is there next."""
        self._said_at = now
        return self._leave("its connection broke")

    def next_deadline(self) -> float:
        """When :meth:`handle_deadline` has something to do."""
        welcome = self._welcome
        if welcome is None:
            return self._said_at + _HELLO_EVERY
        return min(self._said_at + self._period(welcome), self._heard_at + welcome.gone_after)

    def handle_deadline(self, now: float, progress: int, work: int) -> list[LinkEvent]:
        """Say what it is time to say.

        Args:
            now: the time.
            progress: of the engine's loop.
            work: how many requests the engine has open.
        """
        welcome, events = self._welcome, []
        if welcome is not None and now >= self._heard_at + welcome.gone_after:
            events = self._leave(f"nothing was heard of it for {welcome.gone_after:g} s")
            welcome = None
        if welcome is None:
            if events or now >= self._said_at + _HELLO_EVERY:
                self._say_hello(now)
        elif now >= self._said_at + self._period(welcome):
            self.to_send.append(Beat(welcome.boot, progress, work, welcome.life))
            self._said_at = now
        return events

    def _receive_welcome(self, welcome: Welcome, now: float) -> list[LinkEvent]:
        if welcome.protocol != PROTOCOL:
            events = self._leave("it speaks another version now")
            refusal = Refusal("protocol version", welcome.protocol, PROTOCOL)
            return [*events, Refused(mismatch(refusal, engine=True))]
        self._heard_at = now
        old = self._welcome
        if old is not None and (old.boot, old.life) == (welcome.boot, welcome.life):
            return []
        # Another API server has its place, or a Hello that was said twice has begun two lives.
        events = self._leave("it has taken the engine anew")
        self._welcome, self._is_ready = welcome, False
        self._joined_at = now
        self._said_at = now - self._period(welcome)  # a beat at once
        return [*events, Joined(welcome.boot, welcome)]

    def _period(self, welcome: Welcome) -> float:
        if self._is_ready:
            return welcome.beat_every
        # A loop that is about to answer is heard at once, and one that loads its model a tenth of
        # that time later.
        waits = max(_BEAT_SOON, (self._said_at - self._joined_at) / 10)
        return min(waits, welcome.beat_every)

    def _say_hello(self, now: float) -> None:
        self.to_send = [self._hello]
        self._said_at = now

    def _leave(self, reason: str) -> list[LinkEvent]:
        welcome, self._welcome = self._welcome, None
        return [] if welcome is None else [Left(welcome.boot, reason)]
