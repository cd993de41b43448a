"""When what a blocking socket has sent is written: the first message at once, the rest together.

A message for a peer that is idle is written by the call that sends it. A program that goes on
sending without waiting for anything would pay a system call a message; so after a few of them
(``_AT_ONCE``), each soon after the last (``_MOMENT``), messages stay in the pipe until

* there are 64 KiB of them: the sender writes them, or
* the program waits for anything, or tries to (:meth:`Reactor.wait`, :meth:`Reactor.poll`), or
* the helper thread comes to it: at once, but at most once a ``_TICK``, for each of its visits
  takes the interpreter from the program that sends (subscriptions: after ``_PATIENCE``).

A program that answers many at once and then waits for more, again and again, needs no helper: if
it has come to wait before the helper, and soon after the time before (``_OFTEN``), only the first
message is written at once, and the helper is not called: while that goes on it looks by itself
every few milliseconds, and writes what is a ``_TICK`` late because the program did not wait.

A sender that fills 64 KiB on its lane again and again is a *stream*. Its pipe is not put to sleep
when it has been emptied, for then the next message would be the first of a batch, and written
alone; it is looked at every ``_TICK`` until it rests, or nothing more can be written.
"""

from __future__ import annotations

from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from zerohop.core.socket import SocketCore
    from zerohop.io.reactor import Reactor
    from zerohop.patterns.pipe import Message, Pipe

_MOMENT = 50e-6  # seconds without a message that end a batch; a system call takes 10 to 20
# So does the time that writing takes, if that is longer (to 64 peers: half a millisecond), or a
# publisher would write each message by itself for ever.
_AT_ONCE = 4  # messages; a client that sends a few requests and then waits never leaves this
_TICK = 1e-3  # seconds
_PATIENCE = 10e-3  # seconds, for subscriptions; to wait for one is to wait, which writes it
_OFTEN = 5e-3  # seconds; to look so often costs the helper less than to be called for each burst
_BATCH_SIZE = 64 * 1024  # octets: as much as is worth a write
BATCH = 1000
"""Messages a batch, at first and at most: as much as libzmq's default high-water mark."""

_SMALLEST_BATCH = 4
_OVERHEAD = 64  # octets: what a message costs besides its own, so that empty ones count, too


