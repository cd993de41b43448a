"""What happens to a socket's connections, to iterate over."""

from __future__ import annotations

from zerohop.constants import Errno, Event
from zerohop.core.monitor import MonitorLog, MonitorRecord
from zerohop.errors import Again, ZMQError
from zerohop.sync.waiters import NEWS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from zerohop.sync.wait_methods import WaitMethods


class Records:
    """``for record in socket.records():`` each thing that happens; ends with the socket.

    Records are kept from the moment this is made until :meth:`close`. Whoever does not read them
    loses the oldest (``dropped``), and holds nothing up.

    Args:
        socket: whose connections.
        events: the bits of :class:`~zerohop.constants.Event` that are wanted.
    """

    def __init__(self, socket: WaitMethods, events: int = Event.ALL) -> None:
        self._socket = socket
        self._log = MonitorLog(events)
        with socket._driver.lock:
            socket._core.check_open()
            socket._core.links.monitors.append(self._log)

    @property
    def dropped(self) -> int:
        """How many records nobody read in time."""
        return self._log.dropped

    def next(self, timeout: float | None = None) -> MonitorRecord:
        """Wait for the next record.

        Args:
            timeout: seconds; None: without limit.

        Raises:
            Again: nothing happened in the time allowed.
            ZMQError: ENOTSOCK, ETERM: the socket has come to its end, and everything was read.
        """
        log = self._log
        if not log:
            try:
                self._socket._wait_until(lambda: len(log), NEWS, timeout)
            except ZMQError:
                if not log:
                    raise
        try:
            return log.pop()
        except IndexError:
            raise Again from None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> MonitorRecord:
        try:
            return self.next()
        except ZMQError as error:
            if error.errno in (Errno.ENOTSOCK, Errno.ETERM):
                raise StopIteration from None
            raise

    def close(self) -> None:
        """Keep no more records."""
        with self._socket._driver.lock:
            monitors = self._socket._core.links.monitors
            if self._log in monitors:
                monitors.remove(self._log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
