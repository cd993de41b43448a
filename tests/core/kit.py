"""Drives one core as a driver would: the test is the network, the clock and the peers.

A :class:`Remote` is the other end of one link: a ``Connection`` of its own, and what came out of
it. Like a driver, :class:`Network` writes a link only when the core's lists say so, and reads none
whose inbound pipe is full: a note that is missing shows as a message that does not arrive.
"""

import errno

from zerohop.constants import Event, SocketType
from zerohop.core.context import ContextCore
from zerohop.core.endpoint import InprocEndpoint, parse
from zerohop.core.link import Dialer, Link
from zerohop.core.monitor import MonitorLog
from zerohop.core.options import SocketOptions
from zerohop.core.socket import SocketCore
from zerohop.errors import Again, ProtocolError
from zerohop.mechanisms.null import NullMechanism
from zerohop.wire.connection import Connection
from zerohop.wire.events import Handshaken
from zerohop.wire.raw import RawConnection

ADDRESS = "tcp://127.0.0.1:5555"
EVERYTHING = 1 << 60


def make_core(socket_type, context=None, *, jitter=0.0, **options) -> SocketCore:
    """A core of this type; options by their names in ``SocketOptions``, in seconds and the like."""
    kind = SocketType[socket_type]
    its_own = SocketOptions.of(kind)
    for name, value in options.items():
        setattr(its_own, name, value)
    return SocketCore(kind, its_own, context or ContextCore(), seed=0, jitter=lambda: jitter)


def inproc(name) -> InprocEndpoint:
    return InprocEndpoint(name)


def received(core) -> list:
    """All that the application can receive now."""
    messages = []
    while True:
        try:
            messages.append(core.receive())
        except Again:
            return messages


class Remote:
    """A peer over the wire.

    Attributes:
        said: octets it has said and the core has not read yet.
        items: messages and events that came, in order; its Handshaken is in ``handshaken``.
        error: what was wrong with what came, if anything.
        reads: whether it takes octets at all (a full kernel buffer, if not).
    """

    def __init__(self, socket_type, *, identity=None, minor=1, now=0.0, **options):
        properties = {"Socket-Type": socket_type.encode()} if socket_type else {}
        if identity is not None:
            properties["Identity"] = identity
        if socket_type == "STREAM":
            self.connection = RawConnection()
        else:
            self.connection = Connection(
                mechanism=NullMechanism(properties), properties=properties, now=now, **options
            )
        self.said = bytearray(self.connection.data_to_send())
        if not minor:
            self.said[11] = 0
        self.items = []
        self.handshaken = None
        self.error = None
        self.reads = True
        self.link: Link | None = None

    def hear(self, octets, now):
        try:
            items = self.connection.receive_data(octets, now)
        except ProtocolError as error:
            self.error = error
            items = self.connection.completed
        for item in items:
            if isinstance(item, Handshaken):
                self.handshaken = item
            else:
                self.items.append(item)
        self.said += self.connection.data_to_send()

    def say(self, *messages):
        """Send messages, or ``Command`` bodies."""
        self.said += b"".join(self.connection.encode(list(messages)))

    def subscribe(self, topic, *, subscribe=True):
        self.connection.send_subscription(topic, subscribe=subscribe)
        self.said += self.connection.data_to_send()

    def taken(self) -> list:
        """What came since this was asked last."""
        items, self.items = self.items, []
        return items


