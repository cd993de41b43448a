"""Readers that wait for their streams, and are woken many at a time.

A step of an engine wakes a reader for each of its requests. A future apiece would cost a turn of
the loop and a handle each, more than the reader's own work; so what a reader waits on is the face
of a future that one call of the loop wakes together with all others. There is one of them for each
stream, for as long as it lives.
"""

from __future__ import annotations

import asyncio
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from contextvars import Context
    from typing import Any

__all__ = ["Wait", "Wakes"]

_SLICE = 128  # readers that are woken before something else of the loop has its turn


class Wait:
    """What the reader of a stream waits on: as much of a future as a task asks for.

    Args:
        wakes: of the loop.

    Attributes:
        callback: of the task that waits; ``None``: none does.
        context: to call it in.
        is_due: it is about to be called.
    """

    __slots__ = ("_asyncio_future_blocking", "_is_cancelled", "_wakes", "callback", "context",
                 "is_due")  # fmt: skip
    context: Context

    def __init__(self, wakes: Wakes) -> None:
        self._asyncio_future_blocking = self._is_cancelled = self.is_due = False
        self._wakes = wakes
        self.callback: Callable[[Any], object] | None = None

    def __await__(self) -> Generator[Wait, None, None]:
        if self.callback is not None:
            raise RuntimeError("another task waits for this stream already")
        self._asyncio_future_blocking = True
        yield self

    # What asyncio's tasks ask for

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The loop of the task."""
        return self._wakes.loop

    def add_done_callback(self, callback: Callable[[Any], object], *, context: Context) -> None:
        """The task waits from now on."""
        self.callback, self.context = callback, context

    def cancel(self, msg: object = None) -> bool:
        """The task is to wait no more."""
        del msg  # asyncio's own futures are about to forget it, too
        self._is_cancelled = True
        self._wakes.soon((self,))
        return True

    def result(self) -> None:
        """Nothing, or that the task is cancelled."""
        if self._is_cancelled:
            self._is_cancelled = False
            raise asyncio.CancelledError


class Wakes:
    """Wakes readers on one loop.

    Args:
        loop: see there.

    Attributes:
        loop: see there.
    """

    __slots__ = ("_due", "_is_called", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._due: deque[Wait] = deque()
        self._is_called = False  # by the loop, soon

    def add(self, waits: Iterable[Wait]) -> None:
        """Note who is to be woken, by :meth:`run`. Who does not wait is not."""
        for wait in waits:
            if wait.callback is not None and not wait.is_due:
                wait.is_due = True
                self._due.append(wait)

    def soon(self, waits: Iterable[Wait]) -> None:
        """Wake them in the loop's next turn."""
        self.add(waits)
        if self._due and not self._is_called:
            self._is_called = True
            self.loop.call_soon(self._run_later)

    def run(self) -> None:
        """Wake those that are noted, now: to be called by the loop, not by a task."""
        due = self._due
        try:
            for _ in range(min(len(due), _SLICE)):
                wait = due.popleft()
                callback, wait.callback, wait.is_due = wait.callback, None, False
                assert callback is not None
                wait.context.run(callback, wait)
        finally:
            if due:
                self.soon(())

    def _run_later(self) -> None:
        self._is_called = False
        self.run()
