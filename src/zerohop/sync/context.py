"""The Context of blocking sockets: makes them, and sees to it that they end.

``term`` waits for what lingers, and may be given a time limit. The interpreter's exit waits for
nobody but what was sent and is not yet written, and not for long (:mod:`zerohop.io.ending`).
"""

from __future__ import annotations

from zerohop.api.context import ContextBase
from zerohop.io.reactor import reactor_of
from zerohop.sync.socket import Socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from zerohop.io.context import ContextIO
    from zerohop.io.reactor import Reactor


class Context(ContextBase):
    """Blocking sockets that can reach each other over ``inproc``."""

    _socket_class: ClassVar[Any] = Socket
    _reactor: Reactor

    def _start(self) -> None:
        """Called by ContextBase at the end of its constructor."""
        with self._io.lock:
            self._reactor = reactor_of(self._io)

    def _wait_released(self, seconds: float | None) -> bool:
        """Wait until no driver is left; return whether none is. Lock not held."""
        if not self._io.drivers:
            return True
        from zerohop.io.ending import wait_released  # where there is something to wait for

        return wait_released(self._io, seconds)

    def _stop(self) -> None:
        """End the helper thread, give the reactor's descriptors back. Lock not held."""
        self._reactor.stop()

    def _drop(self) -> None:
        """End without waiting. What lingers goes on; the helper thread ends with the last of it."""
        super()._drop()
        if self._io.drivers:
            self._reactor.call_soon_threadsafe(_stop_when_released, self._io, self._reactor)


def _stop_when_released(io: ContextIO, reactor: Reactor) -> None:
    """Stop a reactor whose Context is gone as soon as no socket needs it. Lock held."""
    if not io.drivers:
        reactor.stop()
        return
    last = next(iter(io.drivers))
    last.on_released.append(lambda: reactor.call_soon(_stop_when_released, io, reactor))
