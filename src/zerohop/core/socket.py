"""A whole socket without I/O: what the application asks, the pattern decides and the links carry.

Two pure machines meet here and nowhere else: ``wire`` (octets, one peer) and ``patterns`` (peers,
no octets). The core answers when asked; what the driver must do next stands in lists that it takes
after every call, when it has called :meth:`SocketCore.settle`::

    links.to_dial    Dialer   open a connection to its endpoint, then links.open or dial_failed
    links.to_flush   Peer     its outbound pipe has messages: write links.output(peer.link)
    links.to_write   Link     its connection has something to say: write links.output(link)
    links.to_resume  Peer     its inbound pipe has room again: read from peer.link again
    links.to_close   Link     write what is left of links.output, close, then links.lost; where it
                              may never arrive then, close later, unless it is cut
    links.timers.stale        links.next_deadline() may have moved
    context          notes for other sockets at the end of inproc pipes (ContextCore.hand_over)

Single-threaded: the driver holds the Context's lock. ``now`` is seconds on a monotonic clock.
"""

from __future__ import annotations

from collections import deque

from zerohop.constants import Errno, PollEvent, SocketOption, SocketType
from zerohop.core.inproc import Inproc
from zerohop.core.link import Dialer, Link, Listener
from zerohop.core.links import Links
from zerohop.errors import (
    Again,
    ContextTerminated,
    HandshakeError,
    UsageError,
    ZMQError,
)
from zerohop.patterns import make_pattern
from zerohop.patterns.pattern import CLOSE_REQUESTED
from zerohop.value import NOTHING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from zerohop.core.context import ContextCore
    from zerohop.core.endpoint import Endpoint
    from zerohop.core.options import SocketOptions
    from zerohop.patterns.pattern import Peer
    from zerohop.patterns.pipe import Message, Part, Pipe

_ONE_LINK_AN_ENDPOINT = frozenset(
    {SocketType.DEALER, SocketType.SUB, SocketType.PUB, SocketType.REQ}
)

_NOTHING: deque[Any] = deque(maxlen=0)  # an empty one is large, and most sockets never need it
_IN, _OUT = int(PollEvent.POLLIN), int(PollEvent.POLLOUT)
_SUBSCRIBE, _UNSUBSCRIBE = int(SocketOption.SUBSCRIBE), int(SocketOption.UNSUBSCRIBE)


