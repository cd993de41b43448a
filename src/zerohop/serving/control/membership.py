"""Who is here, and what the server knows of each: a table over ``now``.

A worker is, in the server's eyes,

    syncing    registered; its table is being received, and what is there is not whole
    right      the table is the worker's as of the last batch that was received
    gone       there is nothing of it: it left, fell silent, or was replaced

and these are the moves:

    (gone) --register--> syncing --a complete batch--> right --silence, leave--> (gone)
                            ^                             |
                            +----- another boot token ----+

**A worker is one process.** The boot token tells a restart from a worker that merely asks again:
with the same token and attempt a registration changes nothing and the stream goes on where it was,
so that a lost reply costs one more question and no second re-sync. A token that was replaced does
not come back while its successor is here: of two processes with one name the newer stays.

**Streams.** Each registration has a stream of batches of its own, numbered from 0, acknowledged one
by one: first the whole table, then the changes. A batch of another stream, or out of turn, is
never applied. At most ``max_syncs`` workers send theirs at a time; the others wait, so that a
server that comes back is not asked to take everything from everybody at once.

**Silence** is time in which the server listened and heard nothing. Where it stood still itself (its
event loop was busy, its process stopped), the heartbeats that came meanwhile are yet to be read: it
looks at least once a period, and after a gap of more nobody is judged for another period.

**Commands** are kept until their outcome has come, pushed once, and given with each heartbeat's
reply. Each ends: in an outcome, in order, or lost with its worker.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from zerohop.serving.arguments import seconds, text, whole
from zerohop.serving.control.events import (
    CommandEnded,
    CommandLost,
    ControlEvent,
    WorkerChanged,
    WorkerGone,
    WorkerJoined,
    WorkerSynced,
    WorkerView,
)
from zerohop.serving.control.messages import (
    LONGEST,
    VERSION,
    Batch,
    Beat,
    Command,
    Farewell,
    Key,
    Outcome,
    Pulse,
    Receipt,
    Registration,
    Welcome,
)
from zerohop.serving.control.values import encoded, how_many, octets_of
from zerohop.serving.control.watch import Watch
from zerohop.serving.errors import RequestRefused
from zerohop.serving.wording import counted

__all__ = ["Membership", "MembershipOptions"]

_REPLACED = 8  # boot tokens that are remembered of each worker
_IN_A_PULSE = 100  # commands; the others follow with the next


@dataclass(frozen=True, slots=True)
class MembershipOptions:
    """How a server keeps its table; the first three are announced to the workers.

    Attributes:
        period: seconds between a worker's heartbeats.
        timeout: seconds of silence after which it counts as gone.
        spread: seconds over which workers scatter when all have to register anew.
        batch: entries in one batch of a re-sync.
        max_syncs: workers that may send their tables at a time.
        max_workers: how many may be here; more are refused.
        max_events: events that may wait to be read; while so many do, no batch is taken, and with
            ``max_workers`` more no registration. 0: there are none, for who looks at views alone.

    Raises:
        TypeError: one of them is no number.
        ValueError: the time-out is not at least three periods: one lost heartbeat would be an end;
            the period or the spread is longer than a day, or what is counted is 0.
        Unencodable: what is announced has no form on the wire, as numpy's numbers have none.
    """

    period: float = 2.0
    timeout: float = 10.0
    spread: float = 2.0
    batch: int = 2000
    max_syncs: int = 8
    max_workers: int = 10_000
    max_events: int = 10_000

    def __post_init__(self) -> None:
        for name in ("period", "timeout"):
            seconds(name, getattr(self, name), above_zero=True)
        seconds("spread", self.spread)
        for name in ("batch", "max_syncs", "max_workers"):
            whole(name, getattr(self, name), least=1)
        whole("max_events", self.max_events)
        encoded([self.period, self.timeout, self.spread, self.batch])
        if max(self.period, self.spread) > LONGEST:
            raise ValueError(
                f"period={self.period:g} and spread={self.spread:g}: workers take {LONGEST:g} s "
                "at most"
            )
        if not 0 < 3 * self.period <= self.timeout:
            raise ValueError(
                f"timeout={self.timeout:g} is less than three times period={self.period:g}; "
                "a worker would be gone after a heartbeat or two that were late"
            )


@dataclass(slots=True)
class _Member:
    registration: Registration
    route: bytes
    stream: int
    seen: float
    next: int = 0
    is_right: bool = False
    table: dict[Key, Any] = field(default_factory=dict)
    commands: deque[Command] = field(default_factory=deque)
    last_command: int = 0
    replaced: deque[bytes] = field(default_factory=lambda: deque(maxlen=_REPLACED))


class Membership:
    """The workers of one server. Time is an argument: seconds, monotonic.

    Args:
        boot: octets that are another each time the server starts.
        options: times and limits.

    Attributes:
        boot: as given.
        registrations: that made a worker known, or known anew; those that were repeated not.
        syncs: tables that were received whole.
        held_back: batches and registrations that were not taken as nobody reads the events.
    """

    def __init__(self, boot: bytes, options: MembershipOptions | None = None) -> None:
        self.boot = boot
        self.options = options or MembershipOptions()
        self.registrations = self.syncs = self.held_back = 0
        self._members: dict[str, _Member] = {}  # who was heard of last comes last
        self._syncing: set[str] = set()  # who may send its table now
        self._events: deque[ControlEvent] = deque()
        self._pushes: list[tuple[bytes, Command]] = []
        self._watch = Watch(self.options.period)

    def register(self, registration: Registration, route: bytes, now: float) -> Welcome:
        """A worker says that it is here.

        Args:
            registration: what it says.
            route: where commands are pushed to.
            now: the time.

        Raises:
            RequestRefused: it speaks another version, was replaced by a newer process, or there
                are too many.
        """
        self._watch.look(now)
        worker, boot = registration.worker, registration.boot
        if registration.version != VERSION:
            raise RequestRefused(
                worker,
                f"this server speaks version {VERSION} of the control channel, "
                f"not {registration.version}",
            )
        member = self._members.get(worker)
        if (
            member is None
            or member.registration.boot != boot
            or member.registration.attempt < registration.attempt
        ):
            member = self._join(member, registration, route, now)
        self._touch(member, route, now)
        options = self.options
        return Welcome(
            server=self.boot,
            stream=member.stream,
            next=member.next,
            period=options.period,
            timeout=options.timeout,
            spread=options.spread,
            batch=options.batch,
        )

    def beat(self, beat: Beat, route: bytes, now: float) -> Pulse:
        """A worker says that it is alive, and what became of its commands."""
        member = self._find(beat, route, now)
        if member is None:
            return Pulse(known=False)
        for outcome in beat.outcomes:
            self._end(member, outcome)
        heard = member.last_command - len(member.commands)
        commands = list(islice(member.commands, _IN_A_PULSE))
        del commands[how_many(octets_of(each.arguments) for each in commands) :]
        return Pulse(True, commands, heard)

    def sync(self, batch: Batch, route: bytes, now: float) -> Receipt:
        """A worker sends a piece of its table."""
        member = self._find(batch, route, now)
        if member is None:
            return Receipt(known=False)
        if batch.number != member.next:
            return Receipt(True, member.next)
        worker = batch.worker
        may_send = (
            member.is_right
            or worker in self._syncing
            or len(self._syncing) < self.options.max_syncs
        )
        is_full = 0 < self.options.max_events <= len(self._events)
        self.held_back += is_full
        if not may_send or is_full:
            return Receipt(True, member.next, self.options.period)
        member.next += 1
        member.table.update(batch.put)
        for key in batch.removed:
            member.table.pop(key, None)
        if batch.put or batch.removed:
            self._tell(WorkerChanged(worker, batch.put, batch.removed))
        if member.is_right:
            return Receipt(True, member.next)
        if batch.complete:
            member.is_right = True
            self.syncs += 1
            self._syncing.discard(worker)
            self._tell(WorkerSynced(worker))
        else:
            self._syncing.add(worker)
        return Receipt(True, member.next)

    def leave(self, farewell: Farewell) -> None:
        """A worker goes. One that is not known, or of another boot, is nobody's loss."""
        member = self._members.get(farewell.worker)
        if member is not None and member.registration.boot == farewell.boot:
            self._remove(farewell.worker, "left")

    def command(self, worker: str, name: str, arguments: list[Any]) -> int:
        """Tell a worker to do something; return the id of the command, one of this worker's.

        Raises:
            KeyError: the worker is not here.
            TypeError: the name is no text.
            Unencodable: something in it has no form on the wire, or it is too large.
        """
        encoded(text("a command's name", name))  # a text may have no form, too
        packed = encoded(arguments)
        member = self._members[worker]
        member.last_command += 1
        command = Command(member.stream, member.last_command, name, packed)
        member.commands.append(command)
        self._pushes.append((member.route, command))
        return command.id

    def pushes(self) -> list[tuple[bytes, Command]]:
        """Return what is to be pushed now, with the route; each once."""
        pushes, self._pushes = self._pushes, []
        return pushes

    def next_event(self) -> ControlEvent | None:
        """Return what has happened, in order."""
        return self._events.popleft() if self._events else None

    def workers(self) -> list[str]:
        """Return the names of those who are here."""
        return list(self._members)

    def view(self, worker: str) -> WorkerView | None:
        """Return what is known of a worker; ``None``: it is gone."""
        member = self._members.get(worker)
        if member is None:
            return None
        it = member.registration
        return WorkerView(worker, it.boot, it.offers, member.is_right, dict(member.table))

    def next_deadline(self) -> float | None:
        """When :meth:`handle_deadline` has something to do; once a period at least."""
        end = self._end_of_patience()
        return None if end is None else self._watch.next_look(end)

    def handle_deadline(self, now: float) -> None:
        """Whoever was silent for too long is gone."""
        self._watch.look(now)
        if now < self._watch.judge_from:
            return
        while (end := self._end_of_patience()) is not None and end <= now:
            self._remove(next(iter(self._members)), "silent")

    def _end_of_patience(self) -> float | None:
        oldest = next(iter(self._members.values()), None)
        return None if oldest is None else oldest.seen + self.options.timeout

    def _join(
        self, before: _Member | None, registration: Registration, route: bytes, now: float
    ) -> _Member:
        worker, boot, options = registration.worker, registration.boot, self.options
        if before is not None and boot in before.replaced:
            raise RequestRefused(worker, f"worker {worker} was replaced by a newer process")
        if before is None and len(self._members) >= options.max_workers:
            limit = counted(options.max_workers, "worker")
            raise RequestRefused(worker, f"the limit of {limit} is reached")
        if 0 < options.max_events <= len(self._events) - options.max_workers:
            self.held_back += 1
            reason = f"the events are not read (waiting: {len(self._events)}); come later"
            raise RequestRefused(worker, reason)
        self.registrations += 1
        member = _Member(registration, route, self.registrations, now)
        if before is not None:
            self._remove(worker, "replaced")
            member.replaced.extend([*before.replaced, before.registration.boot])
        self._members[worker] = member
        self._tell(WorkerJoined(worker, boot, registration.offers))
        return member

    def _find(self, message: Beat | Batch, route: bytes, now: float) -> _Member | None:
        self._watch.look(now)
        member = self._members.get(message.worker)
        if member is None or member.registration.boot != message.boot:
            return None
        if (message.server, message.stream) != (self.boot, member.stream):
            return None
        self._touch(member, route, now)
        return member

    def _end(self, member: _Member, outcome: Outcome) -> None:
        """Commands end in order: one that was passed over would keep those after it for ever."""
        if outcome.id > member.last_command:
            return
        worker = member.registration.worker
        while member.commands and member.commands[0].id <= outcome.id:
            number = member.commands.popleft().id
            if number == outcome.id:
                self._tell(CommandEnded(worker, number, outcome.result, outcome.error))
            else:
                self._tell(CommandEnded(worker, number, None, "its worker said nothing of it"))

    def _tell(self, *events: ControlEvent) -> None:
        if self.options.max_events:
            self._events.extend(events)

    def _touch(self, member: _Member, route: bytes, now: float) -> None:
        member.seen, member.route = now, route
        worker = member.registration.worker
        self._members[worker] = self._members.pop(worker)

    def _remove(self, worker: str, reason: Literal["left", "silent", "replaced"]) -> None:
        member = self._members.pop(worker)
        self._syncing.discard(worker)
        self._tell(*(CommandLost(worker, command.id) for command in member.commands))
        self._tell(WorkerGone(worker, reason))
