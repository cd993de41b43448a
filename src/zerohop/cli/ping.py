"""``zerohop ping``: one line of what was found, one of what to do about it."""

from __future__ import annotations

import json
import sys
import time

from zerohop.serving.control.probe import ping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["run"]

_END = 0.1  # seconds that the process takes to end
_MOST = 0.25  # of the time limit, for the process itself: it may be one that does other things


def run(options: Namespace) -> int:
    """Look, tell, and return 0 only where a PING was answered."""
    own = time.process_time() + _END  # to begin is to compute: it takes so long on the wall, too
    timeout = options.timeout - min(own, options.timeout * _MOST)
    finding = ping(options.endpoint, timeout, release=options.lmcache)
    if options.json:
        told = {"finding": finding.code, "detail": finding.detail, "advice": finding.advice}
        sys.stdout.write(json.dumps(told) + "\n")
    else:
        sys.stdout.write(f"{finding.code}: {finding.detail}\n  to do: {finding.advice}\n")
    return 0 if finding.answered else 1
