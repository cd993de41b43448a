"""A control server in threads: one that receives and replies, and a few that carry out.

    zerohop-control      ROUTER: registration, heartbeats, batches, PING; never does a user's work
    zerohop-handlers     the handlers of the user's operations

The sockets are safe to use from several threads, so whoever has something to say sends it; a lock
is about what is decided, and is held while it is sent, so that it leaves in that order.
"""

from __future__ import annotations

import logging
import os
import time
from abc import abstractmethod
from functools import partial

import zerohop as zmq
from zerohop.serving.actor import Actor, ActorThread, bound
from zerohop.serving.arguments import seconds
from zerohop.serving.control.exchange import Exchange
from zerohop.serving.control.hands import Hands, call_in_thread
from zerohop.serving.control.membership import Membership
from zerohop.serving.control.protocol import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Mapping
    from typing import Any

    from zerohop.serving.control.events import ControlEvent, WorkerView
    from zerohop.serving.control.membership import MembershipOptions
    from zerohop.serving.control.protocol import Call, Complaint

__all__ = ["Keeping", "RouterThread", "Routing", "SyncControlServer"]

_log = logging.getLogger(__name__)
CONTROL = Protocol("zerohop-control")


class Routing(Actor):
    """Serves one exchange on a ROUTER, whoever waits for it.

    Args:
        endpoint: to bind.
        exchange: what is made of what comes.

    Attributes:
        endpoint: where it is bound.

    Raises:
        ZMQError: the endpoint can't be bound.
    """

    _name = "zerohop-control"

    def __init__(self, endpoint: str, exchange: Exchange) -> None:
        super().__init__()
        self._exchange = exchange
        with self._starting():
            router = self._context.socket(zmq.ROUTER)
            router.linger = 500  # for what the last handlers replied
            self._router = bound(router, endpoint)
            self.endpoint: str = self._router.last_endpoint.decode()
            self._listen(self._router, self._take)

    @property
    def counts(self) -> Counter[Complaint]:
        """What was wrong with requests, and how often."""
        with self._lock:
            return self._exchange.counts.copy()

    @abstractmethod
    def _give(self, route: bytes, call: Call) -> None:
        """Have a handler called, and its result sent."""

    def _take(self, frames: list[bytes], now: float) -> None:
        found = self._exchange.receive(frames, now)
        if found is not None:
            self._give(*found)

    def _turn(self, now: float) -> float | None:
        membership = self._exchange.membership
        if membership is not None:
            membership.handle_deadline(now)
        self._pump()
        return None if membership is None else membership.next_deadline()

    def _pump(self) -> None:
        """Send what the exchange has to say, and log. The lock is held."""
        for frames in self._exchange.data_to_send():
            self._send(self._router, frames)
        for line in self._exchange.lines_to_log():
            _log.warning("%s", line)


class Keeping(Actor):
    """What is known of a server's workers."""

    _membership: Membership

    @property
    def boot(self) -> bytes:
        """Octets that are another in each server."""
        return self._membership.boot

    def workers(self) -> list[str]:
        """Return the names of those who are here."""
        with self._lock:
            return self._membership.workers()

    def view(self, worker: str) -> WorkerView | None:
        """Return what is known of a worker; ``None``: it is gone."""
        with self._lock:
            return self._membership.view(worker)


class RouterThread(Routing, ActorThread):
    """Serves one exchange in threads.

    Args:
        endpoint: to bind.
        exchange: what is made of what comes.
        threads: how many carry out the user's handlers.
    """

    def __init__(self, endpoint: str, exchange: Exchange, threads: int) -> None:
        self._hands = Hands(threads, "zerohop-handlers")
        super().__init__(endpoint, exchange)

    def close(self, timeout: float | None = 5.0) -> None:
        """Serve no more; the workers keep asking, and register with the next server.

        Args:
            timeout: seconds for the handlers that are at work, after which they are left to
                themselves; ``None``: without limit.

        Raises:
            TypeError, ValueError: the timeout is no time; nothing has ended.
        """
        self._hands.close(timeout)
        super().close()

    def _give(self, route: bytes, call: Call) -> None:
        self._hands.give(partial(self._carry_out, route, call))

    def _carry_out(self, route: bytes, call: Call) -> None:
        try:
            result = call_in_thread(call.handler, call.arguments)
        except BaseException as error:  # noqa: BLE001 - SystemExit, too, ends nothing but the call
            with self._changed:
                self._exchange.fail(route, call, error, time.monotonic())
                self._pump()
            return
        with self._changed:
            self._exchange.answer(route, call, result, time.monotonic())
            self._pump()


class SyncControlServer(Keeping, RouterThread):
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

    Raises:
        MissingHandlers: an operation of the protocol has no handler.
        ValueError: a handler that the protocol does not name, or that is the channel's own; 0
            threads.
        TypeError: a handler cannot take the arguments of its operation; an argument is of another
            kind.
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
        exchange = Exchange(protocol, handlers or {}, self._membership)
        super().__init__(endpoint, exchange, threads)

    def command(self, worker: str, name: str, *arguments: Any) -> int:
        """Tell a worker to do something.

        Args:
            worker: its name.
            name: of one of its commands.
            arguments: what its handler is called with.

        Returns:
            The id of the command; its end is an event.

        Raises:
            KeyError: the worker is not here.
            Unencodable: an argument has no form on the wire, or is too large.
        """
        with self._changed:
            command = self._membership.command(worker, name, list(arguments))
            self._pump()
            return command

    def receive(self, timeout: float | None = None) -> ControlEvent | None:
        """Wait for the next event.

        Somebody has to read them: while ``max_events`` of them wait, no batch is taken.

        Args:
            timeout: seconds; ``None``: without limit.

        Returns:
            The event, or ``None``: the time has run out, or the server is closed.

        Raises:
            TypeError, ValueError: the timeout is no time.
        """
        found = self._membership.next_event
        given = None if timeout is None else seconds("timeout", timeout)
        with self._changed:
            event = found()
            if event is None:
                give_up = None if given is None else time.monotonic() + given
                while event is None and not self._is_closed:
                    left = None if give_up is None else give_up - time.monotonic()
                    if left is not None and left <= 0:
                        break
                    self._changed.wait(left)
                    event = found()
            return event
