"""All I/O of one socket: binds, dials, moves octets, keeps time, lingers.

Every entry, whether the application's call or the loop's callback, ends in
:meth:`SocketDriver.pump`, the one place where what the core decided becomes system calls.
"""

from __future__ import annotations

import errno
import threading
import time

from zerohop.constants import Errno, Event, PollEvent, SecurityMechanism
from zerohop.core.endpoint import InprocEndpoint, IpcEndpoint, TcpEndpoint, parse
from zerohop.errors import UsageError, ZMQError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Protocol

    from zerohop.core.endpoint import SocketName
    from zerohop.core.link import Dialer, Link, Listener
    from zerohop.core.socket import SocketCore
    from zerohop.io.context import ContextIO
    from zerohop.io.dialing import Dialing
    from zerohop.io.listening import Acceptor
    from zerohop.io.loop import Handle, Loop
    from zerohop.io.signal import Signal
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


class SocketDriver:
    """Drives one SocketCore over one loop at a time.

    Every method is called with ``lock`` held, the loop's callbacks take it themselves.

    Args:
        core: the socket without I/O.
        context: the lock, and the way to the other sockets of the Context.

    Attributes:
        loop: where descriptors are watched; None until :meth:`attach` (an asyncio socket made
            outside a running loop listens from bind() on, and accepts when its loop runs).
        now: seconds on the loop's clock; before there is a loop, on the clock that loops use.
        front: whom to tell; None once the application has closed the socket.
        watched: somebody has the descriptor: it must follow whatever is sent and received.
        released: nothing is left: no descriptor, no timer.
    """

    def __init__(self, core: SocketCore, context: ContextIO) -> None:
        self.core = core
        self.context = context
        self.lock: threading.RLock = context.lock
        self.loop: Loop | None = None
        self.now: Callable[[], float] = time.monotonic
        self.front: Front | None = None
        self.released = False
        self.on_released: list[Callable[[], object]] = []
        self._streams: dict[Link, Stream] = {}
        self._acceptors: dict[Listener, Acceptor] = {}
        self._dialings: dict[Dialer, Dialing] = {}
        self._timer: Handle | None = None
        self._timer_at = 0.0
        self._later: Handle | None = None
        self._linger_until: float | None = None
        self._cuts: list[tuple[float, Dialer | Listener]] = []  # disconnect() and unbind()
        self._pumping = False
        self._again = False
        self._signal: Signal | None = None
        self.watched = False
        self._was_writable = False
        self._became_writable = False
        self._thread: int | None = None
        core.driver = self
        context.drivers.add(self)

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
        self.detach()
        self.loop = loop
        self.now = loop.time
        for acceptor in self._acceptors.values():
            acceptor.start()
        for stream in self._streams.values():
            stream.start()
        for dialing in self._dialings.values():
            dialing.start()
        links = self.core.links
        links.to_flush += links.room_for_others  # they wait for a turn that will not come
        links.room_for_others.clear()
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
            self._acceptors or self._streams or self._dialings or self._timer or self._later
        )

    def detach(self) -> None:
        """Watch nothing any more; :meth:`attach` goes on. Nothing is lost."""
        loop, self.loop = self.loop, None
        self.now = time.monotonic
        if loop is None:
            return
        # A closed asyncio loop has forgotten its descriptors and refuses to be asked.
        usable = not getattr(loop, "is_closed", _never)()
        watchers: list[Acceptor | Stream | Dialing] = [
            *self._acceptors.values(),
            *self._streams.values(),
            *self._dialings.values(),
        ]
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

    # What the application asks

    def bind(self, address: str) -> str:
        """Bind; return the resolved endpoint, which LAST_ENDPOINT now says.

        Raises:
            ZMQError: ENOTSOCK, ETERM; EndpointError for what is wrong with the address.
            TypeError: the address is no string.
        """
        self.core.check_open()
        self._check_mechanism()
        self._leave_closed_loop()
        endpoint = parse(address, for_bind=True)
        if isinstance(endpoint, InprocEndpoint):
            self.core.inproc.bind(endpoint)
        else:
            from zerohop.io.listening import Acceptor, open_listener  # a client never listens

            _import_connections()

            links, options = self.core.links, self.core.options.frozen()
            try:
                sock, resolved, file = open_listener(endpoint, options)
            except ZMQError as error:
                links.records.add(Event.BIND_FAILED, error.errno or 0, address, reason=str(error))
                raise
            listener = self.core.listen(resolved)
            acceptor = Acceptor(self, listener, sock, file)
            self._acceptors[listener] = acceptor
            links.records.add(Event.LISTENING, sock.fileno(), resolved)
            if self.loop is not None:
                acceptor.start()
        self.pump()
        return self.core.last_endpoint

    def _check_mechanism(self) -> None:
        """Never fall back to no security where security was asked for."""
        options = self.core.options
        if options.zap_domain or options.zap_enforce_domain:
            raise UsageError(
                Errno.ENOTSUP,
                hint="ZAP is not supported yet, and peers must not get in without being asked for; "
                "leave ZAP_DOMAIN and ZAP_ENFORCE_DOMAIN unset, or use pyzmq for this socket",
            )
        mechanism = options.mechanism
        if mechanism != SecurityMechanism.NULL:
            raise UsageError(
                Errno.ENOTSUP,
                hint=f"{mechanism.name} is not supported yet, and a socket that asks for it must "
                "not run without security; leave its options unset, or use pyzmq for this socket",
            )

    def unbind(self, address: str) -> None:
        """Stop listening, and end the connections made through it once their queues are out.

        The port is free when this returns.

        Raises:
            ZMQError: ENOENT, not bound there (a wildcard must be named as LAST_ENDPOINT gave it).
        """
        self.core.check_open()
        endpoint = parse(address, for_bind=True)
        if isinstance(endpoint, InprocEndpoint):
            self.core.inproc.unbind(endpoint)
            return
        for listener, acceptor in self._acceptors.items():
            if listener.endpoint in (address, str(endpoint)):
                self._leave_closed_loop()
                self._stop_listening(listener, acceptor)
                self.core.links.hang_up_accepted(listener)
                self._bound_leaving(listener)
                self.pump()
                return
        raise ZMQError(
            errno.ENOENT,
            hint=f"not bound to {address}; bound: "
            + (", ".join(listener.endpoint for listener in self._acceptors) or "nothing"),
        )

    def _stop_listening(self, listener: Listener, acceptor: Acceptor) -> None:
        del self._acceptors[listener]
        links = self.core.links
        if listener in links.listeners:
            links.listeners.remove(listener)
        acceptor.close()
        links.records.add(Event.CLOSED, 0, listener.endpoint)

    def connect(self, address: str) -> None:
        """Begin to connect; returns at once.

        Raises:
            ZMQError: ENOTSOCK, ETERM; EndpointError for what is wrong with the address.
            TypeError: the address is no string.
        """
        self.core.check_open()
        self._check_mechanism()
        self._leave_closed_loop()
        endpoint = parse(address, for_bind=False)
        if isinstance(endpoint, InprocEndpoint):
            self.core.inproc.connect(endpoint)
        else:
            import zerohop.io.dialing  # noqa: F401 - a server never dials
            from zerohop.io.sockets import check_ipc

            _import_connections()
            if isinstance(endpoint, IpcEndpoint):
                check_ipc(address)
            if isinstance(endpoint, TcpEndpoint) and self.core.options.socks_proxy:
                raise UsageError(
                    Errno.ENOTSUP,
                    hint="SOCKS_PROXY is not supported, and traffic must not go past the proxy",
                )
            self.core.connect(endpoint, str(endpoint))
        self.pump()

    def disconnect(self, address: str) -> None:
        """End a connection that :meth:`connect` made; what is queued for it goes out for LINGER.

        Raises:
            ZMQError: ENOENT, not connected there.
        """
        self.core.check_open()
        endpoint = parse(address, for_bind=False)
        if isinstance(endpoint, InprocEndpoint):
            self.core.inproc.disconnect(endpoint)
            self.pump()
            return
        links = self.core.links
        dialer = links.dialers.find(endpoint)
        if dialer is None:
            connected = ", ".join(d.address for d in links.dialers if not d.leaving)
            raise ZMQError(
                errno.ENOENT,
                hint=f"not connected to {address}; connected: {connected or 'nothing'}",
            )
        self._leave_closed_loop()
        links.hang_up(dialer)
        self._bound_leaving(dialer)
        self.pump()

    def _bound_leaving(self, source: Dialer | Listener) -> None:
        """What is still queued for peers that were left has LINGER to go out."""
        linger = self.core.options.linger
        if linger == 0:
            self.core.links.cut_source(source)
        elif linger is not None:
            self._cuts.append((self.now() + linger, source))
            self._arm(force=True)

    def close(self, linger: float | None) -> None:
        """Close: ports are free and inproc names gone at return; queued messages go out meanwhile.

        Args:
            linger: seconds that queued messages may take, None without limit. Afterwards, or when
                all is out, ``released`` becomes true and ``on_released`` is called.

        Every step can be taken twice: a close that a signal handler interrupted is finished by the
        next one.
        """
        if self.released:
            return
        self._leave_closed_loop()
        for listener, acceptor in list(self._acceptors.items()):
            self._stop_listening(listener, acceptor)
        self.core.close()
        self.front = None
        if self._signal is not None:
            self._signal.close()
            self._signal = None
        if linger == 0:
            self.core.links.end_close()
        elif linger is not None and self._linger_until is None:
            self._linger_until = self.now() + linger
            self._arm(force=True)
        self.pump()

    # Pumping

    def pump(self) -> None:
        """Move everything the core has to say: octets, new links, the next deadline, who waits."""
        if self._pumping:
            self._again = True
            return
        self._pumping = True
        try:
            while True:
                self._again = False
                self._act()
                if self._signal is not None:
                    # Whoever uses a lane tells nobody, and the descriptor would not follow.
                    self.core.send_lane = self.core.receive_lane = None
                shared = self.context.core
                if shared.readable or shared.writable or shared.changed:
                    self.context.hand_over(self)
                if self.front is not None and self.front.activity() and self.has_work():
                    continue
                if not self._again:
                    break
        finally:
            self._pumping = False
        if self._signal is not None:
            self._show_changes(self._signal)
        if self.front is None and self.core.closed and not self.released:
            self._release_if_finished()

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
        core, links = self.core, self.core.links
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
                core.settle()
                if not (
                    links.to_flush
                    or links.to_write
                    or links.to_resume
                    or links.to_close
                    or (links.to_dial and self.loop is not None)
                ):
                    break
        if links.dialers.dropped:
            self._drop_dialings()
        if links.timers.stale:
            self._arm()
        if links.reports:
            self._report()

    def _flush(self) -> None:
        links, streams = self.core.links, self._streams
        peers = links.to_flush
        if len(peers) == 1 and not links.to_write:
            link = peers[0].link
            if link in streams:
                streams[link].write()
            del peers[0]  # now, and not sooner: a signal handler may raise in between
            return
        links.to_write += [peer.link for peer in peers]
        peers.clear()
        todo, links.to_write = links.to_write, []
        done = 0
        try:
            for link in todo:
                if link in streams:
                    streams[link].write()
                done += 1
        except BaseException:  # a signal handler's: what was not written is still to be
            links.to_write[:0] = todo[done:]
            raise

    def flush_later(self, peer: Peer) -> None:
        """Go on writing in the loop's next turn: others are waiting for theirs."""
        self.core.links.room_for_others.append(peer)
        if self._later is None and self.loop is not None:
            self._later = self.loop.call_soon(self._on_later)

    def _on_later(self) -> None:
        with self.lock:
            self._later = None
            links = self.core.links
            links.to_flush += links.room_for_others
            links.room_for_others.clear()
            self.pump()

    def _resume(self) -> None:
        peers = self.core.links.to_resume
        todo = peers[:]
        peers.clear()
        for peer in todo:
            stream = self._streams.get(peer.link)
            if stream is not None and not peer.inbound.full:
                peer.link.connection.not_reading(self.now())
                stream.resume()

    def _finish(self, link: Link) -> None:
        stream = self._streams.get(link)
        if stream is not None:
            stream.finish()

    def stream_closed(self, link: Link) -> None:
        """The stream of a link has closed its OS socket."""
        self._streams.pop(link, None)

    def _report(self) -> None:
        try:
            from zerohop.io.log import log
        except OSError:  # no descriptor is left to import with: later
            return
        reports = self.core.links.reports
        for report in reports:
            log.warning("%s", report)
        reports.clear()

    def woken(self) -> None:
        """Something happened through another socket's call; lock held, any thread."""
        if self._thread is None or self._thread == threading.get_ident():
            self.pump()
            return
        assert self.loop is not None
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

    # ZMQ_FD and ZMQ_EVENTS

    def fileno(self) -> int:
        """A descriptor that is readable when :meth:`events` should be asked (ZMQ_FD).

        Readable while a message can be received, and from the moment the socket becomes writable
        until ``events`` is asked. (Were it readable for as long as the socket is writable, a
        program that waits for messages would never sleep.)

        Raises:
            ZMQError: ENOTSOCK.
        """
        if self.core.closed:
            raise ZMQError(Errno.ENOTSOCK)
        if self._signal is None:
            from zerohop.io.signal import Signal  # few programs ask for a descriptor

            self._signal = Signal()
            self.watched = True
            self.pump()
        return self._signal.fd

    def events(self) -> PollEvent:
        """What would not block now (ZMQ_EVENTS).

        Raises:
            ZMQError: ENOTSOCK, ETERM.
        """
        self.pump()
        events = self.core.events()
        if self._signal is not None:
            self._became_writable = False
            self._show_changes(self._signal)
        return events

    def _show_changes(self, signal: Signal) -> None:
        if self.core.closed or self.context.core.terminated:
            signal.set()  # whoever waits shall look, and get ENOTSOCK or ETERM
            return
        events = self.core.events()
        writable = bool(events & PollEvent.POLLOUT)
        if writable and not self._was_writable:
            self._became_writable = True
        self._was_writable = writable
        if events & PollEvent.POLLIN or self._became_writable:
            signal.set()
        else:
            signal.clear()

    # Dialling and accepting

    def _dial(self, dialer: Dialer) -> None:
        from zerohop.io.dialing import Dialing  # a server has none

        dialing = Dialing(self, dialer)
        self._dialings[dialer] = dialing
        self.core.links.records.add(Event.CONNECT_DELAYED, Errno.EINPROGRESS, dialer.address)
        dialing.start()

    def dialled(self, dialer: Dialer, sock: socket.socket, remote: SocketName) -> None:
        """A dialler's connection is there."""
        self._dialings.pop(dialer, None)
        if dialer not in self.core.links.dialers:
            sock.close()
            return
        self._open(dialer, sock, remote)

    def dial_failed(self, dialer: Dialer, error: OSError) -> None:
        """No address of a dialler's endpoint answered."""
        self._dialings.pop(dialer, None)
        self.core.links.dialers.failed(dialer, error, self.now())
        self.pump()

    def accepted(self, listener: Listener, sock: socket.socket, remote: SocketName) -> None:
        """A peer has called."""
        self._open(listener, sock, remote)

    def _open(self, source: Dialer | Listener, sock: socket.socket, remote: SocketName) -> None:
        link = self.core.links.open(source, self.now(), remote=remote, fd=sock.fileno())
        from zerohop.io.stream import Stream  # a program over inproc has none

        stream = self._streams[link] = Stream(self, sock, link)
        stream.start()
        stream.write()
        self.pump()

    # Time

    def _arm(self, *, force: bool = False) -> None:
        if self.loop is None:
            return
        when = self.core.links.next_deadline()
        ends = [cut for cut, _ in self._cuts]
        if self._linger_until is not None:
            ends.append(self._linger_until)
        if ends:
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
                self._linger_until = None
                links.end_close()
            for cut in [cut for cut in self._cuts if cut[0] <= now]:
                self._cuts.remove(cut)
                links.cut_source(cut[1])
            links.handle_deadline(now)
            links.timers.stale = True
            self.pump()

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
        self.context.drivers.discard(self)
        callbacks, self.on_released = self.on_released, []
        for callback in callbacks:
            callback()

    def abandon(self) -> None:
        """In a forked child: close our copies of the descriptors, and nothing else."""
        for stream in self._streams.values():
            stream.abandon()
        for acceptor in self._acceptors.values():
            acceptor.abandon()
        for dialing in self._dialings.values():
            dialing.abandon()
        self._streams.clear()
        self._acceptors.clear()
        self._dialings.clear()
        if self._signal is not None:
            self._signal.close()
            self._signal = None
        self.core.closed = True
        self.core.send_lane = self.core.receive_lane = None
        self.released = True


def _never() -> bool:
    return False


def _import_connections() -> None:
    """Import what connections need: a program over inproc has none.

    Before the first is begun: when it is there, no descriptor may be left to import with.
    """
    import zerohop.io.stream
    import zerohop.mechanisms.null
    import zerohop.wire.connection  # noqa: F401
