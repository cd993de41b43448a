"""The library under test, picked by ``--library``: one API, two implementations."""

import importlib
from dataclasses import dataclass
from typing import Any

MODULE_NAMES = {"zerohop": "zerohop", "zmq": "zmq"}


@dataclass(frozen=True)
class Library:
    """A ZeroMQ for Python: its blocking module (names, constants, errors) and its asyncio one."""

    name: str
    blocking: Any  # modules: their attributes are looked up by the tests, not known to mypy
    asyncio: Any

    @property
    def is_libzmq(self) -> bool:
        return self.name == "zmq"


def load(name: str) -> Library:
    """Import the library called ``name``: "zerohop", or "zmq" for pyzmq over libzmq."""
    module_name = MODULE_NAMES[name]
    return Library(
        name,
        importlib.import_module(module_name),
        importlib.import_module(f"{module_name}.asyncio"),
    )


def start_collector_of_pyzmq() -> None:
    """Start the thread that pyzmq keeps for uncopied messages: it must not look like a leak."""
    from zmq import Frame

    Frame(b"x" * 100_000, copy=False)  # freed at once, by way of that thread
