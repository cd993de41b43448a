"""The end of a TCP connection: its descriptor is closed when what was written has arrived.

A system that is asked to close a connection goes on sending what it still has, but only while the
peer is silent. One octet that nobody will read any more, come before or after, and it answers with
a reset, forgets what it had to send, and what the peer's system has and its program has not read
yet may go, too (RFC 1122, 4.2.2.13; RFC 2525, 2.17; libzmq gives it up where a high-water mark has
stopped it). So a client of libzmq that sends a hundred requests and leaves takes back most of them
as soon as the first is answered, whatever its LINGER.

Here our direction is ended, what comes is thrown away, and the connection closed when the peer has
ended its direction, too: it has read everything then. Or when its system has acknowledged all, and
it has said nothing for a moment. A peer that takes nothing is waited for a second, and LINGER
bounds it all.
"""

from __future__ import annotations

import socket
import sys

from zerohop.constants import SocketType
from zerohop.io.stream import READ_SIZE, Stream

try:
    import fcntl
    import termios
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.core.link import Link
    from zerohop.io.loop import Handle, Loop
    from zerohop.io.pump import Pump

# Nobody answers the others. What a PUSH has given to the system goes out behind its back.
_ANSWERED = frozenset({
    SocketType.REQ,
    SocketType.REP,
    SocketType.DEALER,
    SocketType.ROUTER,
    SocketType.PAIR,
    SocketType.STREAM,
})  # fmt: skip
_FIRST_LOOK = 2e-3  # seconds: the system tells nobody when all is acknowledged
_LAST_LOOK = 50e-3
_PATIENCE = 1.0  # seconds in which the peer takes nothing, and says nothing
_MOMENT = 0.1  # seconds in which it says nothing, and has all: a reset would come of an answer


def unacknowledged(sock: socket.socket) -> int | None:
    """Octets that were written and may not have come to the peer's system; None: who knows."""
    if fcntl is None:
        return None
    try:
        told = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, bytes(4))
    except OSError:
        return None
    return int.from_bytes(told, sys.byteorder)


def _may_be_reset(socket_type: SocketType, sock: socket.socket) -> bool:
    # What was written to a Unix socket has arrived.
    return socket_type in _ANSWERED and sock.family in (socket.AF_INET, socket.AF_INET6)


def any_under_way(driver: Pump) -> bool:
    """Whether the end of the process might take back what was written."""
    socket_type = driver.core.links.socket_type
    return any(
        isinstance(stream, Parting)
        or (_may_be_reset(socket_type, stream._sock) and unacknowledged(stream._sock))
        for stream in driver._streams.values()
    )


class Parting(Stream):
    """What a :class:`Stream` becomes that has no more to write, and whose octets are under way.

    Args:
        driver, sock, link: the stream's.
    """

    __slots__ = ("_handle", "_left", "_look", "_since")

    def __init__(self, driver: Pump, sock: socket.socket, link: Link) -> None:
        super().__init__(driver, sock, link)
        self._left = unacknowledged(sock)
        self._since = driver.now()  # the peer has shown no life
        self._look = _FIRST_LOOK
        self._handle: Handle | None = None

    @staticmethod
    def is_needed(socket_type: SocketType, sock: socket.socket) -> bool:
        """Whether what was written may be lost if the connection is closed now."""
        if not _may_be_reset(socket_type, sock):
            return False
        if unacknowledged(sock) != 0:
            return True
        try:
            return bool(sock.recv(1, socket.MSG_PEEK))  # closing would be a reset
        except OSError:
            return False

    def start(self) -> None:
        """Say that no more comes, and watch; also after the driver has moved."""
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError:  # the peer was quicker
            self._lost(None)
            return
        self.resume()
        if not self.closed:
            self._look_soon()

    def detach(self, loop: Loop | None) -> None:
        """As of any stream; it does not look at the time any more, either."""
        super().detach(loop)
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def read_now(self) -> bool:
        """Nothing comes any more."""
        return False

    def read_on(self) -> None:
        """Nothing waits for room here."""

    def write(self) -> bool:
        """All is written."""
        return False

    def finish(self) -> None:
        """The time that LINGER gives is over; or the core is done with the link, once more."""
        if self._link.cut:
            self._lost(None)

    def mend(self) -> None:
        """Watch anew, whatever is watched."""
        loop = self._driver.loop_in_use
        self.detach(loop)
        loop.remove_reader(self._fd)
        self.start()

    def _on_readable(self) -> None:
        with self._driver.lock:
            if self.closed:
                return
            try:
                data = self._sock.recv(READ_SIZE)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                data = b""
            if data:
                self._since = self._driver.now()
            else:
                self._lost(None)

    def _look_soon(self) -> None:
        loop = self._driver.loop
        if loop is not None:
            self._handle = loop.call_at(loop.time() + self._look, self._on_look)
            self._look = min(2 * self._look, _LAST_LOOK)

    def _on_look(self) -> None:
        with self._driver.lock:
            self._handle = None
            if self.closed:
                return
            left, now = unacknowledged(self._sock), self._driver.now()
            if left != self._left:
                self._left, self._since = left, now
            if now - self._since >= (_MOMENT if left == 0 else _PATIENCE):
                self._lost(None)
            else:
                self._look_soon()
