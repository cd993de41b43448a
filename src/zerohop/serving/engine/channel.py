"""An API server's sockets, and what goes over them: all that is not for its users.

Outputs are read by calls of the loop, and two tasks read what engines say of themselves and what
becomes of connections; one timer watches deadlines and engines. Which streams there are, who is
alive and what that means is decided in :mod:`~zerohop.serving.engine.streams` and
:mod:`~zerohop.serving.engine.roster`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from functools import partial
from time import monotonic  # not the loop's: uvloop's clock stands still during a turn
from typing import Any

import msgspec

import zerohop as zmq
import zerohop.asyncio
from zerohop.serving.addresses import ipc_endpoint, outputs_beside
from zerohop.serving.codec import decode_with
from zerohop.serving.engine.buffers import PayloadDecoder, PayloadEncoder
from zerohop.serving.engine.columns import Columns
from zerohop.serving.engine.handshake import Identity, mismatch
from zerohop.serving.engine.messages import (
    Abort,
    Beat,
    FromEngine,
    FromEngineOutputs,
    Goodbye,
    Hello,
    Leaving,
    Outputs,
    Ready,
    Refusal,
    Start,
    first_numbers,
)
from zerohop.serving.engine.roster import Roster
from zerohop.serving.engine.streams import StreamTable
from zerohop.serving.engine.unreachable import end_when_unreachable
from zerohop.serving.engine.waking import Wakes
from zerohop.serving.errors import EngineDead, EngineOverloaded, Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from zerohop.serving.engine.liveness import Patience
    from zerohop.serving.engine.messages import Delta, UtilityResult, Welcome
    from zerohop.serving.engine.roster import Departure, Member
    from zerohop.serving.engine.streams import OpenStream
    from zerohop.serving.errors import ProtocolMismatch

__all__ = ["Channel"]

_log = logging.getLogger(__name__)

_CLOSED = "the EngineClient is not running: it is used within its 'async with'"
_ONCE = "an EngineClient runs once: make another one for another 'async with'"
_HWM = 10_000  # messages that may be waiting from one engine
_LAST_OUTPUTS = 0.02  # seconds without outputs, after which a broken connection is the end
_ABORT_AGAIN = 0.1  # seconds
_LINGER_MS = 200  # for the goodbye
_REFUSALS = 256  # of engines, that are kept: anybody may say hello, under any name
_LISTEN = 8  # turns of the loop, in each of which its sockets are looked at
_LISTEN_LONGEST = 200  # turns, where outputs never cease
_TURN = 0.002  # seconds of reading, before those who wait for what was read have their turn


class Channel:
    """Everything between one API server and its engines.

    Args:
        endpoint: as of :class:`~zerohop.serving.EngineClient`, like those that follow.
        outputs: likewise.
        name: likewise.
        patience: likewise.
        requests_limit: likewise.
        stream_limit: likewise.
        end_hung: likewise.
        requests_fd: likewise.
        outputs_fd: likewise.

    Attributes:
        boot: the boot token.
        endpoint: where requests are bound.
        outputs_endpoint: where outputs are bound.
        malformed: messages that could not be read.
        last_malformed: the last of them.
        refusals: by engine, why it was not taken.
        roster: the engines.
        streams: the requests.
        calls: of utilities, by number: the engine's boot token, the name, the answer.
        encoder: of what is sent.
        loop: the event loop, once it is started.
        wakes: of that loop, for the readers of streams.

    Raises:
        ZMQError: an endpoint can't be bound.
    """

    loop: asyncio.AbstractEventLoop
    wakes: Wakes

    def __init__(
        self,
        endpoint: str | None,
        outputs: str | None,
        name: str,
        patience: Patience,
        *,
        requests_limit: int,
        stream_limit: int,
        end_hung: bool,
        requests_fd: int,
        outputs_fd: int,
    ) -> None:
        self.boot = secrets.randbits(63)
        self.malformed = 0
        self.last_malformed: Malformed | None = None
        self.refusals: dict[str, ProtocolMismatch] = {}
        self._end_hung, self._requests_limit = end_hung, requests_limit
        self._context = zerohop.asyncio.Context()
        self._context.linger = _LINGER_MS
        try:
            self._router = self._context.socket(zmq.ROUTER)
            self._router.router_mandatory = True  # or what has no room is thrown away
            # An engine that was cut off comes back before its old connection is known to be broken.
            self._router.router_handover = True
            self._router.sndhwm, self._router.rcvhwm = requests_limit, _HWM
            self._pull = self._context.socket(zmq.PULL)
            self._pull.rcvhwm = _HWM
            for each in (self._router, self._pull):
                end_when_unreachable(each)
            self._records = self._router.monitor_records(zmq.EVENT_DISCONNECTED)
            place = endpoint or ipc_endpoint(f"engines of {os.getpid()}: {self.boot}")
            self.endpoint = _bind(self._router, place, requests_fd)
            place = outputs or outputs_beside(self.endpoint)
            self.outputs_endpoint = _bind(self._pull, place, outputs_fd)
        except BaseException:
            self._context.destroy(linger=0)
            raise
        self.roster = Roster(name, self.boot, self.outputs_endpoint, patience)
        self.streams = StreamTable(stream_limit)
        self.calls: dict[int, tuple[int, str, asyncio.Future[UtilityResult]]] = {}
        self.encoder = PayloadEncoder()
        self._hung_after = patience.hung_after
        self._aborts: dict[bytes, list[int]] = {}
        self._aborts_due: asyncio.Handle | None = None
        self._control = msgspec.msgpack.Decoder(FromEngine).decode
        self._decoder = PayloadDecoder(FromEngineOutputs)
        self._columns: dict[int, Columns] = {}  # by boot token
        self._tasks: list[asyncio.Task[None]] = []
        self._coming: Any = None  # the outputs that are waited for
        self._timer: asyncio.TimerHandle | None = None
        self._arrivals: set[asyncio.Future[None]] = set()
        self._is_closed = self._is_listening = False

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
        for member in self.roster.members():
            self.say(member.identity.routing_id(b"p"), Goodbye("it was closed"))
            departure = self.roster.leave(member.identity, "this API server was closed")
            self._depart(departure, logging.DEBUG)
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

    def send(self, member: Member, frames: list[Any]) -> None:
        """Send to an engine's loop, or raise.

        Raises:
            EngineOverloaded: there is no room.
            EngineDead: it is not there.
        """
        if self._aborts:
            self._send_aborts()  # or this would overtake them
        message = [member.takes, *frames]
        sent: Any = self._router.send_multipart(message, copy=len(frames) == 1, timeout=0)
        if not sent.done():  # it failed, and the turn is over: this is told in the next
            sent.add_done_callback(partial(self._not_sent, member.identity))
            return
        match sent.exception():
            case None:
                return
            case zmq.Again():
                raise EngineOverloaded(
                    member.identity.engine,
                    self._requests_limit,
                    hint="so many messages wait for it: requests_limit",
                )
            case error:
                raise EngineDead(member.identity.engine, f"no connection: {error}")

    def say(self, routing_id: bytes, message: Any) -> bool:
        """Send a message that may be lost; return whether it is on its way."""
        frames = [routing_id, *self.encoder.frames(message)]
        sent: Any = self._router.send_multipart(frames, timeout=0)
        if not sent.done():
            sent.add_done_callback(_look_at)
            return False
        return sent.exception() is None

    def _not_sent(self, identity: Identity, sent: asyncio.Future[Any]) -> None:
        """A request is lost: so is the engine, or somebody would wait for it."""
        if not sent.cancelled() and (error := sent.exception()) is not None and not self._is_closed:
            self._depart(self.roster.leave(identity, f"a request did not reach it: {error}"))

    def abandon(self, stream: OpenStream) -> None:
        """Nobody reads it any more."""
        if self.streams.abort(stream):
            self._abort([stream])

    def _abort(self, streams: Iterable[OpenStream]) -> None:
        """Tell the engines, in one message each for all that end in this turn of the loop."""
        if not self._aborts:
            self._aborts_due = self.loop.call_soon(self._send_aborts)
        for stream in streams:
            takes = Identity(stream.engine, stream.boot).routing_id(b"r")
            self._aborts.setdefault(takes, []).append(stream.number)
            self._has_less_work(stream.boot)

    def _send_aborts(self) -> None:
        aborts, self._aborts = self._aborts, {}
        if self._aborts_due is not None:
            self._aborts_due.cancel()
        if self._is_closed:
            return
        for takes, numbers in aborts.items():
            identity = Identity.of(takes)
            if not self.say(takes, Abort(numbers)) and identity and self.roster.of(identity.boot):
                self._aborts[takes] = numbers  # there is no room for it now
        if self._aborts:
            self._aborts_due = self.loop.call_later(_ABORT_AGAIN, self._send_aborts)

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
        now = self.loop.time()
        if came is not None:
            self._take_outputs(came.result(), now)
            self._wake_readers()  # before it is looked for more: somebody has waited long enough
        receive, over = self._pull.recv_multipart, monotonic() + _TURN
        while monotonic() < over and not self._is_closed:
            coming: Any = receive()
            if not coming.done():
                self._coming = coming
                coming.add_done_callback(self._read_outputs)
                break
            self._take_outputs(coming.result(), now)
        self._wake_readers()

    def _wake_readers(self) -> None:
        for boot, columns in self._columns.items():
            if columns.steps:
                self._give(boot, columns)
        self.wakes.run()

    def _take_outputs(self, frames: list[bytes], now: float) -> None:
        try:
            message = self._decoder.message(frames)
        except Malformed as error:
            self._note(error)
            self._give_up(frames, now)
            return
        match message:
            case Outputs():
                counts, departure = self.roster.outputs(message, now)
                if counts:
                    self._take_step(message)
                elif departure is None:
                    self.streams.stale += len(message.tokens) + len(message.deltas)
                self._depart(departure)
            case Ready():
                if self.roster.ready(message, now) is not None:
                    self._wake_arrivals()
            case Leaving():
                if message.server == self.boot and (who := self.roster.of(message.boot)):
                    self._depart(self.roster.leave(who.identity, message.reason), logging.INFO)

    def _give_up(self, frames: list[bytes], now: float) -> None:
        """Outputs can't be read: what is lost with them would be silence. Their engine is gone."""
        match first_numbers(frames[0], 5):
            case [21, server, boot, life, seq]:  # Outputs
                outputs = Outputs[Any](server, boot, life, seq, [], [])
            case _:
                return
        counts, departure = self.roster.outputs(outputs, now)
        if counts:
            self._leave_unread(outputs)
        self._depart(departure)

    def _leave_unread(self, outputs: Outputs[Any]) -> None:
        if who := self.roster.of(outputs.boot):
            self._depart(self.roster.leave(who.identity, f"outputs {outputs.seq} can't be read"))

    def _take_step(self, outputs: Outputs[msgspec.Raw]) -> None:
        boot = outputs.boot
        columns = self._columns.get(boot)
        if columns is None:
            columns = self._columns[boot] = Columns()
        try:
            if not columns.have(outputs.numbers):
                self._give(boot, columns)
                columns.begin(outputs.numbers)
            columns.add(outputs.tokens)
        except Malformed as error:
            self._note(error)
            self._leave_unread(outputs)
            return
        if not (outputs.deltas or outputs.ended or outputs.results):
            return
        self._give(boot, columns, outputs.deltas)
        if outputs.ended:
            self.wakes.add([each.waiter for each in self.streams.end(boot, outputs.ended)])
        for result in outputs.results:
            call = self.calls.get(result.number)
            if call is not None and call[0] == boot and not call[2].done():
                call[2].set_result(result)
        self._has_less_work(boot)

    def _give(self, boot: int, columns: Columns, deltas: Sequence[Delta] = ()) -> None:
        """To its streams what an engine has made, and of the last step the deltas."""
        woken, overflown = self.streams.deliver(boot, columns.numbers, columns.take(), deltas)
        if overflown:
            self._abort(overflown)
        self.wakes.add([stream.waiter for stream in woken])

    def _has_less_work(self, boot: int) -> None:
        if not self.streams.load(boot):
            self.roster.has_work(boot, False, self.loop.time())

    async def _read_control(self) -> None:
        receive = self._router.recv_multipart
        while True:
            self._take_control(await receive())

    def _take_control(self, frames: list[bytes]) -> None:
        routing_id = frames[0]
        identity = Identity.of(routing_id)
        try:
            message = decode_with(self._control, frames[-1])
        except Malformed as error:
            self._note(error)
            return
        if identity is None:
            self._note(Malformed(routing_id, "it is no routing id of an engine"))
            return
        now = self.loop.time()
        match message:
            case Hello():
                answer, departure = self.roster.hello(identity, message, now)
                self._depart(departure)
                self._take_in(identity, answer)
                self.say(routing_id, answer)
            case Beat():
                seen, to_start = self.roster.beat(identity, message, now)
                self.say(routing_id, seen)
                if to_start is not None:
                    self.say(to_start.takes, Start(self.boot))  # if it is there yet
        self._arm()

    def _take_in(self, identity: Identity, answer: Welcome | Refusal) -> None:
        was_refused = self.refusals.pop(identity.engine, None) is not None
        if isinstance(answer, Refusal):
            error = mismatch(answer, engine=False)
            if not was_refused and len(self.refusals) < _REFUSALS:
                _log.warning("engine %s is refused: %s", identity.engine, error)
            self.refusals[identity.engine] = error
            if len(self.refusals) > _REFUSALS:
                del self.refusals[next(iter(self.refusals))]

    async def _read_records(self) -> None:
        """A connection that broke is the end of its engine, once its last outputs are here."""
        async for record in self._records:
            identity = Identity.of(record.routing_id)
            if identity is not None:
                self.loop.call_later(_LAST_OUTPUTS, self._lose, identity, None)

    def _lose(self, identity: Identity, seq: int | None) -> None:
        """Give an engine up, unless outputs have come since the last look: more may be on its way.

        Args:
            identity: whose connection broke.
            seq: what was expected then; ``None``: this is the first look.
        """
        member = self.roster.of(identity.boot)
        if member is None or self._is_closed:
            return
        if member.next_seq == seq:
            self._depart(self.roster.leave(identity, "its connection broke"))
        else:
            self.loop.call_later(_LAST_OUTPUTS, self._lose, identity, member.next_seq)

    def _depart(self, departure: Departure | None, level: int = logging.WARNING) -> None:
        if departure is None:
            return
        identity, reason = departure.identity, departure.reason
        if (columns := self._columns.pop(identity.boot, None)) is not None:
            self._give(identity.boot, columns)
        _log.log(level, "engine %s is gone: %s", identity.engine, reason)
        self._wake(self.streams.engine_gone(identity.boot, reason))
        for boot, name, answer in self.calls.values():
            if boot == identity.boot and not answer.done():
                answer.set_exception(
                    EngineDead(identity.engine, f"{reason}; it was asked for {name!r}")
                )

    def _note(self, error: Malformed) -> None:
        self.malformed += 1
        self.last_malformed = error
        if self.malformed & (self.malformed - 1) == 0:  # the first, the second, the fourth ...
            _log.warning("message %d that can't be read: %s", self.malformed, error)

    def _wake(self, streams: Iterable[OpenStream]) -> None:
        """Wake their readers, in the loop's next turn: this may be a task's."""
        self.wakes.soon([stream.waiter for stream in streams])

    def _wake_arrivals(self) -> None:
        for arrival in self._arrivals:
            if not arrival.done():
                arrival.set_result(None)

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
        deadlines = (self.roster.next_deadline(), self.streams.next_deadline())
        soonest = min((each for each in deadlines if each is not None), default=None)
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
        if turns < _LISTEN or (is_reading and turns < _LISTEN_LONGEST):
            self.loop.call_soon(self._listen, turns + 1)
            return
        self._is_listening = False
        if self._is_closed:
            return
        now = self.loop.time()
        for departure in self.roster.handle_deadline(now, end_hung=self._end_hung):
            self._depart(departure)
        late = self.streams.handle_deadline(now)
        if late:
            self._abort(late)
            self._wake(late)
        self._arm()


def _bind(socket: Any, endpoint: str, descriptor: int) -> str:
    """Bind, and return where."""
    socket.ipv6 = "[" in endpoint
    if descriptor != -1:
        socket.use_fd = descriptor
    socket.bind(endpoint)
    bound: str = socket.last_endpoint.decode()
    return bound


def _look_at(sent: asyncio.Future[Any]) -> None:
    """Its error is known, so that asyncio does not speak of it."""
    if not sent.cancelled():
        sent.exception()
