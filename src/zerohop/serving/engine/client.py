"""The API server's side: a stream for each request, on an event loop.

    async with EngineClient(endpoint) as client:
        await client.wait_for_engines(1)
        async for delta in client.generate({"prompt_token_ids": [1, 2, 3]}, deadline=30):
            ...

What is behind it is in :mod:`zerohop.serving.engine.channel`.
"""

from __future__ import annotations

import asyncio
import contextlib
from operator import index
from typing import Any

from zerohop.serving.asyncio_closing import AsyncClosing
from zerohop.serving.engine.channel import Channel
from zerohop.serving.engine.liveness import Patience
from zerohop.serving.engine.messages import Request, UtilityCall
from zerohop.serving.engine.waking import Wait
from zerohop.serving.errors import DeadlineExceeded, Malformed, RequestRefused, UtilityFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from zerohop.serving.engine.liveness import EngineState
    from zerohop.serving.engine.messages import Delta, UtilityResult
    from zerohop.serving.engine.roster import EngineStatus, Member
    from zerohop.serving.engine.streams import OpenStream
    from zerohop.serving.errors import ProtocolMismatch

__all__ = ["EngineClient", "RequestStream"]

_NO_ENGINE = "no engine is ready; wait_for_engines() waits for one"
_YEAR = 366 * 24 * 3600.0  # seconds: timers take no more than some of them, and nobody waits longer


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

    __slots__ = ("__weakref__", "_channel", "_stream")

    def __init__(self, channel: Channel, stream: OpenStream) -> None:
        self._channel, self._stream = channel, stream
        stream.waiter = Wait(channel.wakes)

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
        while not (stream.tokens or stream.deltas):
            if stream.ended:
                error, stream.error = stream.error, None
                if error is not None:
                    raise error
                raise StopAsyncIteration
            try:
                await stream.waiter
            except asyncio.CancelledError:
                self._channel.abandon(stream)
                raise
        delta = stream.take()
        assert delta is not None
        return delta

    async def aclose(self) -> None:
        """Abort the request, if it has not ended."""
        self._channel.abandon(self._stream)

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
                self._channel.loop.call_soon_threadsafe(self._channel.abandon, self._stream)


