"""Binding to tcp and ipc, and accepting peers."""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct

from zerohop.constants import Event
from zerohop.core.endpoint import IpcEndpoint, TcpEndpoint
from zerohop.errors import EndpointError
from zerohop.io.addresses import local_address, printable
from zerohop.io.sockets import check_ipc, set_ipc_options, set_listener_options, set_tcp_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.core.endpoint import SocketName
    from zerohop.core.link import Listener
    from zerohop.core.options import EndpointOptions
    from zerohop.io.driver import SocketDriver
    from zerohop.io.loop import Handle, Loop

_ACCEPTS_A_TURN = 64
# Where one comes soon after another, who has said nothing yet, more are coming, and the next are
# accepted together: a turn of the loop, and being woken for it, costs as much as a connection.
_SOON = 3e-3  # seconds
_LULL = 1e-3  # seconds without accepting
_ROOM = 1024  # connections that the system keeps: far more than come in a lull
_PAUSE = 0.1  # seconds without accepting after EMFILE: libzmq spins
_NO_MORE_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PEERCRED = struct.Struct("3i")  # pid, uid, gid


class SocketFile:
    """What a bound ipc socket has made in the file system, and removes again.

    Args:
        path: its file.
        directory: one that was made for it, or ``""``.
    """

    __slots__ = ("_directory", "_inode", "_owner", "_path")

    def __init__(self, path: str, directory: str) -> None:
        self._path = os.path.abspath(path)  # the program may change its directory
        self._directory = directory
        self._owner = os.getpid()
        self._inode = _inode(path)

    def remove(self) -> None:
        """Remove it, but not in a forked child, and not what somebody has put in its place."""
        if os.getpid() != self._owner:
            return
        try:
            if _inode(self._path) == self._inode:
                os.unlink(self._path)
        except OSError:
            pass
        if self._directory:
            try:  # noqa: SIM105 - contextlib is not imported for it
                os.rmdir(self._directory)
            except OSError:
                pass


