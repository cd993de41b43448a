"""An API server's sockets with threads, for readers in any other.

    who asks            sends the request himself                 ──► ROUTER
    zerohop-engines     beats, broken connections, time           ◄── ROUTER, its monitor
    zerohop-outputs     outputs, for all; wakes who waits         ◄── PULL

Outputs have a thread and a Context of their own: to wait for one socket, and drive it, is much
cheaper than to wait for several, and it is what a token costs.

What the threads look at and change is under a lock, which is held for a message or a turn. It is a
bare RLock, and who waits does so at a bare lock: an interrupt (Ctrl-C) may come between any two
calls of Python, and those of a Condition would leave it half taken. Streams that are dropped,
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from zerohop.serving.engine.roster import Member
    from zerohop.serving.engine.streams import OpenStream

__all__ = ["ChannelThread", "Gate"]

_LOOK_EVERY = 1.0  # seconds: a signal that comes just before a wait does not end it
_SLICE = 100  # outputs that are read before those who wait for them are woken
_LISTEN_FOR = 0.001  # seconds of a turn in which is listened for who seems late


class Gate:
    """What one thread waits at, until another one opens it.

    Attributes:
        is_waited: a thread is there.
    """

    __slots__ = ("_lock", "is_waited")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()
        self.is_waited = False

    def open(self) -> None:
        """Let one thread pass, now or when it comes. Channel held."""
        if self._lock.locked():
            self._lock.release()

    def wait(self) -> None:
        """Wait for that, or for a second: the caller looks whether it is so."""
        self._lock.acquire(timeout=_LOOK_EVERY)

    def wait_until(self, over: float | None) -> bool:
        """Likewise, and not longer than until then; return whether there is time left."""
        left = _LOOK_EVERY if over is None else over - time.monotonic()
        return self._lock.acquire(timeout=max(0.0, min(left, _LOOK_EVERY))) or left > 0


class ChannelThread(Channel, ActorThread):
    """A channel that is read by threads of its own.

    Attributes:
        arrivals: gates of those who wait for engines.
        left: streams that nobody reads any more, to be aborted.
    """

    _name = "zerohop-engines"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._pid = os.getpid()
        self.arrivals: set[Gate] = set()
        self.left: deque[OpenStream] = deque()
        self._breaking: deque[tuple[float, Identity, int | None]] = deque()
        self._turns = 0  # in which it was listened for who is late
        self._sleeps_until = 0.0
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
        reads = threading.Thread(target=self._read_outputs, name="zerohop-outputs", daemon=True)
        self._reads = reads
        super()._start()
        reads.start()

    def _run(self) -> None:
        try:
            super()._run()
        finally:
            self._outputs.destroy()

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
        return self._lock

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
            stream.waiter.open()  # another thread may wait for it

    def abandon_left(self, now: float) -> None:
        """Abort what was left. Channel held."""
        left = self.left
        while left:
            self.exchange.abandon(left[0], now)  # once more is no fault, never would be one
            left.popleft()

    def wake_for(self, seconds: float | None, now: float) -> None:
        """A request was opened: there may be something to do sooner. Channel held."""
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

    def _read_outputs(self) -> None:
        """What the second thread does."""
        poll, receive, take = self._pull.poll, self._pull.recv_multipart, self.exchange.take_outputs
        try:
            while True:
                poll()
                with self._lock:  # all that is not taken can be seen in the PULL
                    now = time.monotonic()
                    with contextlib.suppress(zmq.Again):
                        take(receive(timeout=0), now)
                        self._settle(now)  # before it is looked for more: they have waited
                        for _ in range(_SLICE):
                            take(receive(timeout=0), now)
                    self.abandon_left(now)
                    self._settle(now)
                    self._wake_to_abort(now)
        except zmq.ZMQError:
            if not self._pull.closed:
                raise
        finally:
            self._is_closed = True  # also where it fails: somebody may be waiting for it
            self._wake()

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
        for gate in self.arrivals:
            gate.open()

    def _settle(self, now: float) -> None:
        """Do what the exchange has to be done."""
        exchange = self.exchange
        exchange.give(now)
        if exchange.to_say or exchange.remarks:
            self._speak()
        if exchange.aborts:
            self._send_aborts()
        for stream in exchange.woken:
            stream.waiter.open()
        exchange.woken.clear()
        for call in exchange.answered:
            call.waiter.open()
        exchange.answered.clear()
        if exchange.has_joined:
            exchange.has_joined = False
            for gate in self.arrivals:
                gate.open()
