"""An actor on an event loop: a task for each socket that it listens to, and a timer."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

import zerohop as zmq
import zerohop.asyncio
from zerohop.serving.actor import Actor
from zerohop.serving.asyncio_closing import AsyncClosing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

__all__ = ["ActorTask"]


class ActorTask(Actor, AsyncClosing):
    """An actor on the running event loop, where nobody else is at work while it is."""

    _context_type = zerohop.asyncio.Context

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        super().__init__()
        self._lock = contextlib.nullcontext()
        self._changed = asyncio.Event()  # set after each turn
        self._tasks: set[asyncio.Task[None]] = set()
        self._next_turn: asyncio.Handle | None = None
        self._turn_at = 0.0

    def _start(self) -> None:
        self._wake()

    def _listen(self, socket: Any, take: Callable[[list[bytes], float], object]) -> None:
        self._spawn(self._receive(socket, take))

    async def _receive(self, socket: Any, take: Callable[[list[bytes], float], object]) -> None:
        try:
            while True:
                take(await socket.recv_multipart(), time.monotonic())
                self._wake()
        except Exception:
            self._fail()
            raise

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Have something done that ends with the actor; nothing, once that has ended."""
        if self._is_closed:
            work.close()
            return
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _send(self, socket: Any, frames: list[bytes]) -> None:
        with contextlib.suppress(zmq.ZMQError):
            sent = socket.send_multipart(frames, zmq.DONTWAIT)
            if sent.done():
                sent.exception()  # nobody waits for it, or asyncio would complain
            else:
                sent.add_done_callback(_look_at)

    def _wake(self) -> None:
        self._have_turn(0.0)

    def _have_turn(self, at: float) -> None:
        if self._is_closed or (self._next_turn is not None and self._turn_at <= at):
            return
        if self._next_turn is not None:
            self._next_turn.cancel()
        self._turn_at = at
        delay = max(at - time.monotonic(), 0.0)
        self._next_turn = self._loop.call_later(delay, self._have_one_now)

    def _have_one_now(self) -> None:
        self._next_turn = None
        try:
            deadline = self._turn(time.monotonic())
        except Exception:
            self._fail()
            raise
        self._changed.set()
        if deadline is not None:
            self._have_turn(deadline)

    def _fail(self) -> None:
        """Whoever waits for it would wait for ever: end."""
        self._spawn(self.aclose())

    async def _until(self, condition: Callable[[], Any]) -> Any:
        """Wait until something is so after a turn, or the actor has ended; return what it is."""
        while not (found := condition()) and not self._is_closed:
            self._changed.clear()
            await self._changed.wait()
        return found

    async def aclose(self) -> None:
        """End; what is at work is cancelled, and last of all who calls this, if it is at work."""
        caller = asyncio.current_task()
        assert caller is not None
        is_at_work = caller in self._tasks
        self._tasks.discard(caller)
        await super().aclose()
        if is_at_work:
            caller.cancel()

    async def _close(self) -> None:
        self._is_closed = True
        if self._next_turn is not None:
            self._next_turn.cancel()
        for task in self._tasks:
            task.cancel()
        async with self._context:  # which is closed also where the loop ends meanwhile
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._changed.set()
            self._leave()
            self._turn(time.monotonic())


def _look_at(sent: asyncio.Future[Any]) -> None:
    if not sent.cancelled():
        sent.exception()
