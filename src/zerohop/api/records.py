"""Monitor records to iterate over: who, where and why, which pyzmq's two frames cannot say."""

from __future__ import annotations

from zerohop.constants import Errno, Event
from zerohop.errors import ZMQError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

    from zerohop.core.monitor import MonitorRecord

__all__ = ["MonitorRecords", "RecordPart"]


class RecordPart(bytes):
    """A part that carries a record beside its octets: over ``inproc`` it arrives as it was sent."""

    record: MonitorRecord

    @classmethod
    def of(cls, record: MonitorRecord) -> RecordPart:
        """Return a part that carries this record."""
        part = cls()
        part.record = record
        return part


class MonitorRecords:
    """What happens to a socket's connections: ``for record in ...``, or ``async for``.

    Yields :class:`~zerohop.core.monitor.MonitorRecord`. Ends when the socket is closed, or its
    context ended. Not read, it keeps the latest and drops the oldest; forgotten, it closes itself.

    Args:
        pair: a socket of the same kind as the monitored one, connected to its feed.
        stop: ends the feed.
        timeout: seconds to wait for each record; None: without limit.

    Raises:
        Again: (while iterating) nothing happened for ``timeout``.
        TypeError: (while iterating) ``for`` where it should be ``async for``.
    """

    def __init__(self, pair: Any, stop: Callable[[], None], timeout: float | None) -> None:
        self._pair = pair
        self._stop = stop
        self._timeout = timeout

    def _next(self) -> Any:
        """The next record, or an awaitable of it."""
        return self._pair._receive(0, self._timeout, _record_of, part=True)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> MonitorRecord:
        try:
            record: Any = self._next()
        except ZMQError as error:
            if error.errno not in (Errno.ENOTSOCK, Errno.ETERM):
                raise
            raise StopIteration from None
        if hasattr(record, "__await__"):
            record.cancel()
            raise TypeError("these are the records of an asyncio socket: use `async for`")
        if record.event == Event.MONITOR_STOPPED:
            self.close()
            raise StopIteration
        return record  # type: ignore[no-any-return] # what the pair of a feed receives

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> MonitorRecord:
        try:
            record: MonitorRecord = await self._next()
        except ZMQError as error:
            if error.errno not in (Errno.ENOTSOCK, Errno.ETERM):
                raise
            raise StopAsyncIteration from None
        if record.event == Event.MONITOR_STOPPED:
            self.close()
            raise StopAsyncIteration
        return record

    def close(self) -> None:
        """Report no more; a second time does nothing."""
        if not self._pair.closed:
            self._stop()
            self._pair.close(linger=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self.close()

    def __del__(self) -> None:
        """Close what was only iterated over, without a word: that is how iterators are used."""
        if not self._pair.closed:
            self._pair._when_free(self.close)


def _record_of(part: RecordPart) -> MonitorRecord:
    return part.record
