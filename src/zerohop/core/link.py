"""What a socket keeps of each connection, each connect() and each bind()."""

from __future__ import annotations

from zerohop.constants import Errno, SocketType
from zerohop.core.endpoint import tcp_address
from zerohop.core.reconnect import Failure
from zerohop.errors import HandshakeError
from zerohop.value import NOTHING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from zerohop.core.endpoint import Endpoint, SocketName
    from zerohop.core.options import EndpointOptions
    from zerohop.errors import ProtocolError
    from zerohop.patterns.pattern import Peer
    from zerohop.wire.connection import Connection
    from zerohop.wire.frames import Buffer, Message
    from zerohop.wire.raw import RawConnection

    AnyConnection: TypeAlias = Connection | RawConnection

NOT_REPORTED: frozenset[str] = frozenset()
"""Of no trouble has the log heard yet. (Each empty ``frozenset()`` is another object.)"""

_WITH_IDENTITY = frozenset({SocketType.REQ, SocketType.DEALER, SocketType.ROUTER})


class Listener:
    """One bind(): where others may connect to.

    Attributes:
        endpoint: as resolved ("tcp://127.0.0.1:40123"), what LAST_ENDPOINT says.
        options: as they were at bind().
        last_error: what went wrong last with a connection made to it, or None.
        reported: which troubles the log has heard of.
    """

    __slots__ = ("endpoint", "last_error", "options", "reported")

    def __init__(self, endpoint: str, options: EndpointOptions) -> None:
        self.endpoint = endpoint
        self.options = options
        self.last_error: Exception | None = None
        self.reported = NOT_REPORTED


class Dialer:
    """One connect() to tcp or ipc: it dials, and dials again when the link is lost.

    States: waiting for ``due_at``; in ``links.to_dial``; dialling (the driver is at it); linked
    (``link`` is set); stopped (RECONNECT_IVL=-1, RECONNECT_STOP).

    Attributes:
        endpoint: where to.
        address: the same in words; what records and errors name.
        options: as they were at connect().
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

    __slots__ = (
        "address", "attempt", "due_at", "endpoint", "handshakes", "last_error", "leaving", "link",
        "options", "peer", "reported", "stopped",
    )  # fmt: skip

    def __init__(self, endpoint: Endpoint, address: str, options: EndpointOptions) -> None:
        self.endpoint = endpoint
        self.address = address
        self.options = options
        self.peer: Peer | None = None
        self.link: Link | None = None
        self.attempt = 0
        self.due_at: float | None = None
        self.stopped = False
        self.leaving = False
        self.last_error: Exception | None = None
        self.handshakes = 0
        self.reported = NOT_REPORTED

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


class Link:
    """One live connection.

    Attributes:
        source: the Dialer or Listener it came from.
        connection: the wire.
        endpoint: ours: the address that was dialled or bound.
        remote: the peer's address ("tcp://127.0.0.1:40123").
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
        cut: LINGER is over: it is closed though what was written may not have arrived.
        lost: the core has seen its end.
        failure: why it ends, if it ends badly.
        octets_in, octets_out, messages_in, messages_out: what has passed.
        due_at: when its connection wants to be looked at; None: never.
    """

    __slots__ = (
        "_remote", "batch", "buffers", "closing", "connection", "control_size", "cut", "due_at",
        "ending", "endpoint", "failure", "fd", "handshaken", "lost", "messages_in", "messages_out",
        "octets_in", "octets_out", "peer", "sending", "shares", "source", "written",
    )  # fmt: skip

    def __init__(
        self,
        source: Dialer | Listener,
        connection: AnyConnection,
        endpoint: str,
        remote: SocketName,
        fd: int = -1,
    ) -> None:
        self.source = source
        self.connection = connection
        self.endpoint = endpoint
        self._remote = remote
        self.fd = fd
        self.peer: Peer | None = None
        self.buffers: list[Buffer] = []
        self.sending: list[Message] = NOTHING
        self.control_size = 0
        self.written = 0
        self.batch = 128
        self.shares = False
        self.handshaken = False
        self.closing = False
        self.ending = False
        self.cut = False
        self.lost = False
        self.failure: ProtocolError | None = None
        self.octets_in = 0
        self.octets_out = 0
        self.messages_in = 0
        self.messages_out = 0
        self.due_at: float | None = None

    @property
    def remote(self) -> str:
        """The peer's address. Put into words here: of most connections nobody asks for it."""
        if isinstance(self._remote, str):
            return self._remote
        return tcp_address(self._remote)

    @property
    def why_lost(self) -> Failure:
        """What its end means for dialling again."""
        failure = self.failure
        if failure is None or failure.errno == Errno.ETIMEDOUT:
            return Failure.LOST if self.handshaken else Failure.HANDSHAKE
        if self.connection.peer_minor is None and not isinstance(failure, HandshakeError):
            return Failure.HANDSHAKE  # no ZMTP: another program has the port, perhaps for a moment
        return Failure.MISMATCH


def open_connection(socket_type: SocketType, options: EndpointOptions, now: float) -> AnyConnection:
    """Make the wire side of a new link."""
    told = options.told.get(socket_type)
    if told is None:
        told = options.told[socket_type] = _introduction(socket_type, options)
    return told(now)


def _introduction(
    socket_type: SocketType, options: EndpointOptions
) -> Callable[[float], AnyConnection]:
    """Return a function that makes connections.

    What they say first they all have from here: properties, and greeting and READY made of them.
    """
    # The wire is imported when there is one: inproc has none, and few programs have a STREAM.
    if socket_type == SocketType.STREAM:
        from zerohop.wire.raw import RawConnection

        return lambda now: RawConnection()
    from zerohop.mechanisms.null import NullMechanism
    from zerohop.wire.commands import encode_ready
    from zerohop.wire.connection import Connection

    properties = {"Socket-Type": socket_type.name.encode()}
    if socket_type in _WITH_IDENTITY:
        properties["Identity"] = options.routing_id
    properties.update(options.metadata)
    ready = encode_ready(properties)
    heartbeat, limit, patience = options.heartbeat, options.maxmsgsize, options.handshake_ivl

    def connection(now: float) -> Connection:
        # In order, not by name: to make an object by names costs as much as another object.
        return Connection(
            NullMechanism(properties, ready), properties, now, heartbeat, limit, patience
        )

    return connection
