"""The Context of blocking sockets: makes them, and sees to it that they end.

``term`` waits for what lingers, and may be given a time limit. The interpreter's exit waits for
nobody: what was sent and is not yet written gets ``EXIT_SECONDS``, all contexts together, and no
more than the LINGER of its socket.
"""

from __future__ import annotations

import atexit
import weakref
from time import monotonic

from zerohop.api.context import ContextBase
from zerohop.sync.reactor import reactor_of
from zerohop.sync.seat import FOREVER, Waiter
from zerohop.sync.socket import Socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from zerohop.io.context import ContextIO
    from zerohop.io.driver import SocketDriver
    from zerohop.sync.reactor import Reactor

EXIT_SECONDS = 1.0
"""How long the interpreter's exit waits at most for messages that were sent and are queued."""

_LOOK = 0.005  # seconds; nobody tells when a queue has become empty


class Context(ContextBase):
    """Blocking sockets that can reach each other over ``inproc``."""

    _socket_class: ClassVar[Any] = Socket
    _reactor: Reactor

    def _start(self) -> None:
        """Called by ContextBase at the end of its constructor."""
        with self._io.lock:
            self._reactor = reactor_of(self._io)
        _contexts.add(self)

    def _wait_released(self, seconds: float | None) -> bool:
        """Wait until no driver is left; return whether none is. Lock not held."""
        reactor = self._reactor
        deadline = FOREVER if seconds is None else monotonic() + seconds
        with self._io.lock:
            while self._io.drivers:
                waiter = Waiter(reactor)
                self._when_released(waiter.wake)
                if not reactor.wait(waiter, deadline):
                    return False
        return True

    def _stop(self) -> None:
        """End the helper thread, give the reactor's descriptors back. Lock not held."""
        self._reactor.stop()

    def _drop(self) -> None:
        """End without waiting. What lingers goes on; the helper thread ends with the last of it."""
        super()._drop()
        if self._io.drivers:
            self._reactor.call_soon_threadsafe(_stop_when_released, self._io, self._reactor)

    def _abandon(self) -> None:
        """In a forked child: no lane may lead into a queue that nobody reads."""
        super()._abandon()
        for socket in list(self._sockets):
            for front in (socket, *socket._shadows):
                front._on_close()

    def _flush(self, deadline: float) -> None:
        """Drive until everything that was sent is written, or the time is over."""
        reactor = self._reactor
        with self._io.lock:
            started = monotonic()
            while not reactor.closed:
                now = monotonic()
                if now >= deadline or not any(
                    driver.loop is reactor and _may_wait(driver, now - started)
                    for driver in self._io.drivers
                ):
                    return
                reactor.wait(Waiter(reactor), min(deadline, now + _LOOK))


def _may_wait(driver: SocketDriver, waited: float) -> bool:
    """Whether a socket has unsent messages and its LINGER lets the exit wait for them."""
    core = driver.core
    linger = core.options.linger
    if linger is not None and waited >= linger:
        return False
    links = core.links
    peers = [link.peer for link in links.open_links] + [dialer.peer for dialer in links.dialers]
    return any(link.buffers for link in links.open_links) or any(
        peer is not None and peer.outbound.messages for peer in peers
    )


def _stop_when_released(io: ContextIO, reactor: Reactor) -> None:
    """Stop a reactor whose Context is gone as soon as no socket needs it. Lock held."""
    if not io.drivers:
        reactor.stop()
        return
    last = next(iter(io.drivers))
    last.on_released.append(lambda: reactor.call_soon(_stop_when_released, io, reactor))


_contexts: weakref.WeakSet[Context] = weakref.WeakSet()


def _flush_at_exit() -> None:
    deadline = monotonic() + EXIT_SECONDS
    for context in list(_contexts):
        context._flush(deadline)


atexit.register(_flush_at_exit)
