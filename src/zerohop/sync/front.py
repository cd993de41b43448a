"""Where a blocking socket meets its driver: lanes for the hot path, and the ways past them.

The driver calls :meth:`Front.activity` after whatever happened, the lock held. Between such calls
the application's threads use the lanes below without the lock: one append, or one popleft, and a
look at two flags. Where there is no lane, or it has nothing to give or no room, :meth:`Front.send`
and :meth:`Front.receive` ask the core, and wait until it does not say Again.
"""

from __future__ import annotations

from zerohop.constants import PollEvent, SocketType
from zerohop.errors import Again, ZMQError
from zerohop.io.seat import FOREVER
from zerohop.sync.outflow import BATCH, Outflow
from zerohop.sync.waiters import IN, OUT, OVER, Waiters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Collection
    from typing import Any, TypeVar

    from zerohop.api.insight import InsightMethods
    from zerohop.api.socket import SocketBase
    from zerohop.io.driver import SocketDriver
    from zerohop.io.reactor import Reactor
    from zerohop.patterns.pipe import Message, Pipe

    _T = TypeVar("_T")

_NEVER = 1 << 62  # messages
_SHARE = 64  # messages taken from queues before it is seen what else has arrived


class Front:
    """One socket's lanes and waiters. The driver's side of a Socket; knows no Socket.

    A Socket that is dropped without ``close()`` shall be found by the garbage collector, and the
    reactor, which knows the driver, lives as long as the helper thread.

    Attributes:
        send_lane: the pipe to append to without the lock, its queue, and at which length to call
            :meth:`sent`; None: there is none now.
        receive_lane: the pipe to take messages from without the lock. From the network they are the
            receiver's own: lists of ``bytes`` that nobody else has (over ``inproc`` there may be
            octets in them that the sender lends). None: there is none now.
        waiters: the calls that wait in this socket.
    """

    __slots__ = (
        "_core", "_driver", "_lock", "_outflow", "_pump", "_reactor", "_sound", "_stopped",
        "_unread", "_waiting", "receive_lane", "send_lane", "waiters",
    )  # fmt: skip

    def __init__(self, driver: SocketDriver, reactor: Reactor) -> None:
        self._driver = driver
        self._core = driver.core
        self._lock = driver.lock
        self.send_lane: tuple[Pipe, deque[Message], int] | None = None
        self.receive_lane: Pipe | None = None
        self.waiters = Waiters(driver.core, reactor)
        self._waiting = self.waiters.waiting
        self._stopped: tuple[Collection[object], ...] = ()  # until something is received
        self._reactor = reactor
        self._sound = False
        self._unread = 0
        self._pump = driver.woken if self._is_foreign() else driver.pump
        self._outflow: Outflow | None = None  # until something is to be written

    def _is_foreign(self) -> bool:
        """Whether it is a shadow of an asyncio socket: no other thread may touch the loop."""
        loop = self._driver.loop
        return loop is not None and loop is not self._reactor

    def _first_outflow(self) -> Outflow:
        """Who only receives, or whose peer is not there yet, has none."""
        self._outflow = Outflow(
            self._core, self._pump, self._driver.write_alone, self._waiting, self._reactor,
            self._is_foreign(),
        )  # fmt: skip
        return self._outflow

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
            if pipe is None:
                self.send_lane = None
            else:
                outflow, peer, hwm = self._outflow, pipe.reader, pipe.hwm
                mark = BATCH if outflow is None else outflow.mark
                if peer.inproc or not peer.connected:  # nothing is to be written
                    mark = hwm or _NEVER
                elif 0 < hwm < mark:
                    mark = hwm
                self.send_lane = pipe, pipe.messages, mark
            self.receive_lane = core.receive_lane
        return self.delivered()

    def delivered(self) -> bool:
        """As :meth:`activity`, where messages have come and nothing else has changed."""
        waiting = self._waiting
        if waiting:
            running = self._reactor.running
            if running in waiting and len(waiting) == 1:
                running.done = True  # it is this very thread: let it ask for itself
            else:
                self.waiters.wake()
        return False

    def sent(self, pipe: Pipe, message: Message) -> None:
        """A message was appended to the lane, and the reader sleeps or the queue is long.

        Without the lock.
        """
        with self._lock:
            try:
                if 0 < pipe.hwm <= len(pipe.messages):
                    pipe.mark_full()
                peer = pipe.reader
                if not (peer.connected or peer.inproc):
                    # There is nothing to write to: what is queued goes out after the handshake.
                    pipe.asleep = False
                elif not peer.inproc:
                    outflow = self._outflow or self._first_outflow()
                    mark = outflow.mark
                    outflow.sent(pipe, message)
                    if mark != outflow.mark:
                        self.activity()
                elif pipe.asleep:
                    pipe.reader_signals.append(pipe.reader)
                    pipe.asleep = False
                    self._pump()
            except BaseException:
                self._driver.context.interrupted()
                raise

    def announce(self, topic: bytes) -> None:
        """Publishers are to be told of a subscription: when is decided as for a message. Lock held.

        Args:
            topic: what was (un)subscribed.
        """
        core = self._core
        core.settle()
        if core.links.to_write and not (core.context.changed or self._driver.watched):
            (self._outflow or self._first_outflow()).flush(topic, patient=True)
        else:  # nobody to write to; or a peer of this process, which waits for nothing but this
            self._pump()

    def drained(self, pipe: Pipe) -> None:
        """A message was taken from the lane, which is marked full. Without the lock."""
        if len(pipe.messages) <= pipe.resume_at:
            with self._lock:
                try:
                    pipe.drained()
                    self._pump()
                except BaseException:
                    self._driver.context.interrupted()
                    raise

    def ready(self, wanted: int) -> int:
        """What of POLLIN and POLLOUT would not wait now. Without the lock.

        Args:
            wanted: what is asked for.

        Raises:
            ZMQError: ENOTSOCK, ETERM.
        """
        if wanted == IN:
            lane = self.receive_lane
            if lane is not None and lane.messages:
                return IN
        elif wanted == OUT:
            way = self.send_lane
            if way is not None and not way[0].full:
                return OUT
        with self._lock:
            try:
                return self.waiters.ready(wanted) & wanted
            except ZMQError:
                raise
            except BaseException:  # to look sets aside who has nothing
                self._driver.context.interrupted()
                raise

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
                        self.check(socket, PollEvent.POLLOUT)
                    deadline = self.waiters.wait(OUT, deadline)
                except ZMQError:
                    raise
                except BaseException:
                    self._driver.context.interrupted()
                    raise
                else:
                    try:
                        (self._outflow or self._first_outflow()).flush(message)
                    except BaseException:
                        self._driver.context.interrupted()
                        raise
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
        if self._unread >= _SHARE:
            # A long queue from one peer shall not keep us from reading what others send.
            self._unread = 0
            self._reactor.poll()
        deadline = None
        while True:
            try:
                taken = receive()
            except Again:
                if deadline == OVER:
                    raise
                if deadline is None:
                    option = self._core.options.rcvtimeo
                    if flags or timeout is not None or option is not None:
                        deadline = self.waiters.deadline(flags, timeout, option)
                    else:
                        deadline = FOREVER
                    if not self._sound:
                        self.check(socket, PollEvent.POLLIN)
                deadline = self.waiters.wait(IN, deadline)
                self._unread = 0
            except ZMQError:
                raise
            except BaseException:
                self._driver.context.interrupted()
                raise
            else:
                self._unread += 1
                # It was taken past the lane: tell whoever was stopped by it.
                core, pipe = self._core, self.receive_lane
                if (
                    any(self._stopped or self._find_stopped())
                    or self._driver.watched
                    # The lane closes while a message is received part by part ...
                    or core.receive_lane is not pipe
                    # ... and opens again after its last part, or when a second peer has left.
                    or (pipe is None and core.pattern.receive_lane is not None)
                ):
                    self._pump()
                return taken

    def _find_stopped(self) -> tuple[Collection[object], ...]:
        """Where those stand who may go on when something was received."""
        context = self._core.context
        self._stopped = (
            self._core.links.to_resume, context.writable, context.readable, context.changed,
            self._waiting,
        )  # fmt: skip
        return self._stopped

    def check(self, socket: InsightMethods, event: int) -> None:
        """Warn of a wait that cannot end, until the socket was once seen to be sound. Lock held.

        Args:
            socket: who is about to wait.
            event: for what: POLLIN, POLLOUT or both.
        """
        if self._sound:
            return
        socket._warn_before_waiting(event)
        core = self._core
        self._sound = bool(core.links.peers) and (
            core.type != SocketType.SUB or core.pattern.topics_count() > 0
        )

    def mend(self) -> None:
        """A callback may have been lost: see ``io.mending``. Lock held."""
        if self._outflow is not None:
            self._outflow.mend()
        self.waiters.wake_all()

    def end(self) -> None:
        """The socket has been closed: no lane, and nothing to wait for. Lock held."""
        self.send_lane = self.receive_lane = None
        self.waiters.wake_all()
