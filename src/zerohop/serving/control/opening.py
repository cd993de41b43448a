"""What a listener's first octets say of it, read as they come. See RFC 37, "Formal Grammar".

    greeting = signature (10) version (2) mechanism (20) ...    64 octets
    command  = flags size body                                  READY with metadata, or ERROR

A peer of ZMTP 3 says all of this whether or not it likes us, as long as it has not read what we
are: so the prober sends its own greeting alone, and half of it at first (:data:`OPENING`), or
libzmq would hang up on another mechanism or type of socket before it has said which it has.
"""

from __future__ import annotations

from zerohop.serving.control.findings import PINGABLE, find, find_other_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from zerohop.serving.control.findings import Finding

__all__ = ["OPENING", "READY", "REST", "Opening", "sound_of"]

OPENING: Final = b"\xff" + bytes(8) + b"\x7f\x03"
"""The signature and the major version: enough for a peer to send its whole greeting."""
REST: Final = b"\x01" + b"NULL".ljust(20, b"\0") + bytes(32)
"""What is missing of the greeting."""


def _command(name: bytes, data: bytes) -> bytes:
    body = bytes((len(name),)) + name + data
    return bytes((4, len(body))) + body


READY: Final = _command(b"READY", b"\x0bSocket-Type\0\0\0\x06DEALER\x08Identity\0\0\0\0")
"""For peers that wait with theirs; DEALER fits all those that can be asked."""

_GREETING = 64
_MOST = 64 * 1024  # octets of a READY; those of real peers have less than 100
_ENOUGH = 64  # octets of a stranger to tell what it is
_TYPES_OF_ZMTP_2 = ("PAIR", "PUB", "SUB", "REQ", "REP", "DEALER", "ROUTER", "PULL", "PUSH")
_SOUNDS = (
    (b"HTTP/", "HTTP"),
    (b"\x15\x03", "TLS"),
    (b"\x16\x03", "TLS"),
    (b"SSH-", "SSH"),
    (b"-ERR", "Redis"),
    (b"-DENIED", "Redis"),
    (b"INFO {", "NATS"),
    (b"AMQP", "AMQP"),
    (b"220", "SMTP or FTP"),
    (b"+OK", "POP3"),
    (b"* OK", "IMAP"),
    (b"\xff\xfb", "Telnet"),
    (b"\xff\xfd", "Telnet"),
)


def sound_of(octets: bytes) -> str:
    """Return what protocol octets sound like; empty: none that is known here."""
    for beginning, name in _SOUNDS:
        if octets.startswith(beginning):
            return name
    if octets[3:9] == b"\x04\0\0\0\0\0":
        return "HTTP/2 or gRPC"  # its SETTINGS frame
    if octets[3:5] == b"\0\x0a":
        return "MySQL"
    return ""


class Opening:
    """What a peer has said so far.

    Args:
        where: the endpoint, as it is shown.

    Attributes:
        where: as given.
        octets: everything that came.
        greeted: whether its greeting is whole.
        version, mechanism: what that says; empty before.
        socket_type: what its READY says; empty before.
    """

    __slots__ = ("greeted", "mechanism", "octets", "socket_type", "version", "where")

    def __init__(self, where: str) -> None:
        self.octets = b""
        self.greeted = False
        self.version = self.mechanism = self.socket_type = ""
        self.where = where

    def receive_data(self, data: bytes) -> Finding | None:
        """Take octets; return what is found, once there is no more to hear.

        ``None``: there is more to come, or, with a :attr:`socket_type`, a peer that can be asked.
        """
        self.octets += data
        octets = self.octets
        if octets[:1] != b"\xff":
            if octets[:2] == b"\x01\0" or len(octets) >= _ENOUGH or b"\n" in octets:
                return self.end("")
            return None
        if len(octets) > 9 and not octets[9] & 1:
            return self.end("")
        if len(octets) > 10 and octets[10] < 3:
            return self.end("") if len(octets) > 11 else None
        if len(octets) < _GREETING:
            return None
        if not self.greeted:
            self.greeted = True
            self.version = f"{octets[10]}.{octets[11]}"
            self.mechanism = _printable(octets[12:32].rstrip(b"\0"))
        if self.mechanism != "NULL":
            return find(
                "other_mechanism",
                f"{self.where} speaks ZMTP {self.version} and wants {self.mechanism}",
            )
        return self._hear_command(octets[_GREETING:])

    def end(self, how: str) -> Finding:
        """Return what can be said where no more comes.

        Args:
            how: "and then said nothing" or the like.
        """
        octets, where = self.octets, self.where
        assert octets  # of who said nothing there is nothing to be said
        sound = sound_of(octets)
        if octets[0] != 255 and octets[1:2] == b"\0" and octets[0] and not sound:
            return find("old_zeromq", f"{where} speaks ZMTP 1.0 (libzmq 2), and 3.0 is needed")
        if octets[0] != 255 or (len(octets) > 9 and not octets[9] & 1) or sound:
            shown = _printable(octets.splitlines()[0][:_ENOUGH] or octets[:_ENOUGH])
            sounds = f"it sounds like {sound}" if sound else "its protocol is not known here"
            return find("not_zeromq", f"{where} does not speak ZeroMQ; {sounds}: {shown}")
        if len(octets) > 10 and octets[10] < 3:
            version = "2.0 (libzmq 3)" if octets[10] else "1.0 (libzmq 2)"
            number = octets[11] if len(octets) > 11 else 255
            known = number < len(_TYPES_OF_ZMTP_2) and octets[10]
            kind = f", its socket is of type {_TYPES_OF_ZMTP_2[number]}" if known else ""
            return find("old_zeromq", f"{where} speaks ZMTP {version}{kind}, and 3.0 is needed")
        if not self.greeted:
            return find("no_handshake", f"{where} began to greet as ZeroMQ does {how}")
        return find(
            "no_handshake", f"{where} greeted as ZMTP {self.version}, {self.mechanism}, {how}"
        )

    def _hear_command(self, octets: bytes) -> Finding | None:
        """READY or ERROR: the first frame after the greeting."""
        if len(octets) < 2:
            return None
        flags, size, start = octets[0], octets[1], 2
        if flags & 2:
            if len(octets) < 9:
                return None
            size, start = int.from_bytes(octets[1:9]), 9
        if flags & ~2 != 4 or size > _MOST:
            return self.end("and then sent what is no command")
        if len(octets) < start + size:
            return None
        body = octets[start : start + size]
        name, data = body[1 : 1 + body[0]] if body else b"", body[1 + body[0] :] if body else b""
        if name == b"READY":
            self.socket_type = _printable(_property(data, b"socket-type"))
            if self.socket_type in PINGABLE:
                return None
            return find_other_type(self.socket_type or "nameless", self.where)
        if name == b"ERROR":
            reason = _printable(data[1:]) or "no reason"
            return find("refused", f"{self.where} refuses this machine; it says: {reason}")
        return self.end(f"and then sent {_printable(name)} where READY was due")


def _property(metadata: bytes, wanted: bytes) -> bytes:
    """The value of a property; empty where there is none, or no end to it."""
    while metadata:
        stop = 1 + metadata[0]
        size = int.from_bytes(metadata[stop : stop + 4])
        if metadata[1:stop].lower() == wanted:
            return metadata[stop + 4 : stop + 4 + size][:_ENOUGH]
        metadata = metadata[stop + 4 + size :]
    return b""


def _printable(octets: bytes) -> str:
    """Text that is safe to print on one line."""
    text = octets.decode("latin-1")
    return "".join(
        character if character.isascii() and character.isprintable() else f"\\x{ord(character):02x}"
        for character in text
    )
