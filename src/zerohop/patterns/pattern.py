"""What every socket pattern answers, and what it is told: the seam between patterns and core.

A pattern knows peers and their pipes. It knows no bytes of the wire, no clock and no connection. It
is told when peers come and go and when their pipes have news; it is asked to send and to receive.

The life of a peer::

    attach ──> connected ──> disconnected ──> connected ... ──> detach
       │  (handshake done)    (link lost; only a peer we dialled keeps its pipes)
       └ accepted peers: after their handshake, directly followed by connected;
         dialled peers: at connect(), unless IMMEDIATE (then like accepted ones);
         inproc peers: when both ends exist, directly followed by connected.

After ``detach`` nothing may be pushed to ``peer.outbound`` any more, but what is left in
``peer.inbound`` is still received (libzmq waits for the delimiter).
"""

from __future__ import annotations

from collections import defaultdict

from zerohop.constants import Errno
from zerohop.errors import Again, UsageError
from zerohop.value import NOTHING, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, ClassVar, Final, Protocol

    from zerohop.patterns.pipe import Message, Part, Pipe
else:
    Protocol = object

CLOSE_REQUESTED: Final = ""
"""The reason in ``Pattern.refused`` when nothing is wrong: the application asked (STREAM)."""

HWM_REACHED: Final = "high-water mark"
"""The reason in ``Peer.dropped`` for a message that found the peer's pipe full."""


class Peer:
    """Who is at the other end, as a pattern sees it: two pipes and what the peer said of itself.

    Attributes:
        outbound: the pipe we write. inbound: the pipe we read.
        routing_id: the ``Identity`` of its READY command (``b""`` when it sent none). ROUTER puts
            here the id by which the application addresses the peer.
        connect_routing_id: CONNECT_ROUTING_ID in force when this peer was dialled, or ``b""``.
        socket_type: its ``Socket-Type`` ("PULL"), or ``""`` before the handshake.
        connected: the handshake is done and the link is up; the core's to set.
        inproc: the other end is a pattern of this process: a message of several parts that goes to
            more than one peer is copied for it, so that no receiver holds another's list.
        dropped: messages to or from it that were thrown away, by reason.
        owner: the core this peer belongs to; patterns leave it alone.
        link: the core's business (the connection, or the other socket's peer); patterns leave it.
    """

    __slots__ = (
        "connect_routing_id", "connected", "dropped", "inbound", "inproc", "link", "outbound",
        "owner", "routing_id", "socket_type",
    )  # fmt: skip

    def __init__(self, outbound: Pipe, inbound: Pipe) -> None:
        self.outbound = outbound
        self.inbound = inbound
        self.routing_id = b""
        self.connect_routing_id = b""
        self.socket_type = ""
        self.connected = False
        self.inproc = False
        self.dropped: defaultdict[str, int] = defaultdict(int)  # a Counter takes 20 times as long
        self.owner: Any = None
        self.link: Any = None


def probe(peer: Peer) -> None:
    """Send the empty message of PROBE_ROUTER, before all that is queued for the peer.

    It tells a ROUTER at the other end that we are here. Where the pipe is full it is left out: what
    is queued will tell as much.
    """
    pipe = peer.outbound
    if not pipe.full and not (pipe.conflate and pipe.messages):
        pipe.push_first(b"")


class PatternOptions:
    """The options that patterns obey, live: the core changes them when the application does.

    Names and defaults are libzmq's (``zmq_setsockopt(3)``).

    Args:
        changed: those that differ from their defaults.

    Raises:
        TypeError: there is no such option.
    """

    routing_id: bytes = b""
    router_mandatory: bool = False
    router_handover: bool = False
    probe_router: bool = False
    req_relaxed: bool = False
    req_correlate: bool = False
    xpub_verbose: bool = False
    xpub_verboser: bool = False
    xpub_manual: bool = False
    xpub_manual_last_value: bool = False
    xpub_nodrop: bool = False
    xpub_welcome_msg: bytes = b""
    only_first_subscribe: bool = False
    xsub_verbose_unsubscribe: bool = False
    invert_matching: bool = False
    stream_notify: bool = True

    def __init__(self, **changed: Any) -> None:
        # Patterns look at some of them with every message: those are found at once.
        vars(self).update(_DEFAULTS)
        for name, value in changed.items():
            if not hasattr(type(self), name):
                raise TypeError(f"{type(self).__name__} has no {name!r}")
            setattr(self, name, value)


