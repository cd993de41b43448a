"""A controller that LMCache workers register with, and a worker that registers with LMCache's.

Here in threads, and what is the same on an event loop. What cannot be read is counted, told to the
log now and then, and answered with an error where it was a question; it never ends the thread that
the others are served by.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import zerohop as zmq
from zerohop.serving.actor import Actor, ActorThread, bound, connected
from zerohop.serving.control.client import jitters
from zerohop.serving.control.lmcache.exchange import (
    ControllerExchange,
    WorkerExchange,
    where_to_beat,
)
from zerohop.serving.control.lmcache.reporter import LmcacheReporter
from zerohop.serving.control.lmcache.table import ControllerTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.serving.control.lmcache.messages import Register
    from zerohop.serving.control.lmcache.table import WorkerName

__all__ = ["Controlling", "Reporting", "SyncLmcacheController", "SyncLmcacheWorker"]

_log = logging.getLogger(__name__)


class Controlling(Actor):
    """What both controllers are.

    Attributes:
        pull_endpoint: where it is bound.
        reply_endpoint: where it is bound.
        heartbeat_endpoint: where it is bound.
    """

    _name = "zerohop-lmcache-controller"

    def __init__(
        self,
        pull: str = "tcp://127.0.0.1:*",
        reply: str = "tcp://127.0.0.1:*",
        heartbeat: str = "tcp://127.0.0.1:*",
        *,
        timeout: float = 300.0,
        heartbeat_host: str | None = None,
    ) -> None:
        """Bind, and wait for workers.

        Args:
            pull: to bind, for what workers push.
            reply: to bind, for what they ask.
            heartbeat: to bind, for their heartbeats.
            timeout: seconds of silence after which a worker is gone.
            heartbeat_host: by which workers reach that endpoint, if it is bound to every interface.
                LMCache's own workers beat over tcp alone.

        Raises:
            ValueError: heartbeats are bound to every interface, and nobody says by which host to
                reach it: a worker that beats elsewhere would be taken for gone; or the timeout is
                no time.
            TypeError: an argument is of another kind.
            ZMQError: an endpoint can't be bound.
        """
        super().__init__()
        with self._starting():
            pulls = bound(self._context.socket(zmq.PULL), pull)
            replies = bound(self._context.socket(zmq.ROUTER), reply)
            beats = bound(self._context.socket(zmq.ROUTER), heartbeat)
            self.pull_endpoint: str = pulls.last_endpoint.decode()
            self.reply_endpoint: str = replies.last_endpoint.decode()
            self.heartbeat_endpoint: str = beats.last_endpoint.decode()
            beat_at = where_to_beat(self.heartbeat_endpoint, heartbeat_host)
            self._exchange = ControllerExchange(ControllerTable(beat_at, timeout))
            self._listen(pulls, self._exchange.take)
            for router in (replies, beats):
                self._listen(router, partial(self._answer, router))

    @property
    def malformed(self) -> int:
        """How many messages could not be read."""
        return self._exchange.malformed

    @property
    def gaps(self) -> int:
        """How many times a number was missing."""
        return self._exchange.table.gaps

    @property
    def full_syncs(self) -> int:
        """How many full syncs were asked for."""
        return self._exchange.table.full_syncs

    def workers(self) -> list[WorkerName]:
        """Return who is here: instance and worker."""
        with self._lock:
            return self._exchange.table.workers()

    def is_right(self, name: WorkerName) -> bool:
        """Whether what is known of a worker is all there is."""
        with self._lock:
            return self._exchange.table.is_right(name)

    def keys(self, name: WorkerName, location: str) -> frozenset[int]:
        """Return the chunks that a worker has at a location, as far as is known.

        Args:
            name: instance and worker.
            location: as the worker names it: ``"LocalCPUBackend"``.

        Returns:
            Their hashes.
        """
        with self._lock:
            return self._exchange.table.keys(name, location)

    def _answer(self, router: Any, frames: list[bytes], now: float) -> None:
        for reply in self._exchange.answer(frames, now):
            self._send(router, reply)

    def _turn(self, now: float) -> float | None:
        table = self._exchange.table
        table.handle_deadline(now)
        _log_all(self._exchange.lines_to_log())
        return table.next_deadline()


class Reporting(Actor):
    """What both workers are. They deregister where they are closed."""

    _name = "zerohop-lmcache-worker"

    def __init__(
        self,
        pull: str,
        reply: str,
        register: Register,
        *,
        location: str = "LocalCPUBackend",
        period: float = 10.0,
        patience: float = 5.0,
        spread: float = 5.0,
    ) -> None:
        """Connect, and register.

        Args:
            pull: the controller's, for operations.
            reply: the controller's, for questions.
            register: who it is.
            location: of the chunks.
            period: seconds between heartbeats.
            patience: seconds without a reply, after which a question is asked again.
            spread: seconds over which the full syncs of many workers are scattered.

        Raises:
            TypeError, ValueError: an argument is of another kind, or no time.
            Unencodable: something in who it is has no form on the wire.
            ZMQError: an endpoint can't be connected.
        """
        super().__init__()
        with self._starting():
            self._reporter = LmcacheReporter(
                register, location, jitters(), period=period, patience=patience, spread=spread
            )
            self._exchange = WorkerExchange(self._reporter, reply)
            self._places: dict[str, Any] = {}
            self._places["push"] = self._connect(zmq.PUSH, pull)
            self._ask_at("reply", reply)

    @property
    def malformed(self) -> int:
        """How many messages of the controller could not be read, or made no sense."""
        return self._exchange.malformed

    @property
    def is_registered(self) -> bool:
        """Whether the controller has replied."""
        return self._reporter.is_registered

    @property
    def full_syncs(self) -> int:
        """How many full syncs were carried out."""
        return self._reporter.full_syncs

    def admit(self, *keys: int) -> None:
        """These chunks have come into the cache.

        Raises:
            TypeError: a key is no number; those before it have been taken.
            Unencodable: a key is less than -2**63, or 2**64 or more; likewise.
        """
        with self._lock:
            self._wake()
            for key in keys:
                self._reporter.admit(key)

    def evict(self, *keys: int) -> None:
        """These chunks have left the cache."""
        with self._lock:
            self._wake()
            for key in keys:
                self._reporter.evict(key)

    def _connect(self, kind: zmq.SocketType, endpoint: str) -> Any:
        socket = self._context.socket(kind)
        socket.linger = 500  # for the farewell, and what goes before it
        return connected(socket, endpoint)

    def _ask_at(self, place: str, endpoint: str) -> None:
        dealer = self._places[place] = self._connect(zmq.DEALER, endpoint)
        self._listen(dealer, self._exchange.receive)

    def _leave(self) -> None:
        self._reporter.leave()

    def _turn(self, now: float) -> float | None:
        exchange = self._exchange
        heartbeat = exchange.new_heartbeat()
        if heartbeat is not None:
            try:
                self._ask_at("heartbeat", heartbeat)
            except (zmq.ZMQError, ValueError) as error:
                exchange.complain(f"told to beat at {heartbeat!r:.100}: {error}", now)
        for place, frames in exchange.data_to_send(now):
            if place in self._places:
                self._send(self._places[place], frames)  # else a number is missing: it is synced
        _log_all(exchange.lines_to_log())
        return self._reporter.next_deadline()


def _log_all(lines: list[str]) -> None:
    for line in lines:
        _log.warning("%s", line)


class SyncLmcacheController(Controlling, ActorThread):
    """Keeps the table of LMCache's workers, in a thread."""


class SyncLmcacheWorker(Reporting, ActorThread):
    """Tells an LMCache controller what is in a cache, in a thread."""
