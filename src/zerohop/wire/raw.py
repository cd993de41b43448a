"""The connection of a STREAM socket: no protocol, whatever comes is a message.

Source: libzmq's ZMQ_STREAM (``zmq_socket(3)``, "Native pattern"). The same face as
:class:`zerohop.wire.connection.Connection`, so that nobody above has to ask which one it holds.
"""

from __future__ import annotations

from zerohop.wire.events import Handshaken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from zerohop.wire.connection import Phase
    from zerohop.wire.events import Event
    from zerohop.wire.frames import Buffer, Message


class RawConnection:
    """Octets as they are, both ways.

    The peer is there as soon as its connection is, before any octet: :meth:`start` says so.

    Attributes:
        phase: "traffic", or "closed" after :meth:`refuse`.
        peer_minor: None: the peer speaks no ZMTP.
        has_events: never after :meth:`receive_data`.
        has_output: never: the connection itself has nothing to say.
        completed: always empty: nothing can break here.
    """

    __slots__ = ("completed", "has_events", "has_output", "peer_minor", "phase")

    def __init__(self) -> None:
        self.phase: Phase = "traffic"
        self.peer_minor: int | None = None
        self.has_events = False
        self.has_output = False
        self.completed: list[Message | Event] = []

    def start(self) -> list[Event]:
        """Return the one event of this connection, once, when it is open."""
        return [Handshaken({}, minor=0, mechanism="")]

    def receive_data(self, data: bytes, now: float) -> list[Message | Event]:
        """Return the octets as one message; nothing once refused."""
        return [data] if self.phase == "traffic" and data else []

    def buffer(self) -> memoryview | None:
        """Return None: there are no frames."""
        return None

    def filled(self, count: int, now: float) -> None:
        """Never called: there is no buffer."""

    def data_to_send(self) -> bytes:
        """Return nothing: the connection itself has nothing to say."""
        return b""

    def encode(self, messages: Iterable[Message]) -> list[Buffer]:
        """Return the octets of the messages, by reference, in order."""
        return [
            part if isinstance(part, bytes) else part.cast("B")
            for message in messages
            for part in (message if isinstance(message, list) else [message])
            if part
        ]

    @property
    def plain(self) -> bool:
        """Whether :meth:`encode` gives the same octets as on every other such connection."""
        return True

    def encoded_size(self, message: Message) -> int:
        """Return how many octets of what :meth:`encode` gives are this message's."""
        return sum(map(len, self.encode([message])))

    def send_subscription(self, topic: bytes, *, subscribe: bool) -> None:
        """Ignore it: the peer could not understand."""

    def refuse(self, reason: str) -> None:
        """Take nothing more from the peer; no reason can be told."""
        self.phase = "closed"

    def lost(self) -> None:
        """Let go of nothing: nothing comes in part."""
        self.phase = "closed"

    def written(self, now: float) -> None:
        """Ignore it: there are no heartbeats."""

    def not_reading(self, now: float) -> None:
        """Ignore it: there are no heartbeats."""

    def next_deadline(self) -> float | None:
        """Return None: there are no time limits."""
        return None

    def handle_deadline(self, now: float) -> None:
        """Do nothing: there are no time limits."""
