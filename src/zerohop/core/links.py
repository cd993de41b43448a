"""The connections of one socket: handshakes, traffic, heartbeats, lingering. No I/O.

The life of a link::

    open ──► greeting, handshake ──► Handshaken: the pattern gets the peer ──► traffic
                     │                                                           │
                     └──────────── failed, timed out, EOF, reset ◄───────────────┘
                                              │
                accepted: the pattern loses the peer; dialled: its pipes stay, it dials again

A dialled peer exists for the pattern from connect() on (``core.dialers``); an accepted peer exists
from its handshake on, so that a stranger who only connects costs a greeting and a time limit, never
a queue (CVE-2020-15166).
"""

from __future__ import annotations

from functools import cache

from zerohop.constants import Event, SocketType
from zerohop.core import output
from zerohop.core.dialers import Dialers
from zerohop.core.link import NOT_REPORTED, Dialer, Link, Listener, open_connection
from zerohop.core.peers import Peers, let_go, put_back
from zerohop.core.records import Records
from zerohop.core.timers import Timers
from zerohop.errors import HandshakeError, ProtocolError
from zerohop.value import NOTHING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from zerohop.core.endpoint import SocketName
    from zerohop.core.options import SocketOptions
    from zerohop.patterns.pattern import Pattern, Peer
    from zerohop.patterns.pipe import Message
    from zerohop.wire.events import Handshaken
    from zerohop.wire.frames import Buffer

_FANS_OUT = frozenset({SocketType.PUB, SocketType.XPUB})
_KEEPS_NOTHING = output.BatchEncoder()  # for links that share nothing with others


