"""The requests that an API server has open, and how each of them ends. Pure over ``now``.

    open ──delta──► open ──delta with finish──► finished
      ├── the engine ended it ────────────────► failed: RequestRefused, EngineOverloaded, ...
      ├── its engine is gone ─────────────────► failed: EngineDead
      ├── its time is over ───────────────────► failed: DeadlineExceeded   (aborted in the engine)
      ├── nobody reads it ────────────────────► failed: SlowConsumer       (aborted in the engine)
      └── nobody wants it ────────────────────► aborted                    (aborted in the engine)

A stream ends once, and what comes for it afterwards is counted and thrown away. The streams are
kept by the boot token of their engine: outputs of another life find nothing.

A reader that falls behind gets the tokens of several steps in one delta: waking it costs ten times
as much as adding a token to a list, so this is also how the whole keeps up.
"""

from __future__ import annotations

import heapq
from collections import deque

from zerohop.serving.engine.messages import Delta
from zerohop.serving.errors import (
    DeadlineExceeded,
    EngineDead,
    EngineOverloaded,
    RequestRefused,
    ServingError,
    SlowConsumer,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from zerohop.serving.engine.messages import Ended

__all__ = ["OpenStream", "StreamTable"]

_DEADLINES = 64  # that are kept, whether or not their streams have ended


class OpenStream:
    """One request, and what has come for it and was not read yet.

    Attributes:
        number: of the request.
        boot: of its engine.
        deltas: to be read.
        tokens: to be read after those.
        ended: nothing more comes; there may be something to be read yet.
        error: why, where it has not simply finished.
        waiter: the driver's.
    """

    __slots__ = (
        "boot", "deadline", "deltas", "ended", "engine", "error", "number", "tokens", "waiter",
    )  # fmt: skip

    def __init__(self, number: int, engine: str, boot: int, deadline: float | None) -> None:
        self.number, self.engine, self.boot, self.deadline = number, engine, boot, deadline
        self.deltas: deque[Delta] = deque()
        self.tokens: list[int] = []
        self.ended = False
        self.error: ServingError | None = None
        self.waiter: Any = None

    @property
    def request_id(self) -> str:
        """How errors name it."""
        return f"{self.engine}/{self.number}"

    def take(self) -> Delta | None:
        """Return the next delta; ``None``: there is none now."""
        if self.deltas:
            return self.deltas.popleft()
        if not self.tokens:
            return None
        tokens, self.tokens = self.tokens, []
        return Delta(self.number, tokens)


class StreamTable:
    """All streams of one API server.

    Args:
        limit: tokens, or deltas with something else in them, that may wait to be read, of one
            stream.

    Attributes:
        stale: deltas that came for a request that was not open (any more), or for another life.
    """

    def __init__(self, limit: int = 65_536) -> None:
        self._limit = limit
        self._by_boot: dict[int, dict[int, OpenStream]] = {}
        self._deadlines: list[tuple[float, int, OpenStream, float]] = []
        self.stale = 0

    def __len__(self) -> int:
        return sum(map(len, self._by_boot.values()))

    def load(self, boot: int) -> int:
        """Return how many requests an engine has open."""
        return len(self._by_boot.get(boot, ()))

    def find(self, boot: int, number: int) -> OpenStream | None:
        """Return an open stream; ``None``: there is none of that number."""
        return self._by_boot.get(boot, {}).get(number)

    def open(
        self, number: int, engine: str, boot: int, now: float, seconds: float | None = None
    ) -> OpenStream:
        """Open a stream.

        Args:
            number: of the request, which no other has.
            engine: its id.
            boot: its boot token.
            now: the time.
            seconds: until it ends at the latest.
        """
        deadline = None if seconds is None else now + seconds
        stream = OpenStream(number, engine, boot, deadline)
        self._by_boot.setdefault(boot, {})[number] = stream
        if deadline is not None and seconds is not None:
            waiting = len(self._deadlines)
            if waiting > _DEADLINES and waiting > 2 * len(self):
                # Most requests end long before their deadline; what they leave must not pile up.
                self._deadlines = [each for each in self._deadlines if not each[2].ended]
                heapq.heapify(self._deadlines)
            heapq.heappush(self._deadlines, (deadline, number, stream, seconds))
        return stream

    def deliver(
        self,
        boot: int,
        numbers: Sequence[int],
        steps: Sequence[Sequence[int]],
        deltas: Sequence[Delta] = (),
    ) -> tuple[list[OpenStream], list[OpenStream]]:
        """Take what an engine made.

        Args:
            boot: of the engine.
            numbers: of requests that have made one token in each of the steps, and nothing else.
            steps: their tokens, step by step.
            deltas: of the others; of the last step.

        Returns:
            The streams whose reader may be waiting and has something now; the streams that are to
            be aborted in the engine, because they have ended here.
        """
        streams = self._by_boot.get(boot)
        if streams is None:
            self.stale += len(numbers) * len(steps) + len(deltas)
            return [], []
        woken: list[OpenStream] = []
        overflown: list[OpenStream] = []
        limit = self._limit
        # A hot loop: once for each request.
        for number, made in zip(numbers, zip(*steps, strict=False), strict=False):
            stream = streams.get(number)
            if stream is None:
                self.stale += len(made)
                continue
            waiting = stream.tokens
            if not waiting:
                woken.append(stream)
            waiting += made
            if len(waiting) > limit:
                self._overflow(stream, overflown)
        for delta in deltas:
            stream = streams.get(delta.number)
            if stream is None:
                self.stale += 1
                continue
            woken.append(stream)
            self._add(stream, delta)
            if delta.finish is not None:
                stream.ended = True
                del streams[delta.number]
            elif max(len(stream.tokens), len(stream.deltas)) > limit:
                self._overflow(stream, overflown)
        return woken, overflown

    @staticmethod
    def _add(stream: OpenStream, delta: Delta) -> None:
        """Add to what is to be read, to the last of it where that is possible."""
        if delta.extra is None:
            stream.tokens += delta.token_ids
            if delta.finish is not None:
                stream.deltas.append(Delta(delta.number, stream.tokens, delta.finish))
                stream.tokens = []
            return
        if stream.tokens:
            stream.deltas.append(Delta(delta.number, stream.tokens))
            stream.tokens = []
        stream.deltas.append(delta)

    def _overflow(self, stream: OpenStream, overflown: list[OpenStream]) -> None:
        reader = f"the reader of {stream.request_id}"
        self._end(
            stream, SlowConsumer(reader, self._limit, hint="it is the stream_limit of the client")
        )
        overflown.append(stream)

    def end(self, boot: int, ended: Sequence[Ended]) -> list[OpenStream]:
        """Take what the engine says of requests that it has ended; return the streams."""
        streams, done = self._by_boot.get(boot, {}), []
        for each in ended:
            stream = streams.get(each.number)
            if stream is None:
                self.stale += 1
                continue
            self._end(stream, _error_of(each, stream))
            done.append(stream)
        return done

    def engine_gone(self, boot: int, reason: str) -> list[OpenStream]:
        """End all streams of one life of an engine; return them."""
        streams = list(self._by_boot.get(boot, {}).values())
        for stream in streams:
            self._end(stream, EngineDead(stream.engine, reason, stream.request_id))
        self._by_boot.pop(boot, None)
        return streams

    def abort(self, stream: OpenStream) -> bool:
        """Nobody wants it any more; return whether the engine is to be told."""
        if stream.ended:
            return False
        self._end(stream, None)
        stream.deltas.clear()
        stream.tokens = []
        return True

    def next_deadline(self) -> float | None:
        """When the next stream is to end; ``None``: no stream has a deadline."""
        deadlines = self._deadlines
        while deadlines and deadlines[0][2].ended:
            heapq.heappop(deadlines)
        return deadlines[0][0] if deadlines else None

    def handle_deadline(self, now: float) -> list[OpenStream]:
        """End the streams whose time is over; return them, to be aborted in the engine."""
        late = []
        while (deadline := self.next_deadline()) is not None and deadline <= now:
            _, _, stream, seconds = heapq.heappop(self._deadlines)
            self._end(stream, DeadlineExceeded(f"request {stream.request_id}", seconds))
            late.append(stream)
        return late

    def _end(self, stream: OpenStream, error: ServingError | None) -> None:
        stream.ended, stream.error = True, error
        self._by_boot[stream.boot].pop(stream.number, None)


def _error_of(ended: Ended, stream: OpenStream) -> ServingError:
    match ended.kind:
        case "overloaded":
            return EngineOverloaded(
                stream.engine, ended.limit, hint="it is the max_requests of the engine"
            )
        case "slow":
            return SlowConsumer(
                "this API server", ended.limit, hint="it is the outputs_limit of the engine"
            )
        case _:
            return RequestRefused(stream.request_id, ended.text)
