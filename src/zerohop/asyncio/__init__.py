"""ZeroMQ sockets on the running asyncio loop: the same names, awaitable.

Native: the loop's own readers and writers, no helper thread. ``send`` and ``recv`` act at once and
return awaitables that behave like futures; cancelling one never loses a message.
"""

from zerohop.asyncio.context import Context
from zerohop.asyncio.poller import Poller
from zerohop.asyncio.socket import Socket

__all__ = ["Context", "Poller", "Socket"]
