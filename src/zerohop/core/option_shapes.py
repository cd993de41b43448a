"""How option values look outside and what they are inside: milliseconds and seconds, 0/1 and bool.

Each :class:`Shape` is one rule of libzmq for what may be set, with the conversion both ways. Inside
durations are seconds (float), flags are ``bool``, and "no limit" or "off" is ``None``; the
conversion happens here and nowhere else.
"""

from __future__ import annotations

from zerohop.value import Value
from zerohop.wire import z85

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from ipaddress import IPv4Network, IPv6Network
    from typing import Any, TypeAlias

    Network: TypeAlias = IPv4Network | IPv6Network

_INT_MAX = 2**31 - 1


class Shape(Value):
    """One way to write a value.

    Attributes:
        words: what may be set, for people.
        accepts: whether a value, already an ``int`` or ``bytes`` as its option asks, may be set.
        store: the value as it is kept.
        show: the kept value as ``get`` returns it.
    """

    words: str
    accepts: Callable[[Any], bool]
    store: Callable[[Any], Any]
    show: Callable[[Any], int | bytes]


def _same(value: Any) -> Any:
    return value


def _anything(value: object) -> bool:
    return True


def _integer(low: int, words: str, high: int = _INT_MAX) -> Shape:
    return Shape(words, lambda value: low <= value <= high, _same, _same)


def _octets(low: int, high: int, words: str) -> Shape:
    return Shape(words, lambda value: low <= len(value) <= high, _same, _same)


def _duration(low: int, nothing: int, words: str) -> Shape:
    """Milliseconds outside, seconds inside; ``nothing`` outside is None inside."""
    return Shape(
        words,
        lambda value: value >= low,
        lambda value: None if value == nothing else value / 1000,
        lambda seconds: nothing if seconds is None else round(seconds * 1000),
    )


def _key_octets(value: bytes) -> bytes:
    if len(value) == 32:
        return value
    octets = z85.decode(value[:40] if value[40:] == b"\0" else value)
    if len(octets) != 32:
        raise ValueError("a key has 32 octets")
    return octets


def _network(value: bytes) -> Network:
    import ipaddress  # 1 ms, for two rare options

    return ipaddress.ip_network(value.decode("ascii").strip("[]"), strict=False)


def _can(store: Callable[[Any], Any]) -> Callable[[Any], bool]:
    """Accept what ``store`` converts without a ValueError."""

    def accepts(value: Any) -> bool:
        try:
            store(value)
        except ValueError:
            return False
        return True

    return accepts


def _is_property(value: bytes) -> bool:
    name, _, text = value.partition(b":")
    # The length is a rule of its own in libzmq, which refuses "X-:v" and takes "X-:vv".
    return text != b"" and name.startswith(b"X-") and len(name) <= 255 and len(value) > 4


ANY = Shape("any number", _anything, _same, _same)
ENUM = Shape("one of the numbers", _anything, _same, int)
COUNT = _integer(0, "0 or more")
LIMIT = _integer(0, "0 or more; 0: no limit")
POSITIVE = _integer(1, "1 or more")
SIZE = _integer(-1, "0 or more; -1: as the system has it")
TERNARY = _integer(-1, "0 or 1; -1: as the system has it", high=1)
FLAG = Shape("0 or 1", lambda value: value in (0, 1), bool, int)
INVERSE = Shape("0 or 1", FLAG.accepts, lambda value: not value, lambda flag: int(not flag))
SWITCH = Shape("0; any positive number for 1", COUNT.accepts, bool, int)
TRUTH = Shape("0; any other number for 1", _anything, bool, int)
MESSAGE_SIZE = Shape(
    "octets; negative: no limit",
    _anything,
    lambda value: None if value < 0 else value,
    lambda size: -1 if size is None else size,
)
DESCRIPTOR = Shape(
    "an open descriptor; -1: none",
    SIZE.accepts,
    lambda value: None if value == -1 else value,
    lambda descriptor: -1 if descriptor is None else descriptor,
)

FOREVER = _duration(-1, -1, "ms; -1: without limit")
NEVER = _duration(-1, -1, "ms; -1 or 0: never")
OFF = _duration(0, 0, "ms; 0: off")
OWN = _duration(0, -1, "ms; 0: off; until set (-1): as HEARTBEAT_IVL")
TENTHS = Shape(
    "ms up to 6553599, kept in tenths of a second, rounded down",
    lambda value: -100 < value <= 6553599,
    lambda value: max(value, 0) // 100,
    lambda tenths: tenths * 100,
)

WHOLE = _octets(0, _INT_MAX, "any octets")
NAME = _octets(1, _INT_MAX, "1 octet or more")
TEXT = _octets(1, 255, "1 to 255 octets")
SHORT = _octets(0, 255, "up to 255 octets")
DEVICE = _octets(1, 16, "1 to 16 octets")
KEY = Shape("32 octets, or 40 characters of Z85", _can(_key_octets), _key_octets, _same)
PROPERTY = Shape("`X-name:value`, the name up to 255 octets", _is_property, _same, _same)
NETWORK = Shape("an IP address, or address/bits", _can(_network), _network, _same)
