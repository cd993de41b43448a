"""Where the parts of the serving plane meet: short ipc paths, free ports, the loopback.

A path of an ``ipc`` endpoint has at most 107 octets, and names of models and run directories have
more. So a path is made of a digest: the same name gives the same endpoint in every process of a
user, and nobody but him may use the directory.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from zerohop import IPC_PATH_MAX_LEN
from zerohop.serving.arguments import text

__all__ = ["ipc_endpoint", "outputs_beside", "reachable_from"]

_OWN_PART = 36  # octets of "/zerohop-", a user's number, "/" and a digest
_WILDCARDS = ("*", "0.0.0.0", "[::]")  # noqa: S104 - recognized, not bound


def ipc_endpoint(name: str, directory: str | os.PathLike[str] | None = None) -> str:
    """Return a short ``ipc`` endpoint for a name of any length.

    Args:
        name: what is to be reached there; the same name gives the same endpoint.
        directory: of the socket; it must exist. Unless given: one of this user's in the
            directory for temporary files, which is made.

    Raises:
        TypeError: the name is no text.
        PermissionError: the user's directory is another's, or others may write to it.
        ValueError: the directory's path is too long.
    """
    folder = _own_directory() if directory is None else Path(directory)
    path = f"{folder}/{_digest(text('name', name))}"
    if len(os.fsencode(path)) > IPC_PATH_MAX_LEN:
        raise ValueError(
            f"{path} has more than the {IPC_PATH_MAX_LEN} octets of an ipc path; "
            "name a directory with a shorter path"
        )
    return f"ipc://{path}"


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def _own_directory() -> Path:
    parent = tempfile.gettempdir()
    if len(os.fsencode(parent)) > IPC_PATH_MAX_LEN - _OWN_PART:
        parent = "/tmp"  # noqa: S108 - only its subdirectory is used, and that is looked at
    folder = Path(parent, f"zerohop-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError(
            f"{folder} has to be a directory of user {os.getuid()} that no one else writes to; "
            "remove it, or name another directory"
        )
    return folder


def outputs_beside(requests: str) -> str:
    """Return where an API server binds its outputs: beside its requests, over the same transport.

    Args:
        requests: the endpoint of its requests, as bound.
    """
    if requests.startswith("ipc://@"):  # an abstract name, which has no directory
        return f"{requests}-outputs"
    if requests.startswith("ipc://"):
        path = Path(requests.removeprefix("ipc://"))
        return ipc_endpoint(f"outputs of {path}", path.parent)
    transport, _, place = requests.partition("://")
    return f"{transport}://{place.rpartition(':')[0]}:*"


def reachable_from(announced: str, used: str) -> str:
    """Return an announced endpoint as it can be connected to.

    Who binds to every interface can't know by which of them others reach it; the one who connects
    does.

    Args:
        announced: by the other side.
        used: an endpoint of the other side that this side connects to.
    """
    if not announced.startswith("tcp://") or not used.startswith("tcp://"):
        return announced
    host, _, port = announced.removeprefix("tcp://").rpartition(":")
    if host not in _WILDCARDS:
        return announced
    return f"tcp://{used.removeprefix('tcp://').rpartition(':')[0]}:{port}"
