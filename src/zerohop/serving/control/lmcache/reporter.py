"""What an LMCache worker tells a controller, and in which order. Pure, over ``now``.

    registering   the registration is asked, again after ``patience`` without a reply; a controller
                  takes each for a start with nothing, so all are answered before anything is told
    reporting     operations are pushed, numbered for each location; heartbeats where it was told to
    syncing       a full sync was commanded: start, batches, end, then status until all have arrived

A full sync begins after a delay of the worker's own, so that those of many workers do not begin
together, and while it runs no operation is pushed; what happened meanwhile follows.
"""

from __future__ import annotations

from typing import Literal

from zerohop.serving.arguments import seconds
from zerohop.serving.codec import pack
from zerohop.serving.control.lmcache.messages import (
    Deregister,
    Heartbeat,
    HeartbeatReply,
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
    WorkerOperation,
    encode_message,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LmcacheReporter", "Place"]

Place = Literal["push", "reply", "heartbeat"]
_BATCH = 2000  # keys, as LMCache's own worker sends them


class LmcacheReporter:
    """One worker, at one location. Time is an argument: seconds, monotonic.

    Args:
        register: who it is.
        location: of the chunks, in LMCache's words.
        jitters: numbers between 0 and 1, at random.
        period: seconds between heartbeats.
        patience: seconds without a reply, after which a question is asked again.
        spread: seconds over which full syncs are scattered.

    Attributes:
        is_registered: whether the controller has replied.
        heartbeat_url: where to beat, as ``host:port``; ``None``: nowhere.
        keys: what the worker has.
        full_syncs: that were carried out.

    Raises:
        TypeError, ValueError: a time is none.
        Unencodable: something in who it is, or the location, has no form on the wire.
    """

    def __init__(
        self,
        register: Register,
        location: str,
        jitters: Iterator[float],
        *,
        period: float = 10.0,
        patience: float = 5.0,
        spread: float = 5.0,
    ) -> None:
        encode_message(register)
        pack(location)
        self.is_registered = False
        self.heartbeat_url: str | None = None
        self.keys: set[int] = set()
        self.full_syncs = 0
        self._who, self._location, self._jitters = register, location, jitters
        self._period = seconds("period", period, above_zero=True)
        self._patience = seconds("patience", patience, above_zero=True)
        self._spread = seconds("spread", spread)
        self._asked = self._replies = 0
        self._number = 0
        self._pending: list[WorkerOperation] = []
        self._out: list[tuple[Place, Message]] = []
        self._due: dict[Literal["register", "beat", "start", "status"], float] = {"register": 0.0}
        self._sync_id: str | None = None
        self._syncs = 0
        self._snapshot: list[int] = []
        self._beat_at = self._begun_at = 0.0
        self._has_left = False

    @property
    def is_syncing(self) -> bool:
        """Whether a full sync is under way, or due."""
        return self._sync_id is not None or "start" in self._due

    def admit(self, key: int) -> None:
        """A chunk has come into the cache; one that is there is no news.

        Raises:
            TypeError: the key is no number.
            Unencodable: it has no form on the wire: it is less than -2**63, or 2**64 or more.
        """
        if type(key) is not int:
            raise TypeError(f"a chunk's key is an int, not {key!r:.64}")
        pack(key)
        if key not in self.keys:
            self.keys.add(key)
            self._operate("admit", key)

    def evict(self, key: int) -> None:
        """A chunk has left the cache; one that is not there is no news."""
        if key in self.keys:
            self.keys.discard(key)
            self._operate("evict", key)

    def leave(self) -> None:
        """Deregister; there is no reply."""
        who = self._who
        self._out.append(("push", Deregister(who.instance_id, who.worker_id, who.ip, who.port)))
        self._due, self._pending, self._has_left = {}, [], True

    def messages_to_send(self) -> list[tuple[Place, Message]]:
        """Return what is to be sent, and through which socket."""
        if self._pending and self.is_registered and self._sync_id is None and not self._has_left:
            who = self._who
            operations, self._pending = self._pending, []
            self._out.append(
                ("push", Operations(who.instance_id, who.worker_id, self._location, operations))
            )
        out, self._out = self._out, []
        return out

    def next_deadline(self) -> float | None:
        """When :meth:`handle_deadline` has something to do."""
        return min(self._due.values(), default=None)

    def handle_deadline(self, now: float) -> None:
        """Ask what is due."""
        who = self._who
        for question in [each for each, due in self._due.items() if due <= now]:
            match question:
                case "register" if self._replies:  # the others are lost
                    self._registered(now)
                case "register":
                    self._asked += 1
                    self._due["register"] = now + self._patience * (0.5 + next(self._jitters))
                    self._out.append(("reply", who))
                case "beat":
                    self._due["beat"] = now + self._period
                    self._beat_at = now
                    beat = Heartbeat(
                        who.instance_id, who.worker_id, who.ip, who.port, who.peer_init_url
                    )
                    self._out.append(("heartbeat", beat))
                case "start":
                    self._start(now)
                case "status":
                    self._due["status"] = now + self._patience
                    status = SyncStatus(who.instance_id, who.worker_id, self._sync_id or "")
                    self._out.append(("reply", status))

    def receive(self, message: Message, now: float) -> None:
        """Take what the controller sent."""
        if self._has_left:
            return
        match message:
            case RegisterReply(extra_config) if not self.is_registered:
                self._replies += 1
                self.heartbeat_url = extra_config.get("heartbeat_url")
                if self._replies == self._asked:
                    self._registered(now)
            case HeartbeatReply(commands) if commands and self._is_news():
                self._sync_id = None
                self._due.pop("status", None)
                self._due["start"] = now + self._spread * next(self._jitters)
            case SyncStartReply(sync_id, accepted) if sync_id == self._sync_id:
                self._begin(accepted, now)
            case SyncStatusReply(sync_id) if sync_id == self._sync_id:
                self._go_on(message, now)

    def _registered(self, now: float) -> None:
        self.is_registered = True
        del self._due["register"]
        if self.heartbeat_url is not None:
            self._due["beat"] = now

    def _is_news(self) -> bool:
        """Whether the command to sync is not of the sync that is under way, or due.

        A controller does not give it while it takes one; so it has restarted, unless the heartbeat
        that it replies to was sent before it took this one.
        """
        if "start" in self._due:
            return False
        return self._sync_id is None or self._beat_at > self._begun_at

    def _operate(self, what: Literal["admit", "evict"], key: int) -> None:
        self._pending.append(WorkerOperation(what, key, self._number))
        self._number += 1

    def _start(self, now: float) -> None:
        """Ask whether all keys may be sent; again, unless there is a reply."""
        who = self._who
        if self._sync_id is None:
            self._syncs += 1
            self._sync_id = f"{who.instance_id}_{who.worker_id}_{self._syncs}"
            self._snapshot = sorted(self.keys)
            self._pending.clear()  # it is in there
        self._due["start"] = now + self._patience
        self._out.append(
            (
                "reply",
                SyncStart(
                    *(who.instance_id, who.worker_id, self._location, self._sync_id),
                    *(len(self._snapshot), self._batches()),
                ),
            )
        )

    def _begin(self, accepted: bool, now: float) -> None:
        if "start" not in self._due:
            return  # it was asked twice, and has begun
        del self._due["start"]
        if not accepted:
            self._sync_id = None  # the next heartbeat says whether it is still wanted
            return
        self._begun_at = now
        self._send(range(self._batches()))
        self._due["status"] = now + min(self._patience, 1.0)

    def _go_on(self, status: SyncStatusReply, now: float) -> None:
        if status.missing_batches:
            self._send([each for each in status.missing_batches if each < self._batches()])
        elif status.can_exit_freeze:
            self._sync_id = None
            self._snapshot = []
            self.full_syncs += 1
            self._due.pop("status", None)
            return
        self._due["status"] = now + min(self._patience, 1.0)

    def _batches(self) -> int:
        return max(-(-len(self._snapshot) // _BATCH), 1)

    def _send(self, numbers: range | list[int]) -> None:
        who = self._who
        place = who.instance_id, who.worker_id, self._location, self._sync_id or ""
        for number in numbers:
            keys = self._snapshot[number * _BATCH : (number + 1) * _BATCH]
            self._out.append(("push", SyncBatch(*place, number, keys)))
        self._out.append(("push", SyncEnd(*place, len(self._snapshot))))
