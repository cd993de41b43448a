"""Messages to bytes and back: ZMTP's frames, nothing else.

frame = flags size body      (RFC 37, "Framing")
flags   bit 0: more frames follow, bit 1: long size
size    1 octet, or 8 octets big-endian when long
"""

from collections.abc import Callable, Sequence

MORE = 1
LONG = 2
SHORT_HEADERS = [bytes((0, size)) for size in range(256)]

# One write carries about this much, and one read asks for as much: chunks of 256 KiB fall out of
# the cache and cost 20-40 % at 1-16 KiB.
CHUNK = 1 << 16
LARGE_CHUNK = 1 << 18  # what is read at once of a frame that is larger than CHUNK


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

    The body of a frame that is larger than what came is collected in chunks and joined once.
    """

    def __init__(self, deliver: Callable[[bytes | list[bytes]], None]) -> None:
        self._deliver = deliver
        self._tail = b""  # the beginning of a frame, too short to decode
        self._parts: list[bytes] = []  # frames of a message whose last has not come
        self._chunks: list[bytes] = []  # of a large body ...
        self._missing = 0  # ... that lacks this many octets,
        self._flags = 0  # ... and the flags of its frame

    @property
    def wanted(self) -> int:
        """How much to read at once."""
        return max(CHUNK, min(self._missing, LARGE_CHUNK))

    def receive_data(self, data: bytes) -> None:
        """Take bytes; deliver each message that they complete."""
        if self._missing:
            self._chunks.append(data[: self._missing])
            if len(data) < self._missing:
                self._missing -= len(data)
                return
            data = data[self._missing :]
            body = b"".join(self._chunks)
            self._chunks.clear()
            self._missing = 0
            self._finish(self._flags, body)
        elif self._tail:
            data = self._tail + data
        used = self._decode(data)
        self._tail = data[used:]
        if len(self._tail) > CHUNK // 2:
            self._collect(self._tail)
            self._tail = b""

    def _collect(self, frame: bytes) -> None:
        self._flags = frame[0]
        self._missing = int.from_bytes(frame[1:9], "big") - (len(frame) - 9)
        self._chunks.append(frame[9:])

    def _finish(self, flags: int, body: bytes) -> None:
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
                body = position + 9
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
