"""What users give, encoded when they give it, and how much of it goes into one message.

Who gives what has no form on the wire is told so, and nobody else: it is never found out where
messages are made, by a thread that has others' to send. What is changed in it afterwards does not
count.
"""

from __future__ import annotations

import msgspec

from zerohop.serving.codec import MAX_OCTETS, pack
from zerohop.serving.errors import Unencodable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

__all__ = ["MAX_VALUE", "encoded", "how_many", "octets_of", "text_of", "words_for"]

_MOST = 4000  # characters of a text
_MOST_OF_AN_ERROR = 300
MAX_VALUE = MAX_OCTETS // 4
"""Octets of one value. A message of one value and its key is well below what a reader takes."""


def encoded(value: Any) -> Any:
    """Return a value as it goes into a message; decoded it is the value again.

    Raises:
        Unencodable: msgpack has no form for something in it, or it is too large.
    """
    data = pack(value)
    if len(data) > MAX_VALUE:
        raise Unencodable(
            value,
            f"it has {len(data)} octets, more than {MAX_VALUE}",
            hint="the control channel is for what is known of workers; send data by other means",
        )
    return msgspec.Raw(data)


def octets_of(value: Any) -> int:
    """Return how many octets of a message a value takes that was encoded, or a key, at most."""
    match value:
        case int():
            return 9
        case str():
            return 5 + 4 * len(value)
        case _:
            return len(memoryview(value))


def how_many(octets: Iterable[int]) -> int:
    """Return how many of these, by their octets, go into one message: at least one, if there is."""
    total = count = 0
    for each in octets:
        total += each
        if count and total > MAX_VALUE:
            break
        count += 1
    return count


def text_of(value: object) -> str:
    """Return ``str(value)`` as it can be sent, whatever it does or says itself."""
    try:
        text = str(value)
    except BaseException as failure:  # noqa: BLE001 - of the value's own making
        text = f"(its text raised {type(failure).__name__})"
    return text[:_MOST].encode(errors="backslashreplace").decode()


def words_for(error: BaseException) -> str:
    """Return what an error is, in words that have a form on the wire, whatever it says itself."""
    name, text = type(error).__name__, text_of(error)
    return f"{name}: {text[:_MOST_OF_AN_ERROR]}" if text else name
