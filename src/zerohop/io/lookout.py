"""Looking for a moment before a wait sleeps: the short way from a message to whoever waits for it.

A processor without work halts, and to wake it costs some 25 us at either end of a round trip whose
octets need 10. A peer that answers at once has answered by then; so a wait first asks again and
again what is ready, for about as long as a sleep would cost, and then sleeps.

That pays only where it finds something. When it did not, the next waits sleep at once: one, then
four, 16, and at most 64 of them, as long as it goes on so; something that is found makes up for
half of that. So a socket that waits for rare messages looks at each 65th, and one whose peer is
slow, or has no processor to run on, soon stops taking it away.

Other threads of this process are kept from the interpreter by one that asks for it again and again.
It shows in a look that takes long, or in that another of them comes to wait; then up to 1024 waits
sleep at once.
"""

from __future__ import annotations

import os
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    _T = TypeVar("_T")

MOMENT = 50e-6
"""Seconds that a wait looks at most: what a sleep and a wake-up cost, two times 25 us."""

VARIABLE = "ZEROHOP_BUSY_POLL_US"
"""The environment's say in it: microseconds instead of :data:`MOMENT`; 0: always sleep at once."""

_LONGEST = 0.01  # seconds that may be asked for
_LONG = 20e-6  # seconds that a look seldom takes by itself (it takes 1 us)
_DEAR = 1e-3  # seconds of giving way: somebody computes here, and has had a whole slice of time
_NO_WAY = 10.0  # seconds without giving way, after that

# The level goes up by STEP with what was in vain, and down by 1 with what was found. After the
# former, 2 to the power of the level waits sleep at once.
_STEP = 2
_MOST = 6
_MOST_DISTURBED = 10

_looking = False  # one thread of a process at a time
_disturbed = False  # and another has come meanwhile


class Lookout:
    """How the waits of one socket went lately, and whether the next one looks before it sleeps.

    Args:
        moment: seconds that a wait looks at most.
        clock: seconds, monotonic.
        give_way: lets others run on this processor for a moment (``sched_yield``): a peer that
            shares it with us could not answer otherwise. None: there is no such call.

    Attributes:
        moment: as above.
    """

    __slots__ = ("_clock", "_give_way", "_level", "_no_way_until", "_pause", "moment")

    def __init__(
        self, moment: float, clock: Callable[[], float], give_way: Callable[[], object] | None
    ) -> None:
        self.moment = moment
        self._clock = clock
        self._give_way = give_way
        self._no_way_until = 0.0
        self._level = 0
        self._pause = 0  # waits that shall sleep at once

    def look(self, ready: Callable[[int], list[_T]]) -> list[_T]:
        """Ask again and again what is ready; return it, or nothing: then it is time to sleep.

        Args:
            ready: what is ready, after at most so many seconds; asked with 0. It lets other
                threads run.
        """
        global _disturbed, _looking
        if self._pause:
            self._pause -= 1
            return []
        if _looking:
            _disturbed = True
            self._in_vain(_MOST_DISTURBED)
            return []
        try:
            _looking, _disturbed = True, False
            # What is there already says nothing about looking.
            return ready(0) or self._look(ready)
        finally:
            _looking = False

    def _look(self, ready: Callable[[int], list[_T]]) -> list[_T]:
        clock, give_way = self._clock, self._give_way
        before = clock()
        end = before + self.moment
        if before < self._no_way_until:
            give_way = None
        while True:
            found = ready(0)
            now = clock()
            if _disturbed or now - before > _LONG:
                self._in_vain(_MOST_DISTURBED)
                return found
            if found:
                if self._level:
                    self._level -= 1
                return found
            if now > end:
                self._in_vain(_MOST)
                return found
            before = now
            if give_way is not None:
                give_way()
                before = clock()
                if before - now > _DEAR:
                    self._no_way_until = before + _NO_WAY
                    give_way = None

    def _in_vain(self, most: int) -> None:
        self._pause = 1 << self._level
        self._level = min(self._level + _STEP, most)


def disturb() -> None:
    """Tell whoever looks that another thread of this process waits with it."""
    global _disturbed
    _disturbed = True


def moment() -> float:
    """For how many seconds waits of this process may look: 0 where it has one processor only.

    Raises:
        ValueError: what the environment says is no number of microseconds.
    """
    said = os.environ.get(VARIABLE, "")
    try:
        seconds = float(said) / 1e6 if said else MOMENT
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _LONGEST:
        raise ValueError(
            f"{VARIABLE} is a number of microseconds from 0 to {_LONGEST * 1e6:.0f}, not {said!r}"
        )
    return seconds if _processors() > 1 else 0.0


def make_lookout(seconds: float) -> Lookout | None:
    """Return one that looks for so long; None for 0."""
    return Lookout(seconds, monotonic, getattr(os, "sched_yield", None)) if seconds else None


def _processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _after_fork_in_child() -> None:
    global _looking
    _looking = False  # the thread that did is not here


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
