"""Reads one worker's KV events on an event loop: ``async for delivery in subscriber``.

The same as the blocking one, and on what they share; only waiting is another.
"""

from __future__ import annotations

import asyncio
from typing import Any

import zerohop as zmq
import zerohop.asyncio
from zerohop.serving.kv.subscriber import SLICE, Following

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from zerohop.serving.kv.deliveries import Delivery

__all__ = ["KvEventSubscriber"]


class KvEventSubscriber(Following):
    """Follows one worker, on the running event loop.

        async with KvEventSubscriber("tcp://worker:5557", replay="tcp://worker:5558") as subscriber:
            async for delivery in subscriber:
                view.deliver(delivery)

    Nothing is lost where waiting for the next delivery is cancelled. Closing ends the iteration.
    """

    _context_type = zerohop.asyncio.Context
    _poller_type = zerohop.asyncio.Poller
    _poll: asyncio.Future[Any] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivery:
        while not self._out:
            if self._is_closed:
                raise StopAsyncIteration
            self._poll = asyncio.ensure_future(self._poller.poll(self._milliseconds()))
            try:
                await self._poll
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling() or not self._is_closed:
                    raise
            finally:
                self._poll = None
            if not self._is_closed:
                await self._pump()
        return self._out.popleft()

    async def aclose(self) -> None:
        """Read no more; whoever waits for a delivery is told that there are no more."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._poll is not None:
            self._poll.cancel()
        self._out.clear()
        self._close_sockets()
        await self._context.aclose(linger=0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _pump(self) -> None:
        """Nothing in here waits, so it can't be cancelled half-way."""
        live = await _waiting(self._sub, SLICE)
        has_connected = bool(await _waiting(self._monitor, SLICE))
        replies = [
            (ask_id, frames)
            for ask_id, dealer in list(self._dealers.items())
            for frames in await _waiting(dealer, SLICE)
        ]
        self._take(live, has_connected, replies)


async def _waiting(socket: Any, limit: int) -> list[list[bytes]]:
    """What can be received from an asyncio socket now."""
    found: list[list[bytes]] = []
    while len(found) < limit:
        try:
            found.append(await socket.recv_multipart(zmq.DONTWAIT))
        except zmq.Again:
            break
    return found