class Links:
    """Links, and what they come from: listeners and diallers.

    Args:
        socket_type: decides the metadata and which peers fit.
        pattern: told of every peer.
        options: copied at each bind() and connect(), as libzmq does; SNDHWM and RCVHWM are live.
        jitter: a random number in [0, 1) at each call, for the back-off.
        owner: the core, put into each peer so that a note about a shared pipe finds its way back.

    Attributes:
        to_dial, to_flush, to_write, to_resume, to_close: the driver's work; see ``core.socket``.
        room: peers whose outbound pipe has room again (for ``SocketCore.settle``).
        room_for_others: peers that have more to write but had their share of this turn.
        peers, dialers, listeners, open_links: who is there.
        timers: what is due when.
        records: where it is told what happens; ``monitors`` and ``reports`` are its lists.
    """

    def __init__(
        self,
        socket_type: SocketType,
        pattern: Pattern,
        options: SocketOptions,
        jitter: Callable[[], float],
        owner: object,
    ) -> None:
        self.socket_type = socket_type
        self.pattern = pattern
        self.peers = Peers(pattern, options, owner)
        self._attached = self.peers.attached
        self.records = Records(socket_type)
        self.timers = Timers()
        self.dialers = Dialers(self.peers, options, jitter, self.timers, self.records)
        self.listeners: list[Listener] = NOTHING
        self.open_links: dict[Link, None] = {}
        self.to_dial = self.dialers.to_dial
        self.to_flush = self.peers.to_flush
        self.to_write: list[Link] = []
        self.to_resume = self.peers.to_resume
        self.to_close: list[Link] = NOTHING
        self.room = self.peers.room
        self.room_for_others: list[Peer] = NOTHING
        self.monitors = self.records.monitors
        self.reports = self.records.reports
        self.encoder = output.BatchEncoder() if socket_type in _FANS_OUT else _KEEPS_NOTHING

    # A link's life

    def open(self, source: Dialer | Listener, now: float, *, remote: SocketName, fd: int) -> Link:
        """A connection is there; ``output`` has the greeting."""
        connection = open_connection(self.socket_type, source.options, now)
        if isinstance(source, Dialer):
            link = Link(source, connection, source.address, remote, fd)
            source.link = link
            link.peer = source.peer
            link.ending = source.leaving
        else:
            link = Link(source, connection, source.endpoint, remote, fd)
        self.open_links[link] = None
        if self.monitors:
            event = Event.CONNECTED if isinstance(source, Dialer) else Event.ACCEPTED
            self.records.of_link(event, link, fd)
        events = connection.start()
        if events:
            self._handle(link, events)
        else:
            self._arm(link)
        return link

    def receive_data(self, link: Link, data: bytes, now: float) -> bool:
        """Octets came. Whatever goes wrong is the link's end, never the caller's exception.

        Returns:
            Whether they were messages at most: the pattern has them, and nothing else was heard.
        """
        if link.closing:
            return False
        connection = link.connection
        link.octets_in += len(data)
        try:
            items = connection.receive_data(data, now)
        except ProtocolError as error:
            self._handle(link, connection.completed)
            self.fail(link, error)
            return False
        if connection.has_events:
            self._handle(link, items)
        elif items:  # as _deliver
            link.messages_in += len(items)
            peer = link.peer
            if peer is not None and peer in self._attached:
                self.pattern.deliver(peer, items)  # type: ignore[arg-type] # no events among them
        if connection.has_output:
            self.to_write.append(link)
            return False
        return not connection.has_events

    def _handle(self, link: Link, items: list[Any]) -> None:
        """The careful way through what a connection gave: events among messages, in order."""
        events = _events_of_the_wire()
        for item in items:
            match item:
                case events.SubscriptionReceived():
                    peer = link.peer
                    if peer is not None and peer in self._attached:
                        self.pattern.subscription(peer, item.topic, item.subscribe)
                case events.Handshaken():
                    self._handshaken(link, item)
                case events.ErrorReceived():
                    self.fail(link, HandshakeError(
                        f"{link.remote or link.endpoint} refused this socket: {item.reason!r}",
                        source="RFC 37, ERROR command",
                    ))  # fmt: skip
                case _:
                    self._deliver(link, [item])
            if link.closing:
                break
        self._arm(link)

    def _deliver(self, link: Link, messages: list[Message]) -> None:
        """Hand on what the peer sent, unless nobody listens to it any more (libzmq: disconnect)."""
        link.messages_in += len(messages)
        peer = link.peer
        if peer is not None and peer in self._attached:
            self.pattern.deliver(peer, messages)

    def _handshaken(self, link: Link, event: Handshaken) -> None:
        named = event.properties.get("socket-type", b"").decode("ascii", "backslashreplace")
        told = "socket-type" in event.properties  # who does not tell is taken, as in libzmq
        if told and named not in self.pattern.accepts:
            link.connection.refuse(f"{self.socket_type.name} does not talk to {named[:64]}")
            self.fail(link, HandshakeError(
                f"{link.remote or link.endpoint} is a {named[:64]} socket; {self.socket_type.name} "
                f"talks to {', '.join(sorted(self.pattern.accepts))}; one of the two has the wrong "
                "type or the wrong address",
                source="RFC 37, Socket-Type",
            ))  # fmt: skip
            return
        source = link.source
        peer = link.peer
        is_new = peer is None
        if peer is None:
            peer = link.peer = self.peers.new(conflate=source.options.conflate)
        peer.routing_id = event.properties.get("identity", b"")
        peer.socket_type = named
        if isinstance(source, Dialer):
            source.peer = peer
            source.handshakes += 1
            source.attempt = 0
            source.last_error = None
            source.reported = NOT_REPORTED
            peer.connect_routing_id = source.options.connect_routing_id
        link.handshaken = True
        link.shares = self.socket_type in _FANS_OUT and link.connection.plain
        if self.monitors:
            self.records.of_link(Event.HANDSHAKE_SUCCEEDED, link, 0)
        if is_new:
            self.peers.attach(peer)
        peer.connected = True
        peer.link = link
        if peer in self._attached:
            self.pattern.connected(peer)
            for topic in self.pattern.topics():
                link.connection.send_subscription(topic, subscribe=True)
        if peer.outbound.messages or not peer.outbound.asleep:
            self.to_flush.append(peer)

    def announce(self, topic: bytes, *, subscribe: bool) -> None:
        """Tell every connected network peer of a subscription; never counted, never dropped."""
        for link in self.open_links:
            if link.handshaken:
                connection = link.connection
                if not connection.has_output:  # else it is there, or writes as soon as it can
                    self.to_write.append(link)
                connection.send_subscription(topic, subscribe=subscribe)

    def output(self, link: Link) -> list[Buffer]:
        """What to write next, if anything; tell :meth:`wrote` how much of it was taken."""
        pipe = None
        if link.handshaken and link.peer is not None and link.failure is None:
            pipe = link.peer.outbound
        return output.fill(link, pipe, self.encoder)

    def wrote(self, link: Link, size: int, now: float) -> None:
        """The kernel took ``size`` octets of :meth:`output`."""
        output.written(link, size)
        if link.buffers:
            if size:
                link.connection.written(now)
        elif link.ending:
            self._close_if_left(link)

    def fail(self, link: Link, error: ProtocolError) -> None:
        """The link cannot go on: close it once its last words (an ERROR command) are written."""
        if link.failure is None:
            link.failure = error
        link.source.last_error = error
        self.records.report(link.source, link.endpoint, error)
        self._close(link)

    def notice(self, peer: Peer, text: str) -> None:
        """Tell what a user would like to know about a peer: the log; monitors too if it stays."""
        link = peer.link
        if isinstance(link, Link):
            error = HandshakeError(
                text,
                source=self.socket_type.name,
                code=Event.PROTOCOL_ERROR_ZMTP_INVALID_METADATA,
            )
            link.source.last_error = error
            self.records.of_link(Event.HANDSHAKE_FAILED_PROTOCOL, link, error.code, reason=text)
            self.records.report(link.source, link.endpoint, text)
            return
        dialer = next((dialer for dialer in self.dialers if dialer.peer is peer), None)
        if dialer is not None:
            self.records.report(dialer, dialer.address, text)
        else:
            whom = "inproc" if peer.inproc else "a peer that has left"
            self.reports.append(f"{self.socket_type.name} {whom}: {text}")

    def lost(self, link: Link, error: Exception | None, now: float) -> None:
        """The connection is gone (closed by us, EOF when ``error`` is None, or an OS error)."""
        if link.lost:
            return
        self.records.end_of(link, error)
        link.lost = link.closing = True
        link.due_at = None
        self.open_links.pop(link, None)
        source, peer = link.source, link.peer
        stays = isinstance(source, Dialer) and source.keeps(peer)
        unsent = output.take_back(link)
        link.connection.lost()
        if peer is not None:
            put_back(peer.outbound, unsent)
            peer.link = None
            if not stays:
                self.peers.drop_queue(peer)
                self.peers.detach(peer)
                let_go(peer)
            elif link.handshaken:
                peer.connected = False
                if peer in self.peers:
                    self.pattern.disconnected(peer)
        if isinstance(source, Dialer):
            if not stays:
                source.peer = None
            source.link = None
            if source.last_error is None:
                source.last_error = link.failure or error
            self.dialers.again(source, link.why_lost, now)

    # Leaving

    def hang_up(self, dialer: Dialer) -> None:
        """disconnect(): no new messages for the peer; the link ends once its queue is out.

        The caller bounds the wait (LINGER) and then calls :meth:`cut_source`.
        """
        dialer.leaving = True
        peer = dialer.peer
        if peer is not None:
            self.peers.detach(peer)
        if dialer.link is not None:
            dialer.link.ending = True
            if peer is not None and peer.inbound.full:
                self.to_resume.append(peer)  # nobody stops it any more
        if peer is None or dialer.done:
            self.drop(dialer)
        else:
            self.to_flush.append(peer)

    def drop(self, dialer: Dialer) -> None:
        """End a dialler and its link, whatever is still queued."""
        if dialer.link is not None:
            self._close(dialer.link)
        self.dialers.drop(dialer)

    def cut_source(self, source: Dialer | Listener) -> None:
        """The time is over that disconnect() or unbind() gives to what is still queued."""
        if isinstance(source, Dialer) and source in self.dialers:
            self.drop(source)
        for link in list(self.open_links):
            if link.source is source:
                self._abandon(link)

    def hang_up_accepted(self, listener: Listener) -> None:
        """unbind(): the peers that came through the listener leave once their queues are out."""
        for link in list(self.open_links):
            if link.source is listener:
                self._end(link)

    def close_when_sent(self, link: Link) -> None:
        """The application closes this one connection (STREAM) for good, once its queue is out."""
        if isinstance(link.source, Dialer):
            self.hang_up(link.source)
            link.source.stopped = True  # what is left of a raw stream is of no use on another
        else:
            self._end(link)

    def _end(self, link: Link) -> None:
        """Let an accepted link go: a stranger at once, a peer once its queue is out."""
        link.ending = True
        if link.peer is None:
            self._close(link)
            return
        self.peers.detach(link.peer)
        self.to_flush.append(link.peer)
        if link.peer.inbound.full:
            self.to_resume.append(link.peer)  # nobody stops it any more
        self._close_if_left(link)

    def _abandon(self, link: Link) -> None:
        """End a link now and drop its queue.

        Not what is in flight: half a message would take the octets of the next for its own.
        """
        if link.peer is not None:
            self.peers.drop_queue(link.peer)
        link.cut = True
        link.closing = False  # if it was: what it has written is waited for no longer
        self._close(link)

    def _close_if_left(self, link: Link) -> None:
        peer = link.peer
        if not link.buffers and (peer is None or not peer.outbound.messages):
            self._close(link)

    def _close(self, link: Link) -> None:
        if not link.closing:
            self.to_close = self.to_close or []
            self.to_close.append(link)
            link.closing = True

    def begin_close(self) -> None:
        """close(): nobody is received from any more; links end when all is sent.

        Inproc peers have left before (``Inproc.close``).
        """
        self.listeners = NOTHING
        for dialer in list(self.dialers):
            self.hang_up(dialer)
        for link in list(self.open_links):
            if isinstance(link.source, Listener):
                self._end(link)

    def end_close(self) -> None:
        """The linger time is over: whatever is still queued is dropped."""
        for dialer in list(self.dialers):
            self.drop(dialer)
        for link in list(self.open_links):
            self._abandon(link)

    @property
    def finished(self) -> bool:
        """After close(): no link and no dialler is left."""
        return not self.open_links and not self.dialers

    def mend(self) -> None:
        """Look at everybody: an exception may have come between what belongs together.

        See ``io.mending``. A subscription that is sent twice is one.
        """
        for link in self.open_links:
            if link.closing and link not in self.to_close:
                self.to_close = self.to_close or []
                self.to_close.append(link)
            elif link.handshaken and not link.closing:
                for topic in self.pattern.topics():
                    link.connection.send_subscription(topic, subscribe=True)
            self.to_write.append(link)
        for peer in self.peers:
            peer.outbound.drained()
            peer.inbound.drained()
            if not peer.outbound.full:
                self.room.append(peer)
        self.pattern.mend(self.peers)
        self.dialers.mend()
        self.timers.mend([*self.open_links, *self.dialers])
        for link in self.open_links:
            self._arm(link)
            if link.ending:
                self._close_if_left(link)

    # Time

    def _arm(self, link: Link) -> None:
        when = link.connection.next_deadline()
        if when is not None and not link.closing:
            self.timers.arm(link, when)

    def next_deadline(self) -> float | None:
        """When :meth:`handle_deadline` wants to be called, at the earliest."""
        return self.timers.next()

    def handle_deadline(self, now: float) -> None:
        """Whatever is due: diallers dial, links ping or give up."""
        while (what := self.timers.pop(now)) is not None:
            if isinstance(what, Dialer):
                self.dialers.due(what)
                continue
            if what.closing:
                continue
            if what.peer is not None and what.handshaken and what.peer.inbound.full:
                what.connection.not_reading(now)
            try:
                what.connection.handle_deadline(now)
            except ProtocolError as error:
                self.fail(what, error)
                continue
            if what.connection.has_output:
                self.to_write.append(what)
            self._arm(what)


@cache
def _events_of_the_wire() -> ModuleType:
    """Who has a connection has imported the wire, and who has none need not."""
    from zerohop.wire import events

    return events
