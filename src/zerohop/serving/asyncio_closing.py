"""What is closed at the end of an ``async with``: each part of serving that is on an event loop."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod

from zerohop.serving.closing import closed_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

__all__ = ["AsyncClosing"]


class AsyncClosing(ABC):
    """Ends once, in a task of its own: who waits for it may be cancelled, the end is not."""

    _ending: asyncio.Task[None] | None = None

    async def aclose(self) -> None:
        """End; once more is no fault, and waits for the same end."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._close())
        await asyncio.shield(self._ending)

    @abstractmethod
    async def _close(self) -> None:
        """End."""

    async def __aenter__(self) -> Self:
        """Return it.

        Raises:
            RuntimeError: it is closed.
        """
        if self._ending is not None:
            raise closed_error(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
