"""A worker of a control server, and who asks one for its operations, on an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import time
from itertools import count

import zerohop as zmq
import zerohop.asyncio
from zerohop.serving.control.client import error_of, handler_of, jitters
from zerohop.serving.control.lmcache.frames import encode_call, parse_reply, result_of
from zerohop.serving.control.messages import Registration
from zerohop.serving.control.session import WorkerSession
from zerohop.serving.errors import Malformed, NoAnswer, RequestRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Any, Self

    from zerohop.serving.control.lmcache.frames import Operation, Reply
    from zerohop.serving.control.messages import Command, Key
    from zerohop.serving.control.session import SessionState

__all__ = ["ControlClient", "ControlWorker"]


class ControlWorker:
    """Registers with a control server, and keeps its copy of a table right.

        async with ControlWorker(endpoint, "decode-3", offers={"slots": 8}) as worker:
            worker.put("model", "tiny")

    It goes on in tasks of its own, whatever happens to the server.

    Args:
        endpoint: of the server.
        worker: its name, the same after a restart.
        offers: what it offers.
        commands: what it can be told to do, by name: functions or coroutine functions; one
            after the other.
        patience: seconds without a reply, after which a question is asked again.

    Attributes:
        boot: octets that are another in each worker.

    Raises:
        Unencodable: something in what it offers has no form on the wire.
        ZMQError: the endpoint can't be connected.
    """

    def __init__(
        self,
        endpoint: str,
        worker: str,
        *,
        offers: dict[str, Any] | None = None,
        commands: Mapping[str, Callable[..., Any]] | None = None,
        patience: float = 2.0,
    ) -> None:
        self.boot = os.urandom(16)
        registration = Registration(worker, self.boot, offers=offers or {})
        self._session = WorkerSession(registration, jitters(), patience)
        self._commands = commands or {}
        self._todo: asyncio.Queue[Command] = asyncio.Queue()
        self._changed = asyncio.Condition()
        self._wake = asyncio.Event()
        self._is_closed = False
        self._context = zerohop.asyncio.Context()
        try:
            self._dealer = self._context.socket(zmq.DEALER)
            self._dealer.linger = 0
            self._dealer.immediate = True
            self._dealer.ipv6 = "[" in endpoint
            self._dealer.connect(endpoint)
        except BaseException:
            self._context.destroy(linger=0)
            raise
        self._tasks = [
            asyncio.ensure_future(each)
            for each in (self._receive(), self._keep_time(), self._carry_out())
        ]

    @property
    def state(self) -> SessionState:
        """``"registering"``, ``"syncing"``, ``"right"`` or ``"ended"``."""
        return self._session.state

    @property
    def refused_because(self) -> str | None:
        """The server's words, while it does not want this worker."""
        return self._session.refused_because

    @property
    def registrations(self) -> int:
        """How often a server has welcomed it."""
        return self._session.registrations

    def put(self, key: Key, value: Any) -> None:
        """Give a key a value, as it is now. Does not wait for the server.

        Raises:
            TypeError: the key is neither a number nor a text.
            Unencodable: something in it has no form on the wire, or it is too large.
        """
        self._session.put(key, value)
        self._wake.set()

    def remove(self, key: Key) -> None:
        """Take a key out of the table; one that is not there is no fault."""
        self._session.remove(key)
        self._wake.set()

    async def wait_settled(self) -> None:
        """Wait until the server has acknowledged all that there is.

        Raises:
            RequestRefused: the server does not want this worker.
        """
        session = self._session
        async with self._changed:
            await self._changed.wait_for(lambda: session.is_settled or session.refused_because)
        if session.refused_because is not None:
            raise RequestRefused(session.registration.worker, session.refused_because)

    async def aclose(self) -> None:
        """Say farewell and end; the command that is at work is cancelled."""
        if self._is_closed:
            return
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._session.leave()
        await self._send()
        self._dealer.close(linger=500)  # for the farewell
        await self._context.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _receive(self) -> None:
        while True:
            frames = await self._dealer.recv_multipart()
            self._session.receive(frames, time.monotonic())
            self._wake.set()

    async def _keep_time(self) -> None:
        """Ask what is due, whenever something has changed or the time has come."""
        while True:
            self._wake.clear()
            self._session.handle_deadline(time.monotonic())
            await self._send()
            for command in self._session.commands():
                self._todo.put_nowait(command)
            async with self._changed:
                self._changed.notify_all()
            deadline = self._session.next_deadline()
            delay = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):  # wait_for loses a cancellation with a wake
                    await self._wake.wait()

    async def _send(self) -> None:
        for frames in self._session.data_to_send():
            with contextlib.suppress(zmq.Again):  # nobody is there; it is said again
                await self._dealer.send_multipart(frames, zmq.DONTWAIT)

    async def _carry_out(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        while True:
            command = await self._todo.get()
            result = error = None
            try:
                result = handler_of(self._commands, command)(*command.arguments)
                if inspect.isawaitable(result):
                    result = await result
            except KeyboardInterrupt:
                raise  # Ctrl-C, which is not the command's
            except BaseException as failure:
                if task.cancelling():
                    raise
                result, error = None, error_of(failure)
            self._session.end(command, result, error)
            self._wake.set()


class ControlClient:
    """Asks a server for its operations; any number at a time.

    Args:
        endpoint: of the server.
        timeout: seconds for each reply, unless a call is given its own.

    Raises:
        ZMQError: the endpoint can't be connected.
    """

    def __init__(self, endpoint: str, *, timeout: float = 5.0) -> None:
        self._endpoint, self._timeout = endpoint, timeout
        self._uids = count(1)
        self._waiting: dict[int, asyncio.Future[Reply]] = {}
        self._context = zerohop.asyncio.Context()
        try:
            self._dealer = self._context.socket(zmq.DEALER)
            self._dealer.linger = 0
            self._dealer.immediate = True  # what was given up is not said to who starts later
            self._dealer.ipv6 = "[" in endpoint
            self._dealer.connect(endpoint)
        except BaseException:
            self._context.destroy(linger=0)
            raise
        self._receiving = asyncio.ensure_future(self._receive())

    async def call(
        self, operation: Operation, *arguments: Any, timeout: float | None = None
    ) -> Any:
        """Ask for an operation, and wait for its result.

        Raises:
            RequestRefused: the server says why it does not do it.
            ProtocolMismatch: it did something else.
            NoAnswer: there was none in time. What nobody was there to hear is not said later.
            Unencodable: an argument has no form on the wire.
        """
        seconds = self._timeout if timeout is None else timeout
        uid = next(self._uids)
        frames = encode_call(uid, operation, *arguments)
        replied = self._waiting[uid] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                await self._dealer.send_multipart(frames)
                reply = await replied
        except TimeoutError:
            raise NoAnswer(self._endpoint, str(operation), seconds) from None
        finally:
            del self._waiting[uid]
        return result_of(reply, operation)

    async def aclose(self) -> None:
        """Ask no more."""
        self._receiving.cancel()
        await asyncio.gather(self._receiving, return_exceptions=True)
        self._dealer.close()
        await self._context.aclose(linger=0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _receive(self) -> None:
        while True:
            frames = await self._dealer.recv_multipart()
            with contextlib.suppress(Malformed):
                reply = parse_reply(frames)
                waiting = self._waiting.get(reply.uid)
                if waiting is not None and not waiting.done():
                    waiting.set_result(reply)
