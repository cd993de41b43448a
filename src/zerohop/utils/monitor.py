"""Reading a monitor socket: pyzmq's ``zmq.utils.monitor``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from zerohop.core.monitor import MonitorMessage
from zerohop.core.monitor import parse as parse_monitor_message

if TYPE_CHECKING:
    from collections.abc import Awaitable

__all__ = ["MonitorMessage", "parse_monitor_message", "recv_monitor_message"]


def recv_monitor_message(socket: Any, flags: int = 0) -> Any:
    """Receive the next event from a socket that ``get_monitor_socket`` returned.

    Args:
        socket: blocking or asyncio.
        flags: as ``recv``.

    Returns:
        A dict of ``event`` (:class:`~zerohop.constants.Event`), ``value`` (an int: see
        :mod:`zerohop.core.monitor`) and ``endpoint`` (octets); from an asyncio socket an
        awaitable of it.

    Raises:
        Again, ZMQError: as ``recv``.
        RuntimeError: what came is no monitor event.
    """
    received = socket.recv_multipart(flags)
    if isinstance(received, list) and not hasattr(received, "__await__"):
        return parse_monitor_message(received)
    return _parse_later(received)


async def _parse_later(received: Awaitable[list[bytes]]) -> MonitorMessage:
    return parse_monitor_message(await received)
