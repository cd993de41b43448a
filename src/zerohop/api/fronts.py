"""Several Sockets over one driver: a socket and its shadows."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.io.pump import Front

__all__ = ["Fronts"]


class Fronts:
    """Tells each front of a driver what the driver tells one.

    Shadows may come and go with every message (Jupyter's do), so those that are gone must not
    be told for ever.

    Args:
        first: the socket's own.
    """

    __slots__ = ("_fronts",)

    def __init__(self, first: Front) -> None:
        self._fronts = [first]

    def __len__(self) -> int:
        return len(self._fronts)

    def add(self, front: Front) -> None:
        """Tell this one, too."""
        self._fronts.append(front)

    def remove(self, front: Front) -> None:
        """Tell it no more. Without the lock: it comes from a garbage collection, on any thread."""
        self._fronts.remove(front)

    def end(self) -> None:
        """The socket has been closed."""
        for front in self._fronts[:]:
            front.end()

    def mend(self) -> None:
        """Whatever they were to be called back for may be lost."""
        for front in self._fronts[:]:
            front.mend()

    def activity(self) -> bool:
        """The core has changed; return whether any front has sent or received."""
        acted = False
        for front in self._fronts[:]:
            acted |= front.activity()
        return acted

    def delivered(self) -> bool:
        """Messages have come, nothing else has changed; return whether any front has acted."""
        acted = False
        for front in self._fronts[:]:
            acted |= front.delivered()
        return acted
