"""MessageTracker: whether the buffers lent to ``send(copy=False)`` are the caller's again."""

from __future__ import annotations

import threading
import time
import weakref

from zerohop.errors import NotDone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from zerohop.api.frame import Frame

__all__ = ["DONE", "MessageTracker"]

_Watched: TypeAlias = "weakref.ref[memoryview] | threading.Event"


class MessageTracker:
    """Tells when the library has let go of the buffers of one or more messages.

    A tracked part travels through the queues as a ``memoryview`` of the caller's buffer, and
    whoever has it holds it: the pipe of each peer, and then the connection until the kernel has
    its last octet. So the message is done when that very object is no more, which is what a weak
    reference tells, without a call on anybody's hot path.

    Args:
        towatch: frames, other trackers, ``threading.Event`` objects, or the views themselves.
            None at all: done from the start.

    Raises:
        ValueError: a Frame that was made without ``track=True``.
        TypeError: something else.
    """

    __slots__ = ("__weakref__", "_watched")

    def __init__(self, *towatch: MessageTracker | Frame | memoryview | threading.Event) -> None:
        self._watched: list[_Watched] = []
        for item in towatch:
            if isinstance(item, memoryview):
                self._watched.append(weakref.ref(item))
            elif isinstance(item, threading.Event):
                self._watched.append(item)
            else:
                self._watched += _tracker_of(item)._watched

    @property
    def done(self) -> bool:
        """Whether every buffer may be used again."""
        return all(
            item.is_set() if isinstance(item, threading.Event) else item() is None
            for item in self._watched
        )

    def wait(self, timeout: float | None = -1) -> None:
        """Block until done.

        Never on the thread of the loop that has to send the message: nothing would move.

        Args:
            timeout: seconds; negative or None: without limit.

        Raises:
            NotDone: the time has passed.
        """
        deadline = None if timeout is None or timeout < 0 else time.monotonic() + timeout
        for item in self._watched:
            left = -1.0 if deadline is None else max(0.0, deadline - time.monotonic())
            if not _wait_for(item, left):
                raise NotDone


def _tracker_of(item: MessageTracker | Frame) -> MessageTracker:
    if isinstance(item, MessageTracker):
        return item
    try:
        tracker = item.tracker
    except AttributeError:
        raise TypeError(f"Require Events or Message Frames, not {type(item)}") from None
    if tracker is None:
        raise ValueError("Not a tracked message")
    return tracker


def _wait_for(item: _Watched, seconds: float) -> bool:
    """Wait at most ``seconds`` (negative: without limit); return whether it is done."""
    if isinstance(item, threading.Event):
        return item.wait(None if seconds < 0 else seconds)
    view = item()
    if view is None:
        return True
    # A bare lock as a gate: the callback may run inside a garbage collection, on any thread and in
    # the middle of anything; releasing a lock is safe there, setting an Event (which locks) is not.
    gate = threading.Lock()
    gate.acquire()
    watch = weakref.ref(view, lambda _: gate.release())
    del view  # if ours was the last reference, the gate opens here
    opened = gate.acquire(timeout=seconds)
    del watch
    return opened


DONE = MessageTracker()
"""For messages that were copied: the caller's buffer is free when ``send`` returns."""
