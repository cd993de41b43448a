"""What becomes of a connection whose other end can't be reached any more.

A process that ends breaks its connections; a machine that is cut off does not, and who only
receives would wait for ever. The system finds it out, by the probes of TCP. Unlike heartbeats of
ours they don't mistake a process that stands still for one that is not there.

Data that goes unacknowledged is another matter: it may be that the other end has no room. So only
the pulse, which sends next to nothing, has a limit for that; what it finds out is the end of the
others, too.
"""

from __future__ import annotations

from typing import Any

__all__ = ["UNACKNOWLEDGED_MS", "end_when_unreachable"]

_SILENT_FOR = 10  # seconds without anything, before it is probed
_PROBE_EVERY = 5  # seconds
_PROBES = 4
UNACKNOWLEDGED_MS = 1000 * (_SILENT_FOR + _PROBES * _PROBE_EVERY)


def end_when_unreachable(socket: Any) -> None:
    """Have connections that this socket makes, or takes, from now on break half a minute later."""
    socket.tcp_keepalive = 1
    socket.tcp_keepalive_idle = _SILENT_FOR
    socket.tcp_keepalive_intvl = _PROBE_EVERY
    socket.tcp_keepalive_cnt = _PROBES
