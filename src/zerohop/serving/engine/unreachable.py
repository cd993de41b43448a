"""What becomes of a connection whose other end can't be reached any more.

A process that ends breaks its connections; a machine that is cut off does not, and who only
receives would wait for ever. The system finds it out: by the probes of TCP, and by the time that
sent data goes unacknowledged. Unlike heartbeats of ours they don't mistake a process that stands
still for one that is not there.
"""

from __future__ import annotations

from typing import Any

__all__ = ["end_when_unreachable"]

_SILENT_FOR = 10  # seconds without anything, before it is probed
_PROBE_EVERY = 5  # seconds
_PROBES = 4
_UNACKNOWLEDGED_MS = 1000 * (_SILENT_FOR + _PROBES * _PROBE_EVERY)


def end_when_unreachable(socket: Any) -> None:
    """Have connections that this socket makes, or takes, from now on break half a minute later."""
    socket.tcp_keepalive = 1
    socket.tcp_keepalive_idle = _SILENT_FOR
    socket.tcp_keepalive_intvl = _PROBE_EVERY
    socket.tcp_keepalive_cnt = _PROBES
    socket.tcp_maxrt = _UNACKNOWLEDGED_MS
