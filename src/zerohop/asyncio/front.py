"""Where an asyncio socket meets its driver: the loop it lives on, and who waits for what.

The driver calls :meth:`Front.activity` after whatever happened, the lock held. Between such calls
the Socket uses the lanes of :mod:`zerohop.asyncio.sending` and :mod:`zerohop.asyncio.receiving`
directly. When the loop gets its turn is decided in :mod:`zerohop.asyncio.turns`.
"""

from __future__ import annotations

import asyncio
import threading

from zerohop.asyncio.futures import done_with, done_with_later, failed
from zerohop.asyncio.receiving import Receiving
from zerohop.asyncio.sending import Sending
from zerohop.asyncio.turns import LAST, MORE, Turns
from zerohop.asyncio.waiting import at_least_0, released
from zerohop.constants import Errno
from zerohop.errors import Again, UsageError, ZMQError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from zerohop.asyncio.conditions import Conditions
    from zerohop.asyncio.vigil import Vigil
    from zerohop.asyncio.waiting import Line, Waiting
    from zerohop.io.context import ContextIO
    from zerohop.io.driver import SocketDriver


class Front:
    """One socket's two directions, its loop and its waiters. Knows no Socket.

    Attributes:
        sending, receiving: the two directions.
        loop: on which the socket lives; None until it has met one.
        vigil: looks before the loop sleeps; None until a call has had to wait.
    """

    __slots__ = (
        "_answered", "_conditions", "_context", "_core", "_driver", "_lock", "_turns", "loop",
        "receiving", "sending", "vigil",
    )  # fmt: skip

    def __init__(self, driver: SocketDriver, context: ContextIO) -> None:
        self._driver = driver
        self._core = driver.core
        self._lock = driver.lock
        self._context = context
        self.loop: asyncio.AbstractEventLoop | None = None
        self._turns = Turns(driver)
        self.sending = Sending(self, driver, self._turns)
        self.receiving = Receiving(self, driver, self._turns)
        self._turns.front = self
        self._turns.directions = self.sending, self.receiving
        # Who only sends answers nobody.
        self._turns.answers = driver.core.pattern.can_receive and driver.core.pattern.can_send
        self._answered = 0
        self._conditions: Conditions | None = None  # few programs wait for any
        self.vigil: Vigil | None = None
        driver.front = self
        self.find_loop_if_any()

    def announce(self, topic: bytes) -> None:
        """Publishers are to be told of a subscription: when is decided as for a message. Lock held.

        Args:
            topic: what was (un)subscribed.
        """
        core, loop, turns = self._core, self.loop, self._turns
        core.settle()
        if (
            core.links.to_write
            and not (core.context.changed or self._driver.watched)
            and loop is not None
            and self.lives_here()
        ):
            if not turns.write_at_once(loop):
                turns.sent(1 + len(topic))
        else:  # nobody to write to, a peer of this process, or no turn that would end
            self._driver.pump()

    # Waiting

    def mend(self) -> None:
        """Nothing: whoever waits is looked at in each :meth:`activity`."""

    def activity(self) -> bool:
        """Serve who waits, as far as the core can; return whether there is more to pump then."""
        core, sending, receiving = self._core, self.sending, self.receiving
        driver, conditions = self._driver, self._conditions
        served = False
        if receiving.line or sending.line or conditions is not None:
            if self.loop is not None and self.loop.is_closed():
                self._forget_waiting()
            if receiving.line and receiving.serve():
                # A message that was received whole mostly changes nothing.
                served = core.receive_lane is not core.pattern.receive_lane or driver.has_work()
            if sending.line:
                served |= sending.serve()
            if conditions is not None and conditions.waits:
                conditions.serve()
            if served:
                core.settle()
        # Somebody who watches the descriptor (ZMQ_FD), and who shares the socket with us, must see
        # every step; and ETERM is for all.
        if driver.watched or driver.front is not self or core.context.terminated:
            sending.use(None)
            receiving.use(None)
            return served
        if core.send_lane is not None or sending.lane is not None:
            sending.use(core.send_lane)
        if core.receive_lane is not None or receiving.lane is not None:
            receiving.use(core.receive_lane)
        return served

    def delivered(self) -> bool:
        """As :meth:`activity`, where messages have come and nothing else has changed."""
        return self.activity()

    def waited_for(self) -> bool:
        """Whether somebody has to be looked at when something was sent."""
        return self.busy or self._driver.front is not self

    def answers(self) -> int:
        """What is sent now: see :class:`Turns`."""
        number = self.receiving.number
        if number == self._answered:
            return 0
        self._answered = number
        return MORE if self._core.pattern.can_receive_now() else LAST

    def wait_until(
        self, holds: Callable[[], int], seconds: float | None, give_up: Callable[[Waiting], None]
    ) -> Awaitable[Any]:
        """Wait until ``holds()`` gives something true, which is the result; lock not held."""
        loop = self.find_loop()
        with self._lock:
            try:
                self._core.check_open()
                value = holds()
            except ZMQError as error:
                return failed(loop, error)
            if value:
                over = self.receiving.count(loop)
                return done_with_later(value) if over else done_with(loop, value)
            limit = None if seconds is None else at_least_0(seconds)
            if self._conditions is None:
                from zerohop.asyncio.conditions import Conditions

                self._conditions = Conditions(self._core)
            waiting = self._conditions.add(loop, holds)
            if limit is not None:
                waiting.timer = loop.call_later(limit, give_up, waiting)
            self._driver.pump()
            return waiting

    def expire(self, line: Line, waiting: Waiting) -> None:
        """The time is over of somebody who waits in a line."""
        with self._lock:
            waiting.fail(Again())
            line.tidy()

    def make_vigil(self) -> Vigil:
        """Look, from now on, for what is waited for before the loop sleeps."""
        from zerohop.asyncio.vigil import make_vigil  # where a call has to wait

        self.vigil = make_vigil(self._driver)
        return self.vigil

    @property
    def busy(self) -> bool:
        """Whether anybody waits."""
        conditions = self._conditions
        return bool(
            self.receiving.line
            or self.sending.line
            or (conditions is not None and conditions.waits)
        )

    def _forget_waiting(self) -> None:
        """Whoever waited on the loop that is gone will never be resumed."""
        self.receiving.line.clear()
        self.sending.line.clear()
        self._turns.forget()
        if self.vigil is not None:
            self.vigil.forget()
        if self._conditions is not None:
            self._conditions.clear()

    def end(self) -> None:
        """The socket has been closed, lock held: whoever waits gets ENOTSOCK."""
        everybody = [*self.receiving.line, *self.sending.line]
        if self._conditions is not None:
            everybody += self._conditions.waiting()
        self._forget_waiting()
        self.sending.use(None)
        self.receiving.use(None)
        for waiting in everybody:
            if not waiting.get_loop().is_closed():
                error = ZMQError(Errno.ENOTSOCK, hint="the socket was closed meanwhile")
                waiting.fail(error, quietly=True)

    def released(self) -> asyncio.Future[None]:
        """A future that is done when the closed socket has nothing left to send."""
        return released(self._driver)

    # The loop

    def find_loop(self) -> asyncio.AbstractEventLoop:
        """The running loop; the driver moves to it if it was on another.

        Raises:
            RuntimeError: no loop runs in this thread; or the socket is in use on one that runs in
                another thread.
            UsageError: ENOTSUP, the loop cannot watch descriptors.
        """
        loop = asyncio.get_running_loop()
        if loop is not self.loop:
            self._use_loop(loop)
        return loop

    def find_loop_if_any(self) -> None:
        """As :meth:`find_loop`, but where no loop runs, and none did, there is time yet.

        Raises:
            RuntimeError: the socket is in use on a loop that runs in another thread.
            UsageError: ENOTSUP, the loop cannot watch descriptors.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._check_thread()
        else:
            if loop is not self.loop:
                self._use_loop(loop)

    @property
    def elsewhere(self) -> asyncio.AbstractEventLoop | None:
        """The socket's loop, if that runs in another thread."""
        return None if self._driver.may_move() else self.loop

    def lives_here(self) -> bool:
        """Whether this thread runs the loop that the socket is bound to."""
        try:
            return self.loop is not None and asyncio.get_running_loop() is self.loop
        except RuntimeError:
            return False

    def _check_thread(self) -> None:
        if (self._driver.watches or self.busy) and self.elsewhere is not None:
            raise RuntimeError(
                "this socket is in use on a loop that runs in another thread, and belongs there; "
                "make one socket for each thread (they can meet over inproc)"
            )

    def _use_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        watch = getattr(type(loop), "add_reader", None)
        if watch in (None, asyncio.AbstractEventLoop.add_reader):
            raise UsageError(
                Errno.ENOTSUP,
                hint=f"{type(loop).__name__} cannot watch descriptors (add_reader); run the "
                "program on a SelectorEventLoop: asyncio.run(main(), loop_factory="
                "asyncio.SelectorEventLoop), or before Python 3.12 "
                "asyncio.set_event_loop_policy(asyncio.WindowsSelectorEventLoopPolicy())",
            )
        with self._lock:
            self._check_thread()
            old = self.loop
            if old is not None:
                self._forget_waiting()
            self.loop = loop
            self._driver.attach(loop, thread=threading.get_ident())
            if old is not None and old.is_closed():
                self._take_others_along(old, loop)
            if loop is not self._context.newest_loop:
                self._context.newest_loop = loop
                self._take_stranded(loop)

    def _take_stranded(self, loop: asyncio.AbstractEventLoop) -> None:
        """Of closed sockets whose loop has ended nothing would go on, nor come to its end."""
        for driver in list(self._context.drivers):
            ended = isinstance(driver.loop, asyncio.AbstractEventLoop) and driver.loop.is_closed()
            if ended and driver.core.closed:
                driver.attach(loop, thread=threading.get_ident())

    def _take_others_along(
        self, old: asyncio.AbstractEventLoop, loop: asyncio.AbstractEventLoop
    ) -> None:
        """The other sockets of the loop that has ended may have something to send, too."""
        for driver in list(self._context.drivers):
            if driver.loop is old and driver.may_move() and isinstance(driver.front, Front):
                driver.front._use_loop(loop)
