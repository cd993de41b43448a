"""What a security mechanism has to fill: the handshake, and the form of traffic frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from zerohop.wire.frames import Buffer, Message


class Mechanism(Protocol):
    """One side of one handshake (RFC 37, "Authentication and Confidentiality").

    Pure: keys and nonces are given to it. The connection frames what is in ``outgoing`` and hands
    in the peer's commands one by one. An ERROR command of the peer never gets here: the connection
    knows what it means.

    Attributes:
        name: at most 20 octets of ``A-Z 0-9 - _ . +``, as in the greeting ("NULL", "PLAIN").
        as_server: what our greeting says; never validated at the peer's.
        eager: the body of a command that goes out with our greeting, before the peer's is known,
            because it depends on nothing and is no secret: a round trip less, and a system call.
            Empty: there is none.
        complete: both sides have what they need; traffic may flow.
        peer_properties: the peer's metadata once known, by lower-cased name.
        outgoing: command bodies (name and data, no frame header) to be sent, in order; the
            connection takes and clears it after each call, also after one that raised.
        plain: traffic is ordinary frames. False: each frame is wrapped by encode and unwrapped by
            decode (CURVE's MESSAGE command).
        overhead: octets that wrapping adds to the body of a frame; 0 where ``plain``.
    """

    name: str
    as_server: bool
    eager: bytes
    complete: bool
    peer_properties: Mapping[str, bytes]
    outgoing: list[bytes]
    plain: bool
    overhead: int

    def start(self) -> None:
        """Greetings are exchanged; queue the first command if it is ours to send."""

    def receive_command(self, name: bytes, data: bytes) -> None:
        """Take a handshake command of the peer.

        Raises:
            ProtocolError: not expected now, malformed, or refused. ``outgoing`` may hold an ERROR
                to be sent before closing.
        """

    def encode(self, message: Message) -> list[Buffer]:
        """Wrap a message, or a ``Command``, for the wire; called only where ``plain`` is False.

        Returns:
            Whole frames, headers included: one for each frame of the message, with exactly
            ``overhead`` octets more in its body. They are sent in the order of the calls.
        """

    def decode(self, body: bytes) -> tuple[int, bytes]:
        """Unwrap the body of a traffic frame; only where not ``plain``.

        Args:
            body: of one frame. Whether the frame had the COMMAND flag does not matter: RFC 26 says
                it has, libzmq sends it without.

        Returns:
            Flags as :mod:`zerohop.wire.frames` has them (MORE, COMMAND), and the body within.

        Raises:
            ProtocolError: forged, replayed or malformed.
        """
