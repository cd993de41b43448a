"""Payloads with large buffers: those travel as frames of their own, and nobody copies them.

    message  = header buffer*
    header   = msgpack; a large buffer in it is an extension value:
               code 1, octets     msgpack [frame]                 bytes, in that frame
               code 2, array      msgpack [dtype, shape, frame]   C order; dtype as numpy writes it
               code 3, array      msgpack [dtype, shape, octets]  a small one, in the header
    frame    = the index of the frame in the message, from 1

Where numpy is not installed, what is decoded is a ``memoryview`` of the same shape; what is encoded
is anything with the buffer protocol, and with numpy also what has ``__array__`` (CPU tensors).
Decoded arrays lie over the received frame and are read-only.
"""

from __future__ import annotations

import re
import sys
from math import prod
from typing import Any

import msgspec

from zerohop.serving.codec import MAX_OCTETS, decode_with
from zerohop.serving.errors import Malformed, Unencodable
from zerohop.serving.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["THRESHOLD", "PayloadDecoder", "PayloadEncoder"]

THRESHOLD = 4096  # octets; below it a frame costs more than copying

_CODES = _BYTES, _ARRAY, _SMALL_ARRAY = 1, 2, 3
_DEPTH = 8  # of containers that are searched for large bytes
_DTYPE = re.compile(r"[<>|][biufc](\d{1,2})")
_NATIVE = "<" if sys.byteorder == "little" else ">"
# The formats of struct, as numpy names their kinds.
_KINDS = {
    "?": "b", **dict.fromkeys("bhilqn", "i"), **dict.fromkeys("BHILQN", "u"), "c": "u",
    **dict.fromkeys("efd", "f"),
}  # fmt: skip
_FORMATS = {
    "b1": "?", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "u1": "B", "u2": "H", "u4": "I",
    "u8": "Q", "f2": "e", "f4": "f", "f8": "d",
}  # fmt: skip

_pack = msgspec.msgpack.Encoder().encode
_bytes_place = msgspec.msgpack.Decoder(tuple[int]).decode
_array_place = msgspec.msgpack.Decoder(tuple[str, tuple[int, ...], int]).decode
_small_array = msgspec.msgpack.Decoder(tuple[str, tuple[int, ...], bytes]).decode


class _Lifted:
    """Large bytes, hidden from msgspec, which would copy them into the header."""

    __slots__ = ("octets",)

    def __init__(self, octets: bytes | bytearray | memoryview) -> None:
        self.octets = octets


