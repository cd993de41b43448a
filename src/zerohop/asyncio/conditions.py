"""Waiting until something holds: ``poll``, ``wait_connected``, ``wait_for_subscribers``."""

from __future__ import annotations

from zerohop.asyncio.waiting import Waiting
from zerohop.errors import ZMQError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from zerohop.core.socket import SocketCore


class Conditions:
    """What is waited for on one socket; looked at whenever anything has happened to it.

    Args:
        core: once it is closed or terminated, every wait is over.

    Attributes:
        waits: who waits, and for what.
    """

    __slots__ = ("_core", "waits")

    def __init__(self, core: SocketCore) -> None:
        self._core = core
        self.waits: list[tuple[Waiting, Callable[[], int]]] = []

    def add(self, loop: asyncio.AbstractEventLoop, holds: Callable[[], int]) -> Waiting:
        """Wait until ``holds()`` gives something true, which is the result."""
        waiting = Waiting(loop)
        self.waits.append((waiting, holds))
        return waiting

    def waiting(self) -> list[Waiting]:
        """All that wait, or have waited in vain."""
        return [waiting for waiting, _ in self.waits]

    def clear(self) -> None:
        """Forget them."""
        self.waits.clear()

    def serve(self) -> None:
        """Tell those whose condition holds, and forget those that wait no more."""
        left = []
        for waiting, holds in self.waits:
            if waiting.done():
                continue
            try:
                self._core.check_open()
                value = holds()
            except ZMQError as error:
                waiting.fail(error)
            else:
                if value:
                    waiting.settle(value)
                else:
                    left.append((waiting, holds))
        self.waits = left
