"""What I/O needs of a loop: a small part of asyncio's, which the blocking reactor offers too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Handle(Protocol):
    """A callback that was asked for and can be called off."""

    def cancel(self) -> None:
        """Do not call it; no effect once it was called."""


class Loop(Protocol):
    """Calls back when descriptors are ready and when time has come; see :mod:`asyncio`."""

    def time(self) -> float:
        """Seconds on a monotonic clock."""

    def call_soon(self, callback: Callable[..., object], *args: Any) -> Handle:
        """Call back in the loop's next turn."""

    def call_soon_threadsafe(self, callback: Callable[..., object], *args: Any) -> Handle:
        """As ``call_soon``, from any thread."""

    def call_at(self, when: float, callback: Callable[..., object], *args: Any) -> Handle:
        """Call back at a time of :meth:`time`."""

    def add_reader(self, fd: int, callback: Callable[..., object], *args: Any) -> Any:
        """Call back whenever the descriptor is readable (level-triggered)."""

    def remove_reader(self, fd: int) -> bool:
        """Stop it; whether it was watched."""

    def add_writer(self, fd: int, callback: Callable[..., object], *args: Any) -> Any:
        """Call back whenever the descriptor is writable (level-triggered)."""

    def remove_writer(self, fd: int) -> bool:
        """Stop it; whether it was watched."""
