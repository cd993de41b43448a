"""ZeroMQ sockets on the running asyncio loop: the same names, awaitable.

Native: the loop's own readers and writers, no helper thread. ``send`` and ``recv`` act at once and
return awaitables that behave like futures; cancelling one never loses a message.
"""

from zerohop.asyncio.context import Context
from zerohop.asyncio.socket import Socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.asyncio.poller import Poller

__all__ = ["Context", "Poller", "Socket"]

if not TYPE_CHECKING:  # or every name would be one, to a type checker

    def __getattr__(name: str) -> object:
        """Import Poller when it is first asked for: few programs poll on a loop."""
        if name == "Poller":
            from zerohop.asyncio.poller import Poller

            globals()[name] = Poller
            return Poller
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