def _inode(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:  # somebody has been very quick
        return 0, 0
    return found.st_dev, found.st_ino


def open_listener(
    endpoint: TcpEndpoint | IpcEndpoint, options: EndpointOptions
) -> tuple[socket.socket, str, SocketFile | None]:
    """Bind and listen.

    Returns:
        The non-blocking OS socket, the resolved endpoint (LAST_ENDPOINT), and the file that is to
        be removed when it is closed, if there is one.

    Raises:
        EndpointError: EADDRINUSE, ENODEV, EADDRNOTAVAIL, EACCES, ENOENT, EMFILE, ...
    """
    try:
        if options.use_fd is not None:
            return _adopt(options.use_fd, endpoint)
        if isinstance(endpoint, TcpEndpoint):
            return _listen_tcp(endpoint, options)
        return _listen_ipc(endpoint, options)
    except EndpointError:
        raise
    except OSError as error:
        raise EndpointError(
            error.errno or errno.EINVAL,
            endpoint=str(endpoint),
            hint=_why_not(endpoint, error),
        ) from error


def _why_not(endpoint: TcpEndpoint | IpcEndpoint, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE and isinstance(endpoint, TcpEndpoint):
        return (
            "another socket has that address and port; close it or unbind it, bind to another "
            "port, or to port * for one that is free"
        )
    return f"the system says: {error.strerror}"


def _adopt(
    fd: int, endpoint: TcpEndpoint | IpcEndpoint
) -> tuple[socket.socket, str, SocketFile | None]:
    """USE_FD: somebody else has bound it and listens; we accept, and never unlink its file."""
    copied = os.dup(fd)
    try:
        sock = socket.socket(fileno=copied)
    except OSError:
        os.close(copied)
        raise
    sock.setblocking(False)
    scheme = "tcp" if isinstance(endpoint, TcpEndpoint) else "ipc"
    return sock, printable(sock.getsockname(), scheme=scheme), None


def _listen_tcp(
    endpoint: TcpEndpoint, options: EndpointOptions
) -> tuple[socket.socket, str, SocketFile | None]:
    family, address = local_address(
        endpoint.host, endpoint.port, ipv6=options.ipv6, endpoint=str(endpoint)
    )
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        set_listener_options(sock, options.tcp)
        if family == socket.AF_INET6:
            # libzmq: with IPV6 one listener serves both families.
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.bind(address)
        sock.listen(options.tcp.backlog)
    except OSError:
        sock.close()
        raise
    sock.setblocking(False)
    return sock, printable(sock.getsockname(), scheme="tcp"), None


def _listen_ipc(
    endpoint: IpcEndpoint, options: EndpointOptions
) -> tuple[socket.socket, str, SocketFile | None]:
    check_ipc(str(endpoint))
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    path, directory = endpoint.path, ""
    file = None
    try:
        if endpoint.wildcard:
            import tempfile  # 3 ms, for a rare form of endpoint

            directory = tempfile.mkdtemp(prefix="zerohop-")
            path = os.path.join(directory, "socket")
        if endpoint.abstract:
            sock.bind("\0" + path)
        else:
            _remove_stale(path, str(endpoint))
            _bind_file(sock, path, str(endpoint))
            file = SocketFile(path, directory)
        set_ipc_options(sock, options.ipc)
        sock.listen(options.ipc.backlog)
    except BaseException:
        sock.close()
        if file is not None:
            file.remove()
        elif directory:
            os.rmdir(directory)
        raise
    sock.setblocking(False)
    return sock, f"ipc://@{path}" if endpoint.abstract else f"ipc://{path}", file


def _bind_file(sock: socket.socket, path: str, text: str) -> None:
    try:
        sock.bind(path)
    except FileNotFoundError as error:
        raise EndpointError(
            errno.ENOENT,
            f'No such file or directory for ipc path "{path}".',
            endpoint=text,
            hint="the directory of an ipc path has to exist",
        ) from error


def _remove_stale(path: str, text: str) -> None:
    """Unlink a socket file that nobody listens at; a live one is never stolen (libzmq steals it).

    Raises:
        EndpointError: EADDRINUSE, somebody listens there, or it is no socket.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise EndpointError(
            errno.EADDRINUSE, endpoint=text, hint=f"{path} exists and is not a socket"
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except FileNotFoundError:
            return
        except BlockingIOError:
            pass  # a listener whose queue is full is alive, too
    raise EndpointError(
        errno.EADDRINUSE,
        endpoint=text,
        hint=f"a live process listens at {path}; a stale file would have been replaced",
    )


class Acceptor:
    """A listening socket and the loop that watches it.

    Args:
        driver: gets the accepted connections.
        listener: the core's side.
        sock: listening, non-blocking; owned.
        file: what to remove on close, or None.
    """

    def __init__(
        self,
        driver: SocketDriver,
        listener: Listener,
        sock: socket.socket,
        file: SocketFile | None,
    ) -> None:
        self._driver = driver
        self._listener = listener
        self._sock = sock
        self._kind = int(sock.family), int(sock.type), sock.proto
        self._file = file
        self._watching = False
        self._pause: Handle | None = None
        self._last = 0.0  # when a connection was accepted
        self._count = 0  # how many were open then
        tcp = listener.options.tcp
        self._lulls = tcp.backlog >= _ROOM and tcp.use_fd is None  # whose room nobody knows

    def start(self) -> None:
        """Accept on the driver's loop."""
        if not self._watching:
            self._watching = True
            self._driver.loop_in_use.add_reader(self._sock.fileno(), self._on_readable)

    def detach(self, loop: Loop | None) -> None:
        """Stop accepting on ``loop`` (None: it is gone); the system keeps who calls meanwhile."""
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        if self._watching and loop is not None:
            loop.remove_reader(self._sock.fileno())
        self._watching = False

    @property
    def closed(self) -> bool:
        """Whether the address is free."""
        return self._sock.fileno() < 0

    def mend(self) -> None:
        """Accept, whatever was begun: see io.mending."""
        self.detach(self._driver.loop)
        self.start()

    def close(self) -> None:
        """Free the address before returning."""
        self.detach(self._driver.loop)
        self._sock.close()
        if self._file is not None:
            self._file.remove()

    def abandon(self) -> None:
        """In a forked child: close our copy; the address is the parent's."""
        self._sock.close()

    def _on_readable(self) -> None:
        driver = self._driver
        with driver.lock:
            crowd = self._lulls and self._is_crowd()
            self._accept()
            driver.pump()  # once for all of them
            self._last, self._count = driver.now(), len(driver.core.links.open_links)
            if crowd and self._watching:
                self._stop_for(_LULL)

    def _is_crowd(self) -> bool:
        """Whether the last one came only just now, and has said nothing yet."""
        driver = self._driver
        if driver.now() - self._last > _SOON:
            return False
        links = driver.core.links.open_links
        return len(links) >= self._count > 0 and not next(reversed(links)).messages_in

    def _accept(self) -> None:
        for _ in range(_ACCEPTS_A_TURN):
            if not self._watching:
                return
            try:
                sock, name = self._next()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self._failed(error)
                return
            try:
                self._take(sock, name)
            except OSError as error:  # an option that the system refuses, or it is gone again
                sock.close()
                self._failed(error)

    def _next(self) -> tuple[socket.socket, object]:
        """As ``accept`` of the socket, which makes enums of family and type anew for each."""
        fd, name = self._sock._accept()  # type: ignore[attr-defined] # as accept() itself does
        return socket.socket(*self._kind, fileno=fd), name

    def _failed(self, error: OSError) -> None:
        driver = self._driver
        self._listener.last_error = error
        driver.core.links.records.add(
            Event.ACCEPT_FAILED, error.errno or 0, self._listener.endpoint, reason=str(error)
        )
        if error.errno in _NO_MORE_FILES:
            self._stop_for(_PAUSE)
        driver.pump()  # a monitor is told now, not when something else happens

    def _stop_for(self, seconds: float) -> None:
        """Accept nobody for so long; the system keeps who calls meanwhile."""
        loop = self._driver.loop_in_use
        self.detach(loop)
        self._pause = loop.call_at(loop.time() + seconds, self._after_pause)

    def _after_pause(self) -> None:
        with self._driver.lock:
            self._pause = None
            if self._driver.loop is not None:
                self.start()

    def _take(self, sock: socket.socket, name: object) -> None:
        listener = self._listener
        sock.setblocking(False)
        if isinstance(name, tuple):
            tcp = listener.options.tcp
            set_tcp_options(sock, tcp)
            admitted = not tcp.accept_filters or tcp.admits(name[0])
            remote: SocketName = name
        else:
            ipc = listener.options.ipc
            set_ipc_options(sock, ipc)
            admitted = not ipc.filtered or ipc.admits(*_credentials(sock))
            remote = printable(name, scheme="ipc") or listener.endpoint
        if admitted:
            self._driver.accepted(listener, sock, remote)
        else:
            sock.close()


def _credentials(sock: socket.socket) -> tuple[int, int, int]:
    """Process, user and group of an ipc peer, as the kernel knows them (Linux)."""
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEERCRED.size)
    pid, uid, gid = _PEERCRED.unpack(raw)
    return pid, uid, gid
