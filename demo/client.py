"""The API side: starts the engine process, asks it, and keeps a view of its KV blocks."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from demo.messages import Prompt
from zerohop.serving import (
    Applied,
    EngineClient,
    EngineDead,
    Health,
    HealthChanged,
    KvEventSubscriber,
    Patience,
    PresentBlocks,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from types import TracebackType
    from typing import Any

    from zerohop.serving import RequestStream

T = TypeVar("T")
_ENGINE = "engine-0"
_MAX_TOKENS = 200
_PATIENCE = Patience(beat_every=0.5, gone_after=3.0)
_STOP_PATIENCE_S = 3.0  # loading the weights cannot be interrupted, and takes about one second
_KV_PATIENCE_S = 2.0


class EngineProcess:
    """Owns one engine process, from `async with` to its end.

    Args:
        model: a name in `demo.models.MODELS`.

    Attributes:
        info: what the engine tells of itself; once it is ready.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self.info: dict[str, Any] = {}
        self._client = EngineClient(patience=_PATIENCE)
        self._view = PresentBlocks()
        self._view_health = Health.CATCHING_UP
        self._view_seq = -1  # of the last batch in it
        self._view_changed = asyncio.Condition()
        self._following: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        command = f"--model {self._model} --server {self._client.endpoint}"
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "demo.engine", *command.split()),
            stdin=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for this process, which decides what it means
            cwd=Path(__file__).parent.parent,
        )
        self._death = asyncio.create_task(self._process.wait())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave the engine, which ends it; it is gone when this returns."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait([self._following])
        await self._client.aclose()
        try:
            await asyncio.wait_for(asyncio.shield(self._death), _STOP_PATIENCE_S)
        except TimeoutError:
            self._process.kill()
            await self._death

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def wait_ready(self) -> None:
        """Wait until the engine has loaded its model, and follow its KV events from then on.

        Raises:
            EngineDead: its process ended before that.
        """
        await self.while_running(self._client.wait_for_engines(1))
        self.info = self._client.engines[_ENGINE].info
        self._following = asyncio.create_task(self._follow())

    def ask(self, text: str) -> RequestStream:
        """Return the stream of the answer; who leaves it aborts it in the engine."""
        return self._client.generate(Prompt(text, _MAX_TOKENS))

    async def status(self) -> dict[str, Any]:
        """Ask the engine how it is."""
        status: dict[str, Any] = await self._client.call("status")
        return status

    async def blocks(self) -> tuple[Health, list[Any]]:
        """Return what its KV cache holds, as its events told, and what that view is worth."""
        next_seq = (await self.status())["next_seq"]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_KV_PATIENCE_S), self._view_changed:
                await self._view_changed.wait_for(lambda: self._view_seq + 1 >= next_seq)
        return self._view_health, [h for place in self._view.copies().values() for h in place]

    async def while_running(self, operation: Awaitable[T]) -> T:
        """Await `operation`, but not longer than the engine process lives.

        Raises:
            EngineDead: the engine process ended first; `operation` is cancelled.
        """
        future = asyncio.ensure_future(operation)
        try:
            await asyncio.wait({future, self._death}, return_when=asyncio.FIRST_COMPLETED)
            if future.done():
                return future.result()
            raise EngineDead(_ENGINE, "its process has ended")
        finally:
            future.cancel()

    async def how_it_ended(self) -> str:
        """Wait for the end of the process, and say it in words."""
        code = await self._death
        if code >= 0:
            return f"ended with status {code}"
        return f"was killed by {signal.Signals(-code).name}"

    async def _follow(self) -> None:
        endpoints = self.info["kv_events"], self.info["kv_replay"]
        async with KvEventSubscriber(*endpoints) as subscriber:
            async for delivery in subscriber:
                async with self._view_changed:
                    self._view.deliver(delivery)
                    match delivery:
                        case Applied(seq=seq):
                            self._view_seq = seq
                        case HealthChanged(health=health):
                            self._view_health = health
                    self._view_changed.notify_all()
