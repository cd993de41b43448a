"""A monitor's end of the pipe: a PAIR of ours that passes records on, and waits for nobody.

    monitored socket ── record ──► Feed (a PAIR of ours, bound) ══ inproc ══► the reader's PAIR

The pipe between the two holds so many messages and no more: one more drops the oldest. A reader
that does not read, or went away without a word, costs nobody anything (libzmq then stops all I/O of
the context: its issue 3575).
"""

from __future__ import annotations

from zerohop.constants import Errno, Event, SocketType
from zerohop.core.endpoint import InprocEndpoint, parse
from zerohop.core.monitor import MonitorLog, MonitorRecord, encode
from zerohop.core.options import SocketOptions
from zerohop.core.socket import SocketCore
from zerohop.errors import EndpointError, UsageError
from zerohop.io.driver import SocketDriver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from zerohop.io.context import ContextIO
    from zerohop.patterns.pipe import Message

__all__ = ["Feed"]

_LIMIT = 2000  # messages: what two PAIRs with libzmq's default marks hold between them


def _pyzmq_message(record: MonitorRecord) -> Message:
    return [*encode(record)]


class Feed(MonitorLog):
    """Takes records as a :class:`MonitorLog` does, and passes them on at once.

    Every method is called with the context's lock held.

    Args:
        context: the monitored socket's.
        address: an ``inproc`` endpoint that nobody has bound.
        events: the bits that the reader wants.
        write: makes a message of a record.

    Raises:
        UsageError: EPROTONOSUPPORT, not ``inproc``; EINVAL, no endpoint at all.
        EndpointError: EADDRINUSE.
    """

    __slots__ = ("_core", "_driver", "_write")

    def __init__(
        self,
        context: ContextIO,
        address: str,
        events: int,
        write: Callable[[MonitorRecord], Message] = _pyzmq_message,
    ) -> None:
        super().__init__(events)
        self._write = write
        if not isinstance(_parsed(address), InprocEndpoint):
            raise UsageError(
                Errno.EPROTONOSUPPORT,
                hint=f"{address} is not inproc://, and a monitor is read in the same Context",
            )
        self._core = SocketCore(
            SocketType.PAIR, SocketOptions(linger=0.0), context.core, seed=0, jitter=float
        )
        self._driver = SocketDriver(self._core, context)
        try:
            self._driver.bind(address)
        except BaseException:
            self._driver.close(0.0)
            raise

    def append(self, record: MonitorRecord) -> None:
        """Pass a record on, if its event is wanted and somebody is there."""
        if not record.event & self._events:
            return
        peer = next(iter(self._core.links.peers), None)
        if peer is None:
            self.dropped += 1
            return
        pipe = peer.outbound
        if len(pipe) >= _LIMIT or pipe.full:
            self.dropped += 1
            try:
                pipe.messages.popleft()
            except IndexError:  # the reader was quicker: then there is room
                self.dropped -= 1
        pipe.push(self._write(record))

    def close(self) -> None:
        """Say that this was all, and leave. What was not yet read can still be."""
        if not self._core.closed:
            self.append(MonitorRecord(Event.MONITOR_STOPPED, 0, ""))
            self._driver.close(0.0)


def _parsed(address: str) -> object:
    """The endpoint; what is wrong with it is said without the address, as pyzmq does here."""
    try:
        return parse(address, for_bind=True)
    except EndpointError as error:
        raise UsageError(error.errno, hint=str(error)) from None
