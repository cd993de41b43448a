"""All I/O of one socket: what the application asks for besides messages.

What follows from it stands in :mod:`zerohop.io.pump`.
"""

from __future__ import annotations

import errno

from zerohop.constants import Errno, Event, PollEvent, SecurityMechanism
from zerohop.core.endpoint import InprocEndpoint, IpcEndpoint, parse
from zerohop.errors import UsageError, ZMQError
from zerohop.io.pump import Pump, dialing_class, stream_class

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.core.link import Dialer, Listener
    from zerohop.core.socket import SocketCore
    from zerohop.io.context import ContextIO
    from zerohop.io.listening import Acceptor


_NULL = SecurityMechanism.NULL  # an enum's member costs a search, and there may be many connects


class SocketDriver(Pump):
    """Drives one SocketCore over one loop at a time; see :class:`Pump` for what it is made of.

    Every method is called with ``lock`` held. Messages do not pass here: the application gives them
    to the core, and calls :meth:`Pump.pump`.
    """

    def __init__(self, core: SocketCore, context: ContextIO) -> None:
        super().__init__(core, context)
        core.driver = self
        context.drivers.add(self)

    # Ends

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

            stream_class()  # now, as in connect()
            links, options = self.core.links, self.core.options.frozen()
            try:
                sock, resolved, file = open_listener(endpoint, options)
            except ZMQError as error:
                links.records.add(Event.BIND_FAILED, error.errno or 0, address, reason=str(error))
                raise
            try:
                listener = self.core.listen(resolved)
                acceptor = self._acceptors[listener] = Acceptor(self, listener, sock, file)
            except BaseException:  # a signal handler's: nobody would ever free the address
                sock.close()
                if file is not None:
                    file.remove()
                raise
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
        if mechanism != _NULL:
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
                self.stop_listening(listener, acceptor)
                self.core.links.hang_up_accepted(listener)
                self._bound_leaving(listener)
                self.pump()
                return
        raise ZMQError(
            errno.ENOENT,
            hint=f"not bound to {address}; bound: "
            + (", ".join(listener.endpoint for listener in self._acceptors) or "nothing"),
        )

    def stop_listening(self, listener: Listener, acceptor: Acceptor) -> None:
        """Free the address. Every step can be taken twice."""
        acceptor.close()
        self._acceptors.pop(listener, None)
        links = self.core.links
        if listener in links.listeners:
            links.listeners.remove(listener)
        links.records.add(Event.CLOSED, 0, listener.endpoint)

    def connect(self, address: str) -> None:
        """Begin to connect; returns at once.

        Raises:
            ZMQError: ENOTSOCK, ETERM; EndpointError for what is wrong with the address.
            TypeError: the address is no string.
        """
        core = self.core
        if core.closed or core.context.terminated:
            core.check_open()
        self._check_mechanism()
        if self._thread is not None:
            self._leave_closed_loop()
        endpoint = parse(address, for_bind=False)
        if isinstance(endpoint, InprocEndpoint):
            core.inproc.connect(endpoint)
        else:
            # Before the first is begun: when it is there, no descriptor may be left to import with.
            dialing_class()
            stream_class()
            if isinstance(endpoint, IpcEndpoint):
                from zerohop.io.sockets import check_ipc

                check_ipc(address)
            elif core.options.socks_proxy:
                raise UsageError(
                    Errno.ENOTSUP,
                    hint="SOCKS_PROXY is not supported, and traffic must not go past the proxy",
                )
            core.connect(endpoint, endpoint.text or str(endpoint))
            reactor = self.context.reactor
            if reactor is not None and self._thread is None:
                reactor.connects += 1
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
            self._cuts = [*self._cuts, (self.now() + linger, source)]
            self._arm(force=True)

    # ZMQ_FD and ZMQ_EVENTS

    def fileno(self) -> int:
        """A descriptor that is readable when :meth:`events` should be asked (ZMQ_FD).

        Raises:
            ZMQError: ENOTSOCK.
        """
        if self.core.closed:
            raise ZMQError(Errno.ENOTSOCK)
        if self._descriptor is None:
            from zerohop.io.descriptor import Descriptor  # few programs ask for one

            self._descriptor = Descriptor(self.core)
            self.watched = True
            self.pump()
        return self._descriptor.fd

    def events(self) -> PollEvent:
        """What would not block now (ZMQ_EVENTS).

        Raises:
            ZMQError: ENOTSOCK, ETERM.
        """
        with self.context:
            self.pump()
            events = self.core.events()
            if self._descriptor is not None:
                self._descriptor.asked()
            return events

    # The end

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
            self.stop_listening(listener, acceptor)
        self.core.close()
        if self.front is not None:
            self.front.end()
            self.front = None
        if self._descriptor is not None:
            self._descriptor.close()
            self._descriptor = None
        if linger == 0:
            self.core.links.end_close()
        elif linger is not None and self._linger_until is None:
            self._linger_until = self.now() + linger
            self._arm(force=True)
        self.pump()
