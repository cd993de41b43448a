"""A controller that LMCache workers register with, and a worker that registers with LMCache's.

Both in threads. What cannot be read is counted, told to the log now and then, and answered with an
error where it was a question; it never ends the thread that the others are served by.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from abc import ABC, abstractmethod

import zerohop as zmq
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
    from collections.abc import Iterator
    from types import TracebackType
    from typing import Any, Self

    from zerohop.serving.control.lmcache.messages import Register
    from zerohop.serving.control.lmcache.table import WorkerName

__all__ = ["SyncLmcacheController", "SyncLmcacheWorker"]

_log = logging.getLogger(__name__)
_SLICE = 100  # messages of one socket that are received before the others have their turn


class _Driver(ABC):
    """A thread that waits for some sockets, and a way to wake it."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self._is_closed = False
        self._context = zmq.Context()
        self._waker = self._context.socket(zmq.PAIR)
        self._waker.bind("inproc://wake")
        self._woken = self._context.socket(zmq.PAIR)
        self._woken.connect("inproc://wake")
        self._poller = zmq.Poller()
        self._poller.register(self._woken, zmq.POLLIN)

    def _open(self, kind: zmq.SocketType, endpoint: str, *, bind: bool = False) -> Any:
        socket = self._context.socket(kind)
        socket.linger = 0
        socket.ipv6 = "[" in endpoint
        try:
            (socket.bind if bind else socket.connect)(endpoint)
        except BaseException:
            socket.close()
            raise
        if kind != zmq.PUSH:  # nothing ever comes there
            self._poller.register(socket, zmq.POLLIN)
        return socket

    def _start(self, name: str) -> None:
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _wake(self) -> None:
        with contextlib.suppress(zmq.ZMQError):
            self._waker.send(b"", zmq.DONTWAIT)

    def _run(self) -> None:
        while True:
            with self.changed:
                deadline = self._turn(time.monotonic())
                self.changed.notify_all()
                if self._is_closed:
                    return
            now = time.monotonic()
            self._poller.poll(None if deadline is None else max(deadline - now, 0.0) * 1000 + 1)
            for _ in _waiting(self._woken):
                pass

    @abstractmethod
    def _turn(self, now: float) -> float | None:
        """Receive, decide, send; return when there is more to do."""

    def close(self) -> None:
        """End."""
        with self.changed:
            if self._is_closed:
                return
            self._is_closed = True
            self._wake()
        self._thread.join()
        self._context.destroy(linger=500)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class SyncLmcacheController(_Driver):
    """Keeps the table of LMCache's workers.

    Args:
        pull: to bind, for what workers push.
        reply: to bind, for what they ask.
        heartbeat: to bind, for their heartbeats.
        timeout: seconds of silence after which a worker is gone.
        heartbeat_host: by which workers reach that endpoint, if it is bound to every interface.
            LMCache's own workers beat over tcp alone.

    Attributes:
        pull_endpoint: where it is bound.
        reply_endpoint: where it is bound.
        heartbeat_endpoint: where it is bound.

    Raises:
        ValueError: heartbeats are bound to every interface, and nobody says by which host to
            reach it: a worker that beats elsewhere would be taken for gone.
        ZMQError: an endpoint can't be bound.
    """

    def __init__(
        self,
        pull: str = "tcp://127.0.0.1:*",
        reply: str = "tcp://127.0.0.1:*",
        heartbeat: str = "tcp://127.0.0.1:*",
        *,
        timeout: float = 300.0,
        heartbeat_host: str | None = None,
    ) -> None:
        super().__init__()
        try:
            self._pull = self._open(zmq.PULL, pull, bind=True)
            self._routers = [self._open(zmq.ROUTER, each, bind=True) for each in (reply, heartbeat)]
            self.heartbeat_endpoint: str = self._routers[1].last_endpoint.decode()
            beat_at = where_to_beat(self.heartbeat_endpoint, heartbeat_host)
        except BaseException:
            self._context.destroy(linger=0)
            raise
        self.pull_endpoint: str = self._pull.last_endpoint.decode()
        self.reply_endpoint: str = self._routers[0].last_endpoint.decode()
        self._exchange = ControllerExchange(ControllerTable(beat_at, timeout))
        self._start("zerohop-lmcache-controller")

    @property
    def malformed(self) -> int:
        """How many messages could not be read."""
        with self.changed:
            return self._exchange.malformed

    @property
    def gaps(self) -> int:
        """How many times a number was missing."""
        with self.changed:
            return self._exchange.table.gaps

    @property
    def full_syncs(self) -> int:
        """How many full syncs were asked for."""
        with self.changed:
            return self._exchange.table.full_syncs

    def workers(self) -> list[WorkerName]:
        """Return who is here: instance and worker."""
        with self.changed:
            return self._exchange.table.workers()

    def is_right(self, name: WorkerName) -> bool:
        """Whether what is known of a worker is all there is."""
        with self.changed:
            return self._exchange.table.is_right(name)

    def keys(self, name: WorkerName, location: str) -> frozenset[int]:
        """Return the chunks that a worker has at a location, as far as is known."""
        with self.changed:
            return self._exchange.table.keys(name, location)

    def _turn(self, now: float) -> float | None:
        exchange = self._exchange
        for frames in _waiting(self._pull):
            exchange.take(frames, now)
        for router in self._routers:
            for frames in _waiting(router):
                for reply in exchange.answer(frames, now):
                    with contextlib.suppress(zmq.ZMQError):  # it has gone away
                        router.send_multipart(reply, zmq.DONTWAIT)
        exchange.table.handle_deadline(now)
        _log_all(exchange.lines_to_log())
        return exchange.table.next_deadline()


