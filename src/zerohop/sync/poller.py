"""Waiting for several sockets and descriptors at once: Poller, ``select``, ``zmq_poll``.

Level-triggered, as everything here: what is ready and not used is ready at the next call again.

The sockets of one Context wake the wait under that Context's lock. Sockets of other Contexts send
word through the first one's reactor, since the call can sleep in one seat only. Descriptors:
:mod:`zerohop.sync.system_items`.
"""

from __future__ import annotations

from time import monotonic

from zerohop.constants import PollEvent
from zerohop.errors import ZMQError
from zerohop.io.seat import FOREVER, Waiter
from zerohop.sync.socket import Socket
from zerohop.sync.system_items import SystemItems, descriptor_of
from zerohop.sync.waiters import POLLER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from zerohop.io.reactor import Reactor

_IN, _OUT, _ERR = map(int, (PollEvent.POLLIN, PollEvent.POLLOUT, PollEvent.POLLERR))


class Poller:
    """A list of what to wait for, and :meth:`poll`.

    Attributes:
        sockets: ``(socket or descriptor, flags)`` in the order of registration.
    """

    def __init__(self) -> None:
        self.sockets: list[tuple[Any, int]] = []
        self._places: dict[Any, int] = {}

    def __contains__(self, socket: object) -> bool:
        return socket in self._places

    def register(self, socket: Any, flags: int = PollEvent.POLLIN | PollEvent.POLLOUT) -> None:
        """Wait for ``flags`` of this, too.

        Args:
            socket: a Socket, a file descriptor, or an object with ``fileno()``.
            flags: ``POLLIN``, ``POLLOUT``, for descriptors also ``POLLERR``, ``POLLPRI``; 0 means
                :meth:`unregister`.
        """
        if not flags:
            if socket in self._places:
                self.unregister(socket)
        elif socket in self._places:
            self.sockets[self._places[socket]] = socket, int(flags)
        else:
            self._places[socket] = len(self.sockets)
            self.sockets.append((socket, int(flags)))

    def modify(self, socket: Any, flags: int = PollEvent.POLLIN | PollEvent.POLLOUT) -> None:
        """As :meth:`register`."""
        self.register(socket, flags)

    def unregister(self, socket: Any) -> None:
        """Wait for this no more.

        Raises:
            KeyError: it was not registered.
        """
        place = self._places.pop(socket)
        del self.sockets[place]
        for other, flags in enumerate(self.sockets[place:], start=place):
            self._places[flags[0]] = other

    def poll(self, timeout: float | None = None) -> list[tuple[Any, int]]:
        """Wait until something is ready.

        Args:
            timeout: milliseconds; None or negative: without limit; 0: only look.

        Returns:
            What is ready and for what; empty when the time is over, or nothing is registered.

        Raises:
            ZMQError: ENOTSOCK, one of the sockets is closed; ETERM.
            TypeError: one of them is nothing that can be waited for.
        """
        return zmq_poll(self.sockets, -1 if timeout is None else timeout)


def select(
    rlist: Iterable[Any],
    wlist: Iterable[Any],
    xlist: Iterable[Any],
    timeout: float | None = None,
) -> tuple[list[Any], list[Any], list[Any]]:
    """Wait for sockets and descriptors as ``select.select`` does.

    Args:
        rlist: to be read from.
        wlist: to be written to.
        xlist: descriptors that may fail.
        timeout: **seconds**; None or negative: without limit.

    Returns:
        Those of each list that are ready; descriptors by their numbers, as pyzmq.
    """
    lists = [
        ([item if isinstance(item, Socket) else descriptor_of(item) for item in items], flag)
        for items, flag in ((rlist, _IN), (wlist, _OUT), (xlist, _ERR))
    ]
    wanted: dict[Any, int] = {}
    for items, flag in lists:
        for item in items:
            wanted[item] = wanted.get(item, 0) | flag
    limit = -1 if timeout is None or timeout < 0 else timeout * 1000
    ready = dict(zmq_poll(list(wanted.items()), limit))
    readable, writable, failed = (
        [item for item in items if ready.get(item, 0) & flag] for items, flag in lists
    )
    return readable, writable, failed


