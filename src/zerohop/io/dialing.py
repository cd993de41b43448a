"""Opening a connection: names resolved off the I/O path, every address tried."""

from __future__ import annotations

import errno
import os
import socket
import threading

from zerohop.core.endpoint import IpcEndpoint, TcpEndpoint
from zerohop.io.addresses import SocketAddress, interface_address, numeric_address, resolve
from zerohop.io.sockets import set_ipc_options, set_tcp_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.core.endpoint import SocketName
    from zerohop.core.link import Dialer
    from zerohop.io.loop import Handle, Loop
    from zerohop.io.pump import Pump

_IN_PROGRESS = (errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EAGAIN, errno.EALREADY)
_NONBLOCKING = getattr(socket, "SOCK_NONBLOCK", 0)  # the system may do it in the same call
_STREAM = int(socket.SOCK_STREAM) | _NONBLOCKING


class Dialing:
    """One attempt to reach one endpoint: its addresses one after another, until one answers.

    A name is resolved in a thread of its own, again on every attempt, so that a slow resolver
    delays nobody else and a changed address is found (libzmq resolves in the thread that does all
    I/O).
    """

    __slots__ = ("_addresses", "_dialer", "_driver", "_error", "_over", "_sock", "_timer")

    def __init__(self, driver: Pump, dialer: Dialer) -> None:
        self._driver = driver
        self._dialer = dialer
        self._addresses: list[SocketAddress | str] | None = None
        self._sock: socket.socket | None = None
        self._timer: Handle | None = None
        self._error: OSError | None = None
        self._over = False

    def start(self) -> None:
        """Go; also after the driver has moved to another loop."""
        if self._sock is not None:
            self._watch()
        elif self._addresses is not None:
            self._next()
        else:
            self._find()

    def detach(self, loop: Loop | None) -> None:
        """Watch nothing on ``loop`` any more (None: it is gone); :meth:`start` goes on."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._sock is not None and loop is not None:
            loop.remove_writer(self._sock.fileno())

    def close(self) -> None:
        """Give up, silently."""
        self.detach(self._driver.loop)
        self._over = True
        if self._sock is not None:
            self._sock.close()
            self._sock = None

    def abandon(self) -> None:
        """In a forked child: close our copy, touch no loop."""
        self._over = True
        if self._sock is not None:
            self._sock.close()

    def _find(self) -> None:
        endpoint = self._dialer.endpoint
        if isinstance(endpoint, IpcEndpoint):
            self._addresses = [("\0" if endpoint.abstract else "") + endpoint.path]
            self._next()
            return
        assert isinstance(endpoint, TcpEndpoint)
        literal = numeric_address(endpoint.host, endpoint.port)
        if literal is not None:
            self._addresses = [literal]
            self._next()
            return
        loop = self._driver.loop_in_use
        ipv6 = self._dialer.options.ipv6

        def look_up() -> None:
            found: list[SocketAddress] = []
            error: OSError | None = None
            try:
                found = resolve(endpoint.host, endpoint.port, ipv6=ipv6)
            except OSError as reason:
                error = reason
            try:
                loop.call_soon_threadsafe(self._found, found, error)
            except RuntimeError:
                return  # the loop has ended meanwhile; whoever attaches the next one asks again

        threading.Thread(
            target=look_up, name=f"zerohop-resolve-{endpoint.host}", daemon=True
        ).start()

    def _found(self, addresses: list[SocketAddress], error: OSError | None) -> None:
        with self._driver.lock:
            if self._over or self._addresses is not None:
                return
            if error is not None:
                why = f"cannot resolve the name: {error.strerror or error}"
                self._fail(OSError(error.errno or errno.EHOSTUNREACH, why))
                return
            self._addresses = list(addresses)
            self._next()

    def _next(self) -> None:
        """Try the next address; when none is left the attempt has failed."""
        while self._addresses:
            address = self._addresses.pop(0)
            try:
                family = socket.AF_UNIX if isinstance(address, str) else address[0]
                sock = self._sock = socket.socket(family, _STREAM)
            except OSError as error:
                self._error = error
                continue
            remote = None
            try:
                number = self._begin(sock, address)
                if number in _IN_PROGRESS and not isinstance(address, str):
                    # Over the loopback interface it is decided already, most often.
                    remote = _peer_of(sock)
                    number = 0 if remote else sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    if not (remote or number):
                        self._watch()
                        return
            except OSError as error:
                self._give_up_address(error)
                continue
            if number == 0:
                self._connected(sock, remote)
                return
            self._give_up_address(_os_error(number))
        if not self._over and self._driver.loop is not None:
            self._fail(self._error or _os_error(errno.EHOSTUNREACH))

    def _begin(self, sock: socket.socket, address: SocketAddress | str) -> int:
        """Begin to connect; return what the system says of it."""
        options = self._dialer.options
        if not _NONBLOCKING:
            sock.setblocking(False)
        if isinstance(address, str):
            set_ipc_options(sock, options.ipc)
            return sock.connect_ex(address)
        set_tcp_options(sock, options.tcp)
        endpoint = self._dialer.endpoint
        if isinstance(endpoint, TcpEndpoint) and endpoint.source_host is not None:
            self._bind_source(sock, address[0], endpoint.source_host, endpoint.source_port or 0)
        return sock.connect_ex(address[1])

    def _bind_source(
        self, sock: socket.socket, family: socket.AddressFamily, host: str, port: int
    ) -> None:
        """``tcp://source;destination``: connect from a given address or interface."""
        if host == "*":
            host = "::" if family == socket.AF_INET6 else "0.0.0.0"  # noqa: S104
        source = numeric_address(host, port)
        if source is None:
            found = interface_address(host, ipv6=family == socket.AF_INET6)
            source = numeric_address(found, port) if found else None
        if source is None:
            raise OSError(errno.ENODEV, f"no interface named {host} to connect from")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(source[1])

    def _watch(self) -> None:
        assert self._sock is not None
        loop = self._driver.loop_in_use
        loop.add_writer(self._sock.fileno(), self._on_writable)
        timeout = self._dialer.options.connect_timeout
        if timeout:
            self._timer = loop.call_at(loop.time() + timeout, self._on_timeout)

    def _on_writable(self) -> None:
        with self._driver.lock:
            sock = self._sock
            if sock is None or self._over:
                return
            self.detach(self._driver.loop)
            number = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if number:
                self._give_up_address(_os_error(number))
                self._next()
            else:
                self._connected(sock, None)

    def _on_timeout(self) -> None:
        with self._driver.lock:
            if self._sock is None or self._over:
                return
            self.detach(self._driver.loop)
            self._give_up_address(_os_error(errno.ETIMEDOUT))
            self._next()

    def _give_up_address(self, error: OSError) -> None:
        self._error = error
        if self._sock is not None:
            self._sock.close()
            self._sock = None

    def _connected(self, sock: socket.socket, remote: SocketName | None) -> None:
        self._sock = None
        self._over = True
        endpoint = self._dialer.endpoint
        if isinstance(endpoint, IpcEndpoint):
            self._driver.dialled(self._dialer, sock, str(endpoint))
            return
        remote = remote or _peer_of(sock)
        if remote is None:
            number = errno.ENOTCONN  # gone again already
        elif remote == sock.getsockname():
            # A port of our own range connected to itself while nobody listened (TCP simultaneous
            # open).
            number = errno.ECONNREFUSED
        else:
            self._driver.dialled(self._dialer, sock, remote)
            return
        sock.close()
        self._driver.dial_failed(self._dialer, _os_error(number))

    def _fail(self, error: OSError) -> None:
        self._over = True
        self._driver.dial_failed(self._dialer, error)


def _peer_of(sock: socket.socket) -> SocketName | None:
    """Whom a TCP socket is connected to; None: nobody."""
    try:
        name: SocketName = sock.getpeername()
    except OSError:
        return None
    return name


def _os_error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