class PayloadEncoder:
    """Makes frames of messages. For one thread.

    Args:
        threshold: octets from which on a buffer gets a frame of its own.
    """

    def __init__(self, threshold: int = THRESHOLD) -> None:
        self._threshold = threshold
        self._frames: list[Any] = []
        self._encode = msgspec.msgpack.Encoder(enc_hook=self._hook).encode

    def lift(self, value: Any) -> Any:
        """Return the payload, large bytes in its dicts, lists and tuples made ready for frames.

        Raises:
            Unencodable: it has an extension value in them of a code that is used here.
        """
        return self._lift(value, _DEPTH)

    def frames(self, message: Any) -> list[Any]:
        """Return the frames of a message: bytes, then views of the caller's buffers.

        The buffers must stay as they are until the message is out.

        Raises:
            Unencodable: something in it has no form on the wire.
        """
        try:
            header = self._encode(message)
            if len(header) <= MAX_OCTETS:
                return [header, *self._frames] if self._frames else [header]
        except Unencodable:
            raise
        except Exception as error:
            # Also what an array of the caller's raises when it is looked at.
            raise Unencodable(message, f"{type(error).__name__}: {error}") from error
        finally:
            if self._frames:
                self._frames = []
        # Who gets it would throw it away, and not know whose it was.
        raise Unencodable(
            message,
            f"{len(header)} octets are more than the limit of {MAX_OCTETS}; "
            "large arrays and bytes in dicts, lists and tuples do not count",
        )

    def _lift(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in (bytes, bytearray, memoryview):
            return _Lifted(value) if memoryview(value).nbytes >= self._threshold else value
        if kind is msgspec.msgpack.Ext and value.code in _CODES:
            raise Unencodable(value, f"extension values of code {value.code} mean buffers here")
        if not depth:
            return value
        if kind is dict:
            return {key: self._lift(item, depth - 1) for key, item in value.items()}
        if kind in (list, tuple) and value and type(value[0]) not in (int, float, str):
            return [self._lift(item, depth - 1) for item in value]
        return value

    def _hook(self, value: Any) -> Any:
        if type(value) is _Lifted:
            if not isinstance(value.octets, memoryview) or value.octets.format == "B":
                octets = value.octets
                if isinstance(octets, memoryview) and not octets.c_contiguous:
                    octets = octets.tobytes()
                self._frames.append(octets)
                return msgspec.msgpack.Ext(_BYTES, _pack((len(self._frames),)))
            value = value.octets
        elif _is_scalar(value):
            return value.item()
        dtype, shape, view = _seen_as_array(value)
        if view.nbytes < self._threshold:
            return msgspec.msgpack.Ext(_SMALL_ARRAY, _pack((dtype, shape, view)))
        self._frames.append(view)
        return msgspec.msgpack.Ext(_ARRAY, _pack((dtype, shape, len(self._frames))))


def _is_scalar(value: Any) -> bool:
    """Whether it is a number of numpy's, as samplers make them, that Python has a type for."""
    numpy: Any = sys.modules.get("numpy")
    if numpy is None or not isinstance(value, numpy.generic):
        return False
    return value.dtype.kind in "biuf" and value.dtype.itemsize <= 8


def _seen_as_array(value: Any) -> tuple[str, tuple[int, ...], memoryview]:
    """What numpy would call it, its shape, and a flat view of its octets.

    Raises:
        Unencodable: it is no array, or one of objects.
    """
    if not isinstance(value, memoryview) and hasattr(value, "__array__"):
        array = _numpy().ascontiguousarray(value)
        dtype, shape = array.dtype.str, value.shape
        if _DTYPE.fullmatch(dtype) is None:
            raise Unencodable(value, f"arrays of {array.dtype} have no form on the wire")
        return dtype, tuple(shape), memoryview(array.reshape(-1).view("u1"))
    try:
        view = memoryview(value)
    except TypeError:
        raise Unencodable(
            value, f"{type(value).__name__} is neither msgpack nor a buffer"
        ) from None
    kind = _KINDS.get(view.format.lstrip("@=<"))
    if kind is None or view.format.startswith((">", "!")):
        raise Unencodable(value, f"buffers of format {view.format!r} have no form on the wire")
    order = "|" if view.itemsize == 1 else _NATIVE
    octets = view if view.c_contiguous else memoryview(view.tobytes())
    flat = octets.cast("B") if octets.nbytes else memoryview(b"")
    return f"{order}{kind}{view.itemsize}", view.shape or (), flat


class PayloadDecoder:
    """Makes messages of frames. For one thread.

    Args:
        kind: the type of the message.
        limit: octets that the header may have.
    """

    def __init__(self, kind: Any, limit: int = MAX_OCTETS) -> None:
        self._frames: Sequence[bytes] = ()
        self._limit = limit
        self._decode = msgspec.msgpack.Decoder(
            kind, ext_hook=self._extension, dec_hook=_as_annotated
        ).decode

    def message(self, frames: Sequence[bytes]) -> Any:
        """Return the message of these frames.

        Raises:
            Malformed: it is none; the error has the header.
        """
        self._frames = frames
        try:
            return decode_with(self._decode, frames[0], self._limit)
        except Malformed:
            raise
        except Exception as error:
            # What a type of the user's raises when it is made of it.
            reason = f"{type(error).__name__}: {error}"
            raise Malformed(bytes(frames[0]), reason) from error
        finally:
            self._frames = ()

    def _extension(self, code: int, data: memoryview) -> Any:
        if code == _BYTES:
            return self._frame(_bytes_place(data)[0])
        if code == _ARRAY:
            dtype, shape, index = _array_place(data)
            return _array(dtype, shape, self._frame(index))
        if code == _SMALL_ARRAY:
            return _array(*_small_array(data))
        return msgspec.msgpack.Ext(code, bytes(data))

    def _frame(self, index: int) -> bytes:
        if not 1 <= index < len(self._frames):
            raise ValueError(
                f"it has {counted(len(self._frames) - 1, 'buffer')}, and speaks of number {index}"
            )
        return self._frames[index]


def _array(dtype: str, shape: tuple[int, ...], octets: bytes) -> Any:
    found = _DTYPE.fullmatch(dtype)
    if found is None:
        raise ValueError(f"there are no arrays of {dtype[:32]!r}")
    if min(shape, default=0) < 0 or prod(shape) * int(found[1]) != len(octets):
        raise ValueError(
            f"no array of {dtype} and shape {shape} has {counted(len(octets), 'octet')}"
        )
    try:
        numpy = _numpy()
    except ImportError:
        view = memoryview(octets)
        if dtype[0] not in ("|", _NATIVE) or dtype[1:] not in _FORMATS:
            raise ValueError(f"arrays of {dtype} need numpy") from None
        shaped: Any = view.cast  # mypy wants to know which of the formats it is
        return shaped(_FORMATS[dtype[1:]], shape) if octets else view
    return numpy.frombuffer(octets, numpy.dtype(dtype)).reshape(shape)


def _numpy() -> Any:
    import numpy

    return numpy


def _as_annotated(kind: type[Any], value: Any) -> Any:
    """A field that is annotated as an array has been made one by its extension already."""
    if isinstance(value, kind):
        return value
    raise TypeError(f"expected {kind.__name__}, got {type(value).__name__}")
