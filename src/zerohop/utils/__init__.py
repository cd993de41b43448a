"""The small modules that programs know as ``zmq.utils``: names for what lies elsewhere."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zerohop.utils import jsonapi, monitor, strtypes, z85

__all__ = ["jsonapi", "monitor", "strtypes", "z85"]

if not TYPE_CHECKING:  # or every name would be one, to a type checker

    def __getattr__(name: str) -> object:
        """Import a module when it is first asked for: ``zmq.utils.jsonapi``."""
        if name in __all__:
            return __import__(f"{__name__}.{name}", fromlist=("",))
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
