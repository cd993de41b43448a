"""What the programs of the peers share: a lossy way for KV events, and rows of what came of it."""

from __future__ import annotations

import json
import platform
import socket
import threading
from typing import TYPE_CHECKING

import zerohop as zmq

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

__all__ = ["LossyRelay", "free_port", "say", "say_versions"]


def say(check: str, result: str, ok: bool) -> None:
    """Report one thing that was tried."""
    print(json.dumps({"check": check, "result": result, "ok": ok}), flush=True)


def say_versions(*peers: str) -> None:
    """Report who met."""
    python = f"CPython {platform.python_version()}"
    met = ", ".join((f"zerohop {zmq.__version__}", *peers, python, platform.machine()))
    print(json.dumps({"versions": met}), flush=True)


def free_port() -> int:
    """Return a port of the loopback that nobody has now, for a peer that must be told one."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class LossyRelay:
    """Between a publisher of KV events and its reader: some numbers are not passed on.

    Args:
        source: the publisher's endpoint.
        drop: says of a number whether it is lost.

    Attributes:
        endpoint: for the reader.
        dropped: the numbers that were lost.
    """

    def __init__(self, source: str, drop: Callable[[int], bool]) -> None:
        self._drop = drop
        self.dropped: list[int] = []
        self._context = zmq.Context()
        self._sub = self._context.socket(zmq.SUB)
        self._sub.rcvhwm = 0
        self._sub.subscribe(b"")
        self._sub.connect(source)
        self._pub = self._context.socket(zmq.PUB)
        self._pub.sndhwm = 0
        self._pub.bind("tcp://127.0.0.1:*")
        self.endpoint: str = self._pub.last_endpoint.decode()
        self._thread = threading.Thread(target=self._relay, daemon=True)
        self._thread.start()

    def wait_connected(self) -> None:
        """Wait for the publisher. Who is subscribed to the relay from then on misses nothing."""
        self._sub.wait_connected(timeout=60)

    def _relay(self) -> None:
        while True:
            try:
                frames = self._sub.recv_multipart()
            except zmq.ZMQError:  # closed
                return
            seq = int.from_bytes(frames[-2], "big")
            if self._drop(seq):
                self.dropped.append(seq)
            else:
                self._pub.send_multipart(frames)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._context.destroy(linger=0)
        self._thread.join()
