"""What a test may not leave behind: threads, file descriptors, files of ipc endpoints."""

import gc
import os
import threading
import time
from pathlib import Path

_OPEN_FILES = Path("/proc/self/fd")  # Linux; elsewhere descriptors are not compared
_SECONDS = 3.0  # closing happens on other threads; this is how long they may take


def _descriptors() -> dict[int, str]:
    found: dict[int, str] = {}
    if not _OPEN_FILES.exists():
        return found
    for name in os.listdir(_OPEN_FILES):
        try:
            found[int(name)] = os.readlink(_OPEN_FILES / name)
        except OSError:  # the descriptor of the listing itself
            continue
    return found


class Belongings:
    """Threads, descriptors and files at one moment, to compare with a later one."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._threads = set(threading.enumerate())
        self._descriptors = _descriptors()
        self._files = set(directory.iterdir())

    def _left_behind(self) -> list[str]:
        threads = [repr(t) for t in threading.enumerate() if t not in self._threads]
        descriptors = [
            f"fd {fd}: {target}"
            for fd, target in _descriptors().items()
            if self._descriptors.get(fd) != target
        ]
        files = [str(path) for path in self._directory.iterdir() if path not in self._files]
        return [*threads, *descriptors, *files]

    def left_behind(self) -> list[str]:
        """Return what has come since and does not go away; waits a little for what is closing."""
        deadline = time.monotonic() + _SECONDS
        while left := self._left_behind():
            if time.monotonic() > deadline:
                break
            gc.collect()  # a cycle that holds a socket is not a leak, only late
            time.sleep(0.005)
        return left
