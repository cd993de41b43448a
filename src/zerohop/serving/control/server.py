"""A control server in threads: one that receives and replies, and a few that carry out.

    zerohop-control      ROUTER: registration, heartbeats, batches, PING; never does a user's work
    zerohop-handlers     the handlers of the user's operations

The sockets are safe to use from several threads, so whoever has something to say sends it; a lock
is about what is decided, and is held while it is sent, so that it leaves in that order.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from functools import partial

import zerohop as zmq
from zerohop.serving.control.exchange import Exchange
from zerohop.serving.control.hands import Hands, call_in_thread
from zerohop.serving.control.membership import Membership
from zerohop.serving.control.protocol import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Any, Self

    from zerohop.serving.control.membership import ControlEvent, MembershipOptions, WorkerView
    from zerohop.serving.control.protocol import Call, Complaint

__all__ = ["RouterThread", "SyncControlServer"]

_log = logging.getLogger(__name__)
_SLICE = 100  # messages that are received before the lock is let go
CONTROL = Protocol("zerohop-control")


class RouterThread:
    """Serves one exchange on a ROUTER.

    Args:
        endpoint: to bind.
        exchange: what is made of what comes.
        threads: how many carry out the user's handlers.

    Attributes:
        endpoint: where it is bound.
        changed: notified after each change; its lock is the exchange's.

    Raises:
        ZMQError: the endpoint can't be bound.
    """

    def __init__(self, endpoint: str, exchange: Exchange, threads: int = 1) -> None:
        self._exchange = exchange
        self.changed = threading.Condition()
        self.is_closed = False
        self._context = zmq.Context()
        try:
            self._router = self._context.socket(zmq.ROUTER)
            self._router.linger = 0
            self._router.ipv6 = "[" in endpoint
            self._router.bind(endpoint)
            self.endpoint: str = self._router.last_endpoint.decode()
            self._stopper = self._context.socket(zmq.PAIR)
            self._stopper.bind("inproc://stop")
            self._stopped = self._context.socket(zmq.PAIR)
            self._stopped.connect("inproc://stop")
        except BaseException:
            self._context.destroy(linger=0)
            raise
        self._hands = Hands(threads, "zerohop-handlers")
        self._thread = threading.Thread(target=self._run, name="zerohop-control", daemon=True)
        self._thread.start()

    def pump(self) -> None:
        """Send what the exchange has to say, log, and wake who waits. The lock is held."""
        for frames in self._exchange.data_to_send():
            with contextlib.suppress(zmq.ZMQError):  # it is asked for again, or nobody is there
                self._router.send_multipart(frames, zmq.DONTWAIT)
        for line in self._exchange.lines_to_log():
            _log.warning("%s", line)
        self.changed.notify_all()

    def close(self, timeout: float | None) -> None:
        """Serve no more.

        Args:
            timeout: seconds for the handlers that are at work; ``None``: without limit.
        """
        with self.changed:
            if self.is_closed:
                return
            self.is_closed = True
            self.changed.notify_all()
        self._stopper.send(b"")
        self._thread.join()
        self._hands.close(timeout)
        self._router.close()
        self._stopper.close()
        self._context.term()

    def _run(self) -> None:
        poller = zmq.Poller()
        poller.register(self._router, zmq.POLLIN)
        poller.register(self._stopped, zmq.POLLIN)
        membership = self._exchange.membership
        while True:
            ready = dict(poller.poll(self._milliseconds()))
            if self._stopped in ready:
                break
            with self.changed:
                now = time.monotonic()
                for _ in range(_SLICE):
                    try:
                        frames = self._router.recv_multipart(zmq.DONTWAIT)
                    except zmq.Again:
                        break
                    found = self._exchange.receive(frames, now)
                    if found is not None:
                        self._hands.give(partial(self._carry_out, *found))
                if membership is not None:
                    membership.handle_deadline(now)
                self.pump()
        self._stopped.close()

    def _milliseconds(self) -> float | None:
        membership = self._exchange.membership
        if membership is None:
            return None
        with self.changed:
            deadline = membership.next_deadline()
        return None if deadline is None else max(deadline - time.monotonic(), 0.0) * 1000 + 1

    def _carry_out(self, route: bytes, call: Call) -> None:
        try:
            result = call_in_thread(call.handler, call.arguments)
        except BaseException as error:  # noqa: BLE001 - SystemExit, too, ends nothing but the call
            with self.changed:
                self._exchange.fail(route, call, error, time.monotonic())
                self.pump()
            return
        with self.changed:
            self._exchange.answer(route, call, result, time.monotonic())
            self.pump()


class SyncControlServer:
    """Keeps the table of the workers, and carries out a protocol's operations.

        with SyncControlServer("tcp://127.0.0.1:*") as server:
            while (event := server.receive(timeout=1.0)) is not None:
                ...

    Args:
        endpoint: to bind; the default is a free port of the loopback.
        protocol: what it does besides; PING is always there.
        handlers: who carries out the protocol's operations, by name; in threads of their own.
        options: times and limits of the table of workers.
        threads: how many carry out the handlers.

    Attributes:
        endpoint: where it is bound.
        boot: octets that are another in each server.

    Raises:
        MissingHandlers: an operation of the protocol has no handler.
        ValueError: a handler that the protocol does not name, or that is the channel's own.
        TypeError: a handler cannot take the arguments of its operation.
        ZMQError: the endpoint can't be bound.
    """

    def __init__(
        self,
        endpoint: str = "tcp://127.0.0.1:*",
        *,
        protocol: Protocol = CONTROL,
        handlers: Mapping[str, Callable[..., Any]] | None = None,
        options: MembershipOptions | None = None,
        threads: int = 1,
    ) -> None:
        self._membership = Membership(os.urandom(16), options)
        self._exchange = Exchange(protocol, handlers or {}, self._membership)
        self._router = RouterThread(endpoint, self._exchange, threads)
        self.endpoint, self.boot = self._router.endpoint, self._membership.boot

    @property
    def counts(self) -> Counter[Complaint]:
        """What was wrong with requests, and how often."""
        with self._router.changed:
            return self._exchange.counts.copy()

    def workers(self) -> list[str]:
        """Return the names of those who are here."""
        with self._router.changed:
            return self._membership.workers()

    def view(self, worker: str) -> WorkerView | None:
        """Return what is known of a worker; ``None``: it is gone."""
        with self._router.changed:
            return self._membership.view(worker)

    def command(self, worker: str, name: str, *arguments: Any) -> int:
        """Tell a worker to do something.

        Returns:
            The id of the command; its end is an event.

        Raises:
            KeyError: the worker is not here.
            Unencodable: an argument has no form on the wire, or is too large.
        """
        with self._router.changed:
            command = self._membership.command(worker, name, list(arguments))
            self._router.pump()
            return command

    def receive(self, timeout: float | None = None) -> ControlEvent | None:
        """Wait for the next event.

        Somebody has to read them: while ``max_events`` of them wait, no batch is taken.

        Args:
            timeout: seconds; ``None``: without limit.

        Returns:
            The event, or ``None``: the time has run out, or the server is closed.
        """
        changed, found = self._router.changed, self._membership.next_event
        with changed:
            event = found()
            if event is None:
                give_up = None if timeout is None else time.monotonic() + timeout
                while event is None and not self._router.is_closed:
                    left = None if give_up is None else give_up - time.monotonic()
                    if left is not None and left <= 0:
                        break
                    changed.wait(left)
                    event = found()
            return event

    def close(self, timeout: float | None = 5.0) -> None:
        """Serve no more; the workers keep asking, and register with the next server.

        Args:
            timeout: seconds for the handlers that are at work, after which they are left to
                themselves; ``None``: without limit.
        """
        self._router.close(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
