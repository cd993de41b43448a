"""When it is asked whether there were batches that nothing tells of.

The last batches before a silence may have been dropped, and no later number shows it. So a stream
that is silent is asked about, each `every` seconds. After a new connection that is sooner: it is
there before the publisher knows what is subscribed on it, and what the publisher sends until then
it sends to nobody here. So it is asked after a quarter of a second, then after twice as long, and
so on up to `every`, until a batch shows that the subscription has come.
"""

from __future__ import annotations

__all__ = ["Checks"]

_FIRST = 0.25  # seconds after a new connection


class Checks:
    """The times to ask.

    Args:
        every: seconds of silence; ``None``: never.

    Attributes:
        due: when to ask next, if ever.
    """

    __slots__ = ("_after", "_every", "due")

    def __init__(self, every: float | None) -> None:
        self._every = self._after = every
        self.due: float | None = None

    def begin(self, now: float) -> None:
        """Whoever listens is there."""
        self._wait(now, self._after)

    def connected(self, now: float) -> None:
        """There is a new connection, and nothing has come on it."""
        self._wait(now, None if self._every is None else min(_FIRST, self._every))

    def heard(self, now: float) -> None:
        """A batch has come."""
        self._wait(now, self._every)

    def take(self, now: float) -> bool:
        """Return whether it is time to ask; the next time is later."""
        if self.due is None or self._after is None or self._every is None or now < self.due:
            return False
        self._wait(now, min(2 * self._after, self._every))
        return True

    def _wait(self, now: float, after: float | None) -> None:
        self._after = after
        self.due = None if after is None else now + after
