"""The first 64 octets each way: that we speak ZMTP 3, and how we will authenticate.

    greeting  = signature version mechanism as-server filler     64 octets
    signature = FF, 8 octets that nobody reads, 7F               10
    version   = major minor                                      2
    mechanism = name, padded with 00                             20
    as-server = 00 or 01                                         1
    filler    = 00 ...                                           31

Source: RFC 37, "Formal Grammar" and "Version Negotiation". An older peer sends the length of its
identity within the signature, so those 8 octets are not ours to check; as-server and filler are not
checked either (libzmq sends as-server 0 even as a server). The peer is refused at the first octet
that no ZMTP 3 peer can send: the first, the tenth or the eleventh.
"""

from __future__ import annotations

from functools import lru_cache

from zerohop.constants import Event
from zerohop.errors import HandshakeError, ProtocolError
from zerohop.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

GREETING_SIZE: Final = 64

_SOURCE = "RFC 37, Version Negotiation"
_NAME = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+")
_NAME_SIZE = 20
# What else listens or dials on ports like ours, by how it begins.
_STRANGERS = (
    (b"GET ", "an HTTP request"),
    (b"POST ", "an HTTP request"),
    (b"PUT ", "an HTTP request"),
    (b"HEAD ", "an HTTP request"),
    (b"OPTIONS ", "an HTTP request"),
    (b"DELETE ", "an HTTP request"),
    (b"CONNECT ", "an HTTP request"),
    (b"PRI * HTTP/2", "an HTTP request"),
    (b"HTTP/", "an HTTP response"),
    (b"\x16\x03", "a TLS handshake"),
    (b"\x15\x03", "a TLS alert"),
    (b"SSH-", "an SSH banner"),
)


class Greeting(Value):
    """What a peer's greeting says.

    Attributes:
        minor: 0 or 1, the ZMTP 3 we shall speak to it: what we do not know is treated as 3.1, the
            highest that we know (RFC 37: a peer accepts higher versions).
        mechanism: its security mechanism ("NULL").
        as_server: what it says of its role in it; for information.
    """

    minor: int
    mechanism: str
    as_server: bool


def encode_greeting(mechanism: str, *, as_server: bool = False) -> bytes:
    """Return our 64 octets.

    They are all sent at once, before any octet of the peer: who does not step down to older
    versions has nothing to wait for ("Version Negotiation", second case). libzmq sends 11 and waits
    for 11 of its peer; these are among ours.
    """
    name = mechanism.encode("ascii")
    assert 0 < len(name) <= _NAME_SIZE
    assert _NAME.issuperset(name), mechanism
    signature = b"\xff" + bytes(8) + b"\x7f"
    head = signature + b"\x03\x01" + name.ljust(_NAME_SIZE, b"\0") + bytes((as_server,))
    return head.ljust(GREETING_SIZE, b"\0")


class GreetingDecoder:
    """Collect the peer's greeting, and refuse as early as its octets allow.

    Attributes:
        greeting: what it said, once it is whole; else None.
    """

    __slots__ = ("_buffer", "greeting")

    def __init__(self) -> None:
        self.greeting: Greeting | None = None
        self._buffer = b""

    def receive_data(self, data: bytes) -> bytes:
        """Take octets; return those that come after the greeting (none while it is not whole).

        Raises:
            HandshakeError: the peer speaks ZMTP 1.0 or 2.0.
            ProtocolError: it speaks no ZMTP at all, or its mechanism is no name.
        """
        missing = GREETING_SIZE - len(self._buffer)
        self._buffer += data[:missing]  # at most 64 octets: copying them costs nothing
        _check_version(self._buffer)
        if len(data) < missing:
            return b""
        self.greeting = decode_greeting(self._buffer)
        return data[missing:]


def _check_version(octets: bytes) -> None:
    """Refuse what cannot be the beginning of a ZMTP 3 greeting."""
    if octets[:1] not in (b"", b"\xff"):
        for beginning, name in _STRANGERS:
            if octets.startswith(beginning):
                raise ProtocolError(
                    f"peer does not speak ZMTP but sent {name}: {octets!r}",
                    source=_SOURCE,
                    hint="look which program has this port, and which address it was given",
                )
        if (
            octets[0] and octets[1:2] == b"\0"
        ):  # its first frame, the identity: length, flags (RFC 13)
            raise _too_old("1.0")
        raise ProtocolError(f"peer does not speak ZMTP: it began with {octets!r}", source=_SOURCE)
    if len(octets) > 9 and not octets[9] & 1:
        raise _too_old("1.0")
    if len(octets) > 10 and octets[10] < 3:
        raise _too_old("2.0" if octets[10] else "1.0")


def _too_old(version: str) -> HandshakeError:
    return HandshakeError(
        f"peer speaks ZMTP {version}, and at least 3.0 is needed",
        source=_SOURCE,
        hint="ZMTP 3.0 came with libzmq 4.0 (2013): the peer needs that or a later one",
    )


@lru_cache(maxsize=64)
def decode_greeting(octets: bytes) -> Greeting:
    """Return what a whole greeting says; the same for the same octets: most peers are alike.

    Raises:
        HandshakeError, ProtocolError: as :meth:`GreetingDecoder.receive_data`.
    """
    _check_version(octets)
    name = octets[12 : 12 + _NAME_SIZE].rstrip(b"\0")
    if not name or not _NAME.issuperset(name):
        raise ProtocolError(
            f"peer's security mechanism is {name!r}, which is no name of one",
            source="RFC 37, Authentication and Confidentiality",
            code=Event.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH,
        )
    major, minor = octets[10], octets[11]
    return Greeting(
        minor=0 if (major, minor) == (3, 0) else 1,
        mechanism=name.decode("ascii"),
        as_server=octets[32] == 1,
    )
