"""``zerohop ping``: one line of what was found, one of what to do about it."""

from __future__ import annotations

import json
import sys

from zerohop.serving.control.probe import ping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["run"]

_MARGIN, _SHARE = 0.5, 0.1  # of the time limit, for this process to begin and to end


def run(options: Namespace) -> int:
    """Look, tell, and return 0 only where a PING was answered."""
    timeout = options.timeout - min(_MARGIN, options.timeout * _SHARE)
    finding = ping(options.endpoint, timeout, release=options.lmcache)
    if options.json:
        told = {"finding": finding.code, "detail": finding.detail, "advice": finding.advice}
        sys.stdout.write(json.dumps(told) + "\n")
    else:
        sys.stdout.write(f"{finding.code}: {finding.detail}\n  to do: {finding.advice}\n")
    return 0 if finding.answered else 1
