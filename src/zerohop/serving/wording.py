"""Words of errors and notices that depend on a number."""

from __future__ import annotations

__all__ = ["counted"]


def counted(count: int, noun: str) -> str:
    """Return how many there are: ``1 worker``, ``2 workers``, ``0 batches``."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun}{'es' if noun.endswith(('ch', 's', 'x')) else 's'}"
