"""Callbacks to come: soon, at a time, or when a descriptor is ready.

A descriptor may be closed, and its number used again, while somebody sleeps in ``wait`` or between
two callbacks of one turn. Each number therefore gets a serial when it is first watched, and an
event counts only for a descriptor that was watched before the sleep began: what is ready stays
ready, and the next turn will find it.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from threading import current_thread, main_thread

from zerohop.io.readiness import READ, WRITE, Doorbell, make_readiness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Callback: TypeAlias = Callable[[], object]
    # What a descriptor is watched for, whom to call when it can be read and when written, and its
    # serial. A tuple, for each connection has one.
    _Watched: TypeAlias = tuple[int, Callback | None, Callback | None, int]

_MANY = 64  # timers; beyond, cancelled ones are weeded out


def _nothing() -> None:
    """What a cancelled handle would call."""


class Handle:
    """A callback, as asyncio's: it can be cancelled."""

    __slots__ = ("args", "callback", "cancelled", "when")

    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...], when: float) -> None:
        self.callback = callback
        self.args = args
        self.when = when
        self.cancelled = False

    def cancel(self) -> None:
        """Do not call; nothing happens when it was called already.

        It may stay among the timers until its time has come, and must not hold a closed socket.
        """
        self.cancelled = True
        self.callback, self.args = _nothing, ()

    def run(self) -> None:
        """Call, unless cancelled."""
        if self.cancelled:
            return
        try:
            self.callback(*self.args)
        except Exception:  # noqa: BLE001 - raised again, or logged
            _failed(self.callback)


def _failed(callback: Callable[..., object]) -> None:
    """A callback has raised what is being handled now.

    On the main thread that is most likely a signal handler's (a deadline by SIGALRM), and goes to
    the caller that waits. On other threads it belongs to no caller, and is logged.
    """
    if current_thread() is main_thread():
        raise
    try:
        from zerohop.io.log import log
    except OSError:  # no descriptor is left to import with
        return
    log.exception("a callback of the I/O loop failed: %r", callback)


class Timers:
    """Callbacks by time.

    Attributes:
        heap: when each is due, how many came before it, and its handle; the first that is due in
            front, cancelled ones among them. To be looked at. (Handles would be compared by calls.)
    """

    __slots__ = ("_count", "_many", "heap")

    def __init__(self) -> None:
        self.heap: list[tuple[float, int, Handle]] = []
        self._count = 0
        self._many = _MANY

    def add(self, handle: Handle) -> bool:
        """Add a callback; return whether it is now the first that is due."""
        heap = self.heap
        if len(heap) >= self._many:
            # A deadline that moves leaves a cancelled handle behind; do not let them pile up.
            heap[:] = [entry for entry in heap if not entry[2].cancelled]
            heapify(heap)
            self._many = max(_MANY, 2 * len(heap))
        self._count += 1
        heappush(heap, (handle.when, self._count, handle))
        return heap[0][2] is handle

    def run(self, now: float) -> None:
        """Call all that are due."""
        heap = self.heap
        while heap and heap[0][0] <= now:
            heappop(heap)[2].run()

    def clear(self) -> None:
        """Forget all."""
        self.heap.clear()


_UNWATCHED: _Watched = (0, None, None, 0)


class Descriptors:
    """Callbacks by descriptor, and a doorbell to wake whoever waits for them.

    Attributes:
        serial: of the descriptor that was last begun to be watched.
        sees_changes: whether the system lets somebody who waits notice new ones.
    """

    __slots__ = ("_doorbell", "_readiness", "_watched", "ring", "sees_changes", "serial", "wait")

    def __init__(self) -> None:
        self._readiness = make_readiness()
        self._doorbell = Doorbell()
        self._readiness.watch(self._doorbell.fd, READ, 0)
        self._watched: dict[int, _Watched] = {
            self._doorbell.fd: (READ, self._doorbell.silence, None, 0)
        }
        self.serial = 0
        self.sees_changes = self._readiness.sees_changes
        self.wait = self._readiness.wait
        self.ring = self._doorbell.ring

    def __bool__(self) -> bool:
        return len(self._watched) > 1

    def watch(
        self, fd: int, reader: Callback | None = None, writer: Callback | None = None
    ) -> None:
        """Call what is given whenever ``fd`` is ready for it, instead of what was given before."""
        old = self._watched.get(fd)
        if old is None:
            mask = (READ if reader else 0) | (WRITE if writer else 0)
            self._readiness.watch(fd, mask, 0)
            self.serial += 1
            self._watched[fd] = mask, reader, writer, self.serial
        else:
            self._set(fd, old, reader or old[1], writer or old[2])

    def unwatch(self, fd: int, mask: int) -> bool:
        """Forget the callback for ``READ`` or ``WRITE``; return whether there was one."""
        old = self._watched.get(fd, _UNWATCHED)
        before, reader, writer, _ = old
        if not before & mask:
            return False
        self._set(fd, old, None if mask & READ else reader, None if mask & WRITE else writer)
        return True

    def _set(
        self, fd: int, old: _Watched, reader: Callback | None, writer: Callback | None
    ) -> None:
        before, _, _, serial = old
        mask = (READ if reader else 0) | (WRITE if writer else 0)
        if mask != before:
            self._readiness.watch(fd, mask, before)
        if not mask:
            del self._watched[fd]
        else:
            self._watched[fd] = mask, reader, writer, serial

    def dispatch(self, events: list[tuple[int, int]], serial: int) -> None:
        """Call whom the events are for; ``serial`` is what it was before they were waited for."""
        for fd, mask in events:
            if fd not in self._watched:
                continue
            _, reader, writer, since = self._watched[fd]
            if since > serial:
                continue
            if reader is not None and mask & ~WRITE:
                try:  # as Handle.run, and nobody cancels these
                    reader()
                except Exception:  # noqa: BLE001 - likewise
                    _failed(reader)
                if writer is None:
                    continue
                _, _, writer, since = self._watched.get(fd, _UNWATCHED)
            if writer is not None and mask & ~READ and since <= serial:
                try:
                    writer()
                except Exception:  # noqa: BLE001 - likewise
                    _failed(writer)

    def close(self) -> None:
        """Forget all, and give back what was opened for waiting; the descriptors stay open."""
        self._watched.clear()
        self._readiness.close()
        self._doorbell.close()
