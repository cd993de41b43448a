"""``zerohop ping``: one line of what was found, one of what to do about it."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from zerohop.serving import ping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["run"]

_END = 0.15  # seconds that the process takes to end
_MOST = 0.5  # of the time limit, for the process itself: it may be one that does other things
_STAT = Path("/proc/self/stat")
_STARTED = (
    19  # the field of that, counted from the one after the name: ticks since the system began
)


def run(options: Namespace) -> int:
    """Look, tell, and return 0 only where a PING was answered."""
    timeout = options.timeout - min(_age() + _END, options.timeout * _MOST)
    finding = ping(options.endpoint, timeout, release=options.lmcache)
    if options.json:
        told = {"finding": finding.code, "detail": finding.detail, "advice": finding.advice}
        sys.stdout.write(json.dumps(told) + "\n")
    else:
        sys.stdout.write(f"{finding.code}: {finding.detail}\n  to do: {finding.advice}\n")
    return 0 if finding.answered else 1


def _age() -> float:
    """Seconds since this process was started, which took a part of the time limit."""
    if not _STAT.exists():
        return time.process_time()  # to start is to compute
    ticks = int(_STAT.read_text().rpartition(")")[2].split()[_STARTED])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
