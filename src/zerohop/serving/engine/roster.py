"""The engines that an API server knows, and which of them gets a request. Pure over ``now``.

An engine is known from its Hello on, by its id; what it was before ends with each Hello, also when
its boot token is the same (it has forgotten us then). Outputs are of a life that is known or of
nobody: they bear the boot token and the number of the life, and are numbered themselves, so that
one that is lost shows.

Of two processes with one id the one that came last counts. The other is refused while that one is
here: it may be an old one that was taken for gone, and the two would take each other's place for
ever.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec

from zerohop.serving.engine.handshake import FEATURES, Identity, find_mismatch
from zerohop.serving.engine.liveness import EngineState, Liveness, Patience
from zerohop.serving.engine.messages import (
    PROTOCOL,
    SLOT_SHIFT,
    BeatSeen,
    HelloAgain,
    Refusal,
    Welcome,
    as_read,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from zerohop.serving.engine.messages import Beat, Hello, Outputs, Ready

__all__ = ["Departure", "EngineStatus", "Member", "Roster"]

_REMEMBERED = 256  # processes, by when they came first


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """An engine, at one moment.

    Attributes:
        engine: its id.
        state: whether it is there.
        info: what it tells of itself.
        open: how many requests of this API server it has.
        work: how many requests it had at its last beat, of all API servers.
    """

    engine: str
    state: EngineState
    info: dict[str, Any]
    open: int
    work: int


@dataclass(frozen=True, slots=True)
class Departure:
    """The end of one life of an engine.

    Attributes:
        identity: whose.
        reason: in words.
    """

    identity: Identity
    reason: str


@dataclass(slots=True)
class Member:
    """One life of an engine.

    Attributes:
        identity: who it is.
        info: what it tells of itself.
        liveness: how it is.
        slot: which numbers it takes from us; ``None``: its loop has not answered yet.
        life: which of the lives that this API server knows of; outputs bear it.
        next_seq: of its outputs.
        work: as of its last beat.
        is_breaking: a connection of it broke; outputs of it may still be on their way.
        looks: how often it was looked for those.
        takes: the routing id of its loop, for requests.
    """

    identity: Identity
    info: dict[str, Any]
    liveness: Liveness
    life: int
    slot: int | None = None
    next_seq: int = 0
    work: int = 0
    is_breaking: bool = False
    looks: int = 0
    takes: bytes = field(init=False)

    def __post_init__(self) -> None:
        self.takes = self.identity.routing_id(b"r")

    @property
    def takes_requests(self) -> bool:
        """Whether it is ready, and still there."""
        return self.slot is not None and not self.is_breaking

    def status(self, load: Callable[[int], int]) -> EngineStatus:
        """Return what users see of it.

        Args:
            load: how many requests an engine has, by its boot token.
        """
        identity = self.identity
        open_ = load(identity.boot)
        return EngineStatus(identity.engine, self.liveness.state, self.info, open_, self.work)


class Roster:
    """All engines of one API server.

    Args:
        server: its name.
        boot: its boot token.
        outputs: the endpoint of its PULL.
        patience: see there.

    Attributes:
        unwelcome: how many were refused.
    """

    def __init__(self, server: str, boot: int, outputs: str, patience: Patience) -> None:
        self._boot, self._patience = boot, patience
        welcome = Welcome(
            PROTOCOL, server, boot, list(FEATURES), outputs,
            patience.beat_every, patience.of_server, 0,
        )  # fmt: skip
        self._welcome = as_read(welcome, Welcome)
        self._lives = count(1)
        self._by_engine: dict[str, Member] = {}
        self._by_boot: dict[int, Member] = {}
        self._first: dict[int, int] = {}  # of each boot token: the first of its lives
        self.unwelcome = 0

    def member(self, engine: str) -> Member | None:
        """Return an engine by its id."""
        return self._by_engine.get(engine)

    def of(self, boot: int) -> Member | None:
        """Return an engine by its boot token."""
        return self._by_boot.get(boot)

    def members(self) -> list[Member]:
        """Return all engines."""
        return list(self._by_engine.values())

    def hello(
        self, identity: Identity, hello: Hello, now: float
    ) -> tuple[Welcome | Refusal, Departure | None]:
        """An engine introduces itself; return the answer, and whom it takes the place of."""
        refusal = find_mismatch(hello)
        if refusal is None and (hello.engine, hello.boot) != (identity.engine, identity.boot):
            refusal = Refusal("the engine's id", identity.engine, hello.engine)
        refusal = refusal or self._another_has_its_place(identity)
        if refusal is not None:
            self.unwelcome += 1
            return refusal, None
        departure = None
        if (old := self._by_engine.get(identity.engine)) is not None:
            if old.identity.boot != identity.boot:
                departure = self._gone(old, "it has restarted")
            elif old.slot is not None:
                departure = self._gone(old, "it joined anew")
            # Else it has said hello twice, as nobody was there yet to answer.
        member = Member(identity, hello.info, Liveness(self._patience, now), next(self._lives))
        self._first.setdefault(identity.boot, member.life)
        if len(self._first) > _REMEMBERED:
            del self._first[next(iter(self._first))]
        self._by_engine[identity.engine] = self._by_boot[identity.boot] = member
        return self._welcome_to(member), departure

    def beat(
        self, identity: Identity, beat: Beat, now: float
    ) -> tuple[BeatSeen | HelloAgain | Refusal | Welcome, Member | None]:
        """A beat came; return the answer, and the engine if it is to be sent a Start."""
        member = self._by_boot.get(identity.boot)
        if (refusal := self._another_has_its_place(identity)) is not None:
            return refusal, None
        if member is None or beat.server != self._boot:
            return HelloAgain(), None
        member.liveness.beat(beat.progress, now)
        member.work = beat.work
        if beat.life != member.life:  # of two Hellos it has heard the answer to the first one only
            return self._welcome_to(member), None
        is_ready = member.slot is not None
        return BeatSeen(self._boot, is_ready), None if is_ready else member

    def ready(self, ready: Ready, now: float) -> Member | None:
        """The engine's loop has answered; return the engine if this makes it ready."""
        member = self._by_boot.get(ready.boot)
        if member is None or (ready.server, ready.life) != (self._boot, member.life):
            return None
        if member.slot is not None:
            return None
        member.slot = ready.slot
        member.liveness.ready(now)
        return member

    def outputs(self, outputs: Outputs[Any], now: float) -> tuple[bool, Departure | None]:
        """Outputs came; return whether they count, and the end of the engine if some are lost."""
        member = self._by_boot.get(outputs.boot)
        if member is None or (outputs.server, outputs.life) != (self._boot, member.life):
            return False, None
        if member.slot is None:
            return False, None
        if outputs.seq != member.next_seq:
            first, last = member.next_seq, outputs.seq - 1
            which = first if first == last else f"{first} to {last}"
            lost = f"outputs {which} of it are lost"
            return False, self._gone(member, lost)
        member.next_seq += 1
        member.liveness.moved(now)
        return True, None

    def leave(self, identity: Identity, reason: str) -> Departure | None:
        """An engine said goodbye, or its connection broke."""
        member = self._by_boot.get(identity.boot)
        return None if member is None else self._gone(member, reason)

    def has_work(self, boot: int, has_work: bool, now: float) -> None:
        """Say whether an engine has requests of ours."""
        if (member := self._by_boot.get(boot)) is not None:
            member.liveness.has_work(has_work, now)

    def next_deadline(self) -> float | None:
        """When :meth:`handle_deadline` has something to do; ``None``: there are no engines."""
        deadlines = [member.liveness.next_deadline() for member in self._by_engine.values()]
        return min((each for each in deadlines if each is not None), default=None)

    def handle_deadline(self, now: float, *, end_hung: bool = False) -> list[Departure]:
        """Take notice of the time.

        Args:
            now: the time.
            end_hung: who is hung is taken for gone.
        """
        departures = []
        for member in self.members():
            state = member.liveness.handle_deadline(now)
            if state is EngineState.GONE:
                reason = f"nothing was heard of it for {self._patience.gone_after:g} s"
                departures.append(self._gone(member, reason))
            elif state is EngineState.HUNG and end_hung:
                reason = f"it made no progress for {self._patience.hung_after:g} s"
                departures.append(self._gone(member, reason))
        return departures

    def choose(self, load: Callable[[int], int]) -> Member | None:
        """Return the engine that gets the next request; ``None``: none is ready.

        The one with the fewest open requests; of several, the one that joined first. One that is
        hung gets none while there is another, and one whose connection broke none at all.

        Args:
            load: how many requests an engine has, by its boot token.
        """
        ready = [member for member in self._by_engine.values() if member.takes_requests]
        if len(ready) == 1:
            return ready[0]
        return min(
            ready,
            key=lambda m: (m.liveness.state is EngineState.HUNG, load(m.identity.boot)),
            default=None,
        )

    @staticmethod
    def number(member: Member, count: int) -> int:
        """Return the number of a request for an engine that is ready."""
        assert member.slot is not None
        return member.slot << SLOT_SHIFT | count

    def _welcome_to(self, member: Member) -> Welcome:
        return msgspec.structs.replace(self._welcome, life=member.life)

    def _another_has_its_place(self, identity: Identity) -> Refusal | None:
        """What a process is told whose id another one has taken that came later."""
        here = self._by_engine.get(identity.engine)
        first = self._first.get(identity.boot)
        if here is None or first is None or first >= self._first.get(here.identity.boot, here.life):
            return None
        return Refusal(
            f"the process of engine {identity.engine}", here.identity.boot, identity.boot
        )

    def _gone(self, member: Member, reason: str) -> Departure:
        member.liveness.gone()
        identity = member.identity
        del self._by_engine[identity.engine]
        del self._by_boot[identity.boot]
        return Departure(identity, reason)
