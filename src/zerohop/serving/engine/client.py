"""The API server's side: a stream for each request, on an event loop.

    async with EngineClient(endpoint) as client:
        await client.wait_for_engines(1)
        async for delta in client.generate({"prompt_token_ids": [1, 2, 3]}, deadline=30):
            ...

A ROUTER for requests and a PULL for outputs, both bound here: engines come and go. One task reads
each of them, and one timer watches deadlines and engines. Which streams there are, who is alive and
what that means is decided in :mod:`~zerohop.serving.engine.streams` and
:mod:`~zerohop.serving.engine.roster`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import secrets
from functools import partial
from typing import Any

import msgspec

import zerohop as zmq
import zerohop.asyncio
from zerohop.serving.addresses import ipc_endpoint, outputs_beside
from zerohop.serving.codec import decode_with
from zerohop.serving.engine.buffers import PayloadDecoder, PayloadEncoder
from zerohop.serving.engine.handshake import Identity, mismatch
from zerohop.serving.engine.liveness import EngineState, Patience
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
    Request,
    Start,
    UtilityCall,
)
from zerohop.serving.engine.roster import EngineStatus, Roster
from zerohop.serving.engine.streams import StreamTable
from zerohop.serving.errors import (
    DeadlineExceeded,
    EngineDead,
    EngineOverloaded,
    Malformed,
    RequestRefused,
    UtilityFailed,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType
    from typing import Self

    from zerohop.serving.engine.messages import Delta, UtilityResult, Welcome
    from zerohop.serving.engine.roster import Departure, Member
    from zerohop.serving.engine.streams import OpenStream
    from zerohop.serving.errors import ProtocolMismatch

__all__ = ["EngineClient", "RequestStream"]

_log = logging.getLogger(__name__)

_HWM = 10_000  # messages that may wait for one engine, or be waiting from one
_LAST_OUTPUTS = 0.02  # seconds that what an engine has said may take to come, once it is gone
_LINGER_MS = 200  # for the goodbye
_WATCHED = zmq.EVENT_DISCONNECTED
_NO_ENGINE = "no engine is ready; wait_for_engines() waits for one"


class RequestStream:
    """What comes for one request: ``async for delta in stream``. For one reader.

    Ends after the delta that has ``finish``. What was made since the last delta was taken comes in
    one, unless it has an ``extra``. Who leaves early aborts the request in the engine: by
    :meth:`aclose`, by ``async with``, by letting go of the stream, or where the task that waits for
    the next delta is cancelled.

    Raises (while iterating):
        EngineDead: the engine is gone.
        DeadlineExceeded: its time is over.
        RequestRefused: the engine does not take it.
        EngineOverloaded: the engine has too many.
        SlowConsumer: this stream, or the whole API server, read too slowly.
    """

    __slots__ = ("__weakref__", "_client", "_stream")

    def __init__(self, client: EngineClient, stream: OpenStream) -> None:
        self._client, self._stream = client, stream

    @property
    def engine(self) -> str:
        """Id of the engine that has the request."""
        return self._stream.engine

    @property
    def number(self) -> int:
        """Of the request, in that engine."""
        return self._stream.number

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delta:
        stream = self._stream
        while not stream.deltas:
            if stream.ended:
                error, stream.error = stream.error, None
                if error is not None:
                    raise error
                raise StopAsyncIteration
            if stream.waiter is not None:
                raise RuntimeError("another task waits for this stream already")
            stream.waiter = waiter = self._client._loop.create_future()
            try:
                await waiter
            except asyncio.CancelledError:
                self._client._abandon(stream)
                raise
            finally:
                stream.waiter = None
        return stream.deltas.popleft()

    async def aclose(self) -> None:
        """Abort the request, if it has not ended."""
        self._client._abandon(self._stream)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        """Abort what nobody can read any more. On any thread: it may be a garbage collection."""
        if not self._stream.ended:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and so has the request
                self._client._loop.call_soon_threadsafe(self._client._abandon, self._stream)


class EngineClient:
    """Gives requests to engines, and brings back what they make. On the running event loop.

    Args:
        endpoint: where requests are bound, which engines connect to. Unless given: a short ``ipc``
            endpoint of its own. ``tcp://127.0.0.1:*`` takes a free port; see :attr:`endpoint`.
        outputs: where outputs are bound. Unless given: beside the requests.
        name: by which engines know it, in their logs.
        patience: when an engine is hung, or gone.
        default_deadline: seconds that a request has, where it isn't told; ``None``: no limit.
        stream_limit: tokens, or deltas with something else in them, that may wait to be read, of
            one stream.
        end_hung: who is hung is taken for gone: its requests end.
        requests_fd: a listening descriptor to use for ``endpoint`` (option ``USE_FD``). It stays
            the caller's to close.
        outputs_fd: likewise for ``outputs``.

    Attributes:
        boot: its boot token.
        endpoint: where requests are bound.
        outputs_endpoint: where outputs are bound.
        malformed: messages that could not be read.
        last_malformed: the last of them, with its bytes.
        refusals: by engine, why it was not taken.

    Raises:
        ZMQError: an endpoint can't be bound.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        outputs: str | None = None,
        name: str = "api",
        patience: Patience | None = None,
        default_deadline: float | None = 600.0,
        stream_limit: int = 65_536,
        end_hung: bool = False,
        requests_fd: int = -1,
        outputs_fd: int = -1,
    ) -> None:
        self.boot = secrets.randbits(63)
        self.malformed = 0
        self.last_malformed: Malformed | None = None
        self.refusals: dict[str, ProtocolMismatch] = {}
        self._default_deadline, self._end_hung = default_deadline, end_hung
        self._context = zerohop.asyncio.Context()
        try:
            self._router = self._context.socket(zmq.ROUTER)
            self._router.router_mandatory = True  # or what has no room is thrown away
            self._router.sndhwm = self._router.rcvhwm = _HWM
            self._pull = self._context.socket(zmq.PULL)
            self._pull.rcvhwm = _HWM
            self._records = self._router.monitor_records(_WATCHED)
            place = endpoint or ipc_endpoint(f"engines of {os.getpid()}: {self.boot}")
            self.endpoint = _bind(self._router, place, requests_fd)
            place = outputs or outputs_beside(self.endpoint)
            self.outputs_endpoint = _bind(self._pull, place, outputs_fd)
        except BaseException:
            self._context.destroy(linger=0)
            raise
        patience = patience or Patience()
        self._hung_after = patience.hung_after
        self._roster = Roster(name, self.boot, self.outputs_endpoint, patience)
        self._streams = StreamTable(stream_limit)
        self._calls: dict[int, tuple[int, str, asyncio.Future[UtilityResult]]] = {}
        self._aborts: dict[bytes, list[int]] = {}
        self._count = 0
        self._encoder = PayloadEncoder()
        self._control = msgspec.msgpack.Decoder(FromEngine).decode
        self._decoder = PayloadDecoder(FromEngineOutputs)
        self._tasks: list[asyncio.Task[None]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._arrivals: set[asyncio.Future[None]] = set()
        self._is_closed = False

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        readers = (self._read_outputs(), self._read_control(), self._read_records())
        self._tasks = [self._loop.create_task(each, name="zerohop-engines") for each in readers]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Say goodbye to the engines and end; every open stream and call ends as ``EngineDead``."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        for member in self._roster.members():
            self._say(member.identity.routing_id(b"p"), Goodbye("it was closed"))
            self._depart(self._roster.leave(member.identity, "this API server was closed"))
        for waiting in self._arrivals:
            waiting.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._records.close()
        await self._context.aclose(linger=_LINGER_MS)

    # Engines

    @property
    def engines(self) -> dict[str, EngineStatus]:
        """The engines that have introduced themselves and are not gone, by id."""
        return {member.identity.engine: self._status(member) for member in self._roster.members()}

    @property
    def health(self) -> dict[str, EngineState]:
        """The state of each of them."""
        return {m.identity.engine: m.liveness.state for m in self._roster.members()}

    async def wait_for_engines(self, count: int = 1, timeout: float | None = None) -> None:
        """Wait until some engines are ready.

        Args:
            count: how many.
            timeout: seconds.

        Raises:
            DeadlineExceeded: they were not, within the time.
        """
        try:
            async with asyncio.timeout(timeout):
                while sum(member.slot is not None for member in self._roster.members()) < count:
                    arrival = self._loop.create_future()
                    self._arrivals.add(arrival)
                    try:
                        await arrival
                    finally:
                        self._arrivals.discard(arrival)
        except TimeoutError:
            raise DeadlineExceeded(
                f"waiting for {count} engines",
                timeout or 0,
                hint=self._why_not(),
            ) from None

    # Requests

    def generate(
        self,
        payload: Any,
        *,
        deadline: float | None = None,
        priority: int = 0,
        engine: str | None = None,
    ) -> RequestStream:
        """Give a request to an engine, and return what comes of it.

        Args:
            payload: for the engine: what msgspec can encode, with arrays and large bytes in it.
                Buffers must stay as they are until the request has ended.
            deadline: seconds after which it ends at the latest.
            priority: passed through to the engine.
            engine: the id of the one to have it; the least loaded one unless given.

        Raises:
            RequestRefused: no engine is ready, or not this one.
            EngineOverloaded: too many messages wait for the engine.
            EngineDead: the engine has just gone.
            Unencodable: something in the payload has no form on the wire.
        """
        member = self._member(engine)
        self._count += 1
        number = self._roster.number(member, self._count)
        seconds = self._default_deadline if deadline is None else deadline
        payload = self._encoder.lift(payload)
        frames = self._encoder.frames(Request(number, payload, priority, seconds))
        self._send(member, frames)
        now = self._loop.time()
        boot = member.identity.boot
        stream = self._streams.open(number, member.identity.engine, boot, now, seconds)
        member.liveness.has_work(True, now)
        timer = self._timer
        soonest = now + min(self._hung_after, math.inf if seconds is None else seconds)
        if timer is None or soonest < timer.when():
            self._arm()
        return RequestStream(self, stream)

    async def call(
        self, name: str, *args: Any, engine: str | None = None, timeout: float | None = None
    ) -> Any:
        """Call a utility of an engine.

        Args:
            name: of the utility.
            args: its arguments.
            engine: the engine's id; there must be just one engine unless it is given.
            timeout: seconds; the client's ``default_deadline`` unless given.

        Raises:
            UtilityFailed: it raised there, or there is none of that name.
            DeadlineExceeded: it did not answer in time.
            EngineDead: the engine is gone.
            RequestRefused: no engine is ready, or not this one, or it must be named.
            Unencodable: an argument has no form on the wire.
        """
        if engine is None and len(self._roster.members()) > 1:
            raise RequestRefused(f"call of {name!r}", "there are several engines; name one")
        member = self._member(engine)
        self._count += 1
        number = self._roster.number(member, self._count)
        arguments = [self._encoder.lift(each) for each in args]
        self._send(member, self._encoder.frames(UtilityCall(number, name, arguments)))
        answer: asyncio.Future[UtilityResult] = self._loop.create_future()
        self._calls[number] = (member.identity.boot, name, answer)
        seconds = self._default_deadline if timeout is None else timeout
        try:
            async with asyncio.timeout(seconds):
                result = await answer
        except TimeoutError:
            raise DeadlineExceeded(f"utility {name!r}", seconds or 0) from None
        finally:
            self._calls.pop(number, None)
        if result.failure is not None:
            raise UtilityFailed(name, result.failure)
        return result.result

    def _member(self, engine: str | None) -> Member:
        member = self._roster.choose(self._streams.load) if engine is None else None
        if engine is not None:
            member = self._roster.member(engine)
        if member is None or member.slot is None:
            why = _NO_ENGINE if engine is None else f"engine {engine} is not ready"
            raise RequestRefused(f"{self._count + 1:x}", why, hint=self._why_not())
        return member

    def _why_not(self) -> str | None:
        """What is known of engines that are not ready."""
        if not self.refusals:
            return None
        return "; ".join(
            f"engine {name} was not taken: {why}" for name, why in self.refusals.items()
        )

    def _send(self, member: Member, frames: list[Any]) -> None:
        """Send to an engine's loop, or raise.

        Raises:
            EngineOverloaded: there is no room.
            EngineDead: it is not there.
        """
        message = [member.takes, *frames]
        sent: Any = self._router.send_multipart(message, zmq.DONTWAIT, copy=len(frames) == 1)
        if not sent.done():  # it failed, and the turn is over: this is told in the next
            sent.add_done_callback(partial(self._not_sent, member.identity))
            return
        match sent.exception():
            case None:
                return
            case zmq.Again():
                raise EngineOverloaded(member.identity.engine, _HWM)
            case error:
                raise EngineDead(member.identity.engine, f"no connection: {error}")

    def _say(self, routing_id: bytes, message: Any) -> bool:
        """Send a message that may be lost; return whether it is on its way."""
        frames = [routing_id, *self._encoder.frames(message)]
        sent: Any = self._router.send_multipart(frames, zmq.DONTWAIT)
        if not sent.done():
            sent.add_done_callback(_look_at)
            return False
        return sent.exception() is None

    def _not_sent(self, identity: Identity, sent: asyncio.Future[Any]) -> None:
        """A request is lost: so is the engine, or somebody would wait for it."""
        if not sent.cancelled() and (error := sent.exception()) is not None and not self._is_closed:
            self._depart(self._roster.leave(identity, f"a request did not reach it: {error}"))

    def _abandon(self, stream: OpenStream) -> None:
        """Nobody reads it any more."""
        if self._streams.abort(stream):
            self._abort([stream])

    def _abort(self, streams: Iterable[OpenStream]) -> None:
        """Tell the engines, in one message each for all that end in this turn of the loop."""
        if not self._aborts:
            self._loop.call_soon(self._send_aborts)
        for stream in streams:
            takes = Identity(stream.engine, stream.boot).routing_id(b"r")
            self._aborts.setdefault(takes, []).append(stream.number)
            self._has_less_work(stream.boot)

    def _send_aborts(self) -> None:
        aborts, self._aborts = self._aborts, {}
        if self._is_closed:
            return
        for takes, numbers in aborts.items():
            if not self._say(takes, Abort(numbers)):
                _log.warning("%d aborts did not reach %s", len(numbers), Identity.of(takes))

    # What engines say

    async def _read_outputs(self) -> None:
        receive = self._pull.recv_multipart
        while True:
            self._take_outputs(await receive())

    def _take_outputs(self, frames: list[bytes]) -> None:
        try:
            message = self._decoder.message(frames)
        except Malformed as error:
            self._note(error)
            return
        now = self._loop.time()
        match message:
            case Outputs():
                counts, departure = self._roster.outputs(message, now)
                if counts:
                    self._deliver(message)
                elif departure is None:
                    self._streams.stale += len(message.deltas)
                self._depart(departure)
            case Ready():
                if self._roster.ready(message, now) is not None:
                    self._wake_arrivals()
            case Leaving():
                if message.server == self.boot and (who := self._roster.of(message.boot)):
                    self._depart(self._roster.leave(who.identity, message.reason))

    def _deliver(self, outputs: Outputs) -> None:
        streams = self._streams
        woken, overflown = streams.deliver(outputs.boot, outputs.deltas)
        if outputs.ended:
            woken += streams.end(outputs.boot, outputs.ended)
        if overflown:
            self._abort(overflown)
        _wake(woken)
        for result in outputs.results:
            call = self._calls.get(result.number)
            if call is not None and call[0] == outputs.boot and not call[2].done():
                call[2].set_result(result)
        self._has_less_work(outputs.boot)

    def _has_less_work(self, boot: int) -> None:
        if not self._streams.load(boot):
            self._roster.has_work(boot, False, self._loop.time())

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
        now = self._loop.time()
        match message:
            case Hello():
                answer, departure = self._roster.hello(identity, message, now)
                self._depart(departure)
                self._take_in(identity, answer)
                self._say(routing_id, answer)
            case Beat():
                seen, to_start = self._roster.beat(identity, message, now)
                self._say(routing_id, seen)
                if to_start is not None:
                    self._say(to_start.takes, Start(self.boot))  # if it is there yet
        self._arm()

    def _take_in(self, identity: Identity, answer: Welcome | Refusal) -> None:
        if isinstance(answer, Refusal):
            if identity.engine not in self.refusals:
                _log.warning(
                    "engine %s is refused: %s", identity.engine, mismatch(answer, engine=False)
                )
            self.refusals[identity.engine] = mismatch(answer, engine=False)
        else:
            self.refusals.pop(identity.engine, None)

    async def _read_records(self) -> None:
        """A connection that broke is the end of its engine, once its last outputs are here."""
        async for record in self._records:
            identity = Identity.of(record.routing_id)
            if identity is not None:
                self._loop.call_later(_LAST_OUTPUTS, self._lose, identity, None)

    def _lose(self, identity: Identity, seq: int | None) -> None:
        """Give an engine up, unless outputs have come since the last look: more may be on its way.

        Args:
            identity: whose connection broke.
            seq: what was expected then; ``None``: this is the first look.
        """
        member = self._roster.of(identity.boot)
        if member is None or self._is_closed:
            return
        if member.next_seq == seq:
            self._depart(self._roster.leave(identity, "its connection broke"))
        else:
            self._loop.call_later(_LAST_OUTPUTS, self._lose, identity, member.next_seq)

    def _depart(self, departure: Departure | None) -> None:
        if departure is None:
            return
        identity, reason = departure.identity, departure.reason
        _log.warning("engine %s is gone: %s", identity.engine, reason)
        _wake(self._streams.engine_gone(identity.boot, reason))
        for boot, name, answer in self._calls.values():
            if boot == identity.boot and not answer.done():
                answer.set_exception(
                    EngineDead(identity.engine, f"{reason}; it was asked for {name!r}")
                )

    def _note(self, error: Malformed) -> None:
        self.malformed += 1
        self.last_malformed = error
        if self.malformed & (self.malformed - 1) == 0:  # the first, the second, the fourth ...
            _log.warning("message %d that can't be read: %s", self.malformed, error)

    def _wake_arrivals(self) -> None:
        for arrival in self._arrivals:
            if not arrival.done():
                arrival.set_result(None)

    def _status(self, member: Member) -> EngineStatus:
        identity = member.identity
        return EngineStatus(
            identity.engine,
            member.liveness.state,
            member.info,
            self._streams.load(identity.boot),
            member.work,
        )

    # Time

    def _arm(self) -> None:
        """Have the timer go off at the next deadline; it may go off too soon, never too late."""
        deadlines = (self._roster.next_deadline(), self._streams.next_deadline())
        soonest = min((each for each in deadlines if each is not None), default=None)
        if soonest is None or self._is_closed:
            return
        if self._timer is not None:
            if self._timer.when() <= soonest:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(soonest, self._tick)

    def _tick(self) -> None:
        self._timer = None
        now = self._loop.time()
        for departure in self._roster.handle_deadline(now, end_hung=self._end_hung):
            self._depart(departure)
        late = self._streams.handle_deadline(now)
        if late:
            self._abort(late)
            _wake(late)
        self._arm()


def _bind(socket: Any, endpoint: str, descriptor: int) -> str:
    """Bind, and return where."""
    socket.ipv6 = "[" in endpoint
    if descriptor != -1:
        socket.use_fd = descriptor
    socket.bind(endpoint)
    bound: str = socket.last_endpoint.decode()
    return bound


def _wake(streams: Iterable[OpenStream]) -> None:
    for stream in streams:
        waiter = stream.waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


def _look_at(sent: asyncio.Future[Any]) -> None:
    """Its error is known, so that asyncio does not speak of it."""
    if not sent.cancelled():
        sent.exception()
