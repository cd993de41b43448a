"""What a case is, and what a role in it is given.

A case is data and two or three functions: add one by writing a module in ``bench/cases`` with a
``CASES`` tuple. Each role is played in a process of its own. A role that binds tells its endpoint,
which the others wait for; the role that measures returns a ``value``; the others go on living until
they hear ``stop``, and then return what they used.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from bench.contenders import Contender
from bench.control import Control
from bench.library import Library

# What a round takes besides warming up and measuring: two interpreters that start, import, connect,
# close and end. Measured on two idle cores; for estimates alone.
START_S = 0.35

# Start-up, the handshake and what is still in the buffers: 0.5 s here; 8 s is for a slow machine.
GRACE_S = 8.0


@dataclass(frozen=True)
class Settings:
    """How long, and how often.

    Attributes:
        rounds: how many times each contender is measured.
        warm_up_s: traffic that is checked but not measured, at the start of each round.
        measure_s: how long the sender then goes on.
    """

    rounds: int = 5
    warm_up_s: float = 0.15
    measure_s: float = 0.45

    @property
    def limit_s(self) -> float:
        """After this a round is over, however stuck its processes are."""
        return self.warm_up_s + self.measure_s + GRACE_S


@dataclass
class Role:
    """What one process of a round is given.

    Attributes:
        contender: whose sockets it uses.
        case: the case's parameters: ``size``, ``frames``, ``subscribers``.
        settings: how long to warm up and to measure.
        bind_to: the endpoint to bind; the port or path is the round's own.
        control: the line to the conducting process.
    """

    contender: Contender
    case: Mapping[str, int]
    settings: Settings
    bind_to: str
    control: Control

    @cached_property
    def library(self) -> Library:
        """The contender's sockets; imported when first asked for."""
        return Library(self.contender)

    def bind(self, socket: Any) -> Any:
        """Bind to this round's endpoint, tell the other role, and return the socket."""
        self.control.tell(endpoint=self.library.bind(socket, self.bind_to))
        return socket

    def connect(self, socket: Any) -> Any:
        """Connect to where the other role has bound, and return the socket."""
        socket.connect(self.control.wait("endpoint"))
        return socket

    def close(self) -> None:
        """Close what was opened, if anything was."""
        if "library" in self.__dict__:
            self.library.close()


Result = dict[str, Any]
Play = Callable[[Role], Result] | Callable[[Role], Coroutine[Any, Any, Result]]


@dataclass(frozen=True)
class Part:
    """A role's two forms; a form that a case does not measure is None."""

    blocking: Play | None = None
    asyncio: Play | None = None


@dataclass(frozen=True)
class Case:
    """One measurement.

    Attributes:
        name: what ``python -m bench NAME`` takes.
        title: what is measured, for the table.
        unit: the unit of ``value``.
        parts: role name -> how it is played.
        higher_is_better: False for times.
        parameters: what the roles read from ``Role.case``.
        transports: those it can use; ``("",)`` when there is no connection.
        floor: whether the plain-socket floor can play it.
        uvloop: whether the uvloop contenders play it unless asked for by name.
        crossed: pair different libraries instead of each with itself.
        probe: measures a contender without any role; used instead of ``parts``.
        in_full: the transports of a run of everything; the first of ``transports`` if empty.
        round_s: about how long a round takes, with its processes' start and end; 0 for the
            time of warming up and measuring and ``START_S``.
        compared: details that are held against other libraries too; lower is better.
    """

    name: str
    title: str
    unit: str
    parts: Mapping[str, Part] = field(default_factory=dict)
    higher_is_better: bool = True
    parameters: Mapping[str, int] = field(default_factory=dict)
    transports: tuple[str, ...] = ("tcp", "ipc")
    floor: bool = True
    uvloop: bool = False
    crossed: bool = False
    probe: Callable[[Contender], Result] | None = None
    in_full: tuple[str, ...] = ()
    round_s: float = 0.0
    compared: tuple[str, ...] = ()

    def planned(self, transports: Sequence[str] = ()) -> tuple[str, ...]:
        """Over what it is played: these of tcp and ipc if any are given, and what is neither."""
        if not transports:
            return self.in_full or self.transports[:1]
        wanted = (*transports, *(set(self.transports) - {"tcp", "ipc"}))
        return tuple(transport for transport in self.transports if transport in wanted)

    def estimate_s(self, settings: Settings) -> float:
        """About how long one round of one contender takes, in seconds."""
        return self.round_s or settings.warm_up_s + settings.measure_s + START_S

    def plays(self, contender: Contender) -> bool:
        """Whether the case has a form for this contender."""
        if contender.family == "floor" and not self.floor:
            return False
        return all(getattr(part, contender.style) for part in self.parts.values())


@dataclass(frozen=True)
class Lineup:
    """Who plays which role in one row of a table."""

    sender: Contender
    receiver: Contender

    @property
    def name(self) -> str:
        """``pyzmq``, or ``zerohop -> pyzmq`` when two libraries meet."""
        if self.sender == self.receiver:
            return self.sender.name
        return f"{self.sender.name} -> {self.receiver.name}"

    def contender(self, role: str) -> Contender:
        """Whose sockets a role uses; every role but the sender is on the receiver's side."""
        return self.sender if role == "sender" else self.receiver
