"""Whether silence proves anything: who listens has to have been awake.

An event loop that was busy, a process that was stopped: what came meanwhile is yet to be read. So
whoever judges by silence looks at least once in a while, and after a gap waits that while more.
"""

from __future__ import annotations

__all__ = ["Watch"]

_GAP = 1.5  # times between two looks: a timer is a little late now and then


class Watch:
    """One who listens. Time is an argument: seconds, monotonic.

    Args:
        every: seconds between two looks at most; in so many, those who live are heard.

    Attributes:
        judge_from: before that, nobody is judged.
    """

    __slots__ = ("_every", "_looked_at", "judge_from")

    def __init__(self, every: float) -> None:
        self._every = every
        self._looked_at = self.judge_from = float("-inf")

    def look(self, now: float) -> None:
        """Note that who listens is awake: with each message, and when it is time to judge."""
        if now > self._looked_at + _GAP * self._every:
            self.judge_from = now + self._every
        self._looked_at = max(now, self._looked_at)

    def next_look(self, end: float) -> float:
        """When to look again.

        Args:
            end: when somebody's time runs out.
        """
        return min(max(end, self.judge_from), self._looked_at + self._every)
