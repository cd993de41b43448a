"""From a pipe to octets: what a link writes next, and what goes back when it breaks.

Encode late, in batches: a flush takes as many messages from the pipe as made about 128 KiB of
octets lately. The messages stay with the link until the kernel has their last octet; those that
were not wholly written when the connection breaks go back to the head of the pipe and travel on the
next connection. (A peer throws away a message that arrived in part, so nothing comes twice.)
"""

from __future__ import annotations

from collections import deque
from itertools import repeat
from operator import is_

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.core.link import Link
    from zerohop.patterns.pipe import Message, Pipe
    from zerohop.wire.frames import Buffer

FLUSH_SIZE = 128 * 1024  # octets: one write; larger ones fall out of the cache (bench/)
_LARGEST_FLUSH = 32 * FLUSH_SIZE  # octets; of a batch over that most goes back to the pipe
_MAX_BATCH = 1024
_NOTHING: list[Buffer] = []  # nobody changes it


class BatchEncoder:
    """Encodes batches for the links of one socket, the same batch only once.

    PUB hands the same message objects to many pipes, and pipes that are flushed together hold
    the same runs of them: the octets of the last batch are kept and used again when the next batch
    is the same list, or consists of the very same objects.

    Attributes:
        messages: the batch that is kept; empty if none is.
    """

    __slots__ = ("_buffers", "messages")

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._buffers: list[Buffer] = []

    def encode(self, link: Link, messages: list[Message]) -> list[Buffer]:
        """Return the wire form of ``messages`` for a link, in a list of its own."""
        if not link.shares:
            return link.connection.encode(messages)
        kept = self.messages
        if messages is not kept and (
            len(messages) != len(kept) or not all(map(is_, messages, kept))
        ):
            self._buffers = link.connection.encode(messages)
            self.messages = messages
        return self._buffers[:]

    def forget(self) -> None:
        """Let go of the batch: who lent its memory to it wants to know when it is out."""
        self.messages = []
        self._buffers = []


def fill(link: Link, pipe: Pipe | None, encoder: BatchEncoder) -> list[Buffer]:
    """Return what the link has to write now: the rest of the last batch, or the next one.

    Args:
        link: the connection.
        pipe: its outbound pipe, or None while no messages may flow.
        encoder: the socket's.

    Returns:
        ``link.buffers``; empty when there is nothing to write. Say with :func:`written` what was.
    """
    buffers = link.buffers
    if buffers:
        return buffers
    link.written = link.control_size = 0
    if link.connection.has_output:
        control = link.connection.data_to_send()
        if control:
            link.control_size = len(control)
            buffers.append(control)
    if pipe is None:
        return buffers
    queue = pipe.messages
    waiting = len(queue)
    if not waiting:
        return buffers
    if waiting == 1:  # an answer: nothing is to be learnt from it
        batch = link.sending = [queue.popleft()]
        pipe.whole = None  # or it would hold them when they are out
        if pipe.full:
            pipe.drained()
        buffers += encoder.encode(link, batch) if link.shares else link.connection.encode(batch)
        return buffers
    batch = _take(pipe, link.batch)
    count = len(batch)
    encoded = encoder.encode(link, batch)
    size = sum(map(len, encoded))
    if size < FLUSH_SIZE // 2 and count >= link.batch:
        link.batch = min(count * 2, _MAX_BATCH)
    elif size > 2 * FLUSH_SIZE and count > 1:
        link.batch = count // 2
        if size > _LARGEST_FLUSH:
            batch = _worth_a_flush(link, pipe, batch)
            link.batch = len(batch)
            encoded = encoder.encode(link, batch)
    if pipe.full:
        pipe.drained()
    link.sending = batch
    buffers += encoded
    return buffers


def fill_alone(link: Link) -> list[Buffer]:
    """Return what :func:`fill` would, where that is a lone message and nothing else; else nothing.

    An answer, which somebody waits for: with no step more than needed. Or what is said before there
    are messages: a greeting, of which a thousand may be due.
    """
    peer, connection = link.peer, link.connection
    if not link.handshaken:
        if link.buffers or link.ending or not (control := connection.data_to_send()):
            return _NOTHING
        link.written = 0
        link.control_size = len(control)
        link.buffers = [control]
        return link.buffers
    if peer is None or link.shares or link.buffers or connection.has_output or link.ending:
        return _NOTHING
    pipe = peer.outbound
    queue = pipe.messages
    if len(queue) != 1 or pipe.full or link.failure is not None:
        return _NOTHING
    pipe.whole = None
    link.sending = batch = [queue.popleft()]
    link.written = link.control_size = 0
    link.buffers = buffers = connection.encode(batch)
    return buffers


def written_alone(link: Link, size: int) -> bool:
    """The kernel took all of :func:`fill_alone`; return whether the pipe sleeps now, if any."""
    link.written = size
    link.octets_out += size
    link.buffers.clear()
    if not link.handshaken:
        return not link.connection.has_output
    link.messages_out += 1
    link.sending = []
    peer = link.peer
    if peer is None or link.connection.has_output:
        return False
    pipe = peer.outbound
    pipe.asleep = True
    if pipe.messages:  # as Pipe.sleep
        pipe.asleep = False
        return False
    return True


def _take(pipe: Pipe, limit: int) -> list[Message]:
    """Take at most so many messages; or a list that others have, too, if it is at most twice that.

    Nothing is copied then, and the encoder need not compare.
    """
    queue = pipe.messages
    whole, pipe.whole = pipe.whole, None
    if whole is not None and len(whole) == len(queue) <= 2 * limit:
        queue.clear()
        return whole
    # All in C: of many messages each costs two thirds of what it does in a loop.
    return list(map(deque.popleft, repeat(queue, min(len(queue), limit))))


def _worth_a_flush(link: Link, pipe: Pipe, batch: list[Message]) -> list[Message]:
    """Return what is enough for one write of a batch that is far too large; put the rest back.

    What is taken from the pipe is beyond its high-water mark, and large messages are few.
    """
    size = enough = 0
    while size < FLUSH_SIZE and enough < len(batch):
        size += link.connection.encoded_size(batch[enough])
        enough += 1
    pipe.messages.extendleft(reversed(batch[enough:]))
    if 0 < pipe.hwm <= len(pipe.messages):  # another thread may have sent meanwhile
        pipe.mark_full()
    return batch[:enough]


def written(link: Link, size: int) -> None:
    """The kernel took ``size`` octets of ``link.buffers``."""
    link.written += size
    link.octets_out += size
    buffers = link.buffers
    taken = 0
    for buffer in buffers:
        length = len(buffer)
        if length > size:
            break
        size -= length
        taken += 1
    else:
        del buffers[:]
        link.messages_out += len(link.sending)
        # Dropped here and not sooner: a tracked message is done when its last octet is out.
        link.sending = []
        return
    del buffers[:taken]
    if size:
        # A view: the rest of a large body must not be copied for each partial write.
        buffers[0] = memoryview(buffers[0])[size:]


def take_back(link: Link) -> list[Message]:
    """Forget the batch in flight; return its messages that were not wholly written, in order."""
    batch, link.sending = link.sending, []
    link.buffers.clear()
    left = link.written - link.control_size
    for index, message in enumerate(batch):
        left -= link.connection.encoded_size(message)
        if left < 0:
            link.messages_out += index
            return batch[index:]
    return []