def zmq_poll(sockets: Sequence[tuple[Any, int]], timeout: float = -1) -> list[tuple[Any, int]]:
    """Wait until one of ``(socket or descriptor, flags)`` is ready; see :meth:`Poller.poll`.

    Args:
        sockets: what to wait for.
        timeout: milliseconds; negative: without limit.
    """
    if not sockets:
        return []
    ours: list[tuple[Socket, int]] = []
    others = None
    ready: list[tuple[Any, int]] = []
    for item, flags in sockets:
        if isinstance(item, Socket):
            ours.append((item, flags))
            events = item._front.ready(flags)
            if events:
                ready.append((item, events))
        else:
            others = others or SystemItems()
            others.add(item, flags)
    if others is not None:
        if not ours:
            return others.wait(timeout)
        ready += others.wait(0)
    if ready:
        return ready
    poll = _Poll(ours, others or SystemItems())
    try:
        return poll.wait(timeout)
    except ZMQError:
        raise
    except BaseException:
        poll.interrupted()
        raise


class _Poll:
    """One wait for sockets, of one Context or several, and descriptors."""

    def __init__(self, sockets: list[tuple[Socket, int]], descriptors: SystemItems) -> None:
        self._sockets = sockets
        self._descriptors = descriptors
        self._reactor = sockets[0][0]._reactor
        self._waiter = sockets[0][0]._front.waiters.new()
        self._relay = _Relay(self._reactor, self._waiter)

    def ready(self) -> list[tuple[Any, int]]:
        """What is ready now."""
        found: list[tuple[Any, int]] = []
        for socket, flags in self._sockets:
            events = socket._front.ready(flags)
            if events:
                found.append((socket, events))
        return found + self._descriptors.wait(0)

    def wait(self, timeout: float) -> list[tuple[Any, int]]:
        """What is ready after at most ``timeout`` milliseconds, negative: whenever it is."""
        if timeout == 0:
            for reactor in {socket._reactor for socket, _ in self._sockets}:
                with reactor.lock:
                    reactor.poll()
            return self.ready()
        deadline = FOREVER if timeout < 0 else monotonic() + timeout / 1000
        lock, waiter = self._reactor.lock, self._waiter
        try:
            self._watch()
            for socket, flags in self._sockets:
                with socket._driver.lock:
                    socket._front.check(socket, flags)
            while True:
                with lock:
                    waiter.done = False
                found = self.ready()
                if found:
                    return found
                with lock:
                    if not self._reactor.wait(waiter, deadline):
                        return []
        finally:
            # If there was but a sleep to interrupt, that holds once this is done, too.
            slept, waiter.sleeps = waiter.sleeps, False
            self._unwatch()
            waiter.sleeps = slept

    def interrupted(self) -> None:
        """A signal handler has raised: be gone, and have everything looked at (``io.mending``)."""
        if self._waiter.sleeps:
            return
        self._unwatch()
        for socket, _ in self._sockets:
            with socket._driver.lock:
                socket._driver.context.interrupted()

    def _watch(self) -> None:
        for socket, flags in self._sockets:
            with socket._driver.lock:
                ours = socket._reactor is self._reactor
                socket._front.waiters.add(self._waiter if ours else self._relay, flags | POLLER)
        with self._reactor.lock:
            self._descriptors.watch(self._reactor, self._waiter)

    def _unwatch(self) -> None:
        for socket, _ in self._sockets:
            with socket._driver.lock:
                ours = socket._reactor is self._reactor
                socket._front.waiters.remove(self._waiter if ours else self._relay)
        with self._reactor.lock:
            self._descriptors.unwatch(self._reactor)


class _Relay(Waiter):
    """Wakes a waiter of another Context, whose lock the one who wakes does not hold."""

    __slots__ = ("_target",)

    def __init__(self, reactor: Reactor, target: Waiter) -> None:
        super().__init__(reactor)
        self._target = target

    def wake(self) -> None:
        self._reactor.call_soon_threadsafe(self._target.wake)
