"""The end of a TCP connection: its descriptor is closed when what was written has arrived.

A system that is asked to close a connection goes on sending what it still has, but only while the
peer is silent. One octet that nobody will read any more, come before or after, and it answers with
a reset, forgets what it had to send, and what the peer's system has and its program has not read
yet may go, too (RFC 1122, 4.2.2.13; RFC 2525, 2.17; libzmq gives it up where a high-water mark has
stopped it). So a client of libzmq that sends a hundred requests and leaves takes back most of them
as soon as the first is answered, whatever its LINGER.

Here our direction is ended, what comes is thrown away, and the connection closed when the peer says
no more, most often because it has read to the end and closes. That costs nothing but a descriptor,
so a peer that takes nothing is given ten seconds, within LINGER. Where somebody waits, in
``term()`` or at the exit, it is a second; and for one that has everything, and only has not hung
up, no longer than it goes on answering, in ``_TALK`` at most.

Not every connection ends like this: where all has been acknowledged and no answer waits to be
read, as after a request and its reply, it is closed at once. If the peer speaks after all, there is
a reset, and a libzmq that is stopped by its high-water mark then loses what it has not read.
"""

from __future__ import annotations

import socket
import sys

from zerohop.constants import SocketType

try:
    import fcntl
    from termios import TIOCOUTQ
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
    TIOCOUTQ = 0  # type: ignore[misc]

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
_LONG = 10.0  # seconds without progress while nobody waits: each costs a descriptor
_PATIENCE = 1.0  # seconds without progress, and without a word, while somebody does
_MOMENT = 0.1  # seconds without a word of a peer that has everything, and has spoken
_TALK = 2.0  # seconds without progress of a peer that speaks
_READ_SIZE = 64 * 1024
_SIOCOUTQNSD = 0x894B  # linux/sockios.h


def _asked(sock: socket.socket, request: int) -> int | None:
    if fcntl is None:
        return None
    try:
        told = fcntl.ioctl(sock.fileno(), request, bytes(4))
    except OSError:
        return None
    return int.from_bytes(told, sys.byteorder)


def unacknowledged(sock: socket.socket) -> int | None:
    """Octets that were written and may not have come to the peer's system; None: who knows."""
    return _asked(sock, TIOCOUTQ)


def any_unsent(socket_type: SocketType, sock: socket.socket) -> bool:
    """Whether an answer might take back what the peer's system has had no room for yet."""
    if not _may_be_reset(socket_type, sock) or sys.platform != "linux":
        return False
    return _asked(sock, _SIOCOUTQNSD) not in (0, None)


def _may_be_reset(socket_type: SocketType, sock: socket.socket) -> bool:
    # What was written to a Unix-domain socket has arrived.
    return socket_type in _ANSWERED and sock.family in (socket.AF_INET, socket.AF_INET6)


def _has_unread(sock: socket.socket) -> bool:
    """Whether the peer has said what nobody has read: to close is to reset then."""
    try:
        return bool(sock.recv(1, socket.MSG_PEEK))
    except OSError:
        return False


class _Parting:
    """One connection, its direction ended.

    Attributes:
        sock: ours, non-blocking.
        left: octets that were not acknowledged, when last looked at.
        moved: when they became fewer.
        heard: when the peer spoke last; ``None``: it never has, since the handshake.
    """

    __slots__ = ("heard", "left", "moved", "sock")

    def __init__(self, sock: socket.socket, has_spoken: bool, now: float) -> None:
        self.sock = sock
        self.left = unacknowledged(sock)
        self.moved = now
        self.heard = now if has_spoken else None

    def is_over(self, now: float, somebody_waits: bool) -> bool:
        """Look at it, and say whether it has lasted long enough."""
        left = unacknowledged(self.sock)
        if left != self.left:
            self.left, self.moved = left, now
        if not somebody_waits:
            return now - self.moved >= _LONG
        heard = self.heard
        if heard is not None and now - self.moved >= _TALK:
            return True
        if left == 0:
            return now - heard >= _MOMENT if heard is not None else not _has_unread(self.sock)
        return now - max(self.moved, heard or self.moved) >= _PATIENCE


