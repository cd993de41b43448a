"""An API server's sockets on an event loop.

Outputs are read by calls of the loop, and two tasks read what engines say of themselves and what
becomes of connections; one timer watches deadlines and engines.
"""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from time import monotonic  # not the loop's: uvloop's clock stands still during a turn
from typing import Any

import zerohop as zmq
import zerohop.asyncio
from zerohop.serving.engine.channel import (
    ABORT_AGAIN,
    LAST_OUTPUTS,
    LISTEN,
    LISTEN_LONGEST,
    Channel,
)
from zerohop.serving.engine.handshake import Identity
from zerohop.serving.engine.waking import Wakes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from zerohop.serving.engine.exchange import OpenCall
    from zerohop.serving.engine.roster import Member
    from zerohop.serving.engine.streams import OpenStream

__all__ = ["AsyncioChannel"]

_CLOSED = "the EngineClient is not running: it is used within its 'async with'"
_ONCE = "an EngineClient runs once: make another one for another 'async with'"
_TURN = 0.002  # seconds of reading, before those who wait for what was read have their turn


class AsyncioChannel(Channel):
    """A channel that is read on the event loop on which it is started.

    Attributes:
        loop: the event loop, once it is started.
        wakes: of that loop, for the readers of streams.
    """

    _context_type = zerohop.asyncio.Context

    loop: asyncio.AbstractEventLoop
    wakes: Wakes

    def _start(self) -> None:
        self._records = self._router.monitor_records(zmq.EVENT_DISCONNECTED)
        self._aborts_due: asyncio.Handle | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._coming: Any = None  # the outputs that are waited for
        self._timer: asyncio.TimerHandle | None = None
        self._arrivals: set[asyncio.Future[None]] = set()
        self._is_listening = False

    def start(self) -> None:
        """Begin to read, on the running loop.

        Raises:
            RuntimeError: it was begun before.
        """
        if self._is_closed or self._tasks:
            raise RuntimeError(_ONCE)
        self.loop = asyncio.get_running_loop()
        self.wakes = Wakes(self.loop)
        self._read_outputs()
        readers = (self._read_control(), self._read_records())
        self._tasks = [self.loop.create_task(each, name="zerohop-engines") for each in readers]

    async def aclose(self) -> None:
        """Say goodbye to the engines and end; what is open ends as ``EngineDead``."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self.exchange.leave()
        if self._tasks:
            self._settle_soon()
        for waiting in self._arrivals:
            if not waiting.done():
                waiting.set_exception(RuntimeError(_CLOSED))
        for task in self._tasks:
            task.cancel()
        if self._coming is not None:
            self._coming.cancel()
        async with self._context:
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._records.close()

    def held(self) -> AbstractContextManager[None]:
        """Nothing: everybody is on the loop."""
        return contextlib.nullcontext()

    def check_running(self) -> None:
        """Raise RuntimeError where there is nothing behind it, not yet or not any more."""
        if self._is_closed or not self._tasks:
            raise RuntimeError(_CLOSED)

    async def arrival(self) -> None:
        """Wait until an engine becomes ready."""
        arrival = self.loop.create_future()
        self._arrivals.add(arrival)
        try:
            await arrival
        finally:
            self._arrivals.discard(arrival)

    # What is said to engines

    def _post(self, member: Member, message: list[Any], *, copy: bool) -> None:
        sent: Any = self._router.send_multipart(message, copy=copy, timeout=0)
        if not sent.done():  # it failed, and the turn is over: this is told in the next
            sent.add_done_callback(partial(self._not_sent, member.identity))
        elif (error := sent.exception()) is not None:
            raise error

    def _say(self, routing_id: bytes, message: Any) -> bool:
        frames = [routing_id, *self._encoder.frames(message)]
        sent: Any = self._router.send_multipart(frames, timeout=0)
        if not sent.done():
            sent.add_done_callback(_look_at)
            return False
        return sent.exception() is None

    def _not_sent(self, identity: Identity, sent: asyncio.Future[Any]) -> None:
        """A request is lost: so is the engine, or somebody would wait for it."""
        if not sent.cancelled() and (error := sent.exception()) is not None and not self._is_closed:
            exchange = self.exchange
            exchange.depart(exchange.roster.leave(identity, f"a request did not reach it: {error}"))
            self._settle_soon()

    def abandon(self, stream: OpenStream) -> None:
        """Nobody reads it any more."""
        if not stream.ended:
            self.exchange.abandon(stream, self.loop.time())
            self._settle()

    def _abort_later(self) -> None:
        if self._aborts_due is not None:
            self._aborts_due.cancel()
            self._aborts_due = None
        if self._is_closed:
            return
        self._send_aborts()
        if self.exchange.aborts:  # there is no room for them now
            self._aborts_due = self.loop.call_later(ABORT_AGAIN, self._abort_later)

    # What engines say

    def _read_outputs(self, came: Any = None) -> None:
        """Take the outputs that are here, and have the loop call again when there are more.

        No task: a task that is woken can wake no other before the loop's next turn.

        Args:
            came: outputs that were waited for.
        """
        if self._is_closed:
            return
        self._coming = None
        try:
            self._read_and_wake(came)
        finally:  # a reader may have ended the loop, which may go on nevertheless
            if self._coming is None and not self._is_closed:
                self.loop.call_soon(self._read_outputs)

    def _read_and_wake(self, came: Any) -> None:
        now, take = self.loop.time(), self.exchange.take_outputs
        if came is not None:
            take(came.result(), now)
            self._wake_readers(now)  # before it is looked for more: they have waited long enough
        receive, over = self._pull.recv_multipart, monotonic() + _TURN
        while monotonic() < over and not self._is_closed:
            coming: Any = receive()
            if not coming.done():
                self._coming = coming
                coming.add_done_callback(self._read_outputs)
                break
            take(coming.result(), now)
        self._wake_readers(now)

    def _wake_readers(self, now: float) -> None:
        self.exchange.give(now)
        self._settle()
        self.wakes.run()

    async def _read_control(self) -> None:
        receive = self._router.recv_multipart
        while True:
            self.exchange.take_control(await receive(), self.loop.time())
            self._settle_soon()
            self._arm()

    async def _read_records(self) -> None:
        """A connection that broke is the end of its engine, once its last outputs are here."""
        async for record in self._records:
            identity = Identity.of(record.routing_id)
            if identity is not None:
                self.exchange.broke(identity)
                self.loop.call_later(LAST_OUTPUTS, self._lose, identity, None)

    def _lose(self, identity: Identity, seq: int | None) -> None:
        if self._is_closed:
            return
        seen = self.exchange.lose(identity, seq, has_more=self._coming is None)
        if seen is not None:
            self.loop.call_later(LAST_OUTPUTS, self._lose, identity, seen)
        self._settle_soon()

    # What follows

    def _settle(self) -> None:
        """Do what the exchange has to be done. Readers are noted, to be woken by :attr:`wakes`."""
        exchange = self.exchange
        if exchange.woken:
            self.wakes.add([stream.waiter for stream in exchange.woken])
            exchange.woken.clear()
        if exchange.aborts and self._aborts_due is None:
            self._aborts_due = self.loop.call_soon(self._abort_later)
        if exchange.to_say or exchange.remarks:
            self._speak()
        if exchange.answered or exchange.has_joined:
            self._wake_others(exchange.answered)

    def _settle_soon(self) -> None:
        """Likewise, and readers are woken in the loop's next turn: this may be a task's."""
        self._settle()
        self.wakes.soon(())

    def _wake_others(self, answered: Sequence[OpenCall]) -> None:
        for future in [*(call.waiter for call in answered), *self._arrivals]:
            if not future.done():
                future.set_result(None)
        self.exchange.answered.clear()
        self.exchange.has_joined = False

    # Time

    def arm_for(self, seconds: float | None, now: float) -> None:
        """A request was opened: the timer may have to go off sooner."""
        soonest = now + (self._hung_after if seconds is None else min(self._hung_after, seconds))
        timer = self._timer
        if timer is None or soonest < timer.when():
            self._arm()

    def _arm(self) -> None:
        """Have the timer go off at the next deadline; it may go off too soon, never too late."""
        if self._is_listening or self._is_closed:
            return  # it is done when that is over
        soonest = self.exchange.next_deadline()
        if soonest is None:
            return
        if self._timer is not None:
            if self._timer.when() <= soonest:
                return
            self._timer.cancel()
        self._timer = self.loop.call_at(soonest, self._tick)

    def _tick(self) -> None:
        """Something may be late; or it was this loop that stood still, and what has come waits."""
        self._timer = None
        self._is_listening = True
        self._listen(0)

    def _listen(self, turns: int) -> None:
        is_reading = self._coming is None  # outputs that are here
        if turns < LISTEN or (is_reading and turns < LISTEN_LONGEST):
            self.loop.call_soon(self._listen, turns + 1)
            return
        self._is_listening = False
        if self._is_closed:
            return
        self.exchange.handle_deadline(self.loop.time())
        self._settle_soon()
        self._arm()


def _look_at(sent: asyncio.Future[Any]) -> None:
    """Its error is known, so that asyncio does not speak of it."""
    if not sent.cancelled():
        sent.exception()
