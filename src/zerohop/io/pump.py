"""What follows from whatever happens to a socket: octets are moved, times kept, waiters woken.

Every entry, whether the application's call or the loop's callback, ends in :meth:`Pump.pump`, the
one place where what the core decided becomes system calls.
"""

from __future__ import annotations

import threading
import time
from functools import cache

from zerohop.constants import Errno, Event
from zerohop.value import NOTHING

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Protocol

    from zerohop.core.endpoint import SocketName
    from zerohop.core.link import Dialer, Link, Listener
    from zerohop.core.socket import SocketCore
    from zerohop.io.context import ContextIO
    from zerohop.io.descriptor import Descriptor
    from zerohop.io.dialing import Dialing
    from zerohop.io.listening import Acceptor
    from zerohop.io.loop import Handle, Loop
    from zerohop.io.parting import Partings
    from zerohop.io.stream import Stream
    from zerohop.patterns.pattern import Peer
else:
    Protocol = object


class Front(Protocol):
    """The Socket that the application holds; told when waiting may have come to an end."""

    def activity(self) -> bool:
        """The core has changed: lanes, readiness, or its end. Called with the lock held.

        Returns:
            Whether the front has sent or received: then there is more to pump.
        """

    def delivered(self) -> bool:
        """As :meth:`activity`, where messages have come and nothing else has changed."""

    def end(self) -> None:
        """The socket has been closed: whoever waits is let go. Perhaps a second time."""

    def mend(self) -> None:
        """Whatever the front was to be called back for may be lost: see ``io.mending``."""


