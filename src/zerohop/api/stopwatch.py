"""pyzmq's Stopwatch, which its own programs should no longer use and some still do."""

from __future__ import annotations

import time

__all__ = ["Stopwatch"]


class Stopwatch:
    """Measures a span of time. New programs use ``time.perf_counter``.

    It runs from the moment it is made; :meth:`start` begins anew.
    """

    __slots__ = ("_started",)

    def __init__(self) -> None:
        self._started = time.perf_counter_ns()

    def start(self) -> None:
        """Begin to measure."""
        self._started = time.perf_counter_ns()

    def stop(self) -> int:
        """Return the time since :meth:`start`, in whole microseconds."""
        return (time.perf_counter_ns() - self._started) // 1000
