"""The library's log."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging


def log() -> logging.Logger:
    """Return the logger ``zerohop``, for whoever has something to say: nobody, in a good run."""
    import logging  # 5 ms, with what it needs

    return logging.getLogger("zerohop")
