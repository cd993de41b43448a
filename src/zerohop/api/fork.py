"""What becomes of contexts in a forked child: closed, their descriptors given back.

The parent's sockets go on. (libzmq leaves the child with the parent's sockets, and without the
threads that drive them.)
"""

from __future__ import annotations

import os
import threading
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from zerohop.api.context import ContextBase

__all__ = ["contexts", "locks"]

contexts: weakref.WeakSet[ContextBase] = weakref.WeakSet()
"""Every context of this process; a shadow shares the lock, and has sockets of its own."""

locks: list[Any] = []
"""What else no thread may hold while another one forks."""

_PATIENCE = 1.0  # seconds; a fork must not hang because some thread does
_held: dict[int, list[Any]] = {}  # by thread: several may fork at once


def _before_fork() -> None:
    """Let every thread finish its work with a context: the child must not inherit half of it."""
    wanted = [*locks, *(context._io.lock for context in list(contexts))]
    _held[threading.get_ident()] = [lock for lock in wanted if lock.acquire(timeout=_PATIENCE)]


def _after_fork_in_parent() -> None:
    for lock in reversed(_held.pop(threading.get_ident(), [])):
        lock.release()


def _after_fork_in_child() -> None:
    for context in list(contexts):
        context._abandon()
    _after_fork_in_parent()
    _held.clear()  # of threads that are not here


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