class EngineClient(AsyncClosing):
    """Gives requests to engines, and brings back what they make. On the running event loop.

    Where it is closed it says goodbye to the engines, and every open stream and call ends as
    ``EngineDead``.

    Args:
        endpoint: where requests are bound, which engines connect to. Unless given: a short ``ipc``
            endpoint of its own. ``tcp://127.0.0.1:*`` takes a free port; see :attr:`endpoint`.
        outputs: where outputs are bound. Unless given: beside the requests.
        name: by which engines know it, in their logs.
        patience: when an engine is hung, or gone.
        default_deadline: seconds that a request has, where it isn't told; ``None``: no limit.
        requests_limit: messages that may wait for one engine; with more it is overloaded.
        stream_limit: tokens, or deltas with something else in them, that may wait to be read, of
            one stream.
        end_hung: who is hung is taken for gone: its requests end.
        requests_fd: a listening descriptor to use for ``endpoint`` (option ``USE_FD``). It stays
            the caller's to close.
        outputs_fd: likewise for ``outputs``.

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
        requests_limit: int = 10_000,
        stream_limit: int = 65_536,
        end_hung: bool = False,
        requests_fd: int = -1,
        outputs_fd: int = -1,
    ) -> None:
        self._default_deadline = None if default_deadline is None else _seconds(default_deadline)
        self._count = 0
        self._channel = Channel(
            endpoint,
            outputs,
            name,
            patience or Patience(),
            requests_limit=requests_limit,
            stream_limit=stream_limit,
            end_hung=end_hung,
            requests_fd=requests_fd,
            outputs_fd=outputs_fd,
        )

    async def __aenter__(self) -> Self:
        self._channel.start()
        return self

    async def _close(self) -> None:
        await self._channel.aclose()

    # What is known

    @property
    def boot(self) -> int:
        """Its boot token."""
        return self._channel.boot

    @property
    def endpoint(self) -> str:
        """Where requests are bound: what engines are told."""
        return self._channel.endpoint

    @property
    def outputs_endpoint(self) -> str:
        """Where outputs are bound; engines learn it by themselves."""
        return self._channel.outputs_endpoint

    @property
    def malformed(self) -> int:
        """How many messages could not be read."""
        return self._channel.malformed

    @property
    def last_malformed(self) -> Malformed | None:
        """The last of them, with its bytes."""
        return self._channel.last_malformed

    @property
    def stale(self) -> int:
        """How many deltas came for requests that had ended, or from another life of an engine."""
        return self._channel.streams.stale

    @property
    def refusals(self) -> dict[str, ProtocolMismatch]:
        """Why engines were not taken, by their ids."""
        return dict(self._channel.refusals)

    @property
    def engines(self) -> dict[str, EngineStatus]:
        """The engines that have introduced themselves and are not gone, by id."""
        load = self._channel.streams.load
        return {each.identity.engine: each.status(load) for each in self._channel.roster.members()}

    @property
    def health(self) -> dict[str, EngineState]:
        """The state of each of them."""
        members = self._channel.roster.members()
        return {each.identity.engine: each.liveness.state for each in members}

    async def wait_for_engines(self, count: int = 1, timeout: float | None = None) -> None:
        """Wait until some engines are ready.

        Args:
            count: how many.
            timeout: seconds.

        Raises:
            DeadlineExceeded: they were not, within the time.
            RuntimeError: the client is not running, or was closed meanwhile.
        """
        self._channel.check_running()
        roster = self._channel.roster
        try:
            async with asyncio.timeout(timeout):
                while sum(member.slot is not None for member in roster.members()) < count:
                    await self._channel.arrival()
        except TimeoutError:
            what = f"waiting for {count} engines"
            raise DeadlineExceeded(what, timeout or 0, hint=self._why_not()) from None

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
            TypeError: the priority is no whole number, or the deadline no number.
            ValueError: the deadline is not a number: ``nan``.
            EngineOverloaded: too many messages wait for the engine.
            EngineDead: the engine has just gone.
            Unencodable: something in the payload has no form on the wire.
            RuntimeError: the client is not running.
        """
        member = self._member(engine)
        channel = self._channel
        number = self._number(member)
        seconds = self._default_deadline if deadline is None else _seconds(deadline)
        priority = index(priority)
        lifted = channel.encoder.lift(payload)
        channel.send(member, channel.encoder.frames(Request(number, lifted, priority, seconds)))
        now = channel.loop.time()
        identity = member.identity
        stream = channel.streams.open(number, identity.engine, identity.boot, now, seconds)
        member.liveness.has_work(True, now)
        channel.arm_for(seconds, now)
        return RequestStream(channel, stream)

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
            RuntimeError: the client is not running.
        """
        if not isinstance(name, str):
            raise TypeError(f"a utility is called by a str, not {name!r}")
        seconds = self._default_deadline if timeout is None else _seconds(timeout)
        channel = self._channel
        channel.check_running()
        if engine is None and len(channel.roster.members()) > 1:
            raise RequestRefused(f"call of {name!r}", "there are several engines; name one")
        member = self._member(engine)
        number = self._number(member)
        arguments = [channel.encoder.lift(each) for each in args]
        channel.send(member, channel.encoder.frames(UtilityCall(number, name, arguments)))
        answer: asyncio.Future[UtilityResult] = channel.loop.create_future()
        channel.calls[number] = (member.identity.boot, name, answer)
        try:
            async with asyncio.timeout(seconds):
                result = await answer
        except TimeoutError:
            raise DeadlineExceeded(f"utility {name!r}", seconds or 0) from None
        finally:
            channel.calls.pop(number, None)
        if result.failure is not None:
            raise UtilityFailed(name, result.failure)
        return result.result

    def _member(self, engine: str | None) -> Member:
        channel = self._channel
        channel.check_running()
        if engine is None:
            member = channel.roster.choose(channel.streams.load)
        else:
            member = channel.roster.member(engine)
        if member is None or member.slot is None:
            why = _NO_ENGINE if engine is None else f"engine {engine} is not ready"
            raise RequestRefused(f"{self._count + 1:x}", why, hint=self._why_not())
        return member

    def _number(self, member: Member) -> int:
        self._count += 1
        return self._channel.roster.number(member, self._count)

    def _why_not(self) -> str | None:
        """What is known of engines that are not ready."""
        if not self._channel.refusals:
            return None
        return "; ".join(
            f"engine {name} was not taken: {why}" for name, why in self._channel.refusals.items()
        )


def _seconds(given: float) -> float:
    """Return a time as it is sent, and as timers take it."""
    seconds = float(given)
    if seconds != seconds:
        raise ValueError("a time in seconds is given, and nan is none")
    return min(seconds, _YEAR)
