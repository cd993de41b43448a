"""What others hear of a socket's connections: monitors each event, the log each new trouble.

    event                        when                                             value
    CONNECTED, ACCEPTED          a connection is there                            descriptor
    HANDSHAKE_SUCCEEDED          the peer is there                                0
    HANDSHAKE_FAILED_PROTOCOL    the two ends do not fit, or a frame is broken    Event.PROTOCOL_...
    HANDSHAKE_FAILED_NO_DETAIL   closed or silent before it was done              errno
    DISCONNECTED                 the connection is no more                        descriptor

``core.monitor`` has the records themselves and how they are kept.
"""

from __future__ import annotations

import errno

from zerohop.constants import Event
from zerohop.errors import ProtocolError, ZMQError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.constants import SocketType
    from zerohop.core.link import Dialer, Link, Listener
    from zerohop.core.monitor import MonitorLog

_MOST_CAUSES = 100  # log lines an endpoint, while no handshake is completed there


class Records:
    """Where one socket's connections say what happens to them.

    Args:
        socket_type: named in every report.

    Attributes:
        monitors: who wants records; usually nobody.
        reports: lines for the log, which the driver writes and clears: one a cause and endpoint.
    """

    def __init__(self, socket_type: SocketType) -> None:
        self.monitors: list[MonitorLog] = []
        self.reports: list[str] = []
        self._type = socket_type

    def add(
        self,
        event: Event,
        value: int,
        endpoint: str,
        *,
        remote: str = "",
        routing_id: bytes = b"",
        reason: str = "",
    ) -> None:
        """Put a record into every monitor; costs nothing when there is none."""
        if not self.monitors:
            return
        from zerohop.core.monitor import MonitorRecord

        record = MonitorRecord(
            event, value, endpoint, remote=remote, routing_id=routing_id, reason=reason
        )
        for monitor in self.monitors:
            monitor.append(record)

    def of_link(self, event: Event, link: Link, value: int, *, reason: str = "") -> None:
        """:meth:`add` what happened to a link; the record says who is at its other end."""
        if self.monitors:
            routing_id = link.peer.routing_id if link.peer is not None else b""
            self.add(
                event,
                value,
                link.endpoint,
                remote=link.remote,
                routing_id=routing_id,
                reason=reason,
            )

    def end_of(self, link: Link, error: Exception | None) -> None:
        """Say that a link is no more, and why its handshake failed if it was not done."""
        if not self.monitors:
            return
        failure = link.failure or error
        reason = str(failure or "")
        cut = link.closing and link.failure is None
        if not link.handshaken and not cut:
            if isinstance(failure, ProtocolError):
                self.of_link(Event.HANDSHAKE_FAILED_PROTOCOL, link, failure.code, reason=reason)
            else:
                number = failure.errno if isinstance(failure, OSError | ZMQError) else None
                self.of_link(
                    Event.HANDSHAKE_FAILED_NO_DETAIL, link, number or errno.EPIPE, reason=reason
                )
        self.of_link(Event.DISCONNECTED, link, link.fd, reason=reason)

    def report(self, source: Dialer | Listener, endpoint: str, trouble: Exception | str) -> None:
        """Have the log say what is wrong at an endpoint, once for each cause.

        Peers can make trouble as often as they like, and in ever new words.
        """
        if isinstance(trouble, ProtocolError):
            cause = f"{type(trouble).__name__} {trouble.code:#x}"
        elif isinstance(trouble, OSError):
            cause = f"OSError {trouble.errno}"
        else:
            cause = str(trouble)
        if cause not in source.reported and len(source.reported) < _MOST_CAUSES:
            source.reported |= {cause}
            self.reports.append(f"{self._type.name} {endpoint}: {trouble}")
