"""What workers and a control server say to each other: msgpack maps, by operation.

    worker -> server   register(Registration) -> Welcome
                       beat(Beat)             -> Pulse
                       sync(Batch)            -> Receipt
                       leave(Farewell)        -> nil
                       ping                   -> Presence
    server -> worker   nil "command" Command          pushed; it comes with the next Pulse, too

The frames around them are drawn in ``protocol``. Unknown fields are ignored and new ones have
defaults; :data:`VERSION` is raised only where the two sides could not understand each other.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

__all__ = [
    "LONGEST",
    "VERSION",
    "Batch",
    "Beat",
    "Command",
    "Farewell",
    "Key",
    "Outcome",
    "Presence",
    "Pulse",
    "Receipt",
    "Registration",
    "Welcome",
]

VERSION = 1
LONGEST = 86400.0
"""Seconds of a period or a spread at most: a number that a peer made up is none."""
Key: TypeAlias = int | str
"""Of an entry in a worker's table."""


class Registration(msgspec.Struct, frozen=True):
    """A worker says that it is here.

    Attributes:
        worker: its name, which it has again when it has restarted.
        boot: octets that are another each time it starts.
        version: of these messages.
        offers: what it offers, in the user's words.
        attempt: rises with each reason to register; the same again is the same question.
    """

    worker: str
    boot: bytes
    version: int = VERSION
    offers: dict[str, Any] = {}
    attempt: int = 0


class Welcome(msgspec.Struct, frozen=True):
    """The server knows the worker from now on, and says how they go on.

    Attributes:
        server: octets that are another each time the server starts.
        stream: of batches that is to be sent, and no other; a number.
        next: the number of the batch that is expected.
        period: seconds between heartbeats.
        timeout: seconds of silence after which the worker counts as gone.
        spread: seconds over which workers scatter when all of them have to register anew.
        batch: how many entries a batch may have.
    """

    server: bytes
    stream: int
    next: int
    period: float
    timeout: float
    spread: float
    batch: int


class Outcome(msgspec.Struct, frozen=True):
    """What became of a command.

    Attributes:
        id: of the command.
        result: of the worker's handler.
        error: what it raised; ``None``: nothing.
    """

    id: int
    result: Any = None
    error: str | None = None


class Command(msgspec.Struct, frozen=True):
    """Something that a worker is told to do, once.

    Attributes:
        stream: of the worker's registration.
        id: counted from 1 in each stream.
        name: which of the worker's commands.
        arguments: for its handler.
    """

    stream: int
    id: int
    name: str
    arguments: list[Any] = []


class Beat(msgspec.Struct, frozen=True):
    """A worker says that it is alive.

    Attributes:
        worker: its name.
        boot: as in its registration.
        server: the boot token of the server that welcomed it.
        stream: as the server named it.
        outcomes: of commands, until they are heard.
    """

    worker: str
    boot: bytes
    server: bytes
    stream: int
    outcomes: list[Outcome] = []


class Pulse(msgspec.Struct, frozen=True):
    """The reply to a heartbeat.

    Attributes:
        known: whether the worker is registered; else it has to, once.
        commands: those that have no outcome yet, oldest first.
        heard: the outcomes up to this command have arrived.
    """

    known: bool
    commands: list[Command] = []
    heard: int = 0


class Batch(msgspec.Struct, frozen=True):
    """A piece of a worker's table, or a change of it.

    Attributes:
        worker: its name.
        boot: as in its registration.
        server: the boot token of the server that welcomed it.
        stream: as the server named it.
        number: counted from 0 in each stream.
        put: entries, as pairs.
        removed: keys that have none any longer.
        complete: whether the server has the whole table with this batch.
    """

    worker: str
    boot: bytes
    server: bytes
    stream: int
    number: int
    put: list[tuple[Key, Any]] = []
    removed: list[Key] = []
    complete: bool = False


class Receipt(msgspec.Struct, frozen=True):
    """The reply to a batch.

    Attributes:
        known: whether the worker is registered, and the stream is the one that is expected.
        next: the number of the batch that is expected: the next one, or the same again.
        later: seconds to wait before it is sent; others are served first.
    """

    known: bool
    next: int = 0
    later: float = 0.0


class Farewell(msgspec.Struct, frozen=True):
    """A worker says that it goes.

    Attributes:
        worker: its name.
        boot: as in its registration.
    """

    worker: str
    boot: bytes


class Presence(msgspec.Struct, frozen=True):
    """The reply to a PING.

    Attributes:
        protocol: the server's.
        version: of these messages.
        boot: of the server.
    """

    protocol: str
    version: int
    boot: bytes
