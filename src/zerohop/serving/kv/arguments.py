"""What a publisher of KV events is given, checked before it opens a socket or starts a thread."""

from __future__ import annotations

from zerohop.serving.arguments import apart, seconds, text, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["check_publisher"]


def check_publisher(
    *, endpoint: Any, replay: Any, topic: Any, dp_rank: Any, patience: Any, **limits: Any
) -> None:
    """Check the arguments of a ``KvEventPublisher``.

    Args:
        endpoint: where others can be.
        replay: likewise, or ``None``.
        topic: a text.
        dp_rank: a whole number, or ``None``.
        patience: a time.
        limits: whole numbers.

    Raises:
        TypeError: one of them is of another kind.
        ValueError: one of the numbers is below 0, or an endpoint of ``inproc``.
    """
    apart("endpoint", endpoint)
    text("topic", topic)
    if replay is not None:
        apart("replay", replay)
    if dp_rank is not None:
        whole("dp_rank", dp_rank)
    seconds("patience", patience)
    for name, limit in limits.items():
        whole(name, limit)
