"""What this library is, for programs that ask as they ask pyzmq: versions and capabilities."""

from __future__ import annotations

import sys

from zerohop.constants import LIBZMQ_VERSION
from zerohop.errors import ZMQError

__all__ = [
    "get_includes",
    "get_library_dirs",
    "has",
    "pyzmq_version",
    "pyzmq_version_info",
    "zmq_errno",
    "zmq_version",
    "zmq_version_info",
]

_PYZMQ_VERSION = "27.3.0"  # the pyzmq whose names, errors and texts ours are held against
_CAPABILITIES = frozenset({"ipc"})


def zmq_version() -> str:
    """Return the version of libzmq that we behave as: ``"4.3.5"``."""
    return LIBZMQ_VERSION


def zmq_version_info() -> tuple[int, int, int]:
    """Return :func:`zmq_version` as numbers, to compare."""
    return _numbers(LIBZMQ_VERSION)


def pyzmq_version() -> str:
    """Return the version of pyzmq whose API this is; ``zerohop.__version__`` is our own."""
    return _PYZMQ_VERSION


def pyzmq_version_info() -> tuple[int, int, int]:
    """Return :func:`pyzmq_version` as numbers, to compare."""
    return _numbers(_PYZMQ_VERSION)


def has(capability: str) -> bool:
    """Return whether an optional part is there (``zmq_has``).

    Args:
        capability: ``"ipc"``, ``"curve"``, ``"draft"``, ...
    """
    return capability.lower() in _CAPABILITIES


def zmq_errno() -> int:
    """Return the number of the error that is being handled: ask in the ``except`` block.

    0 where none of ours is. (libzmq remembers each thread's last error; ours carry their number,
    and ``Again`` is raised too often to be written down each time.)
    """
    error = sys.exception()
    while error is not None and not isinstance(error, ZMQError):
        error = error.__context__
    return 0 if error is None else error.errno or 0


def get_includes() -> list[str]:
    """Return where the header files are: nowhere, for there is nothing to compile against."""
    return []


def get_library_dirs() -> list[str]:
    """Return where the libraries to link with are: nowhere, for there are none."""
    return []


def _numbers(version: str) -> tuple[int, int, int]:
    major, minor, patch = map(int, version.split("."))
    return major, minor, patch
