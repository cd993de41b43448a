"""A controller that LMCache workers register with, and a worker of one, on an event loop."""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from functools import partial

import zerohop as zmq
import zerohop.asyncio
from zerohop.serving.control.asyncio_server import send_now
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
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, Self

    from zerohop.serving.control.lmcache.messages import Register
    from zerohop.serving.control.lmcache.table import WorkerName

__all__ = ["LmcacheController", "LmcacheWorker"]

_log = logging.getLogger(__name__)


class _Driver(ABC):
    """Some sockets, a task for each that receives, and a timer. It begins on a running loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._context = zerohop.asyncio.Context()
        self._tasks: list[asyncio.Task[None]] = []
        self._next_turn: asyncio.Handle | None = None
        self._turn_at = 0.0
        self._is_closed = False

    def _open(self, kind: zmq.SocketType, endpoint: str, *, bind: bool = False) -> Any:
        socket = self._context.socket(kind)
        socket.linger = 0
        socket.ipv6 = "[" in endpoint
        try:
            (socket.bind if bind else socket.connect)(endpoint)
        except BaseException:
            socket.close()
            raise
        return socket

    def _listen(self, socket: Any, take: Callable[[list[bytes]], None]) -> None:
        self._tasks.append(asyncio.ensure_future(self._receive(socket, take)))

    async def _receive(self, socket: Any, take: Callable[[list[bytes]], None]) -> None:
        while True:
            take(await socket.recv_multipart())
            self._wake()

    def _wake(self) -> None:
        """Have a turn once what is at work now has had its own."""
        self._have_turn(0.0)

    def _have_turn(self, at: float) -> None:
        if self._is_closed or (self._next_turn is not None and self._turn_at <= at):
            return
        if self._next_turn is not None:
            self._next_turn.cancel()
        self._turn_at = at
        delay = max(at - time.monotonic(), 0.0)
        self._next_turn = self._loop.call_later(delay, self._on_time)

    def _on_time(self) -> None:
        self._next_turn = None
        deadline = self._turn(time.monotonic())
        if deadline is not None:
            self._have_turn(deadline)

    @abstractmethod
    def _turn(self, now: float) -> float | None:
        """Decide, send; return when there is more to do."""

    async def aclose(self) -> None:
        """End."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._next_turn is not None:
            self._next_turn.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._context.aclose(linger=500)  # for a farewell

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()


class LmcacheController(_Driver):
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
            pulls = self._open(zmq.PULL, pull, bind=True)
            routers = [self._open(zmq.ROUTER, each, bind=True) for each in (reply, heartbeat)]
            self.pull_endpoint: str = pulls.last_endpoint.decode()
            self.reply_endpoint: str = routers[0].last_endpoint.decode()
            self.heartbeat_endpoint: str = routers[1].last_endpoint.decode()
            beat_at = where_to_beat(self.heartbeat_endpoint, heartbeat_host)
        except BaseException:
            self._context.destroy(linger=0)
            raise
        self._exchange = ControllerExchange(ControllerTable(beat_at, timeout))
        self._listen(pulls, self._take)
        for router in routers:
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
        return self._exchange.table.workers()

    def is_right(self, name: WorkerName) -> bool:
        """Whether what is known of a worker is all there is."""
        return self._exchange.table.is_right(name)

    def keys(self, name: WorkerName, location: str) -> frozenset[int]:
        """Return the chunks that a worker has at a location, as far as is known."""
        return self._exchange.table.keys(name, location)

    def _take(self, frames: list[bytes]) -> None:
        self._exchange.take(frames, time.monotonic())

    def _answer(self, router: Any, frames: list[bytes]) -> None:
        for reply in self._exchange.answer(frames, time.monotonic()):
            send_now(router, reply)

    def _turn(self, now: float) -> float | None:
        table = self._exchange.table
        table.handle_deadline(now)
        _log_all(self._exchange.lines_to_log())
        return table.next_deadline()


class LmcacheWorker(_Driver):
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
            self._places: dict[str, Any] = {
                "push": self._open(zmq.PUSH, pull),
                "reply": self._open(zmq.DEALER, reply),
            }
        except BaseException:
            self._context.destroy(linger=0)
            raise
        self._listen(self._places["reply"], self._take)
        self._wake()

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
        self._wake()
        for key in keys:
            self._reporter.admit(key)

    def evict(self, *keys: int) -> None:
        """These chunks have left the cache."""
        self._wake()
        for key in keys:
            self._reporter.evict(key)

    async def aclose(self) -> None:
        """Deregister and end."""
        if not self._is_closed:
            self._reporter.leave()
            self._turn(time.monotonic())
        await super().aclose()

    def _take(self, frames: list[bytes]) -> None:
        self._exchange.receive(frames, time.monotonic())

    def _turn(self, now: float) -> float | None:
        exchange = self._exchange
        heartbeat = exchange.new_heartbeat()
        if heartbeat is not None:
            try:
                self._places["heartbeat"] = self._open(zmq.DEALER, heartbeat)
                self._listen(self._places["heartbeat"], self._take)
            except (zmq.ZMQError, ValueError) as error:
                exchange.complain(f"told to beat at {heartbeat!r:.100}: {error}", now)
        for place, frames in exchange.data_to_send(now):
            if place in self._places:
                send_now(self._places[place], frames)  # else a number is missing, and it is synced
        _log_all(exchange.lines_to_log())
        return self._reporter.next_deadline()


def _log_all(lines: list[str]) -> None:
    for line in lines:
        _log.warning("%s", line)
