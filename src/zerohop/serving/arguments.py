"""Numbers, times, texts and octets that users give, checked where they give them.

What is of another kind would be taken, and fail later, in a thread or a timer, where nobody can
tell whose mistake it was. Each check is given the argument's name, and returns what it was given.
True and False are no numbers here.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["apart", "number", "octets", "seconds", "text", "whole"]

_YEAR = 366 * 86400.0  # seconds: not every timer takes more, and none takes ``inf``


def seconds(name: str, value: Any, *, above_zero: bool = False) -> float:
    """Return a time; a year where it is longer, as ``inf`` is.

    Raises:
        TypeError: it is no number.
        ValueError: it is below 0, or ``nan``; 0, where it has to be above.
    """
    return min(number(name, value, above_zero=above_zero, what="a number of seconds"), _YEAR)


def number(name: str, value: Any, *, above_zero: bool = False, what: str = "a number") -> float:
    """Return a number that is not negative.

    Raises:
        TypeError: it is none.
        ValueError: it is below 0, or ``nan``; 0, where it has to be above.
    """
    if isinstance(value, bool) or not hasattr(type(value), "__float__"):
        raise TypeError(f"{name} is {what}, not {value!r:.64}")
    given = float(value)
    if not (given > 0 if above_zero else given >= 0):
        raise ValueError(f"{name} is {what}, {'above 0' if above_zero else '0 or more'}: {given:g}")
    return given


def whole(name: str, value: Any, least: int = 0) -> int:
    """Return a whole number.

    Raises:
        TypeError: it is none.
        ValueError: it is less than ``least``.
    """
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{name} is a whole number, not {value!r:.64}")
    given: int = value.__index__()
    if given < least:
        raise ValueError(f"{name} is a whole number, {least} or more: {given}")
    return given


def text(name: str, value: Any) -> str:
    """Return a text.

    Raises:
        TypeError: it is none; ``bytes`` are none.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} is a str, not {value!r:.64}")
    return value


def apart(name: str, value: Any) -> str:
    """Return an endpoint at which somebody else can be.

    Raises:
        TypeError: it is no text.
        ValueError: it is within a Context, and each part of serving has one of its own.
    """
    if text(name, value).startswith("inproc:"):
        raise ValueError(f"{name} is {value}, where nobody else is: use ipc or tcp")
    return str(value)


def octets(name: str, value: Any) -> bytes | bytearray | memoryview:
    """Return octets.

    Raises:
        TypeError: these are none.
    """
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError(f"{name} is bytes, not {value!r:.64}")
    return value
