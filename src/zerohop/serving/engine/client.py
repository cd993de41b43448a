"""The API server's side for threads: a stream for each request, read by whoever has it.

    with SyncEngineClient(endpoint) as client:
        client.wait_for_engines(1)
        for delta in client.generate({"prompt_token_ids": [1, 2, 3]}, deadline=30):
            ...

What is behind it is in :mod:`zerohop.serving.engine.channel_thread`.
"""

from __future__ import annotations

import time
from typing import Any

from zerohop.serving.arguments import seconds, whole
from zerohop.serving.closing import Closing, closed_error
from zerohop.serving.engine.channel_thread import ChannelThread
from zerohop.serving.engine.readers import Gate
from zerohop.serving.engine.requesting import Requesting, result_of
from zerohop.serving.errors import DeadlineExceeded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from zerohop.serving.engine.messages import Delta
    from zerohop.serving.engine.streams import OpenStream

__all__ = ["SyncEngineClient", "SyncRequestStream"]


class SyncRequestStream:
    """What comes for one request: ``for delta in stream``. For one reader, in any thread.

    Ends after the delta that has ``finish``. What was made since the last delta was taken comes in
    one, unless it has an ``extra``. Who leaves early aborts the request in the engine: by
    :meth:`close`, by ``with``, or where the wait for the next delta is interrupted. A stream that
    is let go is aborted too, with the next message of an engine, a beat at the latest.

    Raises (while iterating):
        EngineDead: the engine is gone.
        DeadlineExceeded: its time is over.
        RequestRefused: the engine does not take it.
        EngineOverloaded: the engine has too many.
        SlowConsumer: this stream, or the whole API server, read too slowly.
    """

    __slots__ = ("__weakref__", "_channel", "_stream")

    def __init__(self, channel: ChannelThread, ask: Callable[[], OpenStream]) -> None:
        self._channel = channel
        self._stream = ask()  # here: an interrupt leaves no stream that nobody can let go

    @property
    def engine(self) -> str:
        """Id of the engine that has the request."""
        return self._stream.engine

    @property
    def number(self) -> int:
        """Of the request, in that engine."""
        return self._stream.number

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Delta:
        channel, stream = self._channel, self._stream
        gate = stream.waiter
        if gate.is_waited:
            raise RuntimeError("another thread waits for this stream already")
        gate.is_waited = True
        try:
            while True:
                with channel.held():
                    delta = stream.take()
                    if delta is not None:
                        return delta
                    if stream.ended:
                        break
                    channel.check_open()
                channel.wait(gate)
        except BaseException:
            self.close()
            raise
        finally:
            gate.is_waited = False
        error, stream.error = stream.error, None
        if error is not None:
            raise error
        raise StopIteration

    def close(self) -> None:
        """Abort the request, if it has not ended."""
        self._channel.leave(self._stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        """Note what nobody can read any more, and no more: it may be a garbage collection."""
        try:
            stream = self._stream
        except AttributeError:  # there never was one
            return
        if not stream.ended:
            self._channel.left.append(stream)


class SyncEngineClient(Requesting[ChannelThread], Closing):
    """Gives requests to engines, and brings back what they make. For any threads of one process.

    It has threads of its own from when it is made until it is closed. Then it says goodbye to the
    engines, and every open stream and call ends as ``EngineDead``.

    A signal's handler may ask, too. Where it has interrupted the client at its work, what would
    wait raises RuntimeError; a handler that only notes what is to be done is never in the way.
    """

    _channel_type = ChannelThread

    def close(self) -> None:
        """End; once more is no fault. It takes a fifth of a second, where engines do not listen."""
        self._is_closed = True
        self._channel.close()

    def wait_for_engines(self, count: int = 1, timeout: float | None = None) -> None:
        """Wait until some engines are ready.

        Args:
            count: how many.
            timeout: seconds.

        Raises:
            DeadlineExceeded: they were not, within the time.
            RuntimeError: the client is closed, or was meanwhile.
            TypeError, ValueError: an argument is of another kind, or no time.
        """
        whole("count", count)
        given = None if timeout is None else seconds("timeout", timeout)
        over = None if given is None else time.monotonic() + given
        channel, gate = self._channel, Gate()
        self._check()
        try:
            channel.arrivals.add(gate)
            while True:
                with channel.held():
                    self._check()
                    if channel.is_ready(count):
                        return
                if not channel.wait(gate, over):
                    raise self._too_few(count, given)
        finally:
            channel.arrivals.discard(gate)

    def generate(
        self,
        payload: Any,
        *,
        deadline: float | None = None,
        priority: int = 0,
        engine: str | None = None,
    ) -> SyncRequestStream:
        """Give a request to an engine, and return what comes of it. Does not wait.

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
            RuntimeError: the client is closed.
        """
        self._check()
        limit, priority, engine = self._asked_for(deadline, priority, engine)
        channel = self._channel
        lifted, gate = channel.lift(payload), Gate()

        def ask() -> OpenStream:
            now = time.monotonic()
            channel.abandon_left(now)
            channel.wake_for(limit, now)  # it looks when this is done: the channel is held
            return channel.open(lifted, limit, priority, engine, gate, now)

        with channel.held():
            self._check()
            return SyncRequestStream(channel, ask)

    def call(
        self, name: str, *args: Any, engine: str | None = None, timeout: float | None = None
    ) -> Any:
        """Call a utility of an engine, and wait for what it returns.

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
            RuntimeError: the client is closed.
        """
        limit, engine = self._called(name, engine, timeout)
        self._check()
        channel, gate = self._channel, Gate()
        lifted = [*map(channel.lift, args)]
        over = None if limit is None else time.monotonic() + limit
        number = 0
        try:
            with channel.held():
                self._check()
                channel.abandon_left(time.monotonic())
                number, call = channel.ask(name, lifted, engine, gate)
            while not call.ended:
                channel.check_open()
                if not channel.wait(gate, over) and not call.ended:
                    raise DeadlineExceeded(f"utility {name!r}", limit or 0)
        finally:
            channel.exchange.calls.pop(number, None)
        return result_of(call)

    def _check(self) -> None:
        """Raise RuntimeError where it is closed."""
        if self._is_closed:
            raise closed_error(self)
        self._channel.check_open()
