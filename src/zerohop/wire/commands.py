"""The bodies of command frames, encoded and decoded.

    command   = name data             name: 1 octet length (1..255), then so many octets
    READY     = metadata
    metadata  = *property             property: name as above, 4 octets length, value
    ERROR     = reason                1 octet length, then so many octets
    SUBSCRIBE = topic                 all of the data, 0 octets or more; CANCEL likewise
    PING      = ttl context           2 octets, tenths of seconds; 0 to 16 octets
    PONG      = context

Lengths are in network order. Source: RFC 37, "Formal Grammar", "The NULL Security Mechanism",
"Connection Heartbeating", "The Publish-Subscribe Pattern".

Names of properties are compared without regard to case (libzmq regards it), so they are decoded in
lower case. A context of more than 16 octets is cut, as libzmq does.
"""

from __future__ import annotations

from zerohop.constants import Event
from zerohop.errors import ProtocolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

MAX_PROPERTIES: Final = 1_000
"""Properties in one metadata block. libzmq sends three, and what users add are a few more."""

MAX_CONTEXT: Final = 16
"""Octets of a PING's context."""

_MALFORMED = Event.PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_UNSPECIFIED
_COMMANDS = "RFC 37, Formal Grammar"
_METADATA = "RFC 37, The NULL Security Mechanism"
_HEARTBEAT = "RFC 37, Connection Heartbeating"


def encode_command(name: bytes, data: bytes = b"") -> bytes:
    """Return the body of a command frame: the name with its length, then the data."""
    return bytes((len(name),)) + name + data


def split_command(body: bytes) -> tuple[bytes, bytes]:
    """Return the name and the data of a command.

    Raises:
        ProtocolError: there is no name, or it is longer than the body.
    """
    if not body:
        raise ProtocolError("peer sent a command without a name", source=_COMMANDS, code=_MALFORMED)
    stop = 1 + body[0]
    if stop == 1 or stop > len(body):
        raise ProtocolError(
            f"peer sent a command whose name has {body[0]} octets in a body of {len(body)}",
            source=_COMMANDS,
            code=_MALFORMED,
        )
    return body[1:stop], body[stop:]


def encode_metadata(properties: Mapping[str, bytes]) -> bytes:
    """Encode properties in their order, names as they are written.

    Raises:
        ValueError: a name is not of 1 to 255 ASCII characters, or a value has 2^31 octets or more.
    """
    pieces: list[bytes] = []
    for name, value in properties.items():
        octets = name.encode("ascii")
        if not 0 < len(octets) < 256:
            raise ValueError(f"a property's name has 1 to 255 characters, not {len(octets)}")
        if len(value) >= 2**31:
            raise ValueError(f"the value of {name} has {len(value)} octets, over 2^31 - 1")
        pieces += bytes((len(octets),)), octets, len(value).to_bytes(4), value
    return b"".join(pieces)


def decode_metadata(data: bytes) -> dict[str, bytes]:
    """Return the properties by lower-cased name; of those that come twice, the last.

    Raises:
        ProtocolError: a length beyond the data, a name that is empty or not ASCII, or more than
            :data:`MAX_PROPERTIES`.
    """
    properties: dict[str, bytes] = {}
    position, end = 0, len(data)
    while position < end:
        start = position + 1 + data[position]
        name, size = data[position + 1 : start], data[start : start + 4]
        position = start + 4 + int.from_bytes(size)
        if not name or not name.isascii() or len(size) < 4 or position > end:
            raise _bad_metadata(f"property {name!r} is malformed")
        if len(properties) == MAX_PROPERTIES:
            raise _bad_metadata(f"over {MAX_PROPERTIES} properties")
        properties[name.decode("ascii").lower()] = data[start + 4 : position]
    return properties


def _bad_metadata(problem: str) -> ProtocolError:
    return ProtocolError(
        f"peer sent bad metadata: {problem}",
        source=_METADATA,
        code=Event.PROTOCOL_ERROR_ZMTP_INVALID_METADATA,
    )


def encode_ready(properties: Mapping[str, bytes]) -> bytes:
    """Return a READY command; errors as :func:`encode_metadata`."""
    return encode_command(b"READY", encode_metadata(properties))


def encode_error(reason: str) -> bytes:
    """Return an ERROR command; a reason is cut to 255 octets, and what is not ASCII is escaped."""
    octets = reason.encode("ascii", "backslashreplace")[:255]
    return encode_command(b"ERROR", bytes((len(octets),)) + octets)


def decode_error(data: bytes) -> str:
    """Return the reason, fit to print: control characters and what is not ASCII are escaped.

    Raises:
        ProtocolError: the reason is longer than the data.
    """
    if not data or 1 + data[0] > len(data):
        raise ProtocolError(
            "peer sent an ERROR command that is cut short",
            source=_METADATA,
            code=Event.PROTOCOL_ERROR_ZMTP_MALFORMED_COMMAND_ERROR,
        )
    text = data[1 : 1 + data[0]].decode("latin-1")
    return "".join(
        character if character.isascii() and character.isprintable() else f"\\x{ord(character):02x}"
        for character in text
    )


def encode_subscription(topic: bytes, *, subscribe: bool) -> bytes:
    """Return a SUBSCRIBE or CANCEL command."""
    return encode_command(b"SUBSCRIBE" if subscribe else b"CANCEL", topic)


def encode_ping(ttl_ds: int, context: bytes = b"") -> bytes:
    """Return a PING command; the TTL is in tenths of seconds, 0 to 65535."""
    return encode_command(b"PING", ttl_ds.to_bytes(2) + context)


def decode_ping(data: bytes) -> tuple[int, bytes]:
    """Return the TTL in tenths of seconds, and the context that the PONG has to echo.

    Raises:
        ProtocolError: there is no room for a TTL.
    """
    if len(data) < 2:
        raise ProtocolError(
            f"peer sent a PING with {len(data)} octets of data, and its TTL takes 2",
            source=_HEARTBEAT,
            code=_MALFORMED,
        )
    return int.from_bytes(data[:2]), data[2 : 2 + MAX_CONTEXT]


def encode_pong(context: bytes) -> bytes:
    """Return the PONG command that answers a PING with this context."""
    return encode_command(b"PONG", context)
