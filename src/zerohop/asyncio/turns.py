"""When a socket lets the loop go on, and when what it has sent is written.

A *turn* begins when a socket first has something to do after the loop came round, and ends when the
loop has come round again; asked for with ``call_soon``.

* What is sent is written at once if nothing was written a moment ago, and together with the rest
  otherwise: at the end of the turn, or when 128 KiB have come together.
* A socket that always has something to do yields to the loop when its turn has lasted ``TURN``. The
  operation that finds this out is done, and suspends whoever awaits it until the loop has come
  round. (zmq.asyncio never yields there, and starves every other task.)

To look at the clock costs as much as a message: so it is looked at now and then, when the *credit*
of a direction is used up.
"""

from __future__ import annotations

from time import monotonic  # not the loop's: uvloop's clock stands still during a turn

from zerohop.core.output import FLUSH_SIZE

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from typing import Any

    from zerohop.io.driver import SocketDriver

CREDIT = 64  # operations at most between two looks at the clock
TURN = 120e-6  # seconds a socket may keep the loop: a 1 ms ticker stays above 500 a second
_ON_ACCOUNT = 8  # operations for a program that goes on although its turn is over
_MOMENT = 50e-6  # seconds; sends that follow each other faster are gathered
MORE, LAST = 1, 2
_QUICK = 8  # operations in a turn
_STREAM = 4096  # octets in one turn; whoever sends more will send more


class Turns:
    """The turns of one socket. The lock is held.

    Attributes:
        credit: operations until :meth:`spend` shall be called again.
        front: tells by ``answers()`` what is sent now: ``MORE``, ``LAST``: something was received
            since the last was sent, and more, or nothing more, waits to be; 0: it is no answer. And
            by ``waited_for()`` whether anybody waits for what may come of sending. (No bound
            methods: each would be one more object of a thousand sockets.)
        answers: whether it has to be asked for the first.
        directions: those whose ``new_turn`` is called with the credit that they have, at most.
        running: the loop was asked to call at the end of the turn.
        unwritten: octets that were sent and are left to be written later.
        late: it was time to yield when :meth:`write_at_once` has looked.
        resumed: a receive that had to wait has got its message: the loop has come round.
    """

    __slots__ = (
        "_driver", "_filled", "_grant", "_moment", "_started", "_writing", "_wrote_at", "answers",
        "credit", "directions", "front", "late", "resumed", "running", "unwritten",
    )  # fmt: skip

    def __init__(self, driver: SocketDriver) -> None:
        self._driver = driver
        self._grant = self.credit = _QUICK
        self.front: Any = None
        self.answers = False
        self.directions: tuple[Any, ...] = ()
        self._started = 0.0
        self._writing = 0.0  # seconds of this turn
        self._wrote_at = 0.0  # when that began
        self._moment = _MOMENT
        self._filled = False  # so much had come together in this turn, and were written
        self.running: asyncio.Handle | None = None
        self.unwritten = 0
        self.resumed = False
        self.late = False

    def write_at_once(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Write, if this message had better go at once; return whether.

        It does if it answers the last message that is there, and if it begins the turn and nothing
        was written a moment ago. Otherwise there may be more to come: the loop is asked to call at
        the end of its turn. So it is now and then in any case, to find out whether it still comes
        round; unless a receive had to wait meanwhile, which shows it.
        """
        answers = self.front.answers() if self.answers else 0
        running = self.running is not None
        if running and answers != LAST:
            return False
        now = monotonic()
        self.late = running and now - self._started > TURN
        if answers == LAST:
            at_once = True
        elif answers == MORE and self._grant >= _QUICK:
            at_once = False
        else:
            at_once = now - self._wrote_at > self._moment
        if not running:
            if not at_once or (not self.resumed and now - self._started >= TURN):
                self._begin(loop, now)
            elif self.resumed:
                self.resumed = False
                self._started = now
        if at_once:
            self.write(now)
        return at_once

    def spend(self, loop: asyncio.AbstractEventLoop) -> bool:
        """A credit is used up: ``credit`` is the next one. Return whether it is time to yield.

        The next credit is what fits into a turn, if this one has lasted longer: the program works
        on each message. What writing takes is no part of that: to many peers it takes longer than a
        turn, however few the messages. Whoever does not await, and so does not yield, gets a little
        on account: not every message shall be written by itself.
        """
        now = monotonic()
        if self.running is None:
            self._begin(loop, now)
            self.credit = self._grant
            return False
        lasted = now - self._started
        working = lasted - self._writing
        if working > TURN:
            self._grant = max(1, int(self._grant * TURN / working))
        elif working < TURN / 2 and self._grant < CREDIT:
            self._grant *= 2
        if lasted <= TURN:
            self.credit = self._grant
            return False
        if self.unwritten and now - self._wrote_at > TURN:
            self.write(now)
        self.credit = _ON_ACCOUNT
        return True

    def write(self, now: float) -> None:
        """Write what there is."""
        self.unwritten = 0
        self._wrote_at = now
        driver = self._driver
        if self.front.waited_for() or not driver.write_alone():
            driver.pump()
        took = monotonic() - now
        self._writing += took
        # A pause that is shorter than the write before it is none: to write to 64 peers takes a
        # millisecond, and the next message would be a lone one for ever.
        self._moment = max(2 * took, _MOMENT)

    def sent(self, octets: int) -> None:
        """So much was sent, and was not written at once: do it now if that has become enough."""
        self.unwritten += octets
        if self.unwritten >= FLUSH_SIZE:
            self._filled = True
            self.write(monotonic())

    def forget(self) -> None:
        """The loop that would have called is gone; on the next, the driver writes all there is."""
        self.running = None
        self.unwritten = 0
        self._filled = False
        for direction in self.directions:
            direction.new_turn(self._grant)

    def _begin(self, loop: asyncio.AbstractEventLoop, now: float) -> None:
        self._started = now
        self._writing = 0.0
        self.running = loop.call_soon(self._end)

    def _end(self) -> None:
        """The loop has come round: write what has gathered."""
        driver = self._driver
        with driver.lock:
            self.running = None
            started = self._started
            stream = self._filled or self.unwritten > _STREAM
            self._filled = False
            for direction in self.directions:
                direction.new_turn(self._grant)
            now = monotonic()
            # Not for nothing: whoever only receives has turns, too.
            if self.unwritten or self.front.waited_for() or driver.has_work():
                self.write(now)
            # The first message of a stream's next turn need not go alone.
            self._wrote_at = now if stream else started
