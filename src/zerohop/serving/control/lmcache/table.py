"""A controller's table: which worker of LMCache has which chunks. Pure, over ``now``.

A worker's location is right, or it is known that it is not:

    empty      the worker has just registered, and has nothing
    right      each operation had the number after the one before
    stale      a number was missing, or it is not known what was before: a full sync is asked for
               with the next heartbeat, and until it is there nothing is told of the worker
    syncing    the batches are coming; operations meanwhile are of a worker that stands still

LMCache's own controller counts a missing number and goes on. Here it costs one full sync, asked for
once: not again while one is under way, or for ``patience`` after it was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from zerohop.serving.arguments import seconds
from zerohop.serving.control.lmcache.messages import (
    Deregister,
    Failure,
    FullSync,
    Heartbeat,
    HeartbeatReply,
    Lookup,
    LookupReply,
    Message,
    Operations,
    Register,
    RegisterReply,
    SyncBatch,
    SyncEnd,
    SyncStart,
    SyncStartReply,
    SyncStatus,
    SyncStatusReply,
)
from zerohop.serving.control.watch import Watch

__all__ = ["ControllerTable", "WorkerName"]

WorkerName: TypeAlias = tuple[str, int]
"""An instance's id, and which of its workers it is."""
_LOOKS = 30  # within the time-out: as often as LMCache's workers beat
_FAREWELL = 5.0  # seconds: a beat that was sent before a farewell may come by its own way after it
_MAX_BATCHES = 1_000_000  # of one full sync: a number that a peer sends


@dataclass(slots=True)
class _Sync:
    sync_id: str
    location: str
    batches: int
    received: set[int] = field(default_factory=set)
    has_ended: bool = False

    def missing(self) -> list[int]:
        return [each for each in range(self.batches) if each not in self.received]


@dataclass(slots=True)
class _Worker:
    seen: float
    peer_init_url: str | None
    keys: dict[str, set[int]] = field(default_factory=dict)  # by location
    numbers: dict[str, int] = field(default_factory=dict)  # the last, by location
    first: int | None = None  # the number that a location begins with, where that is known
    stale: str | None = None  # why
    asked_at: float | None = None  # for a full sync
    sync: _Sync | None = None


