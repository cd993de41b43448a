"""The Context of asyncio sockets.

``term`` blocks, as pyzmq's: it must be callable where no loop runs any more. What still lingers
then is moved from its loop to a reactor that the call drives itself. ``async with`` and ``aclose``
wait on the running loop instead.
"""

from __future__ import annotations

import asyncio
import errno
import os
import threading

from zerohop.api.context import ContextBase
from zerohop.asyncio.socket import Socket
from zerohop.asyncio.waiting import released
from zerohop.errors import Again, ZMQError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Self


_SAID = "ZEROHOP_BUSY_POLL_US"  # io.lookout's


class Context(ContextBase):
    """asyncio sockets that can reach each other over ``inproc``."""

    _socket_class: ClassVar[Any] = Socket

    def _start(self) -> None:
        """Called by ContextBase at the end of its constructor."""
        if _SAID in os.environ:  # no time? Refused here, and not by the first call that waits
            from zerohop.io.lookout import moment  # which nobody needs before that

            moment()

    def term(self, timeout: float | None = None) -> None:
        """End the context; see :meth:`zerohop.Context.term`. Blocks the loop while it waits.

        Raises:
            ZMQError: EDEADLK: sockets of the loop that runs in this very thread are open, and
                nobody could close them while this call waits. A note names them.
            Again: the time is over.
        """
        mine = [
            repr(socket)
            for socket in self._sockets
            if not socket.closed and isinstance(socket, Socket) and socket._lives_here()
        ]
        if mine and not self._closed and timeout is None:
            raise ZMQError(
                errno.EDEADLK,
                hint=f"close these sockets first, or call destroy(): {'; '.join(mine)}",
            )
        super().term(timeout)

    def _wait_released(self, seconds: float | None) -> bool:
        """Wait until no driver is left; return whether none is. Lock not held."""
        if not self._io.drivers:
            return True
        from zerohop.io.ending import wait_released  # where there is something to wait for

        return wait_released(self._io, seconds)

    def _stop(self) -> None:
        """Give back what ``_wait_released`` may have begun."""
        if self._io.reactor is not None:
            self._io.reactor.stop()

    async def aclose(self, linger: int | None = None, timeout: float | None = None) -> None:
        """Close every socket made by this context, wait until what they sent is out, end it.

        Args:
            linger: milliseconds, instead of each socket's LINGER option.
            timeout: seconds to wait at most; None: without limit.

        Raises:
            Again: the time is over; what is still queued goes on lingering.
        """
        for socket in list(self._sockets):
            if not socket.closed:
                socket.close(linger)
        loop = asyncio.get_running_loop()
        with self._io.lock:
            closed = [driver for driver in self._io.drivers if driver.core.closed]
            for driver in closed:
                if driver.loop not in (loop, self._io.reactor) and driver.may_move():
                    # Its own loop has ended.
                    driver.attach(loop, thread=threading.get_ident())
            waits = [released(driver) for driver in closed]
        if waits:
            _, late = await asyncio.wait(waits, timeout=timeout)
            if late:
                raise Again(hint=f"the context is held by {self._holders()}")
        super().term(0)

    async def __aenter__(self) -> Self:
        """Use as ``async with Context() as context``."""
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Close its sockets, and wait until what they sent is out."""
        await self.aclose()
