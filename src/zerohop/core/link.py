"""What a socket keeps of each connection, each connect() and each bind()."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from zerohop.constants import Errno, SocketType
from zerohop.core.reconnect import Failure
from zerohop.errors import HandshakeError
from zerohop.mechanisms.null import NullMechanism
from zerohop.wire.connection import Connection
from zerohop.wire.raw import RawConnection

if TYPE_CHECKING:
    from zerohop.core.endpoint import Endpoint
    from zerohop.core.options import SocketOptions
    from zerohop.errors import ProtocolError
    from zerohop.patterns.pattern import Peer
    from zerohop.wire.frames import Buffer, Message

AnyConnection: TypeAlias = Connection | RawConnection

_WITH_IDENTITY = frozenset({SocketType.REQ, SocketType.DEALER, SocketType.ROUTER})


@dataclass(slots=True, eq=False)
class Listener:
    """One bind(): where others may connect to.

    Attributes:
        endpoint: as resolved ("tcp://127.0.0.1:40123"), what LAST_ENDPOINT says.
        options: a copy, as they were at bind().
        last_error: what went wrong last with a connection made to it, or None.
        reported: which troubles the log has heard of.
    """

    endpoint: str
    options: SocketOptions
    last_error: Exception | None = None
    reported: set[str] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class Dialer:
    """One connect() to tcp or ipc: it dials, and dials again when the link is lost.

    States: waiting for ``due_at``; in ``links.to_dial``; dialling (the driver is at it); linked
    (``link`` is set); stopped (RECONNECT_IVL=-1, RECONNECT_STOP).

    Attributes:
        endpoint: where to.
        address: the same in words; what records and errors name.
        options: a copy, as they were at connect().
        peer: the pattern's peer, kept over reconnects; None until the handshake when IMMEDIATE.
        link: its connection, from the moment there is one, handshaken or not.
        attempt: failures since the last completed handshake; makes the back-off grow.
        due_at: when to dial again; None unless it waits.
        stopped: it will not dial again.
        leaving: disconnect() or close() was asked: it ends as soon as its queue is empty.
        last_error: why there is no peer, None since there is one.
        handshakes: how many were completed.
        reported: which troubles the log has heard of since the last handshake.
    """

    endpoint: Endpoint
    address: str
    options: SocketOptions
    peer: Peer | None = None
    link: Link | None = None
    attempt: int = 0
    due_at: float | None = None
    stopped: bool = False
    leaving: bool = False
    last_error: Exception | None = None
    handshakes: int = 0
    reported: set[str] = field(default_factory=set)

    @property
    def reconnects(self) -> int:
        """How often it was connected again."""
        return max(self.handshakes - 1, 0)

    @property
    def done(self) -> bool:
        """It was asked to leave, and nothing is left to send."""
        if not self.leaving or (self.peer is not None and self.peer.outbound.messages):
            return False
        return self.link is None or not self.link.buffers

    def keeps(self, peer: Peer | None) -> bool:
        """Whether the peer outlives its link: not with IMMEDIATE, nor when the dialler is gone."""
        return peer is self.peer and (self.leaving or not self.options.immediate)


@dataclass(slots=True, eq=False)
class Link:
    """One live connection.

    Attributes:
        source: the Dialer or Listener it came from.
        connection: the wire.
        endpoint: ours: the address that was dialled or bound.
        local, remote: printable addresses ("tcp://127.0.0.1:40123").
        fd: the driver's descriptor, for monitors.
        peer: None until the handshake is done (a dialled peer that is not IMMEDIATE has it before).
        buffers: encoded output that the kernel has not taken yet, in order.
        sending: the messages in ``buffers``; they are the link's until their last octet is written.
        control_size: octets before the first message in the batch now in flight.
        written: octets of that batch the kernel has taken.
        batch: how many messages the next flush takes; adapts to their size.
        shares: it sends what other links send too (PUB), in the very same octets.
        handshaken: messages may flow.
        closing: no more input; closed by the driver as soon as ``buffers`` are out.
        ending: closes as soon as its queue is out; it still receives.
        lost: the core has seen its end.
        failure: why it ends, if it ends badly.
        octets_in, octets_out, messages_in, messages_out: what has passed.
        due_at: when its connection wants to be looked at; None: never.
    """

    source: Dialer | Listener
    connection: AnyConnection
    endpoint: str
    local: str
    remote: str
    fd: int = -1
    peer: Peer | None = None
    buffers: list[Buffer] = field(default_factory=list)
    sending: list[Message] = field(default_factory=list)
    control_size: int = 0
    written: int = 0
    batch: int = 128
    shares: bool = False
    handshaken: bool = False
    closing: bool = False
    ending: bool = False
    lost: bool = False
    failure: ProtocolError | None = None
    octets_in: int = 0
    octets_out: int = 0
    messages_in: int = 0
    messages_out: int = 0
    due_at: float | None = None

    @property
    def why_lost(self) -> Failure:
        """What its end means for dialling again."""
        failure = self.failure
        if failure is None or failure.errno == Errno.ETIMEDOUT:
            return Failure.LOST if self.handshaken else Failure.HANDSHAKE
        if self.connection.peer_minor is None and not isinstance(failure, HandshakeError):
            return Failure.HANDSHAKE  # no ZMTP: another program has the port, perhaps for a moment
        return Failure.MISMATCH


def open_connection(socket_type: SocketType, options: SocketOptions, now: float) -> AnyConnection:
    """Make the wire side of a new link."""
    if socket_type == SocketType.STREAM:
        return RawConnection()
    properties = {"Socket-Type": socket_type.name.encode()}
    if socket_type in _WITH_IDENTITY:
        properties["Identity"] = options.routing_id
    properties.update(options.metadata)
    return Connection(
        mechanism=NullMechanism(properties),
        properties=properties,
        heartbeat=options.heartbeat_options(),
        max_message_size=options.maxmsgsize,
        handshake_timeout=options.handshake_ivl,
        now=now,
    )
