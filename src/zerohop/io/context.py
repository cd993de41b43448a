"""What the sockets of one Context share: the lock, and the way to one another."""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING

from zerohop.core.context import ContextCore

if TYPE_CHECKING:
    from zerohop.io.driver import SocketDriver

_contexts: weakref.WeakSet[ContextIO] = weakref.WeakSet()


class ContextIO:
    """One lock for every socket of a Context, blocking and asyncio alike.

    One and not many: inproc pipes belong to two sockets at once, and under the GIL a finer lock
    would let nobody run who could not run anyway. The fast lanes do without it.

    Attributes:
        core: the pure part.
        drivers: of every socket that is not yet released, lingering ones too.
        forked: this is a child process's copy: its sockets are closed, and nothing of it works.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.core = ContextCore()
        self.drivers: set[SocketDriver] = set()
        self.forked = False
        self._handing_over = False
        _contexts.add(self)

    def hand_over(self, caller: SocketDriver) -> None:
        """Bring the notes about shared pipes to their sockets and wake those; lock held.

        A woken socket may cause new notes; the outermost call deals with them all.
        """
        if self._handing_over:
            return
        self._handing_over = True
        try:
            while True:
                touched = self.core.hand_over()
                if not touched:
                    break
                for core in touched:
                    driver: SocketDriver | None = core.driver
                    if driver is caller:
                        caller.again()
                    elif driver is not None:
                        driver.woken()
        finally:
            self._handing_over = False

    def abandon(self) -> None:
        """In a forked child: every socket is closed here and untouched in the parent."""
        self.forked = True
        for driver in list(self.drivers):
            driver.abandon()
        self.drivers.clear()
        self.core.sockets.clear()


_held: list[ContextIO] = []


def _before_fork() -> None:
    """Nobody is in the middle of anything when the memory is copied."""
    _held[:] = list(_contexts)
    for context in _held:
        context.lock.acquire()


def _after_fork() -> None:
    for context in _held:
        context.lock.release()
    _held.clear()


def _after_fork_in_child() -> None:
    for context in _held:
        context.abandon()
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork,
        after_in_child=_after_fork_in_child,
    )
