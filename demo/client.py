"""The API side: starts the engine process, asks it, and notices when it dies."""

from __future__ import annotations

import asyncio
import itertools
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

import zerohop as zmq
import zerohop.asyncio
from demo.messages import Failed, Finished, Message, Prompt, Status, Token, pack, unpack

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from types import TracebackType

T = TypeVar("T")
_MAX_TOKENS = 200
_STOP_PATIENCE_S = 3.0  # loading the weights cannot be interrupted, and takes about one second


class PromptRefused(Exception):
    """The engine will not answer this prompt, and goes on; the text says why."""


class EngineDied(Exception):
    """The engine process has ended, and the text says how; the client is of no more use."""


class EngineClient:
    """Owns one engine process, from `async with` to its end.

    Args:
        model: a name in `demo.models.MODELS`.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._context = zmq.asyncio.Context()
        self._requests = itertools.count(1)
        self._latest: Status | None = None
        self._news = asyncio.Condition()
        self._prompts, self._tokens, self._status = map(
            self._context.socket, (zmq.PUSH, zmq.PULL, zmq.SUB)
        )

    async def __aenter__(self) -> Self:
        self._status.subscribe(b"")
        endpoints = []
        for socket in (self._prompts, self._tokens, self._status):
            socket.linger = 0
            socket.bind("tcp://127.0.0.1:*")
            endpoints.append(socket.last_endpoint.decode())
        prompts, tokens, status = endpoints
        command = f"--model {self._model} --prompts {prompts} --tokens {tokens} --status {status}"
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "demo.engine", *command.split()),
            stdin=asyncio.subprocess.PIPE,  # never written to: its end is the order to stop
            cwd=Path(__file__).parent.parent,
        )
        self._death = asyncio.create_task(self._process.wait())
        self._status_reader = asyncio.create_task(self._read_status())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the engine process, gently and then not; it is gone when this returns."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(asyncio.shield(self._death), _STOP_PATIENCE_S)
        except TimeoutError:
            self._process.kill()
            await self._death
        self._status_reader.cancel()
        await asyncio.wait([self._status_reader])
        self._context.destroy(linger=0)

    @property
    def engine_pid(self) -> int:
        """The engine's process id."""
        return self._process.pid

    async def ask(self, text: str) -> AsyncIterator[str]:
        """Yield the pieces of the answer as the engine makes them.

        Raises:
            PromptRefused: the engine says that it cannot answer this.
            EngineDied: its process ended before the answer was complete.
        """
        request = next(self._requests)
        await self.while_alive(self._prompts.send(pack(Prompt(request, text, _MAX_TOKENS))))
        while True:
            match await self._receive():
                case Token(request=number, text=piece) if number == request:
                    yield piece
                case Finished(request=number) if number == request:
                    return
                case Failed(request=number, reason=reason) if number == request:
                    raise PromptRefused(f"the engine refused: {reason}")

    async def status_when(self, wanted: Callable[[Status], bool]) -> Status:
        """Wait for a status that `wanted` accepts; the latest one counts.

        Raises:
            EngineDied: the engine process ended before it published such a status.
        """
        return await self.while_alive(self._status_when(wanted))

    async def _status_when(self, wanted: Callable[[Status], bool]) -> Status:
        async with self._news:
            while self._latest is None or not wanted(self._latest):
                await self._news.wait()
            return self._latest

    async def _receive(self) -> Message:
        return unpack(await self.while_alive(self._tokens.recv()))

    async def while_alive(self, operation: Awaitable[T]) -> T:
        """Await `operation`, but not longer than the engine process lives.

        Raises:
            EngineDied: the engine process ended first; `operation` is cancelled.
        """
        future = asyncio.ensure_future(operation)
        try:
            await asyncio.wait({future, self._death}, return_when=asyncio.FIRST_COMPLETED)
            if future.done():
                return future.result()
            raise EngineDied(f"the engine process {_how_it_ended(self._death.result())}")
        finally:
            future.cancel()

    async def _read_status(self) -> None:
        async for frame in self._status:
            message = unpack(frame)
            if isinstance(message, Status):
                async with self._news:
                    self._latest = message
                    self._news.notify_all()


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"ended with status {code}"
    return f"was killed by {signal.Signals(-code).name}"
