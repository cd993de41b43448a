"""Octets from text, text from octets: pyzmq's ``zmq.utils.strtypes``, which old programs use."""

from __future__ import annotations

__all__ = ["asbytes", "b", "basestring", "bytes", "cast_bytes", "cast_unicode", "u", "unicode"]

bytes = bytes
unicode = str
basestring = (str,)


def cast_bytes(s: str | bytes, encoding: str = "utf8", errors: str = "strict") -> bytes:
    """Return text encoded, octets as they are.

    Raises:
        TypeError: neither.
    """
    if isinstance(s, bytes):
        return s
    if isinstance(s, str):
        return s.encode(encoding, errors)
    raise TypeError(f"Expected unicode or bytes, got {s!r}")


def cast_unicode(s: str | bytes, encoding: str = "utf8", errors: str = "strict") -> str:
    """Return octets decoded, text as it is.

    Raises:
        TypeError: neither.
    """
    if isinstance(s, bytes):
        return s.decode(encoding, errors)
    if isinstance(s, str):
        return s
    raise TypeError(f"Expected unicode or bytes, got {s!r}")


b = asbytes = cast_bytes
u = cast_unicode
