"""ZMTP 3 frames: what they look like, and the encoder.

    frame = flags size body
    flags = 1 octet: bit 0 MORE, bit 1 LONG, bit 2 COMMAND, bits 3-7 zero
    size  = 1 octet, or 8 octets in network order when LONG is set; below 2^63
    body  = size octets

Source: RFC 37, "Framing"; RFC 23 has the same. The way back is in :mod:`zerohop.wire.decoder`.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import chain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

Buffer: TypeAlias = bytes | memoryview
"""What goes to the network: octets, C-contiguous."""

Part: TypeAlias = bytes | memoryview
"""One frame of a message. Received ones are always ``bytes``."""

Message: TypeAlias = Part | list[Part]
"""A message of one frame travels bare; a list is a message of two frames or more."""


class Command(bytes):
    """The body of a command frame, still undecoded: a name with its length, then data."""

    __slots__ = ()


MORE, LONG, COMMAND = 0x01, 0x02, 0x04

BY_REFERENCE = 16_384
"""From this many octets on a body is handed on as it is: copying it costs more than a buffer more.

At 8 KiB it costs the same, at 16 to 64 KiB 5 to 8 % of what the whole write does.
"""

_SHORT = 256  # sizes below take one octet
_BATCH = 8  # from this many messages on, asking C what they have in common is paid back


def encode(messages: Iterable[Message]) -> list[Buffer]:
    """Encode messages in order: small ones joined, large bodies by reference.

    Args:
        messages: whole messages; a :class:`Command` among them becomes a command frame. A
            ``memoryview`` must be C-contiguous; its format does not matter.

    Returns:
        Buffers whose concatenation is the wire form; none if there are no messages. A body of
        :data:`BY_REFERENCE` octets or more is a buffer of its own, not copied: until it is
        written its owner may not change it.
    """
    batch = messages if type(messages) is list else list(messages)
    count = len(batch)
    if count == 1:  # an answer: with no step more than needed
        message = batch[0]
        kind = type(message)
        if kind is bytes:
            size = len(message)
            if size < _SHORT:
                return [_HEADERS[size] + message]  # type: ignore[operator] # it is bytes
            if size < BY_REFERENCE:
                return [encode_header(0, size) + message]  # type: ignore[operator] # likewise
        elif kind is list and len(message) == 2 and message[0] == b"":
            last = message[1]  # what is in a plain envelope (REQ, REP)
            if type(last) is bytes and (size := len(last)) < _SHORT:
                return [_ENVELOPES[size] + last]
    elif count >= _BATCH:
        joined = _join_all(batch)
        if joined is not None:
            return [joined]
    return _encode_any(batch)


def encoded_size(message: Message, overhead: int = 0) -> int:
    """Return how many octets the message takes on the wire.

    Args:
        message: one that :func:`encode` takes.
        overhead: octets that a security mechanism adds to the body of each frame.
    """
    if isinstance(message, list):
        return sum(encoded_size(part, overhead) for part in message)
    size = message.nbytes if isinstance(message, memoryview) else len(message)
    size += overhead
    return size + 2 if size < _SHORT else size + 9


def _join_all(batch: list[Message]) -> bytes | None:
    """Encode messages without a loop of ours, if they are alike and none is large.

    Alike: nothing but ``bytes``, and as many of them in each message.
    """
    count, kind = len(batch), type(batch[0])
    if list(map(type, batch)).count(kind) != count:
        return None
    if kind is bytes:
        return _join(batch, 1)  # type: ignore[arg-type] # every one of them is bytes
    if kind is Command:  # subscriptions
        pieces = batch * 2
        pieces[::2] = [encode_header(COMMAND, len(command)) for command in batch]
        pieces[1::2] = batch
        return b"".join(pieces)  # type: ignore[arg-type] # likewise
    width = len(batch[0])
    if kind is not list or list(map(len, batch)).count(width) != count:
        return None
    parts = list(chain.from_iterable(batch))
    if list(map(type, parts)).count(bytes) != len(parts):
        return None
    return _join(parts, width)  # type: ignore[arg-type] # every one of them is bytes


def _join(parts: list[bytes], width: int) -> bytes | None:
    """Encode messages of ``width`` parts each; None if a part is large."""
    sizes = list(map(len, parts))
    size = sizes[-1]
    if width == 1:
        if size == sizes[0] and sizes.count(size) == len(sizes) and size < BY_REFERENCE:
            return encode_header(0, size).join([b"", *parts])  # "header + " would copy it all again
    elif sizes[:width] == sizes[-width:] and sizes == sizes[:width] * (len(parts) // width):
        if max(sizes[:width]) >= BY_REFERENCE:
            return None
        pieces: list[bytes] = []
        for size in sizes[: width - 1]:
            pieces += (encode_header(MORE, size), b"")
        pieces += (encode_header(0, sizes[-1]), b"")
        pieces *= len(parts) // width
        pieces[1::2] = parts
        return b"".join(pieces)
    pieces = parts * 2
    pieces[1::2] = parts
    last = slice(2 * width - 2, None, 2 * width)
    last_sizes = sizes[width - 1 :: width]
    try:
        if width > 1:
            pieces[::2] = map(_MORE_HEADERS.__getitem__, sizes)
        pieces[last] = map(_HEADERS.__getitem__, last_sizes)
    except IndexError:
        if max(sizes) >= BY_REFERENCE:
            return None
        more, short = _MORE_HEADERS, _HEADERS
        if width > 1:
            pieces[::2] = [more[n] if n < _SHORT else encode_header(MORE, n) for n in sizes]
        pieces[last] = [short[n] if n < _SHORT else encode_header(0, n) for n in last_sizes]
    return b"".join(pieces)


def _encode_any(batch: list[Message]) -> list[Buffer]:
    """Encode messages of any kind one by one."""
    buffers: list[Buffer] = []
    pieces: list[Buffer] = []
    append = pieces.append
    for message in batch:
        if isinstance(message, list):
            for part in message[:-1]:
                if type(part) is bytes and (size := len(part)) < _SHORT:
                    append(_MORE_HEADERS[size])
                    append(part)
                else:
                    _encode_part(MORE, part, pieces, buffers)
            last = message[-1]
        else:
            last = message
        if type(last) is bytes and (size := len(last)) < _SHORT:
            append(_HEADERS[size])
            append(last)
        else:
            _encode_part(0, last, pieces, buffers)
    if pieces:
        buffers.append(b"".join(pieces))
    return buffers


def _encode_part(flags: int, part: Part, pieces: list[Buffer], buffers: list[Buffer]) -> None:
    """Add a frame of any size and kind; move ``pieces`` to ``buffers`` before a large body."""
    if type(part) is Command:
        flags = COMMAND
    size = part.nbytes if isinstance(part, memoryview) else len(part)
    pieces.append(encode_header(flags, size))
    if size < BY_REFERENCE:
        pieces.append(part)
        return
    buffers.append(b"".join(pieces))
    pieces.clear()
    # Writers slice what they could not write at once: that takes a flat view of octets.
    buffers.append(part.cast("B") if isinstance(part, memoryview) else part)


@lru_cache(maxsize=4_096)
def encode_header(flags: int, size: int) -> bytes:
    """Return the header of a frame with a body of ``size`` octets; LONG is added where needed."""
    if size < _SHORT:
        return bytes((flags, size))
    return bytes((flags | LONG,)) + size.to_bytes(8, "big")


_HEADERS = [bytes((0, size)) for size in range(_SHORT)]
_MORE_HEADERS = [bytes((MORE, size)) for size in range(_SHORT)]
_ENVELOPES = [bytes((MORE, 0, 0, size)) for size in range(_SHORT)]  # an empty frame, and a header
