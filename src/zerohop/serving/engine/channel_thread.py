"""An API server's sockets with threads, for readers in any other.

    who asks            sends the request himself                 ──► ROUTER
    who waits           reads outputs, for all                    ◄── PULL
    zerohop-outputs     likewise, while nobody waits (readers)
    zerohop-engines     beats, broken connections, time           ◄── ROUTER, its monitor

What they look at and change is under a lock, which is held for a message or a turn. It is a bare
RLock, and who waits does so at a bare lock: an interrupt (Ctrl-C) may come between any two calls of
Python, and those of a Condition would leave it half taken. One that comes while outputs are taken
leaves it unknown how far that was: the engines are asked to join anew. Streams that are dropped,
perhaps by a garbage collection in the middle of all this, are only noted, and aborted in the next
turn.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from typing import Any

import zerohop as zmq
from zerohop.serving.actor import ActorThread
from zerohop.serving.engine.channel import (
    ABORT_AGAIN,
    LAST_OUTPUTS,
    LISTEN,
    LISTEN_LONGEST,
    Channel,
)
from zerohop.serving.engine.handshake import Identity
from zerohop.serving.engine.readers import Gate, Readers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from zerohop.serving.engine.roster import Member
    from zerohop.serving.engine.streams import OpenStream

__all__ = ["ChannelThread"]

_SLICE = 100  # outputs that are read before those who wait for them are woken
_LISTEN_FOR = 0.001  # seconds of a turn in which is listened for who seems late


class ChannelThread(Channel, ActorThread):
    """A channel for any threads.

    Attributes:
        arrivals: gates of those who wait for engines.
        left: streams that nobody reads any more, to be aborted.
        readers: who reads outputs.
    """

    _name = "zerohop-engines"
    _lock: Any  # an RLock

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._pid = os.getpid()
        self.arrivals: set[Gate] = set()
        self.left: deque[OpenStream] = deque()
        self._breaking: deque[tuple[float, Identity, int | None]] = deque()
        self._turns = 0  # in which it was listened for who is late
        self._sleeps_until = 0.0
        self._is_taking = False  # outputs; under the lock, unless it was interrupted
        self._outputs = zmq.Context()
        try:
            super().__init__(*arguments, **options)
        except BaseException:
            self._outputs.destroy(linger=0)
            raise

    def _outputs_context(self) -> zmq.Context:
        return self._outputs

    def _start(self) -> None:
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._records = self._router.monitor_records(zmq.EVENT_DISCONNECTED, timeout=0)
        broken = self._router.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        self._listen(broken, lambda _, now: self._take_records(now))
        self._listen(self._router, self.exchange.take_control)
        self.readers = Readers(self._outputs, self._pull, self._take_outputs)
        self._reads = threading.Thread(target=self._read, name="zerohop-outputs", daemon=True)
        super()._start()
        self._reads.start()

    def _run(self) -> None:
        try:
            super()._run()
        finally:
            self.readers.end()
            self._outputs.destroy()

    def _read(self) -> None:
        """What the second thread does."""
        try:
            self.readers.run()
        except zmq.ZMQError:
            if not self._pull.closed:
                raise
        finally:
            self._is_closed = True  # also where it fails: somebody may be waiting for it
            self._wake()

    def close(self, timeout: float | None = None) -> None:
        """Say goodbye to the engines and end; what is open ends as ``EngineDead``.

        In a forked child nothing is done: the sockets are the parent's.
        """
        if os.getpid() == self._pid:
            super().close(timeout)
            self._reads.join(timeout)

    def held(self) -> AbstractContextManager[Any]:
        """Return the lock.

        Raises:
            RuntimeError: this is a forked child. The thread is in the parent, and may have had the
                lock.
        """
        if os.getpid() != self._pid:
            raise RuntimeError(
                f"this SyncEngineClient is of process {self._pid}, of which this is a forked "
                "child; make another one here"
            )
        lock: AbstractContextManager[Any] = self._lock
        return lock

    def check_open(self) -> None:
        """Raise RuntimeError where nobody reads any more."""
        if self._is_closed:
            raise RuntimeError("the channel to the engines was closed")

    def leave(self, stream: OpenStream) -> None:
        """Nobody reads it any more."""
        if stream.ended or os.getpid() != self._pid:
            return
        self.left.append(stream)
        with self._lock:
            if not self._is_closed:
                now = time.monotonic()
                self.abandon_left(now)
                self._send_aborts()
                self._wake_to_abort(now)
            self.readers.open(stream.waiter)  # another thread may wait for it

    def wait(self, gate: Gate, over: float | None = None) -> bool:
        """Wait for what opens a gate, or for a second; return whether there is time left.

        Args:
            gate: of this thread.
            over: until then, at most.

        Raises:
            RuntimeError: nobody reads any more; or who waits has interrupted this very thread where
                it has the lock: nobody could read before it is done.
        """
        if self._lock._is_owned():
            raise RuntimeError(
                "a signal's handler, or a finalizer, has interrupted this client at its work, and "
                "can't wait for engines here; ask from another thread"
            )
        try:
            return self.readers.wait(gate, over)
        except zmq.ZMQError:
            if not self._is_closed:
                raise
            return True  # who waits finds what has ended
        except BaseException:
            if self._is_taking:
                self._wake()  # or the others would wait for what is lost
            raise

    def abandon_left(self, now: float) -> None:
        """Abort what was left. Within :meth:`held`."""
        left = self.left
        while left:
            self.exchange.abandon(left[0], now)  # once more is no fault, never would be one
            left.popleft()

    def wake_for(self, seconds: float | None, now: float) -> None:
        """A request was opened: there may be something to do sooner. Within :meth:`held`."""
        soonest = self._hung_after if seconds is None else min(self._hung_after, seconds)
        if now + soonest < self._sleeps_until:
            self._wake()

    def _wake_to_abort(self, now: float) -> None:
        """Have aborts said later for which there is no room now."""
        if self.exchange.aborts and now + ABORT_AGAIN < self._sleeps_until:
            self._wake()

    # What is said to engines

    def _post(self, member: Member, message: list[Any], *, copy: bool) -> None:
        self._router.send_multipart(message, copy=copy, timeout=0)

    def _say(self, routing_id: bytes, message: Any) -> bool:
        try:
            self._router.send_multipart([routing_id, *self._encoder.frames(message)], timeout=0)
        except zmq.ZMQError:
            return False
        return True

    # What comes

    def _take_outputs(self) -> None:
        """Take the outputs that are here, for all who wait."""
        receive, take = self._pull.recv_multipart, self.exchange.take_outputs
        with self._lock:  # all that is not taken can be seen in the PULL
            now = time.monotonic()
            if self._is_taking:
                self._begin_anew(now)
            self._is_taking = True
            with contextlib.suppress(zmq.Again):
                for count in range(_SLICE):
                    frames = receive(timeout=0)
                    if frames[0] != self.readers.nudge:
                        take(frames, now)
                    if not count:
                        self._settle(now)  # before it is looked for more: they have waited
            self.abandon_left(now)
            self._settle(now)
            self._is_taking = False
            self._wake_to_abort(now)

    def _begin_anew(self, now: float) -> None:
        """Outputs were being taken when a signal's handler raised."""
        self.exchange.begin_anew("a signal interrupted the reading of its outputs")
        self._is_taking = False  # not before: another one may come
        self._settle(now)

    def _take_records(self, now: float) -> None:
        """A connection that broke is the end of its engine, once its last outputs are here."""
        with contextlib.suppress(zmq.Again):
            for record in self._records:
                identity = Identity.of(record.routing_id)
                if identity is not None:
                    self.exchange.broke(identity)
                    self._breaking.append((now + LAST_OUTPUTS, identity, None))

    def _turn(self, now: float) -> float | None:
        exchange = self.exchange
        if self._is_taking:
            self._begin_anew(now)
        self.abandon_left(now)
        while self._breaking and self._breaking[0][0] <= now:
            _, identity, seq = self._breaking.popleft()
            seen = exchange.lose(identity, seq, has_more=bool(self._pull.poll(0)))
            if seen is not None:
                self._breaking.append((now + LAST_OUTPUTS, identity, seen))
        is_listening = self._mind_time(now)
        self._settle(now)
        deadlines = [exchange.next_deadline(), *(at for at, *_ in [*self._breaking][:1])]
        if is_listening:
            deadlines = [now + _LISTEN_FOR]
        if exchange.aborts:
            deadlines.append(now + ABORT_AGAIN)
        deadline = min((each for each in deadlines if each is not None), default=None)
        self._sleeps_until = float("inf") if deadline is None else deadline
        return deadline

    def _mind_time(self, now: float) -> bool:
        """Something may be late; or these threads stood still, and what has come waits.

        Returns:
            Whether it is to be listened for longer.
        """
        deadline = self.exchange.next_deadline()
        if deadline is None or now < deadline:
            self._turns = 0
            return False
        if self._turns < LISTEN or (self._pull.poll(0) and self._turns < LISTEN_LONGEST):
            self._turns += 1
            return True
        self._turns = 0
        self.exchange.handle_deadline(now)
        return False

    def _leave(self) -> None:
        self.exchange.leave()
        for gate in list(self.arrivals):
            self.readers.open(gate)

    def _settle(self, now: float) -> None:
        """Do what the exchange has to be done."""
        exchange = self.exchange
        exchange.give(now)
        if exchange.to_say or exchange.remarks:
            self._speak()
        if exchange.aborts:
            self._send_aborts()
        for stream in exchange.woken:
            self.readers.open(stream.waiter)
        for call in exchange.answered:
            self.readers.open(call.waiter)
        exchange.woken.clear()
        exchange.answered.clear()
        if exchange.has_joined:
            exchange.has_joined = False
            for gate in list(self.arrivals):
                self.readers.open(gate)
