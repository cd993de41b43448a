"""A control server on an event loop. What it decides is what the blocking one does.

Handlers may be coroutine functions, each call a task; a plain function is called on the loop,
and holds up everything else for as long as it takes.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import os
import time

import zerohop as zmq
import zerohop.asyncio
from zerohop.serving.control.exchange import Exchange
from zerohop.serving.control.membership import Membership
from zerohop.serving.control.server import CONTROL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Any, Self

    from zerohop.serving.control.membership import ControlEvent, MembershipOptions, WorkerView
    from zerohop.serving.control.protocol import Call, Complaint, Protocol

__all__ = ["ControlServer", "RouterTask", "send_now"]

_log = logging.getLogger(__name__)


class RouterTask:
    """Serves one exchange on a ROUTER, on the running event loop.

    Args:
        endpoint: to bind.
        exchange: what is made of what comes.

    Attributes:
        endpoint: where it is bound.
        changed: set after each change.

    Raises:
        ZMQError: the endpoint can't be bound.
    """

    def __init__(self, endpoint: str, exchange: Exchange) -> None:
        self._exchange = exchange
        self.changed = asyncio.Event()
        self.is_closed = False
        self._context = zerohop.asyncio.Context()
        try:
            self._router = self._context.socket(zmq.ROUTER)
            self._router.linger = 0
            self._router.ipv6 = "[" in endpoint
            self._router.bind(endpoint)
        except BaseException:
            self._context.destroy(linger=0)
            raise
        self.endpoint: str = self._router.last_endpoint.decode()
        self._calls: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._receiving = asyncio.ensure_future(self._receive())

    def pump(self) -> None:
        """Send what the exchange has to say, log, wake who waits, and arm the next deadline.

        Nothing is awaited: who is cancelled meanwhile would take others' replies along.
        """
        for frames in self._exchange.data_to_send():
            send_now(self._router, frames)
        for line in self._exchange.lines_to_log():
            _log.warning("%s", line)
        self.changed.set()
        self._arm()

    async def aclose(self) -> None:
        """Serve no more; the handlers that are at work are cancelled."""
        if self.is_closed:
            return
        self.is_closed = True
        self.changed.set()
        tasks = [self._receiving, *self._calls]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._timer is not None:
            self._timer.cancel()
        self._router.close()
        await self._context.aclose(linger=0)

    async def _receive(self) -> None:
        while True:
            frames = await self._router.recv_multipart()
            found = self._exchange.receive(frames, time.monotonic())
            if found is not None:
                task = asyncio.ensure_future(self._carry_out(*found))
                self._calls.add(task)
                task.add_done_callback(self._calls.discard)
            self.pump()

    async def _carry_out(self, route: bytes, call: Call) -> None:
        try:
            result = call.handler(*call.arguments)
            if inspect.isawaitable(result):
                result = await result
        except BaseException as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            self._exchange.fail(route, call, error, time.monotonic())
            self.pump()
            if isinstance(error, KeyboardInterrupt):
                raise  # Ctrl-C, which is not the handler's
        else:
            self._exchange.answer(route, call, result, time.monotonic())
            self.pump()

    def _arm(self) -> None:
        membership = self._exchange.membership
        if self._timer is not None or membership is None or self.is_closed:
            return
        deadline = membership.next_deadline()
        if deadline is not None:
            delay = max(deadline - time.monotonic(), 0.0)
            self._timer = asyncio.get_running_loop().call_later(delay, self._deadline)

    def _deadline(self) -> None:
        self._timer = None
        membership = self._exchange.membership
        if membership is not None:
            membership.handle_deadline(time.monotonic())
        self.changed.set()
        self._arm()


def send_now(socket: Any, frames: list[bytes]) -> None:
    """Send what is asked for again, or what nobody is there for, if it can leave at once."""
    with contextlib.suppress(zmq.ZMQError):
        sent = socket.send_multipart(frames, zmq.DONTWAIT)
        if sent.done():
            sent.exception()  # nobody waits for it, or asyncio would complain
        else:
            sent.add_done_callback(_look_at)


def _look_at(sent: asyncio.Future[Any]) -> None:
    if not sent.cancelled():
        sent.exception()


class ControlServer:
    """Keeps the table of the workers, and carries out a protocol's operations.

        async with ControlServer("tcp://127.0.0.1:*") as server:
            async for event in server:
                ...

    Args:
        endpoint: to bind; the default is a free port of the loopback.
        protocol: what it does besides; PING is always there.
        handlers: who carries out the protocol's operations, by name: functions or coroutines.
        options: times and limits of the table of workers.

    Attributes:
        endpoint: where it is bound.
        boot: octets that are another in each server.

    Raises:
        MissingHandlers: an operation of the protocol has no handler.
        ValueError: a handler that the protocol does not name, or that is the channel's own.
        TypeError: a handler cannot take the arguments of its operation.
        ZMQError: the endpoint can't be bound.
    """

    def __init__(
        self,
        endpoint: str = "tcp://127.0.0.1:*",
        *,
        protocol: Protocol = CONTROL,
        handlers: Mapping[str, Callable[..., Any]] | None = None,
        options: MembershipOptions | None = None,
    ) -> None:
        self._membership = Membership(os.urandom(16), options)
        self._exchange = Exchange(protocol, handlers or {}, self._membership)
        self._router = RouterTask(endpoint, self._exchange)
        self.endpoint, self.boot = self._router.endpoint, self._membership.boot

    @property
    def counts(self) -> Counter[Complaint]:
        """What was wrong with requests, and how often."""
        return self._exchange.counts.copy()

    def workers(self) -> list[str]:
        """Return the names of those who are here."""
        return self._membership.workers()

    def view(self, worker: str) -> WorkerView | None:
        """Return what is known of a worker; ``None``: it is gone."""
        return self._membership.view(worker)

    async def command(self, worker: str, name: str, *arguments: Any) -> int:
        """Tell a worker to do something.

        Returns:
            The id of the command; its end is an event.

        Raises:
            KeyError: the worker is not here.
            Unencodable: an argument has no form on the wire, or is too large.
        """
        command = self._membership.command(worker, name, list(arguments))
        self._router.pump()
        return command

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ControlEvent:
        """Wait for the next event.

        Somebody has to read them: while ``max_events`` of them wait, no batch is taken.
        """
        while (event := self._membership.next_event()) is None:
            if self._router.is_closed:
                raise StopAsyncIteration
            self._router.changed.clear()
            await self._router.changed.wait()
        return event

    async def aclose(self) -> None:
        """Serve no more; the workers keep asking, and register with the next server."""
        await self._router.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()
