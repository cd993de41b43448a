"""What is closed at the end of a ``with``: each part of serving that has sockets."""

from __future__ import annotations

from abc import ABC, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

__all__ = ["AsyncClosing", "Closing"]


class Closing(ABC):
    """Of a blocking program."""

    @abstractmethod
    def close(self) -> None:
        """End; once more is no fault."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClosing(ABC):
    """Of an event loop."""

    @abstractmethod
    async def aclose(self) -> None:
        """End; once more is no fault."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
