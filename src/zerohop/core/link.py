"""What a socket keeps of each connection, each connect() and each bind()."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from zerohop.wire.connection import Connection
from zerohop.wire.raw import RawConnection

if TYPE_CHECKING:
    from zerohop.core.endpoint import Endpoint
    from zerohop.patterns.pattern import Peer
    from zerohop.wire.frames import Buffer, Message

AnyConnection: TypeAlias = Connection | RawConnection


@dataclass(slots=True, eq=False)
class Listener:
    """One bind(): where others may connect to.

    Attributes:
        endpoint: as resolved ("tcp://127.0.0.1:40123"), what LAST_ENDPOINT says.
        last_error: why accepting failed last, or None.
    """

    endpoint: str
    last_error: Exception | None = None


@dataclass(slots=True, eq=False)
class Dialer:
    """One connect() to tcp or ipc: it dials, and dials again when the link is lost.

    States: waiting for ``retry_at``; in the core's ``to_dial``; dialling (the driver is at it);
    linked (``link`` is set); stopped (RECONNECT_IVL=-1, RECONNECT_STOP, or disconnect()).

    Attributes:
        peer: the pattern's peer, kept over reconnects; None until the handshake when IMMEDIATE.
        attempt: failures since the last completed handshake; makes the back-off grow.
        stop_at: when a disconnect() or close() stops waiting for what is queued; None: not asked.
        leaving: disconnect() or close() was asked; it ends as soon as its queue is empty.
    """

    endpoint: Endpoint
    address: str
    peer: Peer | None = None
    link: Link | None = None
    attempt: int = 0
    retry_at: float | None = None
    stopped: bool = False
    leaving: bool = False
    last_error: Exception | None = None
    reconnects: int = 0
    connect_routing_id: bytes = b""
    reported: str = ""


@dataclass(slots=True, eq=False)
class Link:
    """One live connection.

    Attributes:
        source: the Dialer or Listener it came from.
        local, remote: printable addresses ("tcp://127.0.0.1:40123").
        peer: None until the handshake is done (a dialled peer that is not IMMEDIATE has it before).
        buffers: encoded output that the kernel has not taken yet, in order.
        sending: the messages in ``buffers``; they are the link's until their last octet is written.
        control_size: octets before the first message in the batch now in flight.
        written: octets of that batch the kernel has taken.
        batch: how many messages the next flush takes; adapts to their size.
        handshaken: messages may flow.
        closing: no more input; closed by the driver as soon as ``buffers`` are out.
        ending: closes as soon as its queue is out; it still receives.
        lost: the core has seen its end.
        failure: why it ends, if it ends badly.
        fd: the driver's descriptor, for monitors.
        armed_for: the deadline that stands in the timer heap for it.
    """

    source: Dialer | Listener
    connection: AnyConnection
    endpoint: str
    local: str
    remote: str
    opened_at: float
    peer: Peer | None = None
    buffers: list[Buffer] = field(default_factory=list)
    sending: list[Message] = field(default_factory=list)
    control_size: int = 0
    written: int = 0
    batch: int = 128
    handshaken: bool = False
    closing: bool = False
    ending: bool = False
    lost: bool = False
    failure: Exception | None = None
    fd: int = -1
    octets_in: int = 0
    octets_out: int = 0
    messages_in: int = 0
    messages_out: int = 0
    armed_for: float = float("inf")

    @property
    def accepted(self) -> bool:
        """Whether the peer called us."""
        return isinstance(self.source, Listener)

    @property
    def leaving(self) -> bool:
        """Whether disconnect() waits for this link's queue to run out."""
        return isinstance(self.source, Dialer) and self.source.leaving
