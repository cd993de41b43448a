"""From octets to messages: the hot loop of the receiving side.

Source: RFC 37, "Framing"; the form of a frame is drawn in :mod:`zerohop.wire.frames`. Reserved flag
bits are refused as the RFC has it. libzmq ignores them, but nobody sends them, and what has them
set is most likely no frame at all. LONG with a short body is legal, and so are commands between
the frames of a message. MORE on a command is not, but means nothing; libzmq lets it pass, too.

Every received octet passes here, so it is laid out for CPython: nothing is made for a frame but its
body, there is no call of ours per frame, and where frames look alike the work is given to C in one
call (``bench/micro/frames.py``). Four ways lead through the data:

    cut_run, cut_equal  messages with the very same headers, one after the other (wire.runs)
    _cut_short          short frames where whole ones are sure to be there
    _cut_any            everything else: long frames, commands, the end of the data

A frame that is not whole when the data ends is kept as it is, if it is small, and otherwise
gathered in a :class:`~zerohop.wire.body.Body`; if it is large, what comes of it next need not pass
here: :meth:`FrameDecoder.buffer` says where it belongs.
"""

from __future__ import annotations

from struct import Struct
from struct import error as TooShort

from zerohop.errors import ProtocolError
from zerohop.value import NOTHING
from zerohop.wire.body import Body
from zerohop.wire.frames import COMMAND, LONG, MORE, Command
from zerohop.wire.runs import RUN, cut_equal, cut_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.wire.frames import Message, Part

MAX_FRAMES = 1_000_000
"""Frames in one message. Empty ones cost the sender two octets and us a pointer each."""

SMALL_COMMAND = 512
"""Commands up to this size are the protocol's own affair, no message: no limit applies to them."""

_SOURCE = "RFC 37, Framing"
_LARGEST = 2**63 - 1
_RESERVED = 0xF8
_MESSAGE = LONG | MORE  # the largest flags of one
_NOT_LAST = COMMAND | MORE
_DELIMITER = bytes((MORE, 0, 0))  # an empty frame, and the flags of a short one that is the last
# Flags, then a body that says its own size: what Pascal called a string. It reads 257 octets, so
# they must be there, whatever the size.
_SHORT_FRAME = Struct("B256p").unpack_from
_LARGEST_SHORT = 2 + 255
_LONG_HEADER = Struct(">BQ").unpack_from
_BLOCKS = [range(count) for count in range(1, 17)]  # frames between two looks around
_LONG_BLOCK = range(64)
# Octets: to put the two pieces of such a frame together costs less than to make a Body. Were it
# larger, a peer that sends it octet by octet could make us copy it as often.
_SMALL = 4_096
_LARGE = 65_536  # octets: reading such a body into its place saves more than it costs
# Octets of a large frame for which the next one of the same peer may have a place at once. That is
# no memory before it is written to (wire.body), but a thousand peers may try it.
_PROVEN = 4 * 2**20


