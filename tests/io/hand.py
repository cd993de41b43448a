"""A loop that the test turns by hand, with a clock of its own, and sockets on it.

It is strict where real loops are silent or abort: a descriptor that is closed while it is watched
fails the test at once.
"""

import heapq
import itertools
import os
import select
import socket as plain
import struct
import time

from tests.api.plain import KeepingContext
from tests.kit.raw import greeting, ready


class _Handle:
    def __init__(self, callback, args):
        self.callback, self.args, self.cancelled = callback, args, False

    def cancel(self):
        self.cancelled = True

    def run(self):
        if not self.cancelled:
            self.callback(*self.args)


class HandLoop:
    """What I/O needs of a loop; :meth:`turn` is one turn of it.

    Attributes:
        readers, writers: what is watched, by descriptor.
        late: seconds by which the clock was put forward.
    """

    def __init__(self):
        self.readers, self.writers = {}, {}
        self.late = 0.0
        self._soon = []
        self._timers = []
        self._count = itertools.count()

    def time(self):
        return time.monotonic() + self.late

    def call_soon(self, callback, *args):
        self._soon.append(_Handle(callback, args))
        return self._soon[-1]

    call_soon_threadsafe = call_soon

    def call_at(self, when, callback, *args):
        handle = _Handle(callback, args)
        heapq.heappush(self._timers, (when, next(self._count), handle))
        return handle

    def add_reader(self, fd, callback, *args):
        os.fstat(fd)
        self.readers[fd] = _Handle(callback, args)

    def add_writer(self, fd, callback, *args):
        os.fstat(fd)
        self.writers[fd] = _Handle(callback, args)

    def remove_reader(self, fd):
        return self.readers.pop(fd, None) is not None

    def remove_writer(self, fd):
        return self.writers.pop(fd, None) is not None

    # For the test

    @property
    def pending(self):
        """The timers that will still be called."""
        return [handle for _, _, handle in self._timers if not handle.cancelled]

    @property
    def idle(self):
        """Whether nothing is left on the loop."""
        soon = [handle for handle in self._soon if not handle.cancelled]
        return not (self.readers or self.writers or self.pending or soon)

    def turn(self, seconds=0.0):
        """One turn: what was asked for soon, what is due, what is readable and writable."""
        for fd in {*self.readers, *self.writers}:
            os.fstat(fd)  # closed while it is watched?
        soon, self._soon = self._soon, []
        for handle in soon:
            handle.run()
        while self._timers and self._timers[0][0] <= self.time():
            heapq.heappop(self._timers)[2].run()
        poll = select.poll()
        for fd in {*self.readers, *self.writers}:
            events = select.POLLIN * (fd in self.readers) | select.POLLOUT * (fd in self.writers)
            poll.register(fd, events)
        hung_up = select.POLLHUP | select.POLLERR
        for fd, events in poll.poll(seconds * 1000):
            if events & (select.POLLIN | hung_up) and fd in self.readers:
                self.readers[fd].run()
            if events & (select.POLLOUT | hung_up) and fd in self.writers:
                self.writers[fd].run()

    def until(self, condition, seconds=8.0):
        """Turn until the condition holds; return what it gave."""
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            assert time.monotonic() < deadline, "it never came true"
            self.turn(0.001)
        return value

    def settle(self, turns=20):
        """Turn until nothing happens any more, as far as one can see."""
        for _ in range(turns):
            self.turn(0.0005)

    def skip(self, seconds):
        """Put the clock forward, and call what is due."""
        self.late += seconds
        self.turn()


class World:
    """A context whose sockets hang on one hand loop."""

    def __init__(self):
        self.context = KeepingContext()
        self.loop = HandLoop()

    def socket(self, kind, **options):
        """A socket on the loop; its verbs never wait."""
        made = self.context.socket(kind)
        for name, value in options.items():
            setattr(made, name, value)
        made._driver.attach(self.loop)
        return made

    def close(self):
        for made in self.context._kept:
            made.close(0)
        self.loop.settle(3)
        assert self.loop.idle, "something is left on the loop"
        self.context.term()


def server(family=plain.AF_INET, backlog=5):
    """A plain listening socket on the loopback interface, non-blocking."""
    made = plain.socket(family)
    made.bind(("127.0.0.1", 0) if family == plain.AF_INET else f"\0zh-{next(_names)}")
    made.listen(backlog)
    made.setblocking(False)
    return made


_names = itertools.count(os.getpid() * 1000)


def endpoint_of(listening):
    """Where a plain socket listens, for connect()."""
    name = listening.getsockname()
    if isinstance(name, tuple):
        return f"tcp://{name[0]}:{name[1]}"
    return f"ipc://@{name[1:].decode()}"


class Peer:
    """The other end of a connection that a socket has dialled: octets, in the test's hands."""

    def __init__(self, world, sock, listening):
        world.loop.until(lambda: self._accepted(listening))
        self.world, self.sock = world, sock
        self.came = bytearray()

    def _accepted(self, listening):
        try:
            self.raw, _ = listening.accept()
        except BlockingIOError:
            return False
        self.raw.setblocking(False)
        return True

    def pull(self):
        """Take what is there; False when the connection has ended."""
        try:
            while data := self.raw.recv(1 << 20):
                self.came += data
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        return False

    def handshake(self, socket_type):
        """Greet, and wait until the socket has its peer; forget its greeting and READY."""
        self.raw.sendall(greeting() + ready(socket_type))
        self.world.loop.until(self.sock._core.connected)
        self._take(self._take(66)[65])

    def _take(self, count):
        """The next so many octets, and none that follow."""
        came = bytearray()

        def read():
            try:
                came.extend(self.raw.recv(count - len(came)))
            except BlockingIOError:
                return False
            return len(came) == count

        self.world.loop.until(read)
        return came

    def sees(self, octets):
        """Wait for exactly these octets."""
        self.world.loop.until(lambda: self.pull() and len(self.came) >= len(octets))
        assert self.came == octets

    def reset(self):
        self.raw.setsockopt(plain.SOL_SOCKET, plain.SO_LINGER, struct.pack("ii", 1, 0))
        self.raw.close()
