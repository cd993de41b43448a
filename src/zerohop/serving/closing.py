"""What is closed at the end of a ``with``: each part of serving that has sockets."""

from __future__ import annotations

from abc import ABC, abstractmethod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

__all__ = ["Closing", "closed_error"]


def closed_error(it: object) -> RuntimeError:
    """Return what is raised where something is used that is closed."""
    return RuntimeError(f"this {type(it).__name__} is closed; make another one")


class Closing(ABC):
    """Of a blocking program."""

    _is_closed: bool = False  # close() makes it true

    @abstractmethod
    def close(self) -> None:
        """End; once more is no fault."""

    def __enter__(self) -> Self:
        """Return it.

        Raises:
            RuntimeError: it is closed.
        """
        if self._is_closed:
            raise closed_error(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
