"""A queue of whole messages, in one direction, between a socket and one peer (RFC 28-30: "queue").

Two parties meet at a pipe: the one that writes it and the one that reads it. For a network peer the
other party is the connection (it reads what the socket sends, and writes what the socket will
receive); for an inproc peer it is the pattern of the other socket, and both share this very object.

Neither calls the other. Whoever changes a pipe leaves a note in a list that the other party reads
when it is next asked to (``reader_signals``, ``writer_signals``), and only if that party went to
sleep on the pipe: a note per batch, not per message.

    writer                                   reader
      push: queue, note if reader asleep  ->   finds the note, drains, goes to sleep when empty
      stops when full                     <-   pop: note when half drained after a full pipe

A driver may bypass :meth:`push` and :meth:`pop` and use ``messages`` directly (one deque operation
is atomic under the GIL) as long as it holds to the same rules: see ``Pattern.send_lane``.
"""

from __future__ import annotations

from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

Part: TypeAlias = bytes | memoryview
"""One frame of a message. Received parts are always ``bytes``; a ``memoryview`` is what the caller
lent to ``send(copy=False)``."""

Message: TypeAlias = Part | list[Part]
"""A message of one frame travels bare; a list is a message of two frames or more."""


class Pipe:
    """At most ``hwm`` messages from one writer to one reader; 0 means no limit.

    Once full, it stays full until the reader has drained half of it, so that a blocked writer wakes
    once for a batch (libzmq's low-water mark, ``(hwm + 1) / 2``).

    Args:
        hwm: limit in whole messages. It is the writer's promise to look at ``full`` before each
            :meth:`push`; the pipe itself takes what it is given (a batch that was already read from
            the network is never thrown away).
        conflate: keep the last message only (ZMQ_CONFLATE; whole messages, where libzmq keeps one
            frame). Such a pipe is never full.
        reader_signals, writer_signals: where notes for either party are left; by default in lists
            of the pipe's own.

    Attributes:
        messages: the queue, oldest first.
        full: the writer must stop.
        asleep: the reader has seen the queue empty and wants a note.
        reader, writer: what is put into the signal lists: whatever the party that owns the list
            needs in order to know who is meant (a Peer, a Link).
        closed: the writer is gone; what is queued may still be read.
        whole: all that is queued, if it was put there at once by somebody who gives the same list
            to others, too (``fan_out``): a reader may take the list instead of the messages, one
            after another. It is nobody's to change. None: not so, or not any more.
    """

    __slots__ = (
        "asleep", "closed", "conflate", "full", "hwm", "messages", "reader", "reader_signals",
        "resume_at", "whole", "writer", "writer_signals",
    )  # fmt: skip

    def __init__(
        self,
        hwm: int,
        conflate: bool = False,
        reader_signals: list[Any] | None = None,
        writer_signals: list[Any] | None = None,
    ) -> None:
        self.messages: deque[Message] = deque(maxlen=1) if conflate else deque()
        self.conflate = conflate
        self.full = False
        self.asleep = True
        self.closed = False
        self.whole: list[Message] | None = None
        self.reader: Any = None
        self.writer: Any = None
        self.reader_signals: list[Any] = [] if reader_signals is None else reader_signals
        self.writer_signals: list[Any] = [] if writer_signals is None else writer_signals
        self.hwm = 0 if conflate else hwm
        self.resume_at = self.hwm - (self.hwm + 1) // 2

    def __len__(self) -> int:
        return len(self.messages)

    def set_hwm(self, hwm: int) -> None:
        """Change the limit; takes effect with the next message (libzmq: SNDHWM is live)."""
        self.hwm = 0 if self.conflate else hwm
        self.resume_at = self.hwm - (self.hwm + 1) // 2
        queued = len(self.messages)
        if self.full and (not self.hwm or queued < self.hwm):
            self._resume_writer()
        elif 0 < self.hwm <= queued:
            self.mark_full()

    def push(self, message: Message) -> None:
        """Queue a message; note it to a sleeping reader. The writer has looked at ``full``."""
        self.messages.append(message)
        if 0 < self.hwm <= len(self.messages):
            self.mark_full()
        if self.asleep:
            # In this order: what a signal handler raises in between costs a note too many, not one
            # too few.
            self.reader_signals.append(self.reader)
            self.asleep = False

    def push_first(self, message: Message) -> None:
        """Queue a message before all others, otherwise as :meth:`push`."""
        self.messages.appendleft(message)
        if 0 < self.hwm <= len(self.messages):
            self.mark_full()
        if self.asleep:
            # In this order: what a signal handler raises in between costs a note too many, not one
            # too few.
            self.reader_signals.append(self.reader)
            self.asleep = False

    def extend(self, messages: list[Message]) -> None:
        """Queue a batch, as :meth:`push` for each; ``full`` is decided once, at the end."""
        self.messages.extend(messages)
        if 0 < self.hwm <= len(self.messages):
            self.mark_full()
        if self.asleep and messages:
            self.reader_signals.append(self.reader)
            self.asleep = False

    def mark_full(self) -> None:
        """The queue has reached the limit: the writer stops.

        A reader on another thread may have emptied it meanwhile, and gone without a note because
        the pipe was not marked yet: so look again.
        """
        self.full = True
        if len(self.messages) <= self.resume_at:
            self.full = False

    def pop(self) -> Message:
        """Take the oldest message; note it to a stopped writer once half is drained.

        Raises:
            IndexError: the pipe is empty. The reader then calls :meth:`sleep`.
        """
        message = self.messages.popleft()
        if self.full and len(self.messages) <= self.resume_at:
            self._resume_writer()
        return message

    def drained(self) -> None:
        """Say that messages were taken past :meth:`pop` (straight from ``messages``)."""
        if self.full and len(self.messages) <= self.resume_at:
            self._resume_writer()

    def sleep(self) -> bool:
        """The reader found nothing and wants a note; return whether it really may sleep.

        A writer on another thread may have pushed meanwhile without seeing ``asleep``: then the
        answer is False and the reader goes on.
        """
        self.asleep = True
        if self.messages:
            self.asleep = False
            return False
        return True

    def _resume_writer(self) -> None:
        self.writer_signals.append(self.writer)
        self.full = False
