"""msgpack by msgspec, within limits: bytes that a peer sent become values, or :class:`Malformed`.

msgspec checks lengths against the data that is there before it makes anything of that length, so
what a message can cost is bounded by its size; and its nesting, which is bounded by Python's limit.
"""

from __future__ import annotations

import re

import msgspec

from zerohop.serving.errors import Malformed, Unencodable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T")

__all__ = ["MAX_OCTETS", "decode_with", "pack", "unpack"]

MAX_OCTETS = 32 * 1024 * 1024  # of one message: Dynamo's limit for a batch of KV events

_OFFSET = re.compile(r"\(byte (\d+)\)")
_decode_anything = msgspec.msgpack.Decoder().decode
_encode_anything = msgspec.msgpack.Encoder().encode


def decode_with(
    decode: Callable[[bytes], T], data: bytes | memoryview, limit: int = MAX_OCTETS
) -> T:
    """Decode one message of a peer.

    Args:
        decode: ``decode`` of a :class:`msgspec.msgpack.Decoder`.
        data: the message.
        limit: how many octets it may have.

    Raises:
        Malformed: too large, cut off, nested too deeply, not msgpack, or not of the right type.
    """
    if len(data) > limit:
        raise Malformed(
            bytes(data),
            f"more than the limit of {limit} octets",
            hint="raise the limit if such messages are expected",
        )
    try:
        return decode(data)  # type: ignore[arg-type] # any buffer will do
    except msgspec.MsgspecError as error:
        found = _OFFSET.search(str(error))
        offset = int(found[1]) if found else None
        raise Malformed(bytes(data), str(error), offset) from error
    except RecursionError as error:
        raise Malformed(bytes(data), "it is nested too deeply") from error
    except (ValueError, TypeError, OverflowError, MemoryError, BytesWarning) as error:
        # What a value in it made of itself: a timestamp out of range, a key that has no hash, or,
        # under -bb, the same key as text and as bytes.
        raise Malformed(bytes(data), str(error) or type(error).__name__) from error


def unpack(data: bytes | memoryview, limit: int = MAX_OCTETS) -> Any:
    """Decode one msgpack value of no particular type.

    Raises:
        Malformed: see :func:`decode_with`.
    """
    return decode_with(_decode_anything, data, limit)


def pack(value: Any) -> bytes:
    """Encode a value as msgpack.

    Raises:
        Unencodable: msgpack has no form for it, or for something in it.
    """
    try:
        return _encode_anything(value)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise Unencodable(value, str(error)) from error
