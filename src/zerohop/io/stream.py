"""One connection: a non-blocking OS socket, read and written for a link of the core.

Reads 64 KiB at a time, and 256 KiB where these have come whole: for a stream of messages of 1 to
16 KiB that saves a fifth of the time, but memory for so much is too dear for an answer (12 us).
While a large frame is under way its octets are read into the place where they belong, and the
beginning of what follows in the same call. Behind a large frame another is expected: little is read
then, for what is read of its body beside its place has to be copied there.

Writes as soon as there is something; what the kernel does not take stays with the link and goes on
when the socket is writable again.
"""

from __future__ import annotations

import errno
import socket

from zerohop.core.output import fill_alone, written_alone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.core.link import Link
    from zerohop.io.loop import Loop
    from zerohop.io.pump import Pump

READ_SIZE = 64 * 1024
_MUCH = 256 * 1024
_LITTLE = 1024  # octets: enough for a header, and for the small parts before a large one
_WRITES_A_TURN = 16  # then others get their turn: a fast reader must not starve the loop
_GATHERS = hasattr(socket.socket, "sendmsg")  # not on Windows
_SCATTERS = hasattr(socket.socket, "recvmsg_into")
# What came of reading once: the core may have nothing to do, or anything, or there are messages and
# only those who wait have to be told.
_IDLE, _NEWS, _MESSAGES = 0, 1, 2
_IOV_MAX = 64  # buffers a sendmsg; well under the system's limit of 1024


