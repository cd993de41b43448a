"""Which descriptors are ready: epoll where there is one, whatever ``selectors`` has elsewhere.

A mask is ``READ`` or ``WRITE`` or both. Changes may be made by one thread while another sleeps in
``wait``; where the system does not notice that (``sees_changes`` is False), the caller wakes it.
"""

from __future__ import annotations

import os
import select
import selectors
import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar, Protocol
else:
    Protocol = object

READ = 1
WRITE = 4  # EPOLLIN and EPOLLOUT, and selectors' two bits are translated


class Readiness(Protocol):
    """A set of descriptors, each with what it is watched for."""

    sees_changes: ClassVar[bool]

    def watch(self, fd: int, mask: int, before: int) -> None:
        """Watch ``fd`` for ``mask``; ``before`` is what it was watched for until now (0: not)."""

    def wait(self, seconds: float) -> list[tuple[int, int]]:
        """Return ready descriptors with their masks, after at most ``seconds`` (-1: no limit).

        An error or a hang-up makes a descriptor ready for all that it is watched for.
        """

    def close(self) -> None:
        """Forget everything; the watched descriptors stay open."""


class EpollReadiness:
    """Linux. ``selectors`` can do this too, for twice the time a round trip has for it."""

    sees_changes: ClassVar[bool] = True

    def __init__(self) -> None:
        self._epoll = select.epoll()
        # As in the protocol. Errors and hang-ups come as bits beyond the two; what is more than a
        # thousand stays ready, and the kernel goes round its list. No method of ours: this is
        # called for every message that is waited for.
        self.wait = self._epoll.poll

    def watch(self, fd: int, mask: int, before: int) -> None:
        """As in the protocol; the events of epoll have our numbers."""
        if not before:
            try:
                self._epoll.register(fd, mask)
            except FileExistsError:  # a signal handler has raised before it was written down
                self._epoll.modify(fd, mask)
        elif mask:
            try:
                self._epoll.modify(fd, mask)
            except FileNotFoundError:  # likewise, or it was closed and its number is used again
                self._epoll.register(fd, mask)
        else:
            try:
                self._epoll.unregister(fd)
            except OSError:  # closed before it was removed: the kernel has forgotten it already
                return

    def close(self) -> None:
        """Close epoll's own descriptor."""
        self._epoll.close()


class SelectorReadiness:
    """Everywhere else: kqueue, or select."""

    sees_changes: ClassVar[bool] = False

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def watch(self, fd: int, mask: int, before: int) -> None:
        """As in the protocol."""
        events = (selectors.EVENT_READ if mask & READ else 0) | (
            selectors.EVENT_WRITE if mask & WRITE else 0
        )
        # A KeyError: a signal handler has raised before, or after, it was written down.
        if not mask:
            try:
                self._selector.unregister(fd)
            except KeyError:
                return
        elif not before:
            try:
                self._selector.register(fd, events)
            except KeyError:
                self._selector.modify(fd, events)
        else:
            try:
                self._selector.modify(fd, events)
            except KeyError:
                self._selector.register(fd, events)

    def wait(self, seconds: float) -> list[tuple[int, int]]:
        """As in the protocol."""
        return [
            (
                key.fd,
                (READ if events & selectors.EVENT_READ else 0)
                | (WRITE if events & selectors.EVENT_WRITE else 0),
            )
            for key, events in self._selector.select(None if seconds < 0 else seconds)
        ]

    def close(self) -> None:
        """Close the selector."""
        self._selector.close()


def make_readiness() -> Readiness:
    """Return the best that this system has."""
    return EpollReadiness() if hasattr(select, "epoll") else SelectorReadiness()


class Doorbell:
    """A descriptor that one thread rings to get another out of :meth:`Readiness.wait`."""

    def __init__(self) -> None:
        self._eventfd = -1
        self._ends: tuple[socket.socket, socket.socket] | None = None
        if hasattr(os, "eventfd"):
            self._eventfd = self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        else:
            self._ends = socket.socketpair()
            for end in self._ends:
                end.setblocking(False)
            self.fd = self._ends[0].fileno()

    def ring(self) -> None:
        """Make the descriptor readable; any thread, any number of times."""
        try:
            if self._ends is None:
                os.eventfd_write(self._eventfd, 1)
            else:
                self._ends[1].send(b"\0")
        except OSError:  # full: then it rings already. Closed: then nobody sleeps any more.
            return

    def silence(self) -> None:
        """Make the descriptor unreadable again."""
        try:
            if self._ends is None:
                os.eventfd_read(self._eventfd)
            else:
                self._ends[0].recv(4096)
        except BlockingIOError:  # another thread was quicker
            return

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the descriptor."""
        if self._ends is not None:
            for end in self._ends:
                end.close()
        elif self._eventfd >= 0:
            # In this order: closing a number twice would close what has got it meanwhile.
            eventfd, self._eventfd = self._eventfd, -1
            os.close(eventfd)