class SocketCore:
    """One socket's state.

    Args:
        socket_type: one of libzmq's twelve stable types.
        options: as set so far; owned by this core from now on.
        context: shared with the other sockets of the Context.
        seed: random start of ROUTER ids and REQ correlation ids.
        jitter: a random number in [0, 1) at each call.

    Attributes:
        pattern, links, options: the parts.
        send_lane, receive_lane: pipes that the driver may use directly (see ``Pattern.send_lane``);
            None also in the middle of a message sent or received part by part.
        last_endpoint: ZMQ_LAST_ENDPOINT.
        receiving_more: ZMQ_RCVMORE.
        parts_in: what is left of the message that ``receive_part`` has begun; true as
            ``receiving_more`` is, for those who ask with each message.
        driver: whoever drives this core; put here by it, so that other sockets can wake it.
        closed: close() was called; every operation answers ENOTSOCK.
    """

    def __init__(
        self,
        socket_type: SocketType,
        options: SocketOptions,
        context: ContextCore,
        seed: int,
        jitter: Callable[[], float],
    ) -> None:
        self.type = socket_type
        self.type_name = socket_type._name_  # without the enum's descriptor: two calls
        self.options = options
        self.context = context
        self.pattern = make_pattern(socket_type, options, seed=seed)
        self.links = Links(socket_type, self.pattern, options, jitter, self)
        self.send_lane: Pipe | None = None
        self.receive_lane: Pipe | None = None
        self.last_endpoint = ""
        self.driver: Any = None
        self.closed = False
        self._inproc: Inproc | None = None
        self._parts_out: list[Part] = NOTHING
        self.parts_in: deque[Part] = _NOTHING
        self._returned: deque[Message] = _NOTHING
        context.sockets.add(self)

    @property
    def inproc(self) -> Inproc:
        """Its names and connections within the Context; made when somebody asks for them."""
        if self._inproc is None:
            self._inproc = Inproc(self)
        return self._inproc

    # Messages

    def check_open(self) -> None:
        """Raise ENOTSOCK after close(), ETERM once the Context is being terminated."""
        if self.closed:
            raise ZMQError(Errno.ENOTSOCK)
        if self.context.terminated:
            raise ContextTerminated

    def send(self, message: Message) -> None:
        """Send a whole message, after the parts that :meth:`send_part` has kept, if any.

        Raises:
            Again: mute; nothing was sent.
            ZMQError: ENOTSUP, ENOTSOCK, ETERM, or what the pattern raises.
        """
        if self.closed or self.context.terminated:
            self.check_open()
        if not self.pattern.can_send:
            raise UsageError(
                Errno.ENOTSUP, hint=f"{self.type_name} sockets only receive; they cannot send"
            )
        if self._returned and self.pattern.takes_turns:
            self._give_up_returned()
        if self._parts_out:
            self._complete(message if isinstance(message, list) else [message])
        else:
            self.pattern.send(message)

    def send_part(self, part: Part) -> None:
        """Keep a part of a message to be completed by :meth:`send`: all or nothing.

        Raises:
            Again: the whole message could not be sent now (asked at its first part).
            ZMQError: as :meth:`send`.
        """
        self.check_open()
        if not self.pattern.can_send:
            self.send(part)
        if not self._parts_out:
            if self._returned and self.pattern.takes_turns:
                self._give_up_returned()
            self.pattern.check_send(part)
        self.send_lane = None
        if len(self._parts_out) + 1 == self.pattern.parts_in_a_message:
            self._complete([part])
        else:
            self._parts_out = [*self._parts_out, part]

    def _give_up_returned(self) -> None:
        """A message that was given back unread is still to be received, unless REQ_RELAXED.

        Raises:
            UsageError: EFSM.
        """
        if not self.options.req_relaxed:
            raise UsageError(
                Errno.EFSM,
                hint=f"{self.type_name} has to receive first what a cancelled receive left",
            )
        self._returned.clear()

    def _complete(self, rest: list[Part]) -> None:
        """Send the parts that were kept, and these. If they can never be sent, forget them."""
        try:
            self.pattern.send([*self._parts_out, *rest])
        except Again:
            raise
        except ZMQError:
            self._parts_out = NOTHING
            raise
        self._parts_out = NOTHING

    def receive(self) -> Message:
        """The next message, or what is left of the one that :meth:`receive_part` has begun.

        Raises:
            Again: there is none.
            ZMQError: ENOTSUP, ENOTSOCK, ETERM, EFSM.
        """
        if self.closed or self.context.terminated:
            self.check_open()
        if self.parts_in:
            parts = list(self.parts_in)
            self.parts_in.clear()
            return parts if len(parts) > 1 else parts[0]
        if self._returned:
            return self._returned.popleft()
        if not self.pattern.can_receive:
            raise UsageError(
                Errno.ENOTSUP, hint=f"{self.type_name} sockets only send; they cannot receive"
            )
        return self.pattern.receive()

    def receive_part(self) -> Part:
        """The next part; ``receiving_more`` then says whether its message has more."""
        if self.parts_in:
            self.check_open()
            return self.parts_in.popleft()
        if self.closed or self._returned or self.context.terminated or not self.pattern.can_receive:
            message = self.receive()
        else:
            message = self.pattern.receive()
        if type(message) is bytes:
            return message
        if isinstance(message, list):
            self.parts_in = deque(message)
            self.receive_lane = None
            return self.parts_in.popleft()
        return message

    @property
    def receiving_more(self) -> bool:
        """ZMQ_RCVMORE: the part received last was not its message's last."""
        return bool(self.parts_in)

    def events(self) -> PollEvent:
        """ZMQ_EVENTS: what would not block now.

        Raises:
            ContextTerminated: the Context is being terminated.
        """
        return PollEvent(self.ready())

    def ready(self, wanted: int = _IN | _OUT) -> int:
        """As :meth:`events`, but a bare number: making the enum costs more than finding out.

        Args:
            wanted: what is asked for; of the rest nothing is said.

        Raises:
            ZMQError: ENOTSOCK, ETERM.
        """
        self.check_open()
        ready = 0
        pattern = self.pattern
        if wanted & _IN:
            lane = self.receive_lane
            if (lane is not None and lane.messages) or (
                self.parts_in
                or self._returned
                or (pattern.can_receive and pattern.can_receive_now())
            ):
                ready = _IN
        if wanted & _OUT and pattern.can_send and (self._parts_out or pattern.can_send_now()):
            if self._returned and pattern.takes_turns and not self.options.req_relaxed:
                return ready
            ready |= _OUT
        return ready

    def connected(self) -> bool:
        """Whether every endpoint we connect to has a peer; without endpoints, whether we have any.

        Raises:
            ZMQError: ENOTSOCK, ETERM.
        """
        self.check_open()
        ours = [dialer.link for dialer in self.links.dialers if not dialer.leaving]
        inproc = [peer for peers in self.inproc.peers.values() for peer in peers]
        if ours or inproc:
            return all(link is not None and link.handshaken for link in ours) and all(
                peer.connected for peer in inproc
            )
        return any(peer.connected for peer in self.links.peers)

    def why_not_connected(self) -> str:
        """Which endpoints have no peer, and what went wrong there last."""
        missing = [
            f"{dialer.address}: {dialer.last_error or 'no answer yet'}"
            for dialer in self.links.dialers
            if dialer.link is None or not dialer.link.handshaken
        ]
        missing += [
            f"inproc://{name}: nobody has bound it"
            for name, peers in self.inproc.peers.items()
            if not all(peer.connected for peer in peers)
        ]
        return "; ".join(missing) or "nobody has connected"

    def accepts(self, other: SocketCore) -> bool:
        """Whether the other socket's type and ours go together."""
        return other.type_name in self.pattern.accepts

    def put_back(self, message: Message, at: int = 0) -> None:
        """Return a message that was taken and not used.

        Args:
            message: what was taken.
            at: behind so many that are back already; 0: it is the next one to be received.
        """
        if self._returned is _NOTHING:
            self._returned = deque()
        self._returned.insert(at, message)
        self.receive_lane = None

    def put_back_part(self, part: Part, at: int = 0) -> None:
        """Return a part that was taken and not used, to what is left of its message.

        Args:
            part: what was taken.
            at: behind so many parts; 0: it is the next one.
        """
        if self.parts_in is _NOTHING:
            self.parts_in = deque()
        self.parts_in.insert(at, part)
        self.receive_lane = None

    def take_back(self, at: int) -> Message:
        """Take a message that was put back at that place."""
        message = self._returned[at]
        del self._returned[at]
        return message

    def take_back_part(self, at: int) -> None:
        """Take a part that was put back at that place."""
        del self.parts_in[at]

    @property
    def returned(self) -> int:
        """How many messages were put back and not received since."""
        return len(self._returned)

    # Options

    def set_option(self, option: int, value: int | bytes) -> None:
        """``zmq_setsockopt``. Subscriptions are carried out; the rest is kept in ``options``.

        Raises:
            ZMQError: EINVAL, unknown or not for this type or not that value; ENOTSOCK.
            TypeError: the wrong type of value.
        """
        if self.closed:
            raise ZMQError(Errno.ENOTSOCK)
        if self.pattern.hands_out:
            self.pattern.hand_out()
        if self.pattern.filters and type(value) is bytes:  # there may be many: nothing to look up
            if option == _SUBSCRIBE:
                self.pattern.subscribe(value)
                return
            if option == _UNSUBSCRIBE:
                self.pattern.unsubscribe(value)
                return
        subscription = self.options.set(option, value, self.type)
        if subscription is not None:
            if subscription.subscribe:
                self.pattern.subscribe(subscription.topic)
            else:
                self.pattern.unsubscribe(subscription.topic)
        elif option in (SocketOption.SNDHWM, SocketOption.RCVHWM):
            self.links.peers.set_hwms()
            if self._inproc is not None:
                self._inproc.set_hwms()

    def get_option(self, option: int) -> int | bytes:
        """``zmq_getsockopt``; FD is the driver's to answer.

        Raises:
            ZMQError: EINVAL, unknown or write-only; ENOTSOCK; ETERM for EVENTS.
        """
        if self.closed:
            raise ZMQError(Errno.ENOTSOCK)
        match option:
            case SocketOption.EVENTS:
                return int(self.events())
            case SocketOption.RCVMORE:
                return int(self.receiving_more)
            case SocketOption.TYPE:
                return int(self.type)
            case SocketOption.LAST_ENDPOINT:
                return self.last_endpoint.encode()
            case SocketOption.TOPICS_COUNT:
                self.options.get(option, self.type)  # raises for types that have no topics
                return self.pattern.topics_count()
            case _:
                return self.options.get(option, self.type)

    # Endpoints

    def listen(self, endpoint: str) -> Listener:
        """The driver has bound a tcp or ipc listener; ``endpoint`` is what it resolved to."""
        listener = Listener(endpoint, self.options.frozen())
        self.links.listeners = [*self.links.listeners, listener]
        self.last_endpoint = endpoint
        return listener

    def connect(self, endpoint: Endpoint, address: str) -> Dialer | None:
        """Begin to dial a tcp or ipc endpoint; None where libzmq makes no second connection.

        DEALER, SUB, PUB and REQ keep one connection an endpoint. An attempt that has been given up
        (RECONNECT_STOP) is begun anew.

        Raises:
            UsageError: EINVAL, CONNECT_ROUTING_ID names a peer that is there already.
        """
        if self.options.connect_routing_id:
            self.check_connect_routing_id()
        self.last_endpoint = address
        dialers = self.links.dialers
        if dialers.stopped:
            for dialer in dialers.given_up(address):
                self.links.drop(dialer)
        if self.type in _ONE_LINK_AN_ENDPOINT and dialers.has(address):
            return None
        return dialers.add(endpoint, address)

    def check_connect_routing_id(self) -> None:
        """Refuse a CONNECT_ROUTING_ID that is taken; libzmq aborts the process.

        Raises:
            UsageError: EINVAL. The option is unset, as after any other connect.
        """
        wanted = self.options.connect_routing_id
        if wanted and self.pattern.has_routing_id(wanted):
            self.options.connect_routing_id = b""
            raise UsageError(
                Errno.EINVAL,
                hint=f"CONNECT_ROUTING_ID {wanted[:64]!r} is the id of another peer of this socket",
            )

    # What follows from a call

    def settle(self) -> None:
        """Draw the consequences of what was just done; then the driver's lists can be read."""
        links, pattern = self.links, self.pattern
        if links.encoder.messages:
            links.encoder.forget()
        while links.room or pattern.announcements or pattern.refused:
            while links.room:
                peer = links.room.pop()
                if peer in links.peers:
                    pattern.writable(peer)
                elif peer.link is not None:
                    links.to_flush.append(peer)
            for announcement in _taken(pattern.announcements):
                links.announce(announcement.topic, subscribe=announcement.subscribe)
                if self._inproc is not None:
                    self._inproc.announce(announcement.topic, subscribe=announcement.subscribe)
            if pattern.refused:
                for peer, reason in _taken(pattern.refused):
                    self._refuse(peer, reason)
        if pattern.notices:
            self._pass_on_notices()
        if pattern.hands_out:
            pattern.hand_out()
        closed = self.closed
        self.send_lane = None if closed or self._parts_out else pattern.send_lane
        self.receive_lane = (
            None if closed or self.parts_in or self._returned else pattern.receive_lane
        )

    def _pass_on_notices(self) -> None:
        for peer, notice in _taken(self.pattern.notices):
            if not self.closed:  # afterwards nobody is there any more to be told
                self.links.notice(peer, notice)

    def _refuse(self, peer: Peer, reason: str) -> None:
        link = peer.link
        if isinstance(link, Link):
            if reason != CLOSE_REQUESTED:
                self.links.fail(link, HandshakeError(reason, source=self.type_name))
            else:
                self.links.close_when_sent(link)
        elif link is not None:
            self.links.notice(peer, reason)
            self.inproc.refuse(peer)

    def close(self) -> None:
        """No operation works from now on; queued messages go out while the driver lingers.

        A second time does what a first one that was interrupted may have left.
        """
        self.pattern.hand_out()
        self.closed = True
        self.parts_in.clear()
        self._returned.clear()
        self._parts_out = NOTHING
        if self._inproc is not None:
            self._inproc.close(self)
        self.links.begin_close()
        self.send_lane = self.receive_lane = None
        self.context.sockets.discard(self)


def _taken(items: list) -> list:  # type: ignore[type-arg] # of whatever the list holds
    """The items of a list that others fill, and the list emptied."""
    if not items:
        return items
    taken = items[:]
    items.clear()
    return taken
