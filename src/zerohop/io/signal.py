"""A descriptor that is readable while a socket has something to say (ZMQ_FD)."""

from __future__ import annotations

import os
import socket


class Signal:
    """Readable while set. Level-triggered: libzmq's is not, and a missed edge hangs the program.

    Attributes:
        fd: for ``select``, ``poll`` and ``add_reader``; never read or written by others.
        is_set: whether it is readable now.
    """

    __slots__ = ("_reader", "_writer", "fd", "is_set")

    def __init__(self) -> None:
        self._reader: socket.socket | None = None
        self._writer: socket.socket | None = None
        self.is_set = False
        if hasattr(os, "eventfd"):
            self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        else:
            self._reader, self._writer = socket.socketpair()
            self._reader.setblocking(False)
            self._writer.setblocking(False)
            self.fd = self._reader.fileno()

    def set(self) -> None:
        """Make it readable."""
        if not self.is_set:
            # In this order: a signal handler that raises in between makes it readable once too
            # often, and not never again.
            if self._writer is None:
                os.eventfd_write(self.fd, 1)
            else:
                self._writer.send(b"\0")
            self.is_set = True

    def clear(self) -> None:
        """Make it not readable."""
        if self.is_set:
            self.is_set = False
            if self._reader is None:
                os.eventfd_read(self.fd)
            else:
                self._reader.recv(1)

    def close(self) -> None:
        """Give the descriptor back."""
        if self._reader is None or self._writer is None:
            # In this order: closing a number twice would close what has got it meanwhile.
            fd, self.fd = self.fd, -1
            if fd >= 0:
                os.close(fd)
        else:
            self._reader.close()
            self._writer.close()
