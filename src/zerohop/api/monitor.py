"""pyzmq's monitor: what happens to a socket's connections, as messages of a PAIR over ``inproc``.

:mod:`zerohop.api.feed` writes the messages; it is imported for the first socket that is monitored.
"""

from __future__ import annotations

import itertools

from zerohop.api.endpoints import check_address
from zerohop.constants import Errno, Event, SocketType
from zerohop.errors import ZMQError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from zerohop.api.context import ContextBase
    from zerohop.api.feed import Feed
    from zerohop.api.records import MonitorRecords
    from zerohop.api.socket import SocketBase
    from zerohop.core.socket import SocketCore
    from zerohop.io.context import ContextIO
    from zerohop.io.driver import SocketDriver

__all__ = ["MonitorMethods"]

_numbers = itertools.count(1)


class MonitorMethods:
    """The part of a Socket that reports what happens to its connections.

    A monitor belongs to the original, whichever of its shadows was asked for it: it ends with the
    socket, and a shadow may be gone long before.
    """

    __slots__ = ()

    # Few sockets have them, in their __dict__.
    _feed: Feed | None = None
    _monitor_socket: Any = None  # a socket of the context's own class

    if TYPE_CHECKING:
        context: ContextBase
        _context_io: ContextIO
        _core: SocketCore
        _driver: SocketDriver
        _shadowed: SocketBase | None

    def _monitored(self) -> MonitorMethods:
        """The Socket that has the monitor: the original, where this one is a shadow."""
        return self._shadowed or self

    def monitor(self, addr: str | None, events: int = Event.ALL) -> None:
        """Publish what happens to this socket's connections on a PAIR (``zmq_socket_monitor``).

        Args:
            addr: ``inproc://name`` to connect a PAIR to, in the same Context; it replaces an
                earlier one. None: no more.
            events: bits of :class:`~zerohop.constants.Event` to report.

        Raises:
            ZMQError: EPROTONOSUPPORT, not inproc; EINVAL; EADDRINUSE; ENOTSOCK.
            TypeError: the address is no ``str``.
        """
        with self._driver.lock:
            if self._core.closed:
                raise ZMQError(Errno.ENOTSOCK)
            original = self._monitored()
            original._stop_feed()
            if addr is not None:
                from zerohop.api.feed import Feed

                feed = Feed(self._context_io, check_address(addr), events)
                original._feed = feed  # type: ignore[misc] # a Socket has a __dict__
                self._core.links.monitors.append(feed)

    def get_monitor_socket(self, events: int | None = None, addr: str | None = None) -> Any:
        """Return a PAIR that receives what happens to this socket's connections.

        Read it with ``zerohop.utils.monitor.recv_monitor_message``. The same one each time, until
        :meth:`disable_monitor`.

        Args:
            events: bits of :class:`~zerohop.constants.Event`; None: all.
            addr: the endpoint between the two; None: one that nobody uses.

        Raises:
            ZMQError: as :meth:`monitor`.
        """
        original = self._monitored()
        if original._monitor_socket is not None and not original._monitor_socket.closed:
            return original._monitor_socket
        if addr is None:
            addr = f"inproc://monitor.s-{next(_numbers)}"
        self.monitor(addr, Event.ALL if events is None else events)
        pair = original._monitor_socket = self.context.socket(SocketType.PAIR)
        pair.connect(addr)
        return pair

    def disable_monitor(self) -> None:
        """Report no more; the PAIR gets MONITOR_STOPPED as its last event and stays open.

        Raises:
            ZMQError: ENOTSOCK, closed.
        """
        self.monitor(None)
        self._monitored()._monitor_socket = None

    def _stop_feed(self) -> None:
        feed, self._feed = self._feed, None  # type: ignore[misc] # a Socket has a __dict__
        if feed is not None:
            if feed in self._core.links.monitors:
                self._core.links.monitors.remove(feed)
            feed.close()

    def monitor_records(
        self, events: int = Event.ALL, *, timeout: float | None = None
    ) -> MonitorRecords:
        """Return what happens to this socket's connections from now on, to iterate over.

        ``for record in socket.monitor_records()`` with a blocking socket, ``async for`` with an
        asyncio one; any number at the same time. A record has the event and its value, as a
        monitor socket has them, and the peer's address and routing id, and the reason in words.

        Args:
            events: bits of :class:`~zerohop.constants.Event` to report.
            timeout: seconds to wait for each record, then Again; None: without limit.

        Raises:
            ZMQError: ENOTSOCK, closed.
        """
        from zerohop.api.feed import Feed
        from zerohop.api.records import MonitorRecords, RecordPart

        address = f"inproc://records.s-{next(_numbers)}"
        driver, monitors = self._driver, self._core.links.monitors
        with driver.lock:
            if self._core.closed:
                raise ZMQError(Errno.ENOTSOCK)
            feed = Feed(self._context_io, address, events, RecordPart.of)
            monitors.append(feed)
            driver.on_released.append(feed.close)

        def stop() -> None:
            with driver.lock:
                if feed in monitors:
                    monitors.remove(feed)
                if feed.close in driver.on_released:
                    driver.on_released.remove(feed.close)
                feed.close()

        pair = self.context.socket(SocketType.PAIR)
        pair.rcvtimeo = -1
        pair.connect(address)
        return MonitorRecords(pair, stop, timeout)
