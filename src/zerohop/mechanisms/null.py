"""The NULL mechanism: no security. Each side says READY with its metadata, in any order.

    null = ready *message | error

Source: RFC 37, "The NULL Security Mechanism".
"""

from __future__ import annotations

from functools import lru_cache

from zerohop.constants import Event
from zerohop.errors import ProtocolError
from zerohop.value import NOTHING
from zerohop.wire.commands import decode_metadata, encode_ready

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from zerohop.wire.frames import Buffer, Message

_SHORT = 256  # octets of metadata that are kept, to be known again


class NullMechanism:
    """Fills :class:`zerohop.wire.mechanism.Mechanism`.

    Args:
        properties: our metadata (``Socket-Type``, ``Identity``, ``X-...``), sent as written.
        ready: the READY that says them, if the caller has one; all connections have the same.
    """

    __slots__ = ("complete", "eager", "peer_properties")

    name = "NULL"
    as_server = False
    plain = True
    overhead = 0
    outgoing: list[bytes] = NOTHING  # all is said with the greeting

    def __init__(self, properties: Mapping[str, bytes], ready: bytes | None = None) -> None:
        self.complete = False
        self.peer_properties: Mapping[str, bytes] = {}
        self.eager = encode_ready(properties) if ready is None else ready

    def start(self) -> None:
        """All is said: neither side waits for the other with its READY."""

    def receive_command(self, name: bytes, data: bytes) -> None:
        """Take the peer's READY, which completes the handshake.

        Raises:
            ProtocolError: another command, or bad metadata.
        """
        if name != b"READY":
            raise ProtocolError(
                f"peer sent {name[:64]!r} where READY was due",
                source="RFC 37, The NULL Security Mechanism",
                code=Event.PROTOCOL_ERROR_ZMTP_UNEXPECTED_COMMAND,
            )
        # Most peers are alike: a thousand clients say the same.
        self.peer_properties = _decoded(data) if len(data) <= _SHORT else decode_metadata(data)
        self.complete = True

    def encode(self, message: Message) -> list[Buffer]:
        """Never called: traffic is plain."""
        raise AssertionError(message)

    def decode(self, body: bytes) -> tuple[int, bytes]:
        """Never called: traffic is plain."""
        raise AssertionError(body)


@lru_cache(maxsize=64)
def _decoded(data: bytes) -> Mapping[str, bytes]:
    return decode_metadata(data)
