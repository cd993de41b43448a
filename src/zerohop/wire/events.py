"""What can come out of a connection besides messages."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Handshaken:
    """The peer is there: its READY was accepted; messages may flow both ways.

    Attributes:
        properties: metadata by lower-cased name (``"socket-type"``, ``"identity"``, ``"x-..."``).
        minor: ZMTP minor version of the peer: 0 takes subscriptions as messages, 1 as commands.
        mechanism: the name both agreed on (``"NULL"``).
    """

    properties: dict[str, bytes] = field(default_factory=dict)
    minor: int = 1
    mechanism: str = "NULL"


@dataclass(frozen=True, slots=True)
class SubscriptionReceived:
    """A SUBSCRIBE or CANCEL command (RFC 37; a 3.0 peer sends messages instead)."""

    topic: bytes
    subscribe: bool


@dataclass(frozen=True, slots=True)
class ErrorReceived:
    """The peer refused us with an ERROR command and will close.

    Attributes:
        reason: printable text; a ZAP status of three digits, or words.
    """

    reason: str


Event = Handshaken | SubscriptionReceived | ErrorReceived
