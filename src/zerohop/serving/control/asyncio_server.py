"""A control server on an event loop. What it decides is what the blocking one does.

Handlers may be coroutine functions, each call a task; a plain function is called on the loop,
and holds up everything else for as long as it takes.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import time

from zerohop.serving.asyncio_actor import ActorTask
from zerohop.serving.control.exchange import Exchange
from zerohop.serving.control.membership import Membership
from zerohop.serving.control.server import CONTROL, Keeping, Routing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Self

    from zerohop.serving.control.events import ControlEvent
    from zerohop.serving.control.membership import MembershipOptions
    from zerohop.serving.control.protocol import Call, Protocol

__all__ = ["ControlServer", "RouterTask"]


class RouterTask(Routing, ActorTask):
    """Serves one exchange on the running event loop. Handlers at work end with it, cancelled."""

    def _give(self, route: bytes, call: Call) -> None:
        self._spawn(self._carry_out(route, call))

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
            self._pump()
            if isinstance(error, KeyboardInterrupt):
                raise  # Ctrl-C, which is not the handler's
        else:
            self._exchange.answer(route, call, result, time.monotonic())
            self._pump()


class ControlServer(Keeping, RouterTask):
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

    Raises:
        MissingHandlers: an operation of the protocol has no handler.
        ValueError: a handler that the protocol does not name, or that is the channel's own.
        TypeError: a handler cannot take the arguments of its operation; an argument is of another
            kind.
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
        super().__init__(endpoint, Exchange(protocol, handlers or {}, self._membership))

    async def command(self, worker: str, name: str, *arguments: Any) -> int:
        """Tell a worker to do something.

        Args:
            worker: its name.
            name: of one of its commands.
            arguments: what its handler is called with.

        Returns:
            The id of the command; its end is an event.

        Raises:
            KeyError: the worker is not here.
            Unencodable: an argument has no form on the wire, or is too large.
        """
        command = self._membership.command(worker, name, list(arguments))
        self._pump()
        return command

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ControlEvent:
        """Wait for the next event.

        Somebody has to read them: while ``max_events`` of them wait, no batch is taken.
        """
        event: ControlEvent | None = await self._until(self._membership.next_event)
        if event is None:
            raise StopAsyncIteration
        return event