class Pump:
    """The inner half of a SocketDriver: drives one SocketCore over one loop at a time.

    Every method is called with ``lock`` held, the loop's callbacks take it themselves.

    Args:
        core: the socket without I/O.
        context: the lock, and the way to the other sockets of the Context.

    Attributes:
        loop: where descriptors are watched; None until :meth:`attach` (an asyncio socket made
            outside a running loop listens from bind() on, and accepts when its loop runs).
        now: seconds on the loop's clock; before there is a loop, on the clock that loops use.
        front: whom to tell; None once the application has closed the socket.
        watched: somebody has the descriptor, or a shadow: they must follow whatever is sent and
            received.
        released: nothing is left: no descriptor, no timer.
        awaited: somebody waits for that.
        partings: connections that end when all has arrived; None: there have been none.
    """

    def __init__(self, core: SocketCore, context: ContextIO) -> None:
        self.core = core
        self.context = context
        self.lock: threading.RLock = context.lock
        self.loop: Loop | None = None
        self.now: Callable[[], float] = time.monotonic
        self.front: Front | None = None
        self.released = False
        self.awaited = False
        self.on_released: list[Callable[[], object]] = []
        self._streams: dict[Link, Stream] = {}
        self._acceptors: dict[Listener, Acceptor] = {}
        self._dialings: dict[Dialer, Dialing] = {}
        self.partings: Partings | None = None
        self._cuts: list[tuple[float, Dialer | Listener]] = NOTHING  # of disconnect() and unbind()
        self._timer: Handle | None = None
        self._timer_at = 0.0
        self._later: Handle | None = None
        self._linger_until: float | None = None
        self._pumping = False
        self._again = False
        self._descriptor: Descriptor | None = None
        self.watched = False
        self._thread: int | None = None

    # The loop

    @property
    def loop_in_use(self) -> Loop:
        """The loop; only asked for where one is attached."""
        assert self.loop is not None
        return self.loop

    def attach(self, loop: Loop, *, thread: int | None = None) -> None:
        """Drive over ``loop`` from now on; takes along what another loop was watching.

        Args:
            loop: the loop.
            thread: the only thread that may call the loop (asyncio); None: any thread may.
        """
        self._thread = thread
        if self.loop is loop:
            return
        core = self.core
        if self.loop is not None:
            self.detach()
        self.loop = loop
        self.now = loop.time
        if not (core.last_endpoint or core.closed):
            return  # it is new: nothing hangs on any loop, and nothing has happened yet
        for acceptor in self._acceptors.values():
            acceptor.start()
        for stream in self._streams.values():
            stream.start()
        if self.partings is not None:
            self.partings.start()
        for dialing in self._dialings.values():
            dialing.start()
        links = core.links
        links.to_flush += links.room_for_others  # they wait for a turn that will not come
        links.room_for_others = NOTHING
        links.timers.stale = True
        self.pump()

    def may_move(self) -> bool:
        """Whether :meth:`attach` may be called here: no other thread's loop is in use."""
        if self._thread in (None, threading.get_ident()):
            return True
        return not getattr(self.loop, "is_running", _never)()  # nor is it when it is closed

    @property
    def watches(self) -> bool:
        """Whether anything hangs on the loop."""
        return bool(
            self._acceptors
            or self._streams
            or self._dialings
            or self.partings
            or self._timer
            or self._later
        )

    def detach(self) -> None:
        """Watch nothing any more; :meth:`attach` goes on. Nothing is lost."""
        loop, self.loop = self.loop, None
        self.now = time.monotonic
        if loop is None:
            return
        # A closed asyncio loop has forgotten its descriptors and refuses to be asked.
        usable = not getattr(loop, "is_closed", _never)()
        watchers: list[Acceptor | Stream | Dialing | Partings] = [
            *self._acceptors.values(),
            *self._streams.values(),
            *self._dialings.values(),
        ]
        if self.partings is not None:
            watchers.append(self.partings)
        for watcher in watchers:
            watcher.detach(loop if usable else None)
        for handle in (self._timer, self._later):
            if handle is not None:
                handle.cancel()
        self._timer = self._later = None

    def _leave_closed_loop(self) -> None:
        """Before anything is begun: a closed asyncio loop would refuse it halfway."""
        if self._thread is not None and getattr(self.loop, "is_closed", _never)():
            self.detach()

    # Pumping

    def pump(self) -> None:  # noqa: C901 - hot, and a list to be read from top to bottom
        """Move everything the core has to say: octets, new links, the next deadline, who waits."""
        if self._pumping:
            self._again = True
            return
        self._pumping = True
        core, links, shared = self.core, self.core.links, self.context.core
        try:
            while True:
                self._again = False
                if links.to_flush or links.to_write:
                    self._flush()
                core.settle()
                if (
                    links.to_flush
                    or links.to_write
                    or links.to_resume
                    or links.to_close
                    or links.to_dial
                ):
                    self._act()
                if links.timers.stale or links.reports or links.dialers.dropped:
                    self._tidy()
                if self._descriptor is not None:
                    # Whoever uses a lane tells nobody, and the descriptor would not follow.
                    core.send_lane = core.receive_lane = None
                if shared.readable or shared.writable or shared.changed:
                    self.context.hand_over(self)
                if self.front is not None and self.front.activity() and self.has_work():
                    continue
                if not self._again:
                    break
        except BaseException:
            self.context.interrupted()
            raise
        finally:
            self._pumping = False
        if links.to_resume or (shared.writable and not self.context.handing_over):
            self.go_on_soon()
        if self._descriptor is not None:
            self._descriptor.show()
        if self.front is None and core.closed and self in self.context.drivers:
            self._release_if_finished()

    def delivered(self) -> None:
        """As :meth:`pump`, where messages have come: mostly only those who wait are to be told."""
        core, links, pattern = self.core, self.core.links, self.core.pattern
        front = self.front
        if (
            self._pumping
            or front is None
            or self._descriptor is not None
            or pattern.hands_out
            or pattern.refused
            or pattern.announcements
            or pattern.notices
            or core.receive_lane is not pattern.receive_lane
            or links.to_flush
            or links.to_write
        ):
            self.pump()
            return
        self._pumping = True
        try:
            more = front.delivered() and self.has_work()
        except BaseException:
            self.context.interrupted()
            raise
        finally:
            self._pumping = False
        if more or self._again:
            self.pump()
        elif links.to_resume or self.context.core.writable:
            self.go_on_soon()

    def write_alone(self) -> bool:
        """As :meth:`pump`, where one message was sent to one peer, and nobody waits.

        Returns:
            False: it is not so, and nothing was done.
        """
        core, links, pattern = self.core, self.core.links, self.core.pattern
        to_flush = links.to_flush
        if (
            len(to_flush) != 1
            or self._pumping
            or self.watched
            or pattern.hands_out
            or core.send_lane is not pattern.send_lane
            # Late replies were thrown away, somebody of this process gets it, too, or it has
            # subscriptions behind it (XSUB) or the end of the connection (STREAM).
            or links.to_resume
            or self.context.core.readable
            or pattern.announcements
            or pattern.refused
        ):
            return False
        stream = self._streams.get(to_flush[0].link)
        if stream is None:
            return False
        self._pumping = True
        try:
            alone = stream.write()
            del to_flush[:1]
        except BaseException:
            self.context.interrupted()
            raise
        finally:
            self._pumping = False
        if to_flush or self._again or not alone:
            self.pump()
        return True

    def has_work(self) -> bool:
        """Whether what was just asked of the core has left something in its lists."""
        links, shared = self.core.links, self.context.core
        return bool(
            links.to_flush
            or links.to_resume
            or links.room
            or links.to_close
            or shared.readable
            or shared.writable
            or shared.changed
            or self.core.pattern.refused
            or self.core.pattern.announcements
        )

    def read_now(self) -> bool:
        """Read from the only connection what is there, without asking the loop first.

        With more of them it is the loop that knows which one to read from.

        Returns:
            Whether anything came.
        """
        if len(self._streams) != 1:
            return False
        (stream,) = self._streams.values()
        return stream.read_now()

    def again(self) -> None:
        """The core has changed in the middle of :meth:`pump`: go round once more."""
        self._again = True

    def _act(self) -> None:
        """Turn the core's lists into system calls until they are empty."""
        links = self.core.links
        while True:
            if links.to_flush or links.to_write:
                self._flush()
            elif links.to_resume:
                self._resume()
            elif links.to_close:
                link = links.to_close[-1]
                self._finish(link)
                # Now: a signal handler may have raised in between. It is the last, most likely.
                if links.to_close[-1] is link:
                    links.to_close.pop()
                else:
                    links.to_close.remove(link)
            elif links.to_dial and self.loop is not None:
                self._dial(links.to_dial.pop(0))
            else:
                self.core.settle()
                if not (
                    links.to_flush
                    or links.to_write
                    or links.to_resume
                    or links.to_close
                    or (links.to_dial and self.loop is not None)
                ):
                    return

    def _tidy(self) -> None:
        """What is seldom to be done."""
        links = self.core.links
        if links.dialers.dropped:
            self._drop_dialings()
        if links.timers.stale:
            self._arm()
        if links.reports:
            self._report()

    def _flush(self) -> None:
        """Write for those who have something, in the order in which it came."""
        links, streams = self.core.links, self._streams
        done = 0
        try:
            for peer in links.to_flush:
                link = peer.link
                if link in streams:
                    streams[link].write()
                done += 1
        finally:  # where a signal handler raises, the others are still to be written for
            del links.to_flush[:done]
        if links.to_write:
            done = 0
            try:
                for link in links.to_write:
                    if link in streams:
                        streams[link].write()
                    done += 1
            finally:
                del links.to_write[:done]

    def flush_later(self, peer: Peer) -> None:
        """Go on writing in the loop's next turn: others are waiting for theirs."""
        links = self.core.links
        links.room_for_others = waiting = links.room_for_others or []
        waiting.append(peer)
        # Not whether _later is set: a signal handler may be called back before that.
        if len(waiting) == 1 and self.loop is not None:
            self._later = self.loop.call_soon(self._on_later)

    def _on_later(self) -> None:
        with self.lock:
            self._later = None
            links = self.core.links
            links.to_flush += links.room_for_others
            links.room_for_others = NOTHING
            self.pump()

    def _resume(self) -> None:
        peers = self.core.links.to_resume
        todo = peers[:]
        peers.clear()
        for peer in todo:
            stream = self._streams.get(peer.link)
            if stream is not None and (not peer.inbound.full or peer.link.ending):
                peer.link.connection.not_reading(self.now())
                stream.read_on()

    def _finish(self, link: Link) -> None:
        stream = self._streams.get(link)
        if stream is not None:
            stream.finish()
        elif self.partings is not None:
            self.partings.finish(link)

    def may_part(self, link: Link, sock: socket.socket) -> bool:
        """Whether the connection of a link cannot be closed yet, for what is under way."""
        if not link.handshaken or link.failure is not None or link.cut:
            return False
        return partings_class().are_for(self.core.links.socket_type, sock)

    def part(self, link: Link, sock: socket.socket) -> None:
        """Have it closed when all has arrived."""
        if self.partings is None:
            self.partings = partings_class()(self)
        self.partings.add(link, sock)
        self._streams.pop(link, None)

    def stream_closed(self, link: Link) -> None:
        """The stream of a link has closed its OS socket."""
        self._streams.pop(link, None)

    def _report(self) -> None:
        try:
            from zerohop.io.report import report  # most programs have nothing to report
        except OSError:  # no descriptor is left to import with: later
            return
        reports = self.core.links.reports
        for text in reports:
            report(text)
        reports.clear()

    def woken(self) -> None:
        """Something happened through another socket's call; lock held, any thread."""
        if self._thread is None or self._thread == threading.get_ident():
            self.pump()
        else:
            self.go_on_soon()

    def go_on_soon(self) -> None:
        """Pump in the loop's next turn; lock held, any thread.

        Also where whoever asked for a message has made room, and got none: what no REP can answer
        is thrown away then. Not at once: there may be no end of it, and others want their turn.
        """
        if self.loop is None:
            return  # attach() pumps
        try:
            self.loop.call_soon_threadsafe(self._on_woken)
        except RuntimeError:
            return  # the loop is closed: nobody waits there

    def _on_woken(self) -> None:
        with self.lock:
            self.pump()

    def _drop_dialings(self) -> None:
        """End the attempts whose connect() was taken back meanwhile."""
        dropped = self.core.links.dialers.dropped
        while dropped:
            dialing = self._dialings.pop(dropped[-1], None)
            if dialing is not None:
                dialing.close()
            dropped.pop()

    # Dialling and accepting

    def _dial(self, dialer: Dialer) -> None:
        links = self.core.links
        dialing = dialing_class()(self, dialer)
        self._dialings[dialer] = dialing
        if links.monitors:
            links.records.add(Event.CONNECT_DELAYED, Errno.EINPROGRESS, dialer.address)
        dialing.start()

    def dialled(self, dialer: Dialer, sock: socket.socket, remote: SocketName) -> None:
        """A dialler's connection is there."""
        self._dialings.pop(dialer, None)
        if dialer not in self.core.links.dialers:
            sock.close()
            return
        self._open(dialer, sock, remote)
        if not self._pumping:  # else it is the pump that dials, and it goes on
            self.pump()

    def dial_failed(self, dialer: Dialer, error: OSError) -> None:
        """No address of a dialler's endpoint answered."""
        self._dialings.pop(dialer, None)
        self.core.links.dialers.failed(dialer, error, self.now())
        if not self._pumping:
            self.pump()

    def accepted(self, listener: Listener, sock: socket.socket, remote: SocketName) -> None:
        """A peer has called; the caller pumps."""
        self._open(listener, sock, remote)

    def _open(self, source: Dialer | Listener, sock: socket.socket, remote: SocketName) -> None:
        link = self.core.links.open(source, self.now(), remote=remote, fd=sock.fileno())
        stream = self._streams[link] = stream_class()(self, sock, link)
        stream.resume()
        stream.write()

    # Time

    def _arm(self, *, force: bool = False) -> None:
        if self.loop is None:
            return
        when = self.core.links.next_deadline()
        if self._cuts or self._linger_until is not None:
            ends = [cut for cut, _ in self._cuts]
            if self._linger_until is not None:
                ends.append(self._linger_until)
            when = min(ends) if when is None else min(when, *ends)
        if self._timer is not None:
            if when == self._timer_at and not force:
                return
            self._timer.cancel()
            self._timer = None
        if when is not None:
            self._timer_at = when
            self._timer = self.loop.call_at(when, self._on_timer)

    def _on_timer(self) -> None:
        with self.lock:
            self._timer = None
            now = max(self.now(), self._timer_at)  # asyncio may call a clock tick early
            links = self.core.links
            if self._linger_until is not None and now >= self._linger_until:
                links.end_close()
                self._linger_until = None
            for cut in [cut for cut in self._cuts if cut[0] <= now]:
                links.cut_source(cut[1])
                self._cuts.remove(cut)
            links.handle_deadline(now)
            links.timers.stale = True
            self.pump()

    def mend_timers(self) -> None:
        """Whatever was to be called back may have been called in vain: see ``io.mending``."""
        for handle in (self._timer, self._later):
            if handle is not None:
                handle.cancel()
        self._timer = self._later = None
        links = self.core.links
        links.to_flush += links.room_for_others
        links.room_for_others = NOTHING
        links.timers.stale = True

    # The end

    def _release_if_finished(self) -> None:
        if not self.core.links.finished:
            return
        self.released = True
        for dialing in list(self._dialings.values()):
            dialing.close()
        self._dialings.clear()
        for handle in (self._timer, self._later):
            if handle is not None:
                handle.cancel()
        self._timer = self._later = None
        while self.on_released:
            self.on_released[-1]()
            self.on_released.pop()
        self.context.drivers.discard(self)
        # What holds the core goes, so that the core can: not once the garbage collector comes.
        self.core.driver = None
        self.core.links.timers.clear()

    def abandon(self) -> None:
        """In a forked child: close our copies of the descriptors, and nothing else."""
        for stream in self._streams.values():
            stream.abandon()
        for acceptor in self._acceptors.values():
            acceptor.abandon()
        for dialing in self._dialings.values():
            dialing.abandon()
        if self.partings is not None:
            self.partings.abandon()
        self._streams.clear()
        self._acceptors.clear()
        self._dialings.clear()
        if self._descriptor is not None:
            self._descriptor.close()
            self._descriptor = None
        self.core.closed = True
        self.core.send_lane = self.core.receive_lane = None
        self.released = True


def _never() -> bool:
    return False


# Imported when they are needed, and found at once from then on: even of what is there an import
# costs as much as ten calls.


@cache
def dialing_class() -> type[Dialing]:
    """What opens connections; a server has none."""
    from zerohop.io.dialing import Dialing

    return Dialing


@cache
def stream_class() -> type[Stream]:
    """What moves the octets of a connection; a program over inproc has none."""
    import zerohop.mechanisms.null
    import zerohop.wire.connection  # noqa: F401
    from zerohop.io.stream import Stream

    partings_class()  # when one is closed, no descriptor may be left to import with

    return Stream


@cache
def partings_class() -> type[Partings]:
    """What closes connections whose octets are still under way."""
    from zerohop.io.parting import Partings

    return Partings