class FrameDecoder:
    """Cut a stream into messages and commands, whatever the cuts it arrives with.

    Memory grows with the octets received, never with those announced: a large frame may take as
    much at once as the last one of this peer had, up to 4 MiB, for that is not written to.

    Args:
        max_message_size: limit on the body octets of one message, all frames together
            (ZMQ_MAXMSGSIZE, which libzmq holds against each frame alone); a command over it is
            refused, too, unless it is a :data:`SMALL_COMMAND`. Checked against the announced
            size, before the body arrives. ``None``: no limit, libzmq's default.

    Attributes:
        saw_command: the list that the last call returned holds a :class:`Command`.
        completed: after a ProtocolError: what was whole before the offending frame, in order.
    """

    __slots__ = (
        "_at_once", "_body", "_flags", "_head", "_lacks", "_limit", "_parts", "_proven", "_room",
        "_run_header", "completed", "saw_command",
    )  # fmt: skip

    def __init__(self, max_message_size: int | None = None) -> None:
        self.saw_command = False
        self.completed: list[Message] = NOTHING
        self._limit = _LARGEST if max_message_size is None else max_message_size
        self._at_once = min(self._limit, _LARGEST_SHORT + 2)
        self._room = self._limit  # octets that the message which is not whole yet may still have
        self._parts: list[Part] = NOTHING  # what it has
        self._head = b""  # a header that is not whole yet, or a small frame with its header
        self._lacks = 0  # octets that are missing of that frame; 0: of the header
        self._body: Body | None = None  # of any other frame whose header is whole and which is not
        self._flags = 0  # flags of that frame
        self._proven = 0  # octets of the last large frame
        self._run_header = b""  # of the last run: it goes on in what comes next, most likely

    def wanted(self) -> int:
        """Return how many octets the current frame still lacks; 0 between frames."""
        return self._lacks if self._body is None else self._body.missing

    def buffer(self) -> memoryview | None:
        """Return where the next octets belong, if they are those of a large frame.

        A reader that has the network put them there saves copying them. It says so with
        :meth:`filled`, and then calls :meth:`receive_data` with what came after them, or with
        nothing. Or it forgets the view and gives them to :meth:`receive_data` as always.
        """
        body = self._body
        return None if body is None or body.size < _LARGE else body.buffer()

    def filled(self, count: int) -> None:
        """Say that ``count`` octets were put into :meth:`buffer`, from its beginning on."""
        assert self._body is not None
        self._body.filled(count)

    def receive_data(self, data: bytes) -> list[Message]:
        """Take octets from the peer; return what they completed, in order.

        Returns:
            For each message of one frame its body, for each longer one the list of its bodies,
            for each command a :class:`Command` (then ``saw_command`` is set). Empty while a
            frame is incomplete.

        Raises:
            ProtocolError: a reserved flag bit, a size over the limit, too many frames.
                ``completed`` has what came before. The decoder must not be fed again.
        """
        self.saw_command = False
        end = len(data)
        if 3 < end <= self._at_once and not (self._parts or self._body or self._head):
            # One short message and nothing else, alone or behind an empty frame (REQ, REP): an
            # answer, which somebody waits for.
            if data[0] == 0:
                if data[1] == end - 2:
                    return [data[2:]]
            elif data[3] == end - 4 and data.startswith(_DELIMITER):
                return [[b"", data[4:]]]
        messages: list[Message] = []
        try:
            position = self._resume(data, messages) if self._body or self._head else 0
            if self._run_header and not self._parts:
                position = cut_run(data, self._run_header, position, messages, goes_on=True)
            # Up to here a short frame is sure to be whole, and to break no limit but that on size.
            sure = end - _LARGEST_SHORT
            crowded = len(self._parts) + end // 2 >= MAX_FRAMES
            if self._limit < 255 or crowded:
                sure = -1
            while position < end:
                if position <= sure and data[position] < LONG:
                    position = self._cut_short(data, position, sure, messages)
                position = self._cut_any(data, position, crowded, messages)
        except ProtocolError:
            self.completed = messages
            raise
        return messages

    def _cut_short(  # noqa: C901, PLR0912, PLR0915 (hot: a call per frame would double its cost)
        self, data: bytes, position: int, sure: int, messages: list[Message]
    ) -> int:
        """Cut short message frames up to any other frame or past ``sure``; return where to go on.

        One call to ``struct`` a frame, and a look for a run after each block.
        """
        append = messages.append
        parts, room = self._parts or [], self._room
        block, many = _BLOCKS[-1], sure - _LARGEST_SHORT * len(_BLOCKS)
        flags, size, last_size, first = 0, 0, -1, -1
        wait = misses = 0  # blocks without a look for messages of several frames that are equal
        try:
            while position <= sure:
                if position > many:
                    block = _BLOCKS[(sure - position) // _LARGEST_SHORT]
                for _ in block:
                    flags, body = _SHORT_FRAME(data, position)
                    size = len(body)
                    if flags:
                        if flags != MORE:
                            return position
                        room -= size
                        if room < 0:
                            raise _over_limit(self._limit - room, self._limit)
                        parts.append(body)
                    elif parts:
                        if size > room:
                            raise _over_limit(self._limit - room + size, self._limit)
                        parts.append(body)
                        append(parts)
                        parts, room = [], self._limit
                        first = position = position + 2 + size
                        continue
                    else:
                        append(body)
                    position += 2 + size
                if first >= 0:
                    if wait:
                        wait -= 1
                    elif (stop := cut_equal(data, first, messages)) > first:
                        # Past the frames that were begun of the next message, too.
                        position, parts, room, misses = stop, [], self._limit, 0
                    else:
                        wait = misses = 2 * misses + 1
                    first = -1
                elif size == last_size and not (flags or parts):
                    start = position - size
                    position = self._cut_run(data, data[start - 2 : start], position, messages)
                last_size = size
            return position
        finally:
            self._parts, self._room = parts, room

    def _cut_any(  # noqa: C901, PLR0912, PLR0915 (hot: a call per frame would double its cost)
        self, data: bytes, position: int, crowded: bool, messages: list[Message]
    ) -> int:
        """Cut a block of frames of any kind; keep one that is not whole; return where to go on."""
        append, end = messages.append, len(data)
        parts, room = self._parts or [], self._room
        last_size, first, stride = -1, position, -1
        try:
            for _ in _LONG_BLOCK:
                flags = data[position]
                if flags & LONG:
                    flags, size = _LONG_HEADER(data, position)
                    start = position + 9
                else:
                    start = position + 2
                    size = data[start - 1]
                if size > room or flags > _MESSAGE:
                    self._check(flags, size, room)
                stop = start + size
                if stop > end:
                    if size < _SMALL:
                        self._head, self._lacks = data[position:], stop - end
                        return end
                    self._flags = flags
                    self._body = Body(size, self._proven)
                    self._body.add(memoryview(data)[start:])
                    return end
                body = data[start:stop]
                if not flags & _NOT_LAST:
                    if parts:
                        parts.append(body)
                        append(parts)
                        parts, room = [], self._limit
                        if stop - first == stride:
                            stop = cut_equal(data, stop, messages)
                        else:
                            stride = stop - first
                        first = stop
                    else:
                        append(body)
                        if size == last_size and end - stop > RUN * size:
                            stop = self._cut_run(data, data[position:start], stop, messages)
                        last_size, first = size, stop
                elif flags & COMMAND:
                    append(Command(body))
                    self.saw_command = True
                else:
                    parts.append(body)
                    room -= size
                    if crowded and len(parts) == MAX_FRAMES:
                        raise _too_many_frames()
                position = stop
                if stop == end:
                    break
            return position
        except (IndexError, TooShort):  # of the header, and met once per data: cheaper than a check
            self._head = data[position:]
            return end
        finally:
            self._parts, self._room = parts, room

    def _cut_run(self, data: bytes, header: bytes, position: int, messages: list[Message]) -> int:
        """As :func:`cut_run`; remember a run, which the end of the data may have cut in two."""
        stop = cut_run(data, header, position, messages)
        if stop > position:
            self._run_header = header
        return stop

    def _resume(self, data: bytes, messages: list[Message]) -> int:
        """Go on with the frame that the last call left; return where the next one begins."""
        start = 0
        if self._head and not self._lacks:
            head = self._head + data[:9]
            length = 9 if head[0] & LONG else 2
            if len(head) < length:
                self._head = head
                return len(data)
            start = length - len(self._head)
            flags, size = _LONG_HEADER(head) if length == 9 else (head[0], head[1])
            self._check(flags, size, self._room)
            if 0 < size < _SMALL:
                self._head, self._lacks = head[:length], size
            else:
                self._head = b""
                self._flags = flags
                self._body = Body(size, self._proven)
        if self._lacks:
            stop = start + self._lacks
            frame = self._head + data[start:stop]
            if stop > len(data):
                self._head, self._lacks = frame, stop - len(data)
                return len(data)
            self._head, self._lacks = b"", 0
            self._flags = frame[0]
            self._take(frame[9 if frame[0] & LONG else 2 :], messages)
            return stop
        body = self._body
        assert body is not None
        stop = start + body.missing
        if stop > len(data):
            body.add(memoryview(data)[start:])
            return len(data)
        if stop > start:
            body.add(memoryview(data)[start:stop])
        self._body = None
        octets = body.take()
        if len(octets) >= _LARGE:
            self._proven = min(len(octets), _PROVEN)
        self._take(octets, messages)
        return stop

    def _take(self, body: bytes, messages: list[Message]) -> None:
        """Put the body of the resumed frame where it belongs, as :meth:`_cut_any` does."""
        if self._flags & COMMAND:
            messages.append(Command(body))
            self.saw_command = True
        elif self._flags & MORE:
            if not self._parts:
                self._parts = []
            self._parts.append(body)
            self._room -= len(body)
            if len(self._parts) == MAX_FRAMES:
                raise _too_many_frames()
        elif self._parts:
            self._parts.append(body)
            messages.append(self._parts)
            self._parts, self._room = NOTHING, self._limit
        else:
            messages.append(body)

    def _check(self, flags: int, size: int, room: int) -> None:
        """Refuse a frame that may not be, by its header alone."""
        if flags & _RESERVED:
            raise ProtocolError(
                f"reserved bits are set in frame flags {flags:#04x}", source=_SOURCE
            )
        if not flags & COMMAND:
            if size > room:
                raise _over_limit(self._limit - room + size, self._limit)
        elif size > max(self._limit, SMALL_COMMAND):
            raise _over_limit(size, self._limit)


def _over_limit(size: int, limit: int) -> ProtocolError:
    if size > _LARGEST:
        return ProtocolError(f"peer announced {size} octets, over 2^63 - 1", source=_SOURCE)
    return ProtocolError(
        f"peer announced {size} octets, over the limit of {limit}",
        source=_SOURCE,
        hint="MAXMSGSIZE sets the limit on messages; the handshake has one of its own",
    )


def _too_many_frames() -> ProtocolError:
    return ProtocolError(f"peer sent a message of over {MAX_FRAMES} frames", source=_SOURCE)