_DEFAULTS = {name: getattr(PatternOptions, name) for name in PatternOptions.__annotations__}


class Announcement(Value):
    """A SUB or XSUB wants (or no longer wants) messages that start with ``topic``."""

    topic: bytes
    subscribe: bool

    many = True


class Pattern(Protocol):
    """One socket's semantics. Single-threaded: the driver holds the lock.

    What most types answer stands here; a type writes down only where it differs.

    Attributes:
        accepts: names of the socket types that may be at the other end (``{"PULL"}``).
        can_send, can_receive: whether the type has this direction at all; the core answers
            ENOTSUP without asking the pattern where it has not.
        parts_in_a_message: how many parts every message has, so that one sent part by part goes
            out with its last, whatever its flags say (STREAM); 0: as many as the sender likes.
        hands_out: ``send_lane`` is a pipe of the pattern's own, whose messages :meth:`hand_out`
            gives to the peers: a batch at a time costs little more than a message (PUB).
        filters: SUBSCRIBE and UNSUBSCRIBE are always options of this type (SUB), and not as some
            other option says.
        takes_turns: a message has to be received before the next may be sent (REQ, REP): one that
            was given back unread has not been received yet.
        send_lane: the pipe to which ``send(message)`` would push every message unchanged, now
            and until the pattern is next told something; else None. Drivers append straight to it
            while it is not full. Exactly one attached peer, and a type that neither looks into
            messages nor changes them; or a pipe of the pattern's own (``hands_out``).
        receive_lane: likewise the pipe from which ``receive()`` would take every message.
        announcements: what a SUB or XSUB has to tell every connected peer; the core takes and
            clears it after each call.
        refused: peers that the pattern does not want (PAIR's second, a malformed reply to REQ) with
            the reason; the core closes their links, dials again those it had dialled, and clears
            the list. With :data:`CLOSE_REQUESTED` it does not dial again.
        notices: what a user would like to know about a peer that stays ("its identity is taken");
            the core makes a monitor event of each and clears the list.
        dropped: messages thrown away that belong to no peer ("no peer", "unknown routing id", ...).
    """

    accepts: ClassVar[frozenset[str]]
    can_send: ClassVar[bool] = True
    can_receive: ClassVar[bool] = True
    parts_in_a_message: ClassVar[int] = 0
    hands_out: ClassVar[bool] = False
    filters: ClassVar[bool] = False
    takes_turns: ClassVar[bool] = False
    options: PatternOptions
    send_lane: Pipe | None
    receive_lane: Pipe | None
    announcements: list[Announcement]
    refused: list[tuple[Peer, str]]
    notices: list[tuple[Peer, str]]
    dropped: defaultdict[str, int]

    def __init__(self, options: PatternOptions, seed: int = 0) -> None:
        """Begin without peers.

        Args:
            options: shared with the core, which changes them while we live.
            seed: where ids that should not be guessed begin; only some types use it.
        """
        self.options = options
        self.send_lane = None
        self.receive_lane = None
        self.announcements = NOTHING
        self.refused = NOTHING
        self.notices = NOTHING
        self.dropped = defaultdict(int)

    def announce(self, topic: bytes, *, subscribe: bool) -> None:
        """Add to ``announcements``."""
        self.announcements = self.announcements or []
        self.announcements.append(Announcement(topic, subscribe))

    def refuse(self, peer: Peer, reason: str) -> None:
        """Add to ``refused``."""
        self.refused = self.refused or []
        self.refused.append((peer, reason))

    def notice(self, peer: Peer, text: str) -> None:
        """Add to ``notices``."""
        self.notices = self.notices or []
        self.notices.append((peer, text))

    def attach(self, peer: Peer) -> None:
        """Take a new peer; ``peer.outbound`` may be written from now on."""

    def connected(self, peer: Peer) -> None:
        """The handshake is done: identity and type are known. Again after each reconnect."""

    def disconnected(self, peer: Peer) -> None:
        """The link is lost, the pipes stay: a dialled peer that will come back.

        What the link had taken and could not send is back in ``peer.outbound`` by now.
        """

    def detach(self, peer: Peer) -> None:
        """The peer is gone for good; its inbound pipe may still hold messages."""

    def deliver(self, peer: Peer, messages: list[Message]) -> None:
        """Messages of a network peer, in order; put into ``peer.inbound`` what is to be received.

        A type that cannot receive throws them away and counts them.
        """
        peer.dropped["not expected"] += len(messages)

    def mend(self, peers: Iterable[Peer]) -> None:
        """Have each of these, who are attached, in one place of each queue, and nobody else there.

        Called when an exception (a signal handler's) has broken into some call, perhaps one of
        ours, and may have left a peer between two places, or in both.
        """

    def readable(self, peer: Peer) -> None:
        """An inproc peer's inbound pipe, on which the pattern slept, has messages."""

    def writable(self, peer: Peer) -> None:
        """The peer's outbound pipe, which was full, has room again."""

    def subscription(self, peer: Peer, topic: bytes, subscribe: bool) -> None:
        """The peer sent SUBSCRIBE or CANCEL (as a command); types that do not publish ignore it."""

    def send(self, message: Message) -> None:
        """Route one message, all or nothing.

        Raises:
            Again: mute: no peer, or all full. Nothing was sent.
            ZMQError: EHOSTUNREACH, EFSM, EINVAL as libzmq for the type.
        """
        raise UsageError(Errno.ENOTSUP)

    def hand_out(self) -> None:
        """Give the peers what was put into a lane of the pattern's own, and see what it may take.

        The core calls it before anything that comes after those messages: the driver's turn to
        write, an option, the end. What the pattern is told it tells itself.
        """

    def limits_changed(self) -> None:
        """The pipes of all peers have got new limits (SNDHWM, RCVHWM)."""

    def check_send(self, first_part: Part) -> None:
        """Raise what ``send`` of a message with this first part would raise now, send nothing.

        The core asks when the application begins a message with SNDMORE.
        """
        if not self.can_send_now():
            raise Again

    def receive(self) -> Message:
        """The next message for the application.

        Raises:
            Again: none is there.
            ZMQError: EFSM.
        """
        raise UsageError(Errno.ENOTSUP)

    def can_send_now(self) -> bool:
        """Whether a message could be sent (POLLOUT).

        A type that picks the peer by the message (ROUTER_MANDATORY, XPUB_NODROP, STREAM) answers
        for the best of them, as libzmq does: whoever waits to send tries again at each change.
        """
        return False

    def can_receive_now(self) -> bool:
        """Whether ``receive`` would not raise Again (POLLIN)."""
        return False

    def has_routing_id(self, routing_id: bytes) -> bool:
        """Whether a peer is addressed by this id; never for types that do not address peers."""
        return False

    def subscribe(self, topic: bytes) -> None:
        """ZMQ_SUBSCRIBE: SUB adds it; XPUB in manual mode applies it to the last requester.

        Raises:
            UsageError: EINVAL: a type, or a mode, that does not subscribe.
        """
        raise UsageError(Errno.EINVAL)

    def unsubscribe(self, topic: bytes) -> None:
        """ZMQ_UNSUBSCRIBE: the reverse. An unknown topic is no error (libzmq, measured).

        Raises:
            UsageError: EINVAL: as :meth:`subscribe`.
        """
        raise UsageError(Errno.EINVAL)

    def topics(self) -> list[bytes]:
        """What to subscribe to at a peer that has just connected; empty for other types."""
        return []

    def topics_count(self) -> int:
        """ZMQ_TOPICS_COUNT: distinct topics known here.

        Raises:
            UsageError: EINVAL: a type that knows no topics.
        """
        raise UsageError(Errno.EINVAL)

    def subscribers(self, topic: bytes) -> int:
        """How many connected peers would get a message that starts with ``topic``."""
        return 0
