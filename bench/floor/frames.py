"""Messages to bytes and back: ZMTP's frames, nothing else.

frame = flags size body      (RFC 37, "Framing")
flags   bit 0: more frames follow, bit 1: long size
size    1 octet, or 8 octets big-endian when long
"""

from collections.abc import Callable, Sequence
from typing import Any

MORE = 1
LONG = 2
SHORT_HEADERS = [bytes((0, size)) for size in range(256)]

# One write carries about this much, and one read asks for as much: chunks of 256 KiB fall out of
# the cache and cost 20-40 % at 1-16 KiB.
CHUNK = 1 << 16
LONG_HEADER = 9  # octets


def header(size: int, flags: int = 0) -> bytes:
    """The flags and size of a frame."""
    if size < 256:
        return bytes((flags, size))
    return bytes((flags | LONG,)) + size.to_bytes(8, "big")


def encode(parts: Sequence[bytes]) -> bytes:
    """One message of several frames."""
    pieces: list[bytes] = []
    for part in parts[:-1]:
        pieces += header(len(part), MORE), part
    pieces += header(len(parts[-1])), parts[-1]
    return b"".join(pieces)


class Decoder:
    """A stream of frames into messages: ``bytes`` for one frame, a list for several.

    The rest of a body larger than CHUNK is asked for as a whole, so that it need not be put
    together; and after such a body only the next header, so that its body begins where a read does.

    Attributes:
        missing: octets that a large body still lacks.
    """

    def __init__(self, deliver: Callable[[Any], None]) -> None:
        self._deliver = deliver
        self._tail = b""  # the beginning of a frame, too short to decode
        self._parts: list[bytes] = []  # frames of a message whose last has not come
        self._chunks: list[bytes] = []  # of a large body
        self._flags = 0  # of its frame
        self._after_large = False
        self.missing = 0

    @property
    def wanted(self) -> int:
        """How much to read at once; where something is missing, exactly that."""
        if self.missing:
            return self.missing
        return LONG_HEADER if self._after_large and not self._tail else CHUNK

    def receive_data(self, data: bytes) -> None:
        """Take bytes; deliver each message that they complete."""
        self._after_large = False
        if self.missing:
            self._chunks.append(data[: self.missing])
            if len(data) < self.missing:
                self.missing -= len(data)
                return
            data = data[self.missing :]
            self.finish_large(b"".join(self._chunks))  # one chunk is itself, not a copy
        elif self._tail:
            data = self._tail + data
        used = self._decode(data)
        self._tail = data[used:]
        self._begin_large()

    def _begin_large(self) -> None:
        """If the tail is the beginning of a large frame, collect its body from now on."""
        tail = self._tail
        if len(tail) < LONG_HEADER or not tail[0] & LONG:
            return
        size = int.from_bytes(tail[1:LONG_HEADER], "big")
        if size <= CHUNK:
            return
        self._flags = tail[0]
        self.missing = size - (len(tail) - LONG_HEADER)
        if len(tail) > LONG_HEADER:
            self._chunks.append(tail[LONG_HEADER:])
        self._tail = b""

    def head(self) -> bytes:
        """What has come of a large body; who takes it brings the whole to ``finish_large``."""
        return b"".join(self._chunks)

    def finish_large(self, body: Any) -> None:
        """A large body is complete: ``bytes``, or whatever it was collected in."""
        self._chunks.clear()
        self.missing = 0
        self._after_large = True
        self._finish(self._flags, body)

    def _finish(self, flags: int, body: Any) -> None:
        if flags & MORE:
            self._parts.append(body)
        elif self._parts:
            self._deliver([*self._parts, body])
            self._parts.clear()
        else:
            self._deliver(body)

    def _decode(self, data: bytes) -> int:
        """Deliver the whole frames of ``data``; return the octets used."""
        deliver, position, end = self._deliver, 0, len(data)
        parts = self._parts
        while position + 2 <= end:
            flags = data[position]
            if flags & LONG:
                body = position + LONG_HEADER
                if body > end:
                    break
                after = body + int.from_bytes(data[position + 1 : body], "big")
            else:
                body = position + 2
                after = body + data[position + 1]
            if after > end:
                break
            if flags & MORE or parts:
                self._finish(flags, data[body:after])
            else:
                deliver(data[body:after])
            position = after
        return position