class Partings:
    """The connections of one socket that end like this. Every method is called with the lock held.

    Args:
        driver: the socket's; on its loop they are watched.
    """

    __slots__ = ("_driver", "_handle", "_look", "_partings")

    def __init__(self, driver: Pump) -> None:
        self._driver = driver
        self._partings: dict[Link, _Parting] = {}
        self._look = _FIRST_LOOK
        self._handle: Handle | None = None

    @staticmethod
    def are_for(socket_type: SocketType, sock: socket.socket) -> bool:
        """Whether what was written may not arrive if a connection is closed now."""
        if not _may_be_reset(socket_type, sock):
            return False
        if unacknowledged(sock) != 0:
            return True
        return _has_unread(sock)

    def __contains__(self, link: object) -> bool:
        return link in self._partings

    def __len__(self) -> int:
        return len(self._partings)

    def add(self, link: Link, sock: socket.socket) -> None:
        """Take over the descriptor of a link that has no more to write."""
        self._partings[link] = parting = _Parting(sock, link.messages_in > 0, self._driver.now())
        self._look = _FIRST_LOOK
        try:  # noqa: SIM105 - nothing else on the way of an import needs contextlib
            sock.shutdown(socket.SHUT_WR)
        except OSError:  # the peer was quicker; to read will tell
            pass
        self._watch(link, parting)
        self._look_soon()

    def finish(self, link: Link) -> None:
        """The core is done with the link, once more: LINGER is over, most likely."""
        if link.cut and link in self._partings:
            self._end(link)

    def start(self) -> None:
        """Watch; also after the driver has moved to another loop."""
        for link, parting in self._partings.items():
            self._watch(link, parting)
        self._look_soon()

    def detach(self, loop: Loop | None) -> None:
        """Stop watching on ``loop`` (None: it is gone); :meth:`start` goes on from there."""
        for parting in self._partings.values():
            if loop is not None:
                loop.remove_reader(parting.sock.fileno())
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def mend(self) -> None:
        """Watch anew, whatever is watched: see ``io.mending``."""
        for link, parting in list(self._partings.items()):
            if link.lost or parting.sock.fileno() < 0:  # its end was begun
                del self._partings[link]
                parting.sock.close()
        self.detach(self._driver.loop)
        self.start()

    def abandon(self) -> None:
        """In a forked child: close our copies."""
        for parting in self._partings.values():
            parting.sock.close()
        self._partings.clear()

    def _watch(self, link: Link, parting: _Parting) -> None:
        if self._driver.loop is not None:
            self._driver.loop.add_reader(parting.sock.fileno(), self._on_readable, link)

    def _on_readable(self, link: Link) -> None:
        with self._driver.lock:
            parting = self._partings.get(link)
            if parting is None:
                return
            try:
                data = parting.sock.recv(_READ_SIZE)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                data = b""
            if data:
                parting.heard = self._driver.now()
            else:
                self._end(link)
                self._driver.pump()

    def _look_soon(self) -> None:
        loop = self._driver.loop
        if loop is None or not self._partings:
            return
        if self._handle is not None:
            self._handle.cancel()
        self._handle = loop.call_at(loop.time() + self._look, self._on_look)
        self._look = min(2 * self._look, _LAST_LOOK)

    def _on_look(self) -> None:
        with self._driver.lock:
            self._handle = None
            now, waits = self._driver.now(), self._driver.awaited
            over = [link for link, it in self._partings.items() if it.is_over(now, waits)]
            for link in over:
                self._end(link)
            self._look_soon()
            if over:
                self._driver.pump()

    def _end(self, link: Link) -> None:
        parting = self._partings[link]
        if self._driver.loop is not None:
            self._driver.loop.remove_reader(parting.sock.fileno())
        parting.sock.close()
        self._driver.core.links.lost(link, None, self._driver.now())
        del self._partings[link]
        if self._handle is not None and not self._partings:
            self._handle.cancel()
            self._handle = None
