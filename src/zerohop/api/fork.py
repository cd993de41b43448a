"""What becomes of contexts in a forked child: closed, their descriptors given back.

The parent's sockets go on. (libzmq leaves the child with the parent's sockets, and without the
threads that drive them.)
"""

from __future__ import annotations

import os
import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.api.context import ContextBase

__all__ = ["contexts"]

contexts: weakref.WeakSet[ContextBase] = weakref.WeakSet()
"""Every context of this process; a shadow shares the lock, and has sockets of its own."""

_PATIENCE = 1.0  # seconds; a fork must not hang because some thread does
_held: list[ContextBase] = []


def _before_fork() -> None:
    """Let every thread finish its work with a context: the child must not inherit half of it."""
    _held.extend(
        context for context in list(contexts) if context._io.lock.acquire(timeout=_PATIENCE)
    )


def _after_fork_in_parent() -> None:
    for context in _held:
        context._io.lock.release()
    _held.clear()


def _after_fork_in_child() -> None:
    for context in list(contexts):
        context._abandon()
    _after_fork_in_parent()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
