"""What is no answer goes to standard error."""

from __future__ import annotations

import sys


def say(text: str, end: str = "\n") -> None:
    """Tell the person something beside the answers."""
    print(text, end=end, file=sys.stderr, flush=True)
