"""Looking for what a socket waits for before the loop goes to sleep.

A processor without work halts, and to wake it costs some 25 us at either end of a round trip. So a
call that has to wait keeps a *vigil*: for a moment the loop does not sleep, but comes round again
and again, and asks each time what is ready. Whatever else is ready runs in between.

That pays only where it finds something: see :class:`Luck`. (:mod:`zerohop.io.lookout` does the same
for blocking sockets, and has the measurements.)
"""

from __future__ import annotations

import os
from time import monotonic

from zerohop.io.lookout import moment

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from zerohop.asyncio.waiting import Waiting
    from zerohop.io.driver import SocketDriver

_ROUNDS = 2  # moments; a turn of a loop, at either end, takes longer than a look
_LONG = 50e-6  # seconds: a loop that takes so long to come round has other things to do
_DEAR = 1e-3  # seconds of giving way: somebody computes here, and has had a whole slice of time
_NO_WAY = 10.0  # seconds without giving way, after that
_STEP = 2
_MOST = 6
_MOST_DISTURBED = 10


class Luck:
    """Whether to try what may be in vain.

    What was in vain is paid for with times that are let go: one, then two, four, up to 2 to the
    power of ``most``, as long as it goes on. What is found makes up for half of one in vain.

    Attributes:
        pause: times to let go; whoever lets one go counts it down.
    """

    __slots__ = ("_level", "pause")

    def __init__(self) -> None:
        self._level = 0
        self.pause = 0

    def found(self) -> None:
        """It was not in vain."""
        if self._level:
            self._level -= 1

    def missed(self, most: int = _MOST) -> None:
        """It was."""
        self.pause = 1 << self._level
        self._level = min(self._level + _STEP, most)


class Vigil:
    """One socket's looks before it waits. The lock is held.

    Args:
        driver: the socket's.
        seconds: how long to keep the loop awake; 0: not at all.
        clock: seconds, monotonic; not the loop's, for uvloop's stands still during a turn.
        give_way: lets others run on this processor for a moment; None: there is no such call.
    """

    __slots__ = (
        "_before", "_clock", "_driver", "_ends", "_give_way", "_gives_way", "_looks",
        "_no_way_until", "_open", "_seconds", "_waiting", "_waits", "_ways",
    )  # fmt: skip

    def __init__(
        self,
        driver: SocketDriver,
        seconds: float,
        clock: Callable[[], float],
        give_way: Callable[[], object] | None,
    ) -> None:
        self._driver = driver
        self._open = driver.core.links.open_links
        self._seconds = seconds
        self._clock = clock
        self._give_way = give_way
        # Where threads of this process use the same Context they would be kept from its lock.
        self._gives_way = give_way is not None and seconds > 0
        self._no_way_until = 0.0
        self._looks = Luck()
        self._ways = Luck()
        self._waits = Luck()
        self._waiting: Waiting | None = None  # for whom the loop is kept awake
        self._ends = 0.0
        self._before = 0.0

    def look(self) -> bool:
        """Read what has come meanwhile, without waiting; return whether anything has.

        In a stream more has come. And a peer that shares this processor answers as soon as it may
        run.
        """
        looks, ways = self._looks, self._ways
        if looks.pause:
            looks.pause -= 1
        elif self._driver.read_now():
            looks.found()
            return True
        else:
            looks.missed()
        if ways.pause:
            ways.pause -= 1
        elif self._gives_way and self._open and self._driver.context.reactor is None:
            self._let_others_run(self._clock())
            if self._driver.read_now():
                ways.found()
                return True
            ways.missed()
        return False

    def keep(self, loop: asyncio.AbstractEventLoop, waiting: Waiting) -> None:
        """Keep the loop awake for a moment, for somebody who has just begun to wait."""
        before, waits = self._waiting, self._waits
        if before is not None:
            if not before.done():
                return
            if not before.cancelled():
                waits.found()
        elif waits.pause:
            waits.pause -= 1
            return
        elif self._seconds and self._open:
            loop.call_soon(self._round, loop)
        else:
            return
        self._waiting = waiting
        self._before = self._clock()
        self._ends = self._before + self._seconds

    def forget(self) -> None:
        """Nobody waits any more, or the loop is gone."""
        self._waiting = None

    def _round(self, loop: asyncio.AbstractEventLoop) -> None:
        """The loop has come round."""
        waiting = self._waiting
        if waiting is None:  # forgotten
            return
        if waiting.done():
            self._waiting = None
            if not waiting.cancelled():
                self._waits.found()
            return
        now = self._clock()
        disturbed = now - self._before > _LONG
        if disturbed or now > self._ends:
            self._waiting = None
            self._waits.missed(_MOST_DISTURBED if disturbed else _MOST)
            return
        self._before = self._let_others_run(now) if self._gives_way else now
        loop.call_soon(self._round, loop)

    def _let_others_run(self, now: float) -> float:
        """Give way, unless that took too long lately; return the time."""
        if now < self._no_way_until or self._give_way is None:
            return now
        self._give_way()
        after = self._clock()
        if after - now > _DEAR:
            self._no_way_until = after + _NO_WAY
        return after


def make_vigil(driver: SocketDriver) -> Vigil:
    """Return a vigil that takes its time from the system."""
    return Vigil(driver, _ROUNDS * moment(), monotonic, getattr(os, "sched_yield", None))