class Outflow:
    """Decides for one socket. Every method is called with the lock held.

    Args:
        core: the socket's.
        pump: makes the driver write what the core has.
        write_alone: likewise, if that is a single message and nobody waits; returns whether it is.
        waiting: who waits in the socket.
        reactor: of the socket's Context.
        at_once: never wait: the driver is on a loop that is not the reactor.

    Attributes:
        mark: at how many messages in its lane a sender shall call :meth:`sent`.
    """

    __slots__ = (
        "_at_once", "_core", "_count", "_helped", "_last", "_moment", "_pending", "_pump",
        "_reactor", "_scheduled", "_stream", "_streamed", "_visits", "_waited", "_waiting",
        "_waits", "_write_alone", "mark",
    )  # fmt: skip

    def __init__(
        self,
        core: SocketCore,
        pump: Callable[[], None],
        write_alone: Callable[[], bool],
        waiting: Collection[object],
        reactor: Reactor,
        at_once: bool,
    ) -> None:
        self._core = core
        self._pump = pump
        self._write_alone = write_alone
        self._waiting = waiting
        self._reactor = reactor
        self._at_once = at_once
        self.mark = BATCH
        self._count = 0  # messages written at once, one after another
        self._last = 0.0  # when the last of them was, or had been written
        self._moment = _MOMENT
        self._visits = 0  # the reactor's, then
        self._pending = 0  # octets sent and left to be written later
        self._scheduled = False  # the helper will come
        self._waited = 0.0  # when the program came to wait, the last time that anything was left
        self._waits = False  # it does so often, and was quicker than the helper
        self._helped = 0.0  # when it came last
        self._stream: Pipe | None = None  # awake though empty
        self._streamed = False  # since the last tick

    def sent(self, pipe: Pipe, message: Message) -> None:
        """A message was put into the lane's pipe, and it sleeps or is longer than ``mark``."""
        if pipe.asleep:
            _signal(pipe)
            self.flush(message, full=pipe.full)
            return
        self._choose_mark(_size(message))
        _signal(pipe)
        self._pump()
        left = len(pipe.messages)
        if left >= self.mark:  # the kernel is full: nothing to do until the pipe is, too
            self.mark = left + BATCH
        elif pipe.asleep and self._stream in (None, pipe):
            # Not while another is the stream, which may have much to write after disconnect(): only
            # one is looked at.
            pipe.asleep = False
            self._streamed = True
            if self._stream is None:
                # First of all _stream: a signal handler may wait for something, and be called back
                # before call_at() has returned. (If it raises, mend() will come.)
                self._stream = pipe
                self._reactor.unwritten[self] = None
                self._reactor.call_at(monotonic() + _TICK, self._on_tick)

    def flush(self, message: Message, *, full: bool = False, patient: bool = False) -> None:
        """A message was given to the core: write it, now or together with what may follow soon.

        Args:
            message: to see how large it is.
            full: the next one would have to wait.
            patient: a subscription, of which there may be thousands: only a longer pause ends their
                batch, and the helper comes later, and seldom. Each of its visits would take longer
                than what it writes.
        """
        reactor = self._reactor
        if self._stream is not None:
            _signal(self._stream)  # it looks awake to whoever appends past the lane
        elif (
            reactor.visits != self._visits
            and not (self._scheduled or self._waiting or self._at_once)
            and self._write_alone()
        ):
            # The program has waited since the last one, so this is the first: a request, an answer.
            self._visits, self._count, self._moment = reactor.visits, 1, _MOMENT
            self._last = monotonic()
            return
        size = _size(message)
        self._pending += size + _OVERHEAD
        full = full or self._pending >= _BATCH_SIZE
        inproc = self._core.context.readable  # an inproc reader waits for nothing but this
        if self._scheduled and not (self._waits or full or inproc):
            return
        now = monotonic()
        pause = _TICK if patient else self._moment
        if reactor.visits != self._visits or now - self._last > pause:
            self._visits = reactor.visits
            self._count = 0
        self._last = now
        self._count += 1
        at_once = self._count <= (1 if self._waits else _AT_ONCE)
        if at_once or full or inproc or self._at_once:
            self._pending = 0
            if self._waiting or self._at_once or not self._write_alone():
                self._pump()
            self._last = monotonic()
            self._moment = min(max(self._last - now, _MOMENT), _TICK)
        elif not self._scheduled:
            self._choose_mark(size)
            self._scheduled = True  # before it is: as with _stream
            reactor.unwritten[self] = None
            if self._waits:
                reactor.call_by(now + _TICK, self._on_help)
            elif patient:
                reactor.call_at(now + _PATIENCE, self._on_help)
            elif now - self._helped > _TICK:
                reactor.call_soon(self._on_help)
            else:
                reactor.call_at(self._helped + _TICK, self._on_help)

    def write_out(self) -> None:
        """The program waits now: write whatever there is."""
        stream = self._stream
        # Of a publisher's stream it may be handed out, and then stands in to_flush.
        if stream is not None and (stream.messages or self._core.links.to_flush):
            _signal(stream)
            self._pump()
            stream.asleep = False
        elif self._pending:
            before, self._waited = self._waited, monotonic()
            self._waits = self._waited - before < _OFTEN
            self._pending = 0
            self._pump()

    def mend(self) -> None:
        """Begin anew: what was to come later may not come, and the driver writes all there is."""
        self._reactor.unwritten.pop(self, None)
        self._scheduled = False
        self._pending = 0
        self._stream = None

    def _choose_mark(self, size: int) -> None:
        """So many messages of this size are a batch."""
        self.mark = min(max(_BATCH_SIZE // (size + _OVERHEAD // 8), _SMALLEST_BATCH), BATCH)

    def _on_help(self) -> None:
        self._scheduled = False
        if self._stream is None:
            self._reactor.unwritten.pop(self, None)
        if self._pending:
            self._waits = False
            self._helped = monotonic()
            self._moment = max(self._moment / 2, _MOMENT)  # or one long write would be for ever
            self._pending = 0
            self._pump()
            # What was sent meanwhile has looked at no clock: a batch that goes on is no new one.
            self._last = monotonic()

    def _on_tick(self) -> None:
        pipe = self._stream
        if pipe is None:  # mended meanwhile
            return
        streamed, self._streamed = self._streamed, False
        if streamed or pipe.messages:
            self.write_out()
            if streamed or not pipe.messages:
                self._reactor.call_at(monotonic() + _TICK, self._on_tick)
                return
            # The kernel is full, or nobody is there: the driver goes on when that changes.
        self._stream = None
        if not self._scheduled:
            self._reactor.unwritten.pop(self, None)
        if not pipe.sleep():
            _signal(pipe)
            self._pump()


def _size(message: Message) -> int:
    """Octets, all parts together."""
    return sum(map(len, message)) if type(message) is list else len(message)


def _signal(pipe: Pipe) -> None:
    """Leave a note that the pipe has messages."""
    pipe.reader_signals.append(pipe.reader)
    pipe.asleep = False
