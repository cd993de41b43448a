"""What is closed at the end of a ``with``: each part of serving that has sockets."""

from __future__ import annotations

from abc import ABC, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

__all__ = ["Closing"]


class Closing(ABC):
    """Of a blocking program."""

    @abstractmethod
    def close(self) -> None:
        """End; once more is no fault."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
