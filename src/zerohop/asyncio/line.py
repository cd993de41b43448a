"""A line of those who wait: first come, first served."""

from __future__ import annotations

from collections import deque

_CROWD = 64


class Line(deque):  # type: ignore[type-arg] # of Waiting; no Generic at run time
    """Waiters, the first in front.

    Those that were cancelled, or whose time is over, tell nobody. They leave when somebody looks:
    a program that receives with a time limit, again and again, must not fill the memory.
    """

    __slots__ = ("_crowd",)

    def __init__(self) -> None:
        super().__init__()
        self._crowd = _CROWD  # with so many it is worth looking behind the first

    def tidy(self) -> None:
        """Let those go that wait no more: at once in front, now and then behind one that waits."""
        while self and self[0].done():
            self.popleft()
        if len(self) > self._crowd:
            still_waiting = [waiting for waiting in self if not waiting.done()]
            self.clear()
            self.extend(still_waiting)
            self._crowd = max(_CROWD, 2 * len(self))