class Network:
    """One core, and whoever is at the other end of its links."""

    def __init__(self, socket_type, context=None, **options):
        self.core = make_core(socket_type, context, **options)
        self.links = self.core.links
        self.now = 0.0
        self.remotes: dict[Link, Remote] = {}
        self.paused: set[Link] = set()
        self.log = MonitorLog()
        self.links.monitors.append(self.log)

    # Connections

    def connect(self, address=ADDRESS) -> Dialer | None:
        return self.core.connect(parse(address, for_bind=False), address)

    def open(self, source, remote=None) -> Link:
        """A connection is there, from a dialler or to a listener; its remote begins to talk."""
        link = self.links.open(source, self.now, remote=("127.0.0.1", 2), fd=7)
        if remote is not None:
            remote.link = link
            self.remotes[link] = remote
            self.write(link)
        return link

    def dial(self, remote=None) -> Link:
        """The dialler that is next gets through."""
        self.core.settle()
        return self.open(self.links.to_dial.pop(0), remote)

    def meet(self, source, socket_type, **options) -> Remote:
        """A peer comes, or is reached, and shakes hands."""
        remote = Remote(socket_type, now=self.now, **options)
        if isinstance(source, Dialer):
            assert self.links.to_dial.pop(0) is source
        self.open(source, remote)
        self.talk()
        return remote

    def join(self, socket_type, address=ADDRESS, **options) -> Remote:
        """Connect to a peer that is there."""
        return self.meet(self.connect(address), socket_type, **options)

    def greet(self, socket_type, address=ADDRESS, **options) -> Remote:
        """Accept a peer."""
        listeners = [each for each in self.links.listeners if each.endpoint == address]
        listener = listeners[0] if listeners else self.core.listen(address)
        return self.meet(listener, socket_type, **options)

    def cut(self, remote, error=None) -> None:
        """The connection breaks."""
        del self.remotes[remote.link]
        self.links.lost(remote.link, error, self.now)
        self.talk()

    def refuse(self, error=None) -> None:
        """Nobody answers the dialler that is next."""
        dialer = self.links.to_dial.pop(0)
        error = error or ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        self.links.dialers.failed(dialer, error, self.now)
        self.core.settle()

    def after(self, seconds) -> None:
        """Time passes."""
        self.now += seconds
        self.links.handle_deadline(self.now)
        self.talk()

    # Octets

    def takes(self, link, size=EVERYTHING) -> bytes:
        """The kernel takes so many octets of what the link has to write now."""
        taken = b""
        while size and (buffers := self.links.output(link)):
            octets = b"".join(buffers)[:size]
            self.links.wrote(link, len(octets), self.now)
            size -= len(octets)
            taken += octets
        return taken

    def write(self, link) -> bool:
        remote = self.remotes.get(link)
        if remote is None or not remote.reads:
            return False
        wrote = False
        while True:
            octets = self.takes(link)
            if octets:
                wrote = True
                remote.hear(octets, self.now)
            elif link.peer is None or not link.handshaken or link.peer.outbound.sleep():
                return wrote

    def read(self, link) -> bool:
        remote = self.remotes.get(link)
        if remote is None or not remote.said or link in self.paused:
            return False
        octets, remote.said = bytes(remote.said), bytearray()
        self.links.receive_data(link, octets, self.now)
        if link.handshaken and link.peer.inbound.full:
            self.paused.add(link)
        return True

    def talk(self) -> None:
        """Let everybody say what they have to say, and end what is to end."""
        links = self.links
        while True:
            self.core.settle()
            todo = [peer.link for peer in links.to_flush] + links.to_write
            links.to_flush.clear()
            links.to_write.clear()
            busy = [self.write(link) for link in todo]
            self.paused -= {peer.link for peer in links.to_resume}
            links.to_resume.clear()
            busy += [self.read(link) for link in list(self.remotes)]
            while links.to_close:
                self.finish(links.to_close.pop(0))
                busy.append(True)
            if not any(busy) and not (links.to_flush or links.to_write or links.room):
                self.core.settle()
                return

    def finish(self, link) -> None:
        """The core is done with a link: its last words, then its end."""
        self.write(link)
        self.remotes.pop(link, None)
        self.links.lost(link, None, self.now)

    # What was told

    def events(self) -> list[Event]:
        """The events since this was asked last."""
        return [record.event for record in self.records()]

    def records(self) -> list:
        return [self.log.pop() for _ in range(len(self.log))]

    def reports(self) -> list[str]:
        lines = self.links.reports[:]
        self.links.reports.clear()
        return lines