class SyncLmcacheWorker(_Driver):
    """Tells an LMCache controller what is in a cache.

    Args:
        pull: the controller's, for operations.
        reply: the controller's, for questions.
        register: who it is.
        location: of the chunks.
        period: seconds between heartbeats.
        patience: seconds without a reply, after which a question is asked again.
        spread: seconds over which the full syncs of many workers are scattered.

    Raises:
        Unencodable: something in who it is has no form on the wire.
        ZMQError: an endpoint can't be connected.
    """

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
        super().__init__()
        try:
            self._reporter = LmcacheReporter(
                register, location, jitters(), period=period, patience=patience, spread=spread
            )
            self._exchange = WorkerExchange(self._reporter, reply)
            self._push = self._open(zmq.PUSH, pull)
            self._dealers = {"reply": self._open(zmq.DEALER, reply)}
        except BaseException:
            self._context.destroy(linger=0)
            raise
        self._start("zerohop-lmcache-worker")

    @property
    def malformed(self) -> int:
        """How many messages of the controller could not be read, or made no sense."""
        with self.changed:
            return self._exchange.malformed

    @property
    def is_registered(self) -> bool:
        """Whether the controller has replied."""
        with self.changed:
            return self._reporter.is_registered

    @property
    def full_syncs(self) -> int:
        """How many full syncs were carried out."""
        with self.changed:
            return self._reporter.full_syncs

    def admit(self, *keys: int) -> None:
        """These chunks have come into the cache.

        Raises:
            TypeError: a key is no number; those before it have been taken.
            Unencodable: a key is less than -2**63, or 2**64 or more; likewise.
        """
        with self.changed:
            try:
                for key in keys:
                    self._reporter.admit(key)
            finally:
                self._wake()

    def evict(self, *keys: int) -> None:
        """These chunks have left the cache."""
        with self.changed:
            for key in keys:
                self._reporter.evict(key)
            self._wake()

    def close(self) -> None:
        """Deregister and end."""
        with self.changed:
            if not self._is_closed:
                self._reporter.leave()
        super().close()

    def _turn(self, now: float) -> float | None:
        exchange = self._exchange
        for dealer in self._dealers.values():
            for frames in _waiting(dealer):
                exchange.receive(frames, now)
        heartbeat = exchange.new_heartbeat()
        if heartbeat is not None:
            try:
                self._dealers["heartbeat"] = self._open(zmq.DEALER, heartbeat)
            except (zmq.ZMQError, ValueError) as error:
                exchange.complain(f"told to beat at {heartbeat!r:.100}: {error}", now)
        for place, frames in exchange.data_to_send(now):
            socket = self._push if place == "push" else self._dealers.get(place)
            if socket is not None:
                with contextlib.suppress(zmq.Again):  # a number is missing then, and it is synced
                    socket.send_multipart(frames, zmq.DONTWAIT)
        _log_all(exchange.lines_to_log())
        return self._reporter.next_deadline()


def _log_all(lines: list[str]) -> None:
    for line in lines:
        _log.warning("%s", line)


def _waiting(socket: Any) -> Iterator[list[bytes]]:
    """What can be received now, and not too much of it."""
    for _ in range(_SLICE):
        try:
            yield socket.recv_multipart(zmq.DONTWAIT)
        except zmq.Again:
            return
