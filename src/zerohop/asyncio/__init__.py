"""ZeroMQ sockets on the running asyncio loop: the same names, awaitable.

Native: the loop's own readers and writers, no helper thread. ``send`` and ``recv`` act at once and
return awaitables that behave like futures; cancelling one never loses a message.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.asyncio.context import Context
    from zerohop.asyncio.poller import Poller
    from zerohop.asyncio.socket import Socket

__all__ = ["Context", "Poller", "Socket"]

# Each is imported when it is first asked for, as the names of ``zerohop``.
_IMPORTED_LATER = {
    "Context": "zerohop.asyncio.context",
    "Poller": "zerohop.asyncio.poller",
    "Socket": "zerohop.asyncio.socket",
}

if not TYPE_CHECKING:  # or every name would be one, to a type checker

    def __getattr__(name: str) -> object:
        module = _IMPORTED_LATER.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(__import__(module, fromlist=(name,)), name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
