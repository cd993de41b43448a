"""Reads one worker's KV events on an event loop: ``async for delivery in subscriber``.

The same as the blocking one, and on what they share; only waiting is another.
"""

from __future__ import annotations

import asyncio
from typing import Any

import zerohop as zmq
import zerohop.asyncio
from zerohop.serving.kv.subscriber import HWM, SLICE, Following

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from zerohop.serving.kv.deliveries import Delivery
    from zerohop.serving.kv.questions import OrderOptions

__all__ = ["KvEventSubscriber"]


class KvEventSubscriber(Following):
    """Follows one worker, on the running event loop.

        async with KvEventSubscriber("tcp://worker:5557", replay="tcp://worker:5558") as subscriber:
            async for delivery in subscriber:
                view.deliver(delivery)

    Nothing is lost where waiting for the next delivery is cancelled. Closing ends the iteration.

    Args:
        endpoint: the publisher's PUB.
        replay: the publisher's replay socket; without, what is missed is lost.
        worker: its name in the deliveries; the endpoint unless given.
        topic: the beginning of the topics that are read; all unless given.
        bind: whether to bind ``endpoint``, for a publisher that connects.
        hwm: batches that may wait to be read.
        options: how patient to be, and what may be held.

    Attributes:
        endpoint: connected to, or bound.

    Raises:
        ZMQError: the endpoint can't be bound or connected.
    """

    def __init__(
        self,
        endpoint: str,
        replay: str | None = None,
        *,
        worker: str | None = None,
        topic: str = "",
        bind: bool = False,
        hwm: int = HWM,
        options: OrderOptions | None = None,
    ) -> None:
        context = zerohop.asyncio.Context()
        self._is_closed = False
        self._poll: asyncio.Future[Any] | None = None
        try:
            super().__init__(context, endpoint, replay, worker, topic, bind, hwm, options)
            self._watch(zerohop.asyncio.Poller())
        except BaseException:
            context.destroy(linger=0)
            raise

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
