"""The end of a Context, and of the process: what was sent is written, within bounds.

What still has to go out then may hang on an asyncio loop that runs no more, or that the caller
itself is keeping from running. It is moved to the Context's reactor, which the waiting caller
drives.
"""

from __future__ import annotations

from time import monotonic

from zerohop.io.reactor import reactor_of
from zerohop.io.seat import FOREVER, Waiter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.io.context import ContextIO
    from zerohop.io.driver import SocketDriver
    from zerohop.io.reactor import Reactor

EXIT_SECONDS = 1.0
"""How long the interpreter's exit waits at most for messages that were sent and are queued."""

_LOOK = 0.005  # seconds; nobody tells when a queue has become empty


def wait_released(context: ContextIO, seconds: float | None) -> bool:
    """Wait until no driver is left; return whether none is. Lock not held.

    Args:
        context: no socket of it is made any more.
        seconds: None: without limit.
    """
    deadline = FOREVER if seconds is None else monotonic() + seconds
    with context.lock:
        if not context.drivers:
            return True
        reactor = reactor_of(context)
        while context.drivers:
            waiter = Waiter(reactor)
            for driver in list(context.drivers):
                driver.awaited = True
                driver.on_released.append(waiter.wake)
                if driver.core.closed and driver.may_move():
                    driver.attach(reactor)
            if context.drivers and not reactor.wait(waiter, deadline):
                return False
    return True


def _flush(context: ContextIO, reactor: Reactor, deadline: float) -> None:
    """Drive until everything that was sent is written, or the time is over. Lock held."""
    started = monotonic()
    for driver in list(context.drivers):
        driver.awaited = True
        if driver.may_move():
            driver.attach(reactor)
    while not reactor.closed:
        now = monotonic()
        if now >= deadline or not any(
            driver.loop is reactor and _may_wait(driver, now - started)
            for driver in context.drivers
        ):
            return
        reactor.wait(Waiter(reactor), min(deadline, now + _LOOK))


def _may_wait(driver: SocketDriver, waited: float) -> bool:
    """Whether a socket's messages are still to go or under way, and LINGER lets the exit wait."""
    linger = driver.core.options.linger
    if linger is not None and waited >= linger:
        return False
    links = driver.core.links
    peers = [link.peer for link in links.open_links] + [dialer.peer for dialer in links.dialers]
    if any(link.buffers for link in links.open_links) or any(
        peer is not None and peer.outbound.messages for peer in peers
    ):
        return True
    if driver.partings:
        return True
    if not driver._streams:
        return False
    from zerohop.io.parting import any_unsent  # with the streams it was imported

    # The connections are not ended: a socket that is still open would make them anew.
    return any(any_unsent(links.socket_type, each._sock) for each in driver._streams.values())


def flush(contexts: list[ContextIO]) -> None:
    """Write what these contexts' sockets have queued, in ``EXIT_SECONDS`` at most, all together."""
    deadline = monotonic() + EXIT_SECONDS
    for context in contexts:
        with context.lock:
            _flush(context, reactor_of(context), deadline)
