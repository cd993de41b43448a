"""Where a blocking socket meets its driver: lanes for the hot path, batches, and who waits.

The driver calls :meth:`Front.activity` after whatever happened, the lock held. Between such calls
the application's threads use the lanes below without the lock.

*First message at once, the rest together.* A message for a peer that is idle is written by the call
that sends it. A program that goes on sending without waiting for anything would pay a system call a
message; so after a few of them (``_AT_ONCE``) within a moment (``_MOMENT``) messages stay in the
pipe until there are 64 KiB of them, until the program waits for something, or until the helper
thread gets to it, whichever comes first.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from zerohop.constants import PollEvent, SocketType
from zerohop.errors import Again
from zerohop.sync.waiters import IN, OUT, OVER, Waiters

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable

    from zerohop.api.socket import SocketBase
    from zerohop.io.driver import SocketDriver
    from zerohop.patterns.pipe import Message, Part, Pipe
    from zerohop.sync.reactor import Reactor

_T = TypeVar("_T")

_MOMENT = 50e-6  # seconds without a message that end a batch; a system call takes 10 to 20
_AT_ONCE = 4  # messages; a client that sends a few requests and then waits never leaves this
_BATCH_SIZE = 64 * 1024  # octets: one write of the driver
_BATCH = 1000  # messages: as much as libzmq's default high-water mark
_OVERHEAD = 64  # octets: what a message costs besides its own, so that empty ones count too
_TICK = 1e-3  # seconds between two looks at a stream that may have ended

_UNLIMITED = 1 << 62


class Front:
    """One socket's lanes and waiters. The driver's side of a Socket; knows no Socket.

    A Socket that is dropped without ``close()`` shall be found by the garbage collector, and the
    reactor, which knows the driver, lives as long as the helper thread.

    Attributes:
        send_lane: the pipe to append to without the lock, its queue, and at which length to call
            :meth:`sent`; None: there is none now.
        receive_lane: what takes the next message off its pipe without the lock, and that pipe;
            None: there is none now.
        waiters: the calls that wait in this socket.
    """

    __slots__ = (
        "_at_once", "_core", "_driver", "_foreign", "_helped", "_limit", "_lock", "_pending",
        "_pump",
        "_reactor", "_scheduled", "_since", "_sound", "_streamed", "_streaming", "_visits",
        "receive_lane", "send_lane", "waiters",
    )  # fmt: skip

    def __init__(self, driver: SocketDriver, reactor: Reactor) -> None:
        self._driver = driver
        self._core = driver.core
        self._lock = driver.lock
        self._reactor = reactor
        self.send_lane: tuple[Pipe, deque[Message], int] | None = None
        self.receive_lane: tuple[Callable[[], Message], Pipe] | None = None
        self.waiters = Waiters(driver.core, reactor)
        self._sound = False
        self._limit = _BATCH
        self._at_once = 0
        self._since = 0.0
        self._helped = 0.0
        self._visits = 0
        self._pending = 0
        self._scheduled = False
        self._streaming: Pipe | None = None
        self._streamed = False
        # A shadow of an asyncio socket: only the loop's own thread may touch the loop.
        self._foreign = driver.loop is not None and driver.loop is not reactor
        self._pump = driver.woken if self._foreign else driver.pump

    def activity(self) -> bool:
        """The core has changed: lanes, readiness, or its end. Called with the lock held.

        Returns:
            False: those who wait act when they have woken, not here.
        """
        core = self._core
        if core.context.terminated:
            self.send_lane = self.receive_lane = None
        else:
            pipe = core.send_lane
            self.send_lane = None if pipe is None else (pipe, pipe.messages, self._mark(pipe))
            pipe = core.receive_lane
            self.receive_lane = None if pipe is None else (pipe.messages.popleft, pipe)
        if self.waiters.waiting:
            self.waiters.wake()
        return False

    def _mark(self, pipe: Pipe) -> int:
        """At which length of the queue a sender has something to do besides appending."""
        if pipe.reader.inproc:
            return pipe.hwm or _UNLIMITED
        return min(self._limit, pipe.hwm) if pipe.hwm else self._limit

    # Sending

    def sent(self, pipe: Pipe, message: Part) -> None:
        """A message was appended to the lane, and the reader sleeps or the queue is long.

        Without the lock.
        """
        with self._lock:
            if 0 < pipe.hwm <= len(pipe.messages):
                pipe.full = True
                if len(pipe.messages) <= pipe.resume_at:
                    pipe.full = False  # an inproc reader needs no lock, and has just read
            if pipe.reader.inproc:
                if pipe.asleep:
                    _signal(pipe)
                    self._pump()
            elif pipe.asleep:
                _signal(pipe)
                self.flush(message)
            else:
                self._flush_long_queue(pipe, len(message))

    def _flush_long_queue(self, pipe: Pipe, size: int) -> None:
        """The program sends faster than anybody flushes: write, and let it go on appending.

        The pipe is not put to sleep when it is empty, for then the next message would be the first
        of a batch, and written alone. Instead it is looked at every ``_TICK`` until it rests.
        """
        self._limit = min(max(_BATCH_SIZE // (size + 9), 16), _BATCH)
        _signal(pipe)
        self._pump()
        left = len(pipe.messages)
        if left >= self._limit:  # the kernel is full: nothing to do until the pipe is, too
            self._limit = left + _BATCH
            self.activity()
        elif pipe.asleep:
            pipe.asleep = False
            self._streamed = True
            if self._streaming is None:
                self._streaming = pipe
                self._reactor.call_at(monotonic() + _TICK, self._on_tick)

    def _on_tick(self) -> None:
        pipe = self._streaming
        assert pipe is not None
        if pipe.messages or self._streamed:
            self._streamed = False
            if pipe.messages:
                _signal(pipe)
                self._pump()
                pipe.asleep = False
            self._reactor.call_at(monotonic() + _TICK, self._on_tick)
            return
        self._streaming = None
        if not pipe.sleep():
            _signal(pipe)
            self._pump()

    def flush(self, message: Message) -> None:
        """Write what was sent: now, or together with what may follow soon. Lock held.

        Args:
            message: the last one that was sent; its size counts.
        """
        if self._streaming is not None:
            _signal(self._streaming)  # it looks awake to whoever appends past the lane
        size = _OVERHEAD + (sum(map(len, message)) if type(message) is list else len(message))
        inproc = self._core.context.readable  # an inproc reader waits for nothing but this
        self._pending += size
        if self._scheduled and self._pending < _BATCH_SIZE and not inproc:
            return
        reactor = self._reactor
        now = monotonic()
        if reactor.visits != self._visits or now - self._since > _MOMENT:
            self._visits = reactor.visits
            self._at_once = 0
        self._since = now
        self._at_once += 1
        if (
            self._at_once <= _AT_ONCE
            or self._pending >= _BATCH_SIZE
            or inproc
            or self._foreign
            or self._scheduled
        ):
            self._pending = 0
            self._pump()
        else:
            self._scheduled = True
            if now - self._helped > _TICK:
                reactor.call_soon(self._on_flush)
            else:
                # The helper has only just been here: it must not snatch each message from the hands
                # of a program that sends on.
                reactor.call_at(self._helped + _TICK, self._on_flush)

    def _on_flush(self) -> None:
        self._scheduled = False
        self._pending = 0
        self._helped = monotonic()
        self._pump()

    # Receiving

    def received(self) -> None:
        """A message was taken past the lane: tell whoever was stopped by it. Lock held."""
        core = self._core
        context = core.context
        if (
            core.links.to_resume
            or context.writable
            or context.readable
            or context.changed
            or self.waiters.waiting
            or self._driver.watched
            or (core.receive_lane is None) is not (self.receive_lane is None)
        ):
            self._pump()

    def drained(self, pipe: Pipe) -> None:
        """A message was taken from the lane, which is marked full. Without the lock."""
        if len(pipe.messages) <= pipe.resume_at:
            with self._lock:
                pipe.drained()
                self._pump()

    # Waiting

    def send(
        self,
        send: Callable[[Any], None],
        message: Message,
        flags: int,
        timeout: float | None,
        socket: SocketBase,
    ) -> None:
        """Send past the lane, as soon as the core takes the message.

        Args:
            send: ``core.send``, or what else gives the message to the core.
            message: what to give it.
            flags: DONTWAIT, or 0.
            timeout: seconds, None: SNDTIMEO.
            socket: who calls; warned of a wait that cannot end.

        Raises:
            Again: not in time.
            ZMQError: as ``core.send``.
        """
        with self._lock:
            deadline = None
            while True:
                try:
                    send(message)
                except Again:
                    if deadline == OVER:
                        raise
                    if deadline is None:
                        option = self._core.options.sndtimeo
                        deadline = self.waiters.deadline(flags, timeout, option)
                        self._check(socket, PollEvent.POLLOUT)
                    deadline = self.waiters.wait(OUT, deadline)
                else:
                    self.flush(message)
                    return

    def receive(
        self, receive: Callable[[], _T], flags: int, timeout: float | None, socket: SocketBase
    ) -> _T:
        """Receive past the lane, as soon as the core has something. Lock held.

        Args:
            receive: ``core.receive`` or ``core.receive_part``.
            flags: DONTWAIT, or 0.
            timeout: seconds, None: RCVTIMEO.
            socket: who calls; warned of a wait that cannot end.

        Raises:
            Again: not in time.
            ZMQError: as ``core.receive``.
        """
        deadline = None
        while True:
            try:
                taken = receive()
            except Again:
                if deadline == OVER:
                    raise
                if deadline is None:
                    option = self._core.options.rcvtimeo
                    deadline = self.waiters.deadline(flags, timeout, option)
                    self._check(socket, PollEvent.POLLIN)
                deadline = self.waiters.wait(IN, deadline)
            else:
                self.received()
                return taken

    def _check(self, socket: SocketBase, event: PollEvent) -> None:
        """Warn of a wait that cannot end; costs nothing once the socket was seen to be sound."""
        if not self._sound:
            socket._warn_before_waiting(event)
            core = self._core
            self._sound = bool(core.links.peers) and (
                core.type != SocketType.SUB or core.pattern.topics_count() > 0
            )

    def end(self) -> None:
        """The socket has been closed: no lane, and nothing to wait for. Lock held."""
        self.send_lane = self.receive_lane = None
        self.waiters.wake_all()


def _signal(pipe: Pipe) -> None:
    """Leave a note that the pipe has messages."""
    pipe.asleep = False
    pipe.reader_signals.append(pipe.reader)
