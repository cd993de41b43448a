"""Several Sockets over one driver: a socket and its shadows."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zerohop.io.driver import Front

__all__ = ["Fronts"]


class Fronts:
    """Tells each front of a driver what the driver tells one.

    Args:
        fronts: of the socket, and of each shadow.
    """

    __slots__ = ("_fronts",)

    def __init__(self, *fronts: Front) -> None:
        self._fronts = list(fronts)

    def activity(self) -> bool:
        """The core has changed; return whether any front has sent or received."""
        acted = False
        for front in self._fronts[:]:
            try:
                acted |= front.activity()
            except ReferenceError:  # a shadow that was dropped
                self._fronts.remove(front)
        return acted
