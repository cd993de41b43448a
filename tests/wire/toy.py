"""A mechanism that proves the seam: a handshake of two steps each way, and wrapped frames.

    client              server
      HELLO  ─────────►
             ◄─────────  WELCOME
      READY  ─────────►
             ◄─────────  READY
    then every frame is a command  07 "MESSAGE" counter(4) flags(1) body, the last two XORed.

It protects nothing. What it shares with CURVE is its form: roles, an order, an overhead, a counter
that must rise, a flag of its own for commands within.
"""

from zerohop.errors import ProtocolError
from zerohop.wire.commands import decode_metadata, encode_command, encode_ready
from zerohop.wire.frames import COMMAND, MORE, Command, encode

_COMMAND_WITHIN = 2  # CURVE's, too: not the flag of an outer frame


class ToyMechanism:
    name = "TOY"
    eager = b""
    plain = False
    overhead = 8 + 4 + 1

    def __init__(self, properties, *, as_server: bool, key: int = 0x5A):
        self.as_server = as_server
        self.complete = False
        self.peer_properties = {}
        self.outgoing = []
        self._ready = encode_ready(properties)
        self._key = bytes(i ^ key for i in range(256))
        self._due = b"HELLO" if as_server else b"WELCOME"
        self._sent = self._received = 0

    def start(self):
        if not self.as_server:
            self.outgoing.append(encode_command(b"HELLO"))

    def receive_command(self, name, data):
        if name != self._due:
            self.outgoing.append(encode_command(b"ERROR", b"\x03bad"))
            raise ProtocolError(f"{name!r} where {self._due!r} was due", source="toy")
        self._due = b"READY"
        if name == b"HELLO":
            self.outgoing.append(encode_command(b"WELCOME"))
        elif name == b"WELCOME":
            self.outgoing.append(self._ready)
        else:
            self.peer_properties = decode_metadata(data)
            self.complete = True
            if self.as_server:
                self.outgoing.append(self._ready)

    def encode(self, message):
        if isinstance(message, Command):
            return self._wrap(_COMMAND_WITHIN, message)
        frames = message if isinstance(message, list) else [message]
        flags = [MORE] * (len(frames) - 1) + [0]
        return [b for flag, body in zip(flags, frames) for b in self._wrap(flag, body)]

    def _wrap(self, flags, body):
        self._sent += 1
        inner = (bytes((flags,)) + bytes(body)).translate(self._key)
        return encode([Command(encode_command(b"MESSAGE", self._sent.to_bytes(4) + inner))])

    def decode(self, body):
        counter = int.from_bytes(body[8:12])
        if body[:8] != b"\x07MESSAGE" or len(body) < 13 or counter <= self._received:
            raise ProtocolError("not a frame of mine, or an old one", source="toy")
        self._received = counter
        inner = body[12:].translate(self._key)
        flags = COMMAND if inner[0] & _COMMAND_WITHIN else inner[0] & MORE
        return flags, inner[1:]
