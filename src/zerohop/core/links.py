"""The connections of one socket: handshakes, reconnects, heartbeats, lingering. No I/O.

The life of a link::

    open ──► greeting, handshake ──► Handshaken: the pattern gets the peer ──► traffic
                     │                                                           │
                     └──────────── failed, timed out, EOF, reset ◄───────────────┘
                                              │
                accepted: the pattern loses the peer; dialled: its pipes stay, it dials again

A dialled peer exists for the pattern from connect() on (messages queue before anybody listens), with
IMMEDIATE only while it is connected; an accepted peer exists from its handshake on, so that a stranger
who only connects costs a greeting and a time limit, never a queue (CVE-2020-15166).
"""

from __future__ import annotations

import errno
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from zerohop.constants import Errno, Event, SocketType
from zerohop.core import output
from zerohop.core.link import Dialer, Link, Listener
from zerohop.core.monitor import MonitorRecord
from zerohop.core.reconnect import Failure, next_delay
from zerohop.errors import HandshakeError, ProtocolError, ZMQError
from zerohop.mechanisms.null import NullMechanism
from zerohop.patterns.pattern import Peer
from zerohop.patterns.pipe import Pipe
from zerohop.wire.connection import Connection
from zerohop.wire.events import ErrorReceived, Handshaken, SubscriptionReceived
from zerohop.wire.raw import RawConnection

if TYPE_CHECKING:
    from collections.abc import Callable

    from zerohop.core.endpoint import Endpoint
    from zerohop.core.monitor import MonitorLog
    from zerohop.core.options import SocketOptions
    from zerohop.patterns.pattern import Pattern
    from zerohop.patterns.pipe import Message
    from zerohop.wire.frames import Buffer

_WITH_IDENTITY = frozenset({SocketType.REQ, SocketType.DEALER, SocketType.ROUTER})
_CONFLATES = frozenset(
    {SocketType.DEALER, SocketType.PULL, SocketType.PUSH, SocketType.PUB, SocketType.SUB}
)
_FANS_OUT = frozenset({SocketType.PUB, SocketType.XPUB})


