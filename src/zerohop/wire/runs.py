"""Messages that look alike, one after the other: the work is given to C, a window at a time.

Benchmarks and sensors send thousands of them. Whether the headers are where they should be is seen
by comparing columns: in octets that repeat every ``stride``, the first octet of each header is a
slice with that step. The windows grow with success, so that the last one, which fails, wastes no
more than was gained.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct

from zerohop.wire.frames import MORE, encode_header

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zerohop.wire.frames import Buffer, Message

RUN = 8
"""A run of fewer messages is none."""

_BLOCKS = (32, 8, 1)  # messages that one call to C cuts: 23 ns each, 33, and 80
_WIDEST = 16  # frames in a message that is looked for again: what is kept of each form is bounded


def cut_run(
    data: bytes, header: bytes, position: int, messages: list[Message], *, goes_on: bool = False
) -> int:
    """Cut the messages from ``position`` on that have the very ``header`` of the one before.

    Args:
        data: what has come.
        header: of a frame.
        position: where the next one begins.
        messages: takes the bodies.
        goes_on: a run of these was cut off by the end of the last data. Most likely all are alike
            that are here, then; whether the last one is decides.

    Returns:
        Where the first one begins that has not, or is not whole.
    """
    stride, window, columns = _columns(header)
    there = (len(data) - position) // stride
    if goes_on and there > window and data.startswith(header, position + (there - 1) * stride):
        window = there
    while True:
        count = min(window, (len(data) - position) // stride)
        if count < RUN or not data.startswith(header, position + (count - 1) * stride):
            return position
        stop = position + count * stride
        for offset, octet in columns:
            # Not by strip(), which looks for the octets one by one.
            if data[position + offset : stop : stride] != octet * count:
                return position
        for block, cut in _cutters(header):
            while count >= block:
                messages += cut(data, position)
                position += block * stride
                count -= block
        window *= 4


def cut_equal(data: bytes, position: int, messages: list[Message]) -> int:
    """Cut the messages from ``position`` on whose frames are of the sizes of the one before.

    Only where that one has several frames and is like the one before it.

    Returns:
        As :func:`cut_run`.
    """
    last, other = messages[-1], messages[-2] if len(messages) > 1 else b""
    if (
        type(last) is not list
        or type(other) is not list
        or len(last) != len(other)
        or len(last[-1]) != len(other[-1])
        or len(last) > _WIDEST
    ):
        return position
    sizes = tuple(map(len, last))
    if sizes != tuple(map(len, other)):
        return position
    stride, columns, cut = _form(sizes)
    window = 2 * RUN
    while True:
        count = min(window, (len(data) - position) // stride)
        if count * 4 < len(columns):  # comparing so many columns would cost more than it saves
            return position
        stop = position + count * stride
        for offset, octet in columns:
            if data[position + offset : stop : stride] != octet * count:
                return position
        with memoryview(data)[position:stop] as run:
            messages.extend(map(list, cut(run)))
        position = stop
        window *= 4


@lru_cache(maxsize=256)
def _form(
    sizes: tuple[int, ...],
) -> tuple[int, list[tuple[int, bytes]], Callable[[Buffer], Iterator[tuple[bytes, ...]]]]:
    """Return what messages with frames of these sizes look like.

    Returns:
        Their octets; where each octet of a header is, and which it is, the telling ones first; a
        function that iterates over messages and gives their bodies.
    """
    columns: list[tuple[int, bytes]] = []
    form, position = "", 0
    last = len(sizes) - 1
    for index, size in enumerate(sizes):
        header = encode_header(MORE if index < last else 0, size)
        form += f"{len(header)}x{size}s"
        columns += [(position + at, header[at : at + 1]) for at in range(len(header))]
        position += len(header) + size
    return position, columns[::-1], Struct(form).iter_unpack


@lru_cache(maxsize=256)
def _columns(header: bytes) -> tuple[int, int, list[tuple[int, bytes]]]:
    """Return what messages with this header look like.

    Returns:
        Their octets; how many to try first; where each octet of a header is, and which it is, the
        telling ones first.
    """
    length, size = len(header), _size(header)
    columns = [(at, header[at : at + 1]) for at in range(length)][::-1]
    # Nine octets to compare want more frames to share the cost, and long frames come in tens.
    return length + size, 2 * RUN if length == 2 else 8 * RUN, columns


@lru_cache(maxsize=256)
def _cutters(header: bytes) -> list[tuple[int, Callable[[bytes, int], tuple[bytes, ...]]]]:
    """Return functions that give the bodies of so many such messages, from an offset on."""
    form = f"{len(header)}x{_size(header)}s"
    return [(count, Struct(form * count).unpack_from) for count in _BLOCKS]


def _size(header: bytes) -> int:
    return header[1] if len(header) == 2 else int.from_bytes(header[1:])