class Stream:
    """Moves octets between one OS socket and one link.

    Args:
        driver: whose core the link belongs to; its ``loop`` is in use as long as the stream lives.
        sock: connected and non-blocking; the stream owns it.
        link: the core's side.
    """

    __slots__ = (
        "_asked",
        "_blocked",
        "_busy",
        "_driver",
        "_fd",
        "_link",
        "_links",
        "_paused",
        "_read_size",
        "_sock",
        "_view",
        "closed",
    )

    def __init__(self, driver: Pump, sock: socket.socket, link: Link) -> None:
        self._driver = driver
        self._links = driver.core.links
        self._sock = sock
        self._fd = sock.fileno()
        self._link = link
        self._blocked = False
        self._busy = False  # a signal handler that waits must not move octets in the middle of it
        self._asked = False  # one has sent then, and could not write
        self._paused = True
        self._read_size = READ_SIZE
        self._view: memoryview | None = None  # where the rest of a large frame belongs
        self.closed = False
        link.fd = self._fd

    def start(self) -> None:
        """Watch the socket; also after the driver has moved to another loop."""
        self.resume()
        if self._blocked:
            self._driver.loop_in_use.add_writer(self._fd, self._on_writable)

    def detach(self, loop: Loop | None) -> None:
        """Stop watching on ``loop`` (None: it is gone); :meth:`start` goes on from there."""
        if loop is not None:
            if not self._paused:
                loop.remove_reader(self._fd)
            if self._blocked:
                loop.remove_writer(self._fd)
        self._paused = True

    def pause(self) -> None:
        """Read no more: the network makes the sender wait."""
        # What comes beyond the high-water mark shall not be much.
        self._read_size = min(self._read_size, READ_SIZE)
        if not self._paused:
            self._paused = True
            if self._driver.loop is not None:
                self._driver.loop.remove_reader(self._fd)

    def resume(self) -> None:
        """Read again."""
        loop = self._driver.loop
        if self._paused and not self.closed and loop is not None:
            self._paused = False
            loop.add_reader(self._fd, self._on_readable)

    def read_on(self) -> None:
        """There is room again: read what has come, and watch for more if there is still room.

        At once: who takes from many queues, one after the other, waits for none of them, and what
        is not read stops the sender. And first: what has come fills the pipe again, most often. To
        watch for that moment would be two system calls, and wake a thread that sleeps in the seat
        for what is read already.
        """
        if self.closed or not self._paused:
            return
        if self._view is None and not self._busy and self._driver.loop is not None:
            self._read_and_pump()
        peer = self._link.peer
        if peer is None or not peer.inbound.full or self._link.ending:
            self.resume()

    def _on_readable(self) -> None:
        with self._driver.lock:
            if not (self.closed or self._paused or self._busy):
                self._read_and_pump()

    def read_now(self) -> bool:
        """Read what is there, without asking the loop first; return whether anything came.

        The end of the connection is something, too: subscriptions are withdrawn by it.

        Not the rest of a large frame: that may take a while, and the loop has other things to do.
        """
        link = self._link
        before = link.octets_in
        if self.closed or self._paused or self._view is not None or self._busy:
            return False
        self._read_and_pump()
        return link.octets_in != before or self.closed

    def _read_and_pump(self) -> None:
        """Read once, and have the driver do what follows from it."""
        driver, link, came = self._driver, self._link, _IDLE
        self._busy = True
        try:
            if self._view is not None:
                came = self._read_large(self._view)
            else:
                try:
                    data = self._sock.recv(self._read_size)
                except (BlockingIOError, InterruptedError):
                    came = _IDLE
                except OSError as error:
                    self._lost(error)
                else:
                    if data:
                        heard = self._links.receive_data(link, data, driver.now())
                        came = _MESSAGES if heard else _NEWS
                        if len(data) >= _LITTLE or self._read_size != READ_SIZE:
                            self._look_ahead(len(data))
                        peer = link.peer
                        if peer is not None and peer.inbound.full:
                            self._make_it_wait()
                    else:
                        self._lost(None)
        except BaseException:
            self._interrupted()
            raise
        finally:
            self._busy = False
        if self._asked:
            self._write_after_all()
            came = _NEWS
        if came == _MESSAGES:
            driver.delivered()
        elif came:
            driver.pump()

    def _interrupted(self) -> None:
        """A signal handler has raised in the middle: octets may be missing or be twice.

        Better no connection than a wrong one. What was under way is lost, as with any connection
        that breaks; nothing comes twice.
        """
        self._link.sending = []
        self._link.buffers.clear()
        loop = self._driver.loop
        if loop is not None:  # whatever was just begun or ended to be watched
            loop.remove_reader(self._fd)
            loop.remove_writer(self._fd)
        self._lost(OSError(errno.EINTR, "a signal handler raised while octets were moved"))

    def _make_it_wait(self) -> None:
        """The peer's queue is full: read no more, unless nothing is put there any more."""
        link = self._link
        if link.handshaken and not (link.closing or link.ending):
            self.pause()

    def _look_ahead(self, came: int) -> None:
        """So much came: decide how much to read next, and where to."""
        self._view = self._link.connection.buffer()
        if came >= READ_SIZE:
            self._read_size = _MUCH
        elif came >= self._read_size or self._read_size != _LITTLE:
            self._read_size = READ_SIZE

    def _read_large(self, view: memoryview) -> int:
        """Read the rest of a large frame into its place, and the beginning of what follows it."""
        link, room, ahead = self._link, len(view), bytearray(_LITTLE)
        try:
            if _SCATTERS:
                came = self._sock.recvmsg_into((view, ahead))[0]
            else:
                came = self._sock.recv_into(view)
        except (BlockingIOError, InterruptedError):
            return _IDLE
        except OSError as error:
            self._lost(error)
            return _IDLE
        if not came:
            self._lost(None)
            return _IDLE
        now, size = self._driver.now(), min(came, room)
        link.octets_in += size
        link.connection.filled(size, now)
        if size == room:
            self._links.receive_data(link, bytes(memoryview(ahead)[: came - size]), now)
            self._read_size = _LITTLE
            peer = link.peer
            if peer is not None and peer.inbound.full:
                self._make_it_wait()
        self._view = link.connection.buffer()
        return _NEWS if size == room else _IDLE

    def write(self) -> bool:
        """Write what the link has until it is empty or the kernel is full.

        Returns:
            Whether it was a lone message, and is out: then nothing else follows from it.
        """
        if self._busy:
            self._asked = True
            return False
        if self._blocked or self.closed:
            return False
        self._busy = True
        alone = False
        try:
            link = self._link
            buffers = fill_alone(link)
            if len(buffers) != 1:
                self._write()
            else:
                octets = buffers[0]
                try:
                    size = self._sock.send(octets)
                except (BlockingIOError, InterruptedError):
                    size = 0
                except OSError as error:
                    self._broken(error)
                    return False
                if size != len(octets):
                    self._links.wrote(link, size, self._driver.now())
                    self._wait_for_room()
                elif link.ending:  # a signal handler has closed the socket meanwhile
                    self._links.wrote(link, size, self._driver.now())
                elif written_alone(link, size):
                    alone = True
                else:
                    self._write()  # something has come meanwhile
        except BaseException:
            self._interrupted()
            raise
        finally:
            self._busy = False
        if self._asked:
            self._write_after_all()
            return False
        return alone

    def _write_after_all(self) -> None:
        """What a signal handler could not write in the middle of a move is written next."""
        self._asked = False
        self._links.to_write.append(self._link)

    def _write(self) -> None:
        link, links = self._link, self._links
        for _ in range(_WRITES_A_TURN):
            buffers = links.output(link)
            if not buffers:
                peer = link.peer
                if peer is None or not link.handshaken or peer.outbound.sleep():
                    return
                continue
            try:
                if len(buffers) == 1:
                    size = self._sock.send(buffers[0])
                    whole = size == len(buffers[0])
                    now = 0.0 if whole else self._driver.now()  # nobody asks if nothing is left
                else:
                    some = buffers[:_IOV_MAX]
                    size = self._sock.sendmsg(some) if _GATHERS else self._sock.send(b"".join(some))
                    whole = size == sum(map(len, some))
                    now = self._driver.now()
            except (BlockingIOError, InterruptedError):
                size, whole, now = 0, False, 0.0
            except OSError as error:
                self._broken(error)
                return
            links.wrote(link, size, now)
            if not whole:
                self._wait_for_room()
                return
            if not buffers and self._is_empty(link):
                return
        if link.peer is not None:
            self._driver.flush_later(link.peer)

    def _wait_for_room(self) -> None:
        """The kernel is full: go on when the socket is writable again."""
        self._blocked = True
        if self._driver.loop is not None:
            self._driver.loop.add_writer(self._fd, self._on_writable)

    def _broken(self, error: OSError) -> None:
        """Nothing can be written any more; what the peer sent before that can still be read."""
        while not self.closed:
            try:
                data = self._sock.recv(READ_SIZE)
            except OSError:
                break
            if not data:
                break
            self._links.receive_data(self._link, data, self._driver.now())
        self._lost(error)

    def _is_empty(self, link: Link) -> bool:
        """Whether all is written: the pipe then sleeps until the next message."""
        peer = link.peer
        if link.connection.has_output:
            return False
        return peer is None or (not peer.outbound.messages and peer.outbound.sleep())

    def _on_writable(self) -> None:
        driver = self._driver
        with driver.lock:
            if self.closed or not self._blocked:
                return
            self._unblock()
            self.write()
            driver.pump()

    def _unblock(self) -> None:
        # Never leave a closed descriptor with the loop: libuv aborts the process for it.
        self._blocked = False
        if self._driver.loop is not None:
            self._driver.loop.remove_writer(self._fd)

    def finish(self) -> None:
        """The core is done with the link: write its last words if the kernel takes them; close."""
        if not self.closed:
            if self._blocked:
                self._unblock()
            self.write()
        if self.closed or not self._driver.may_part(self._link, self._sock):
            self._lost(None)
            return
        self.detach(self._driver.loop)
        self._driver.part(self._link, self._sock)
        self.closed = True  # for us: the descriptor is another's now

    def _lost(self, error: OSError | None) -> None:
        self.close()
        self._links.lost(self._link, error, self._driver.now())
        self._driver.stream_closed(self._link)
        self._driver.pump()

    def mend(self) -> None:
        """Watch what there is to be watched, whatever was begun to be watched: see io.mending."""
        loop = self._driver.loop_in_use
        loop.remove_reader(self._fd)
        loop.remove_writer(self._fd)
        self._paused, self._blocked = True, False
        self.resume()

    def close(self) -> None:
        """Close the OS socket; nothing is called back any more."""
        if self.closed:
            return
        self.detach(self._driver.loop)
        self.closed = True
        self._view = None
        self._sock.close()

    def abandon(self) -> None:
        """In a forked child: close our copy; its loop's epoll is shared with the parent."""
        self.closed = True
        self._sock.close()