class Links:
    """Dialers, listeners, links and their timers.

    Args:
        socket_type: decides the metadata and which peers fit.
        pattern: told of every peer.
        options: read when a link opens; SNDHWM and RCVHWM also live.
        jitter: a random number in [0, 1) at each call, for the back-off.
        owner: the core, put into each peer so that a note about a shared pipe finds its way back.

    Attributes:
        to_dial, to_flush, to_write, to_resume, to_close, stale: the driver's work; see
            ``core.socket``.
        room: peers whose outbound pipe has room again (for ``SocketCore.settle``).
        room_for_others: peers that have more to write but had their share of this turn.
        peers: every peer the pattern has, inproc ones too, in the order they came.
        monitors: where records of what happens go; usually empty.
        reports: failures the driver should log, one a cause and endpoint.
    """

    def __init__(
        self,
        socket_type: SocketType,
        pattern: Pattern,
        options: SocketOptions,
        jitter: Callable[[], float],
        owner: object,
    ) -> None:
        self.owner = owner
        self.socket_type = socket_type
        self.pattern = pattern
        self.options = options
        self.peers: dict[Peer, None] = {}
        self.open_links: dict[Link, None] = {}
        self.dialers: list[Dialer] = []
        self.listeners: list[Listener] = []
        self.to_dial: list[Dialer] = []
        self.to_flush: list[Peer] = []
        self.to_write: list[Link] = []
        self.to_resume: list[Peer] = []
        self.to_close: list[Link] = []
        self.room: list[Peer] = []
        self.room_for_others: list[Peer] = []
        self.monitors: list[MonitorLog] = []
        self.reports: list[str] = []
        self.stale = False
        self.closing = False
        self._jitter = jitter
        self._news: list[Any] = []
        self._timers: list[tuple[float, int, Link | Dialer]] = []
        self._timer_count = 0
        self._encoder = output.BatchEncoder()
        self._share = socket_type in _FANS_OUT

    # A peer and its pipes

    def new_peer(self) -> Peer:
        """A peer with pipes of this socket's own limits; not yet known to the pattern."""
        options = self.options
        conflate = options.conflate and self.socket_type in _CONFLATES
        outbound = Pipe(options.sndhwm, conflate=conflate)
        inbound = Pipe(options.rcvhwm, conflate=conflate)
        peer = Peer(outbound, inbound)
        peer.owner = self.owner
        outbound.reader = outbound.writer = inbound.reader = inbound.writer = peer
        outbound.reader_signals = self.to_flush
        outbound.writer_signals = self.room
        inbound.reader_signals = self._news
        inbound.writer_signals = self.to_resume
        return peer

    def attach(self, peer: Peer) -> None:
        """Give the peer to the pattern."""
        self.peers[peer] = None
        self.pattern.attach(peer)

    def detach(self, peer: Peer) -> None:
        """Take the peer from the pattern; what it sent before may still be received."""
        if self.peers.pop(peer, peer) is None:
            peer.connected = False
            peer.inbound.closed = True
            self.pattern.detach(peer)

    # Dialling

    def dial(self, endpoint: Endpoint, address: str) -> Dialer:
        """Begin to connect. Unless IMMEDIATE is set the pattern has the peer from now on."""
        dialer = Dialer(endpoint, address, connect_routing_id=self.options.connect_routing_id)
        self.options.connect_routing_id = b""  # libzmq: for the next connect only
        self.dialers.append(dialer)
        if not self.options.immediate:
            dialer.peer = self._dialled_peer(dialer)
            self.attach(dialer.peer)
        self.to_dial.append(dialer)
        return dialer

    def _dialled_peer(self, dialer: Dialer) -> Peer:
        peer = self.new_peer()
        peer.connect_routing_id = dialer.connect_routing_id
        return peer

    def dial_failed(self, dialer: Dialer, error: OSError, now: float) -> None:
        """Nobody answered; try again later, as RECONNECT_IVL and RECONNECT_STOP say."""
        dialer.last_error = error
        self.record(Event.CLOSED, error.errno or 0, dialer.address, reason=str(error))
        refused = isinstance(error, ConnectionRefusedError)
        self._dial_again(dialer, Failure.REFUSED if refused else Failure.UNREACHABLE, now)

    def _dial_again(self, dialer: Dialer, failure: Failure, now: float) -> None:
        if dialer not in self.dialers:
            return
        if self._left(dialer):
            self.drop_dialer(dialer)
            return
        wait = next_delay(
            failure, dialer.attempt, self.options.reconnect_options(), self._jitter()
        )
        dialer.attempt += 1
        if wait is None:
            dialer.stopped = True
            if dialer.peer is not None:
                self._count_lost(dialer.peer)
                self.detach(dialer.peer)
            if dialer.leaving or self.closing:
                self.drop_dialer(dialer)
            return
        dialer.retry_at = now + wait
        self.record(Event.CONNECT_RETRIED, int(wait * 1000), dialer.address)
        self._arm(dialer.retry_at, dialer)

    def drop_dialer(self, dialer: Dialer) -> None:
        """Forget a connect(): no more dialling, and the pattern loses the peer."""
        if dialer in self.dialers:
            self.dialers.remove(dialer)
        if dialer in self.to_dial:
            self.to_dial.remove(dialer)
        dialer.retry_at = None
        if dialer.peer is not None:
            self._count_lost(dialer.peer)
            self.detach(dialer.peer)
            dialer.peer = None

    def hang_up(self, dialer: Dialer) -> None:
        """disconnect(): no new messages for the peer; the link ends once its queue is out.

        The caller bounds the wait (LINGER) and then calls :meth:`cut`.
        """
        dialer.leaving = True
        if dialer.peer is not None and dialer.peer in self.peers:
            self.detach(dialer.peer)
        if self._left(dialer) or dialer.stopped:
            self.cut(dialer)
        elif dialer.link is not None:
            self._close_if_left(dialer.link)

    def hang_up_accepted(self, listener: Listener) -> None:
        """unbind(): the peers that came through the listener leave once their queues are out."""
        for link in list(self.open_links):
            if link.source is listener:
                if link.peer is not None and link.handshaken:
                    self.detach(link.peer)
                    self.close_when_sent(link)
                else:
                    self._close(link)

    def cut(self, dialer: Dialer) -> None:
        """End a dialler and its link now, whatever is still queued."""
        if dialer.link is not None:
            self._close(dialer.link)
        self.drop_dialer(dialer)

    # Links

    def open(
        self, source: Dialer | Listener, now: float, *, local: str, remote: str, fd: int
    ) -> Link:
        """A connection is there; ``output`` has the greeting."""
        options = self.options
        if self.socket_type == SocketType.STREAM:
            connection: Connection | RawConnection = RawConnection()
        else:
            properties = {"Socket-Type": self.socket_type.name.encode()}
            if self.socket_type in _WITH_IDENTITY:
                properties["Identity"] = options.routing_id
            properties.update(options.metadata)
            connection = Connection(
                mechanism=NullMechanism(properties),
                properties=properties,
                heartbeat=options.heartbeat_options(),
                max_message_size=options.maxmsgsize,
                handshake_timeout=options.handshake_ivl,
                now=now,
            )
        dialled = isinstance(source, Dialer)
        address = source.address if isinstance(source, Dialer) else source.endpoint
        link = Link(source, connection, address, local, remote, opened_at=now, fd=fd)
        self.open_links[link] = None
        if isinstance(source, Dialer):
            source.link = link
            source.retry_at = None
            link.peer = source.peer
        self.record(Event.CONNECTED if dialled else Event.ACCEPTED, 0, address, link)
        self._arm_link(link)
        self._handle(link, connection.start(), now)
        return link

    def receive_data(self, link: Link, data: bytes, now: float) -> None:
        """Octets came. Whatever goes wrong is the link's end, never the caller's exception."""
        if link.closing:
            return
        connection = link.connection
        link.octets_in += len(data)
        try:
            items = connection.receive_data(data, now)
        except ProtocolError as error:
            self._handle(link, connection.completed, now)
            self.fail(link, error, now)
            return
        if connection.has_events:
            self._handle(link, items, now)
        elif items:
            peer = link.peer
            link.messages_in += len(items)
            if peer is not None and not self.closing:
                self.pattern.deliver(peer, items)  # type: ignore[arg-type] # no events among them
                self._news.clear()
        if connection.has_output:
            self.to_write.append(link)

    def _handle(self, link: Link, items: list[Any], now: float) -> None:
        """The careful way through what a connection gave: events among messages, in order."""
        for item in items:
            match item:
                case Handshaken():
                    self._handshaken(link, item, now)
                case SubscriptionReceived():
                    if link.peer is not None:
                        self.pattern.subscription(link.peer, item.topic, item.subscribe)
                case ErrorReceived():
                    self.fail(link, HandshakeError(
                        f"{link.remote or link.endpoint} refused this socket: {item.reason!r}",
                        source="RFC 37, ERROR command",
                    ), now)  # fmt: skip
                case _:
                    link.messages_in += 1
                    if link.peer is not None and link.handshaken and not self.closing:
                        self.pattern.deliver(link.peer, [item])
            if link.closing:
                break
        self._news.clear()
        self._arm_link(link)

    def _handshaken(self, link: Link, event: Handshaken, now: float) -> None:
        named = event.properties.get("socket-type", b"").decode("ascii", "backslashreplace")
        if named and named not in self.pattern.accepts:
            link.connection.refuse(f"{self.socket_type.name} does not talk to {named[:64]}")
            self.fail(link, HandshakeError(
                f"{link.remote or link.endpoint} is a {named[:64]} socket; {self.socket_type.name} "
                f"talks to {', '.join(sorted(self.pattern.accepts))}; one of the two has the wrong "
                "type or the wrong address",
                source="RFC 37, Socket-Type",
            ), now)  # fmt: skip
            return
        source = link.source
        if self.closing and link.peer is None:
            self._close(link)
            return
        link.handshaken = True
        self.record(Event.HANDSHAKE_SUCCEEDED, 0, link.endpoint, link,
                    routing_id=event.properties.get("identity", b""))  # fmt: skip
        peer = link.peer
        if peer is None:
            peer = link.peer = self.new_peer()
            peer.routing_id = event.properties.get("identity", b"")
            peer.socket_type = named
            if isinstance(source, Dialer):
                source.peer = peer
                peer.connect_routing_id = source.connect_routing_id
            self.attach(peer)
        peer.routing_id = event.properties.get("identity", b"")
        peer.socket_type = named
        peer.connected = True
        peer.link = link
        if isinstance(source, Dialer):
            if source.attempt or source.reconnects:
                source.reconnects += 1
            source.attempt = 0
            source.last_error = None
            source.reported = ""
        if peer in self.peers:
            self.pattern.connected(peer)
            for topic in self.pattern.topics():
                link.connection.send_subscription(topic, subscribe=True)
        self.to_flush.append(peer)

    def announce(self, topic: bytes, *, subscribe: bool) -> None:
        """Tell every connected network peer of a subscription; never counted, never dropped."""
        for link in self.open_links:
            if link.handshaken and link.peer is not None:
                link.connection.send_subscription(topic, subscribe=subscribe)
                self.to_write.append(link)

    def output(self, link: Link) -> list[Buffer]:
        """What to write next; empty when there is nothing. Say with :meth:`wrote` what was taken."""
        pipe = None
        if link.handshaken and link.peer is not None and not (link.closing and link.failure):
            pipe = link.peer.outbound
        return output.fill(link, pipe, self._encoder, share=self._share)

    def wrote(self, link: Link, size: int, now: float) -> None:
        """The kernel took ``size`` octets of :meth:`output`."""
        output.written(link, size)
        if link.buffers and size:
            link.connection.written(now)
        if not link.buffers and (self.closing or link.leaving or link.ending):
            self._close_if_left(link)

    def fail(self, link: Link, error: Exception, now: float) -> None:
        """The link cannot go on: close it once its last words (an ERROR command) are written."""
        del now
        if link.failure is None:
            link.failure = error
        source = link.source
        source.last_error = error
        key = f"{type(error).__name__}: {error}"
        if not isinstance(source, Dialer) or source.reported != key:
            self.reports.append(f"{self.socket_type.name} {link.endpoint}: {error}")
            if isinstance(source, Dialer):
                source.reported = key  # once a cause, not once an attempt
        self._close(link)

    def notice(self, peer: Peer, text: str) -> None:
        """Something a user would like to know about a peer that stays: a record and a log line."""
        link = peer.link
        endpoint = link.endpoint if isinstance(link, Link) else "inproc"
        if isinstance(link, Link):
            link.source.last_error = HandshakeError(text, source=self.socket_type.name)
        self.reports.append(f"{self.socket_type.name} {endpoint}: {text}")

    def close_when_sent(self, link: Link) -> None:
        """The application closes this one connection (STREAM): once its queue is out."""
        link.ending = True
        self._close_if_left(link)

    def _close(self, link: Link) -> None:
        if not link.closing:
            link.closing = True
            self.to_close.append(link)

    def lost(self, link: Link, error: Exception | None, now: float) -> None:
        """The connection is gone (closed by us, EOF when ``error`` is None, or an OS error)."""
        if link.lost:
            return
        link.lost = link.closing = True
        self.open_links.pop(link, None)
        self._record_end(link, error)
        source, peer = link.source, link.peer
        unsent = output.take_back(link)
        if isinstance(source, Dialer):
            source.link = None
        if isinstance(source, Dialer) and peer is not None and peer is source.peer:
            if source.last_error is None:
                source.last_error = link.failure or error
            if not peer.outbound.conflate or not peer.outbound.messages:
                _put_back(peer.outbound, unsent)
            if self.options.immediate and not source.leaving:
                source.peer = None
                self._count_lost(peer)
                self.detach(peer)
            else:
                peer.connected = False
                peer.link = None
                if link.handshaken and peer in self.peers:
                    self.pattern.disconnected(peer)
        elif peer is not None:
            _put_back(peer.outbound, unsent)
            self._count_lost(peer)
            peer.link = None
            self.detach(peer)
        if isinstance(source, Dialer):
            self._dial_again(source, _failure_of(link), now)

    def _count_lost(self, peer: Peer) -> None:
        left = len(peer.outbound)
        if left:
            peer.dropped["peer gone"] += left
            self.pattern.dropped["peer gone"] += left
            peer.outbound.messages.clear()

    # Lingering

    def _left(self, dialer: Dialer) -> bool:
        """Whether a dialler that is asked to leave has nothing left to send."""
        if not (dialer.leaving or self.closing):
            return False
        peer = dialer.peer
        queued = peer is not None and len(peer.outbound) > 0
        return not queued and (dialer.link is None or not dialer.link.buffers)

    def _close_if_left(self, link: Link) -> None:
        peer = link.peer
        if not link.buffers and (peer is None or not peer.outbound.messages):
            self._close(link)

    def begin_close(self) -> None:
        """close(): no new peers, nothing is received any more; links end when their queues are out."""
        self.closing = True
        self.listeners.clear()
        for peer in list(self.peers):
            self.detach(peer)
        for link in list(self.open_links):
            if not link.handshaken and not (isinstance(link.source, Dialer) and link.peer is not None
                                            and link.peer.outbound.messages):  # fmt: skip
                self._close(link)
            else:
                self._close_if_left(link)
                if link.peer is not None:
                    self.to_flush.append(link.peer)
        for dialer in self.dialers[:]:
            if self._left(dialer) or dialer.stopped:
                self.cut(dialer)

    def end_close(self) -> None:
        """The linger time is over: whatever is still queued is dropped."""
        for dialer in self.dialers[:]:
            self.cut(dialer)
        for link in list(self.open_links):
            link.buffers.clear()
            self._close(link)

    @property
    def finished(self) -> bool:
        """After close(): no link and no dialler is left."""
        return not self.open_links and not self.dialers

    # Time

    def _arm(self, when: float, what: Link | Dialer) -> None:
        self._timer_count += 1
        heappush(self._timers, (when, self._timer_count, what))
        self.stale = True

    def _arm_link(self, link: Link) -> None:
        when = link.connection.next_deadline()
        if when is not None and when < link.armed_for:
            link.armed_for = when
            self._arm(when, link)

    def next_deadline(self) -> float | None:
        """When :meth:`handle_deadline` wants to be called, at the earliest."""
        self.stale = False
        return self._timers[0][0] if self._timers else None

    def handle_deadline(self, now: float) -> None:
        """Whatever is due: diallers dial, links ping or give up.

        The heap is lazy: an entry may be out of date (a link heard from its peer meanwhile); what
        is due is asked of its owner, which is put in again with its real time.
        """
        timers = self._timers
        self.stale = True
        while timers and timers[0][0] <= now:
            _, _, what = heappop(timers)
            if isinstance(what, Dialer):
                if what.retry_at is not None and what.retry_at <= now and what in self.dialers:
                    what.retry_at = None
                    self.to_dial.append(what)
                continue
            if what.closing:
                continue
            what.armed_for = float("inf")
            try:
                what.connection.handle_deadline(now)
            except ProtocolError as error:
                self.fail(what, error, now)
                continue
            if what.connection.has_output:
                self.to_write.append(what)
            self._arm_link(what)

    # Records

    def record(
        self,
        event: Event,
        value: int,
        endpoint: str,
        link: Link | None = None,
        *,
        reason: str = "",
        routing_id: bytes = b"",
    ) -> None:
        """Put a record into every monitor; costs nothing when there is none."""
        if not self.monitors:
            return
        if link is not None and event in (Event.CONNECTED, Event.ACCEPTED, Event.DISCONNECTED,
                                          Event.HANDSHAKE_SUCCEEDED):  # fmt: skip
            value = link.fd if event != Event.HANDSHAKE_SUCCEEDED else 0
        record = MonitorRecord(
            event, value, endpoint,
            remote=link.remote if link is not None else "",
            routing_id=routing_id or (
                link.peer.routing_id if link is not None and link.peer is not None else b""
            ),
            reason=reason,
        )  # fmt: skip
        for monitor in self.monitors:
            monitor.append(record)

    def _record_end(self, link: Link, error: Exception | None) -> None:
        failure = link.failure
        reason = str(failure or error or "")
        if not link.handshaken:
            if isinstance(failure, HandshakeError | ProtocolError):
                value = getattr(failure, "code", 0)
                self.record(Event.HANDSHAKE_FAILED_PROTOCOL, value, link.endpoint, link,
                            reason=reason)  # fmt: skip
            else:
                number = error.errno if isinstance(error, OSError | ZMQError) else None
                self.record(Event.HANDSHAKE_FAILED_NO_DETAIL, number or errno.EPIPE,
                            link.endpoint, link, reason=reason)  # fmt: skip
        self.record(Event.DISCONNECTED, 0, link.endpoint, link, reason=reason)


def _failure_of(link: Link) -> Failure:
    if link.handshaken and link.failure is None:
        return Failure.LOST
    return Failure.HANDSHAKE if link.failure is None else Failure.MISMATCH


def _put_back(pipe: Pipe, messages: list[Message]) -> None:
    """Return messages to the head of the pipe, oldest first; a full pipe takes them all the same."""
    if messages:
        pipe.messages.extendleft(reversed(messages))
        if 0 < pipe.hwm <= len(pipe.messages):
            pipe.full = True
        pipe.asleep = False
