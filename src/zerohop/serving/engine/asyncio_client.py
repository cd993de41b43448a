"""The API server's side: a stream for each request, on an event loop.

    async with EngineClient(endpoint) as client:
        await client.wait_for_engines(1)
        async for delta in client.generate({"prompt_token_ids": [1, 2, 3]}, deadline=30):
            ...

What is behind it is in :mod:`zerohop.serving.engine.asyncio_channel`.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from zerohop.serving.arguments import seconds, whole
from zerohop.serving.asyncio_closing import AsyncClosing
from zerohop.serving.engine.asyncio_channel import AsyncioChannel
from zerohop.serving.engine.requesting import Requesting, result_of
from zerohop.serving.engine.waking import Wait
from zerohop.serving.errors import DeadlineExceeded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from zerohop.serving.engine.messages import Delta
    from zerohop.serving.engine.streams import OpenStream

__all__ = ["EngineClient", "RequestStream"]


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

    def __init__(self, channel: AsyncioChannel, stream: OpenStream) -> None:
        self._channel, self._stream = channel, stream

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


class EngineClient(Requesting[AsyncioChannel], AsyncClosing):
    """Gives requests to engines, and brings back what they make. On the running event loop.

    It runs within its ``async with``. Where it is closed it says goodbye to the engines, and every
    open stream and call ends as ``EngineDead``.
    """

    _channel_type = AsyncioChannel

    async def __aenter__(self) -> Self:
        self._channel.start()
        return self

    async def _close(self) -> None:
        await self._channel.aclose()

    async def wait_for_engines(self, count: int = 1, timeout: float | None = None) -> None:
        """Wait until some engines are ready.

        Args:
            count: how many.
            timeout: seconds.

        Raises:
            DeadlineExceeded: they were not, within the time.
            RuntimeError: the client is not running, or was closed meanwhile.
            TypeError, ValueError: an argument is of another kind, or no time.
        """
        whole("count", count)
        given = None if timeout is None else seconds("timeout", timeout)
        channel = self._channel
        channel.check_running()
        try:
            async with asyncio.timeout(given):
                while not channel.is_ready(count):
                    await channel.arrival()
        except TimeoutError:
            raise self._too_few(count, given) from None

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
            TypeError, ValueError: an argument is of another kind, or no time.
            EngineOverloaded: too many messages wait for the engine.
            EngineDead: the engine that was named has just gone.
            Unencodable: something in the payload has no form on the wire.
            RuntimeError: the client is not running.
        """
        channel = self._channel
        channel.check_running()
        limit, priority, engine = self._asked_for(deadline, priority, engine)
        lifted, now = channel.lift(payload), channel.loop.time()
        stream = channel.open(lifted, limit, priority, engine, Wait(channel.wakes), now)
        channel.arm_for(limit, now)
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
            EngineOverloaded: too many messages wait for the engine.
            RequestRefused: no engine is ready, or not this one, or it must be named.
            Unencodable: an argument has no form on the wire.
            TypeError, ValueError: an argument is of another kind, or no time.
            RuntimeError: the client is not running.
        """
        limit, engine = self._called(name, engine, timeout)
        channel = self._channel
        channel.check_running()
        answer = channel.loop.create_future()
        number, call = channel.ask(name, [*map(channel.lift, args)], engine, answer)
        try:
            async with asyncio.timeout(limit):
                await answer
        except TimeoutError:
            raise DeadlineExceeded(f"utility {name!r}", limit or 0) from None
        finally:
            channel.exchange.calls.pop(number, None)
        return result_of(call)
