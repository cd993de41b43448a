"""Reads one worker's KV events on an event loop: ``async for delivery in subscriber``.

The same as the blocking one, and on what they share; only waiting is another.
"""

from __future__ import annotations

import asyncio
from typing import Any

import zerohop as zmq
import zerohop.asyncio
from zerohop.serving.actor import milliseconds_until
from zerohop.serving.asyncio_closing import AsyncClosing
from zerohop.serving.kv.subscriber import SLICE, Following

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from zerohop.serving.kv.deliveries import Delivery

__all__ = ["KvEventSubscriber"]


class KvEventSubscriber(Following, AsyncClosing):
    """Follows one worker, on the running event loop.

        async with KvEventSubscriber("tcp://worker:5557", replay="tcp://worker:5558") as subscriber:
            async for delivery in subscriber:
                view.deliver(delivery)

    Nothing is lost where waiting for the next delivery is cancelled. Closing ends the iteration.
    """

    _context_type = zerohop.asyncio.Context
    _poller_type = zerohop.asyncio.Poller
    _poll: asyncio.Future[Any] | None = None

    def _start(self) -> None:
        # What was received, until all is looked at together. It stays where waiting is cancelled.
        self._live: list[list[bytes]] = []
        self._records: list[list[bytes]] = []
        self._replies: dict[int, list[list[bytes]]] = {}  # by the question's id

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delivery:
        while not self._out:
            if self._is_closed:
                raise StopAsyncIteration
            if not (self._live or self._records or self._replies):
                await self._wait()
            if not self._is_closed:
                await self._pump()
        return self._out.popleft()

    async def _wait(self) -> None:
        """Wait until something can be received, or the follower has something to do."""
        wait = milliseconds_until(self._follower.next_deadline())
        self._poll = asyncio.ensure_future(self._poller.poll(wait))
        try:
            await self._poll
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling() or not self._is_closed:
                raise
        finally:
            self._poll = None

    async def _close(self) -> None:
        self._is_closed = True
        if self._poll is not None:
            self._poll.cancel()
        self._out.clear()
        await self._context.aclose()

    async def _pump(self) -> None:
        """Take what has come, unless this is cancelled: then it is taken the next time."""
        try:
            await _receive(self._sub, self._live)
            await _receive(self._monitor, self._records)
            for ask_id, dealer in list(self._dealers.items()):
                await _receive(dealer, self._replies.setdefault(ask_id, []))
        except zmq.ZMQError:
            if self._is_closed:  # meanwhile
                return
            raise
        live, has_connected = self._live, bool(self._records)
        replies = [(ask, frames) for ask, found in self._replies.items() for frames in found]
        self._live, self._records, self._replies = [], [], {}
        self._take(live, has_connected, replies)


async def _receive(socket: Any, found: list[list[bytes]]) -> None:
    """Receive what an asyncio socket has now."""
    while len(found) < SLICE:
        try:
            found.append(await socket.recv_multipart(zmq.DONTWAIT))
        except zmq.Again:
            break
