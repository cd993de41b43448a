"""What can come out of a connection besides messages."""

from __future__ import annotations

from zerohop.value import Value


class Handshaken(Value):
    """The peer is there: its READY was accepted; messages may flow both ways.

    Attributes:
        properties: metadata by lower-cased name (``"socket-type"``, ``"identity"``, ``"x-..."``).
        minor: ZMTP minor version of the peer: 0 takes subscriptions as messages, 1 as commands.
        mechanism: the name both agreed on (``"NULL"``).
    """

    properties: dict[str, bytes]
    minor: int = 1
    mechanism: str = "NULL"

    many = True


class SubscriptionReceived(Value):
    """A SUBSCRIBE or CANCEL command (RFC 37; a 3.0 peer sends messages instead)."""

    topic: bytes
    subscribe: bool

    many = True


class ErrorReceived(Value):
    """The peer refused us with an ERROR command and will close.

    Attributes:
        reason: printable text; a ZAP status of three digits, or words.
    """

    reason: str


Event = Handshaken | SubscriptionReceived | ErrorReceived