class ControllerTable:
    """What a controller knows. Time is an argument: seconds, monotonic.

    Args:
        heartbeat_url: where workers are told to beat, as ``host:port``; ``None``: nowhere.
        timeout: seconds of silence after which a worker is gone; it is only gone if it has
            somewhere to beat.
        patience: seconds after which a full sync is asked for again, if none has begun.

    Attributes:
        gaps: operations before which a number was missing.
        strangers: messages of workers that are not registered.
        full_syncs: that were asked for.

    Raises:
        TypeError, ValueError: a time is none.
    """

    def __init__(
        self, heartbeat_url: str | None = None, timeout: float = 300.0, patience: float = 60.0
    ) -> None:
        self._heartbeat_url = heartbeat_url
        self._timeout = seconds("timeout", timeout, above_zero=True)
        self._patience = seconds("patience", patience)
        self._workers: dict[WorkerName, _Worker] = {}
        self._left: dict[WorkerName, float] = {}  # who has said farewell lately, and when
        self._watch = Watch(self._timeout / _LOOKS)
        self.gaps = self.strangers = self.full_syncs = 0

    def receive(self, message: Message, now: float) -> Message | None:
        """Take a message; return the reply, if it is one that has any."""
        self._watch.look(now)
        match message:
            case Register():
                name = message.instance_id, message.worker_id
                self._left.pop(name, None)
                self._workers[name] = _Worker(now, message.peer_init_url, first=0)
                url = self._heartbeat_url
                return RegisterReply({} if url is None else {"heartbeat_url": url})
            case Heartbeat():
                return self._beat(message, now)
            case Lookup():
                return LookupReply([self._look_up(message)])
            case Deregister():
                self._leave((message.instance_id, message.worker_id), now)
                return None
            case Operations() | SyncBatch() | SyncEnd() | SyncStart() | SyncStatus():
                worker = self._workers.get((message.instance_id, message.worker_id))
                if worker is not None:
                    worker.seen = now
                    return self._take(worker, message)
                self.strangers += 1
                return self._to_a_stranger(message)
        return Failure(f"a controller does not take a {type(message).__name__}")

    def workers(self) -> list[WorkerName]:
        """Return who is here: instance and worker."""
        return list(self._workers)

    def is_right(self, name: WorkerName) -> bool:
        """Whether what is known of a worker is all there is."""
        worker = self._workers.get(name)
        return worker is not None and worker.stale is None and worker.sync is None

    def keys(self, name: WorkerName, location: str) -> frozenset[int]:
        """Return the chunks that a worker has at a location, as far as is known."""
        worker = self._workers.get(name)
        return frozenset(worker.keys.get(location, ())) if worker is not None else frozenset()

    def next_deadline(self) -> float | None:
        """When :meth:`handle_deadline` has something to do."""
        if self._heartbeat_url is None:
            return None
        oldest = min((each.seen for each in self._workers.values()), default=None)
        return None if oldest is None else self._watch.next_look(oldest + self._timeout)

    def handle_deadline(self, now: float) -> None:
        """Whoever was silent for too long is gone, if this controller was awake to hear him."""
        self._watch.look(now)
        if self._heartbeat_url is None or now < self._watch.judge_from:
            return
        for name, worker in list(self._workers.items()):
            if worker.seen + self._timeout <= now:
                del self._workers[name]

    def _leave(self, name: WorkerName, now: float) -> None:
        if self._workers.pop(name, None) is not None:
            lately = {each: at for each, at in self._left.items() if now < at + _FAREWELL}
            self._left = {**lately, name: now}

    def _beat(self, beat: Heartbeat, now: float) -> HeartbeatReply:
        name = beat.instance_id, beat.worker_id
        worker = self._workers.get(name)
        if worker is None:
            if name in self._left and now < self._left[name] + _FAREWELL:
                return HeartbeatReply()
            worker = self._workers[name] = _Worker(now, beat.peer_init_url)
            worker.stale = "worker_re_registered"
        worker.seen = now
        if worker.stale is None or worker.sync is not None:
            return HeartbeatReply()
        if worker.asked_at is not None and now < worker.asked_at + self._patience:
            return HeartbeatReply()
        worker.asked_at = now
        self.full_syncs += 1
        return HeartbeatReply([FullSync(worker.stale)])

    def _take(
        self, worker: _Worker, message: Operations | SyncBatch | SyncEnd | SyncStart | SyncStatus
    ) -> Message | None:
        match message:
            case Operations():
                if worker.sync is None:
                    self._operate(worker, message)
                return None
            case SyncStart():
                return self._start(worker, message)
            case SyncStatus():
                return _status(worker, message)
        sync = worker.sync
        if sync is None or sync.sync_id != message.sync_id:
            return None  # of a sync that was given up
        if isinstance(message, SyncEnd):
            sync.has_ended = True
        elif 0 <= message.batch_id < sync.batches:
            sync.received.add(message.batch_id)
            worker.keys.setdefault(sync.location, set()).update(message.keys)
        if sync.has_ended and len(sync.received) == sync.batches:
            worker.sync, worker.stale, worker.asked_at = None, None, None
            worker.numbers, worker.first = {}, None
        return None

    def _operate(self, worker: _Worker, message: Operations) -> None:
        keys = worker.keys.setdefault(message.location, set())
        for operation in message.operations:
            last = worker.numbers.get(message.location)
            expected = worker.first if last is None else last + 1
            if expected is not None and operation.seq_num != expected:
                self.gaps += 1
                worker.stale = worker.stale or "sequence_gap"
            worker.numbers[message.location] = operation.seq_num
            if operation.op_type == "admit":
                keys.add(operation.key)
            else:
                keys.discard(operation.key)

    def _start(self, worker: _Worker, message: SyncStart) -> SyncStartReply:
        if not 0 <= message.batch_count <= _MAX_BATCHES:
            reason = f"{message.batch_count} batches, and at most {_MAX_BATCHES} are taken"
            return SyncStartReply(message.sync_id, accepted=False, error_msg=reason)
        if worker.sync is None or worker.sync.sync_id != message.sync_id:
            worker.sync = _Sync(message.sync_id, message.location, message.batch_count)
            worker.keys[message.location] = set()
        return SyncStartReply(message.sync_id, accepted=True)

    def _look_up(self, message: Lookup) -> tuple[str, str, int, str]:
        best = ("", "", 0, "")
        for (instance_id, _), worker in self._workers.items():
            if instance_id == message.instance_id or worker.peer_init_url is None:
                continue
            if worker.stale is not None or worker.sync is not None:
                continue
            for location, keys in worker.keys.items():
                count = _prefix(message.hashes, keys)
                if count > best[2]:
                    best = (instance_id, location, count, worker.peer_init_url)
        return best

    def _to_a_stranger(self, message: Message) -> Message | None:
        match message:
            case SyncStart(sync_id=sync_id):
                return SyncStartReply(sync_id, accepted=False, error_msg="register first")
            case SyncStatus(sync_id=sync_id):
                return SyncStatusReply(sync_id, False, 0.0, can_exit_freeze=True)
        return None


def _status(worker: _Worker, message: SyncStatus) -> SyncStatusReply:
    """A sync that is not the one under way is over: its worker need not stand still any longer."""
    sync = worker.sync
    if sync is None or sync.sync_id != message.sync_id:
        return SyncStatusReply(message.sync_id, sync is None, 1.0, can_exit_freeze=True)
    progress = len(sync.received) / sync.batches if sync.batches else 1.0
    missing = sync.missing() if sync.has_ended else []
    return SyncStatusReply(message.sync_id, False, progress, False, missing)


def _prefix(hashes: list[int], keys: set[int]) -> int:
    count = 0
    for each in hashes:
        if each not in keys:
            break
        count += 1
    return count
