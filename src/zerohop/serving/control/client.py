"""A worker of a control server, and who asks one for its operations, in threads.

    zerohop-worker       DEALER: registers, beats, sends batches; never does a user's work
    zerohop-commands     carries out the worker's commands, one after the other

The DEALER is ``immediate``: what cannot leave now is thrown away, not kept for later, since the
session says it again; so a server that comes back is not met by what was said while it was away.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from functools import partial
from itertools import count

import zerohop as zmq
from zerohop.serving.control.hands import Hands, call_in_thread
from zerohop.serving.control.lmcache.frames import encode_call, parse_reply, result_of
from zerohop.serving.control.messages import Registration
from zerohop.serving.control.session import WorkerSession
from zerohop.serving.control.values import words_for
from zerohop.serving.errors import Malformed, NoAnswer, RequestRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType
    from typing import Any, Self

    from zerohop.serving.control.lmcache.frames import Operation
    from zerohop.serving.control.messages import Command, Key
    from zerohop.serving.control.session import SessionState

__all__ = ["SyncControlClient", "SyncControlWorker", "error_of", "handler_of", "jitters"]

_SLICE = 100  # messages that are received before the lock is let go


def jitters() -> Iterator[float]:
    """Return numbers between 0 and 1 without end."""
    while True:
        yield random.random()  # noqa: S311 - it scatters, it keeps no secret


def handler_of(handlers: Mapping[str, Callable[..., Any]], command: Command) -> Callable[..., Any]:
    """Return who carries out a command.

    Raises:
        RequestRefused: nobody.
    """
    handler = handlers.get(command.name)
    if handler is None:
        known = ", ".join(sorted(map(str, handlers))) or "none"
        reason = f"this worker has no command {command.name!r}; it has: {known}"
        raise RequestRefused(command.name, reason)
    return handler


def error_of(failure: BaseException) -> str:
    """Return what the outcome of a command says where it was not carried out."""
    return failure.reason if isinstance(failure, RequestRefused) else words_for(failure)


class SyncControlWorker:
    """Registers with a control server, and keeps its copy of a table right.

        with SyncControlWorker(endpoint, "decode-3", offers={"slots": 8}) as worker:
            worker.put("model", "tiny")

    It goes on in a thread of its own, whatever happens to the server.

    Args:
        endpoint: of the server.
        worker: its name, the same after a restart.
        offers: what it offers.
        commands: what it can be told to do, by name; carried out in a thread of their own.
        patience: seconds without a reply, after which a question is asked again.

    Attributes:
        boot: octets that are another in each worker.

    Raises:
        Unencodable: something in what it offers has no form on the wire.
        ZMQError: the endpoint can't be connected.
    """

    def __init__(
        self,
        endpoint: str,
        worker: str,
        *,
        offers: dict[str, Any] | None = None,
        commands: Mapping[str, Callable[..., Any]] | None = None,
        patience: float = 2.0,
    ) -> None:
        self.boot = os.urandom(16)
        registration = Registration(worker, self.boot, offers=offers or {})
        self._session = WorkerSession(registration, jitters(), patience)
        self._commands = commands or {}
        self._changed = threading.Condition()
        self._is_closed = False
        self._context = zmq.Context()
        try:
            self._dealer = self._context.socket(zmq.DEALER)
            self._dealer.linger = 0
            self._dealer.immediate = True
            self._dealer.ipv6 = "[" in endpoint
            self._dealer.connect(endpoint)
            self._waker = self._context.socket(zmq.PAIR)
            self._waker.bind("inproc://wake")
            self._woken = self._context.socket(zmq.PAIR)
            self._woken.connect("inproc://wake")
        except BaseException:
            self._context.destroy(linger=0)
            raise
        self._hands = Hands(1, "zerohop-commands")
        self._thread = threading.Thread(target=self._run, name="zerohop-worker", daemon=True)
        self._thread.start()

    @property
    def state(self) -> SessionState:
        """``"registering"``, ``"syncing"``, ``"right"`` or ``"ended"``."""
        with self._changed:
            return self._session.state

    @property
    def refused_because(self) -> str | None:
        """The server's words, while it does not want this worker."""
        with self._changed:
            return self._session.refused_because

    @property
    def registrations(self) -> int:
        """How often a server has welcomed it."""
        with self._changed:
            return self._session.registrations

    def put(self, key: Key, value: Any) -> None:
        """Give a key a value, as it is now. Does not wait for the server.

        Raises:
            TypeError: the key is neither a number nor a text.
            Unencodable: something in it has no form on the wire, or it is too large.
        """
        with self._changed:
            self._session.put(key, value)
            self._wake()

    def remove(self, key: Key) -> None:
        """Take a key out of the table; one that is not there is no fault."""
        with self._changed:
            self._session.remove(key)
            self._wake()

    def wait_settled(self, timeout: float) -> bool:
        """Wait until the server has acknowledged all that there is; return whether it has.

        Raises:
            RequestRefused: the server does not want this worker.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._session.is_settled or self._session.refused_because, timeout
            )
            reason = self._session.refused_because
            if reason is not None:
                raise RequestRefused(self._session.registration.worker, reason)
            return self._session.is_settled

    def close(self, timeout: float | None = 5.0) -> None:
        """Say farewell and end.

        Args:
            timeout: seconds for the command that is at work, after which it is left to itself;
                ``None``: without limit.
        """
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True
            self._session.leave()
            self._wake()
        self._thread.join()
        self._hands.close(timeout)
        self._dealer.close(linger=500)  # for the farewell
        self._waker.close()
        self._context.term()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _wake(self) -> None:
        with contextlib.suppress(zmq.ZMQError):
            self._waker.send(b"", zmq.DONTWAIT)

    def _run(self) -> None:
        poller = zmq.Poller()
        poller.register(self._dealer, zmq.POLLIN)
        poller.register(self._woken, zmq.POLLIN)
        try:
            while True:
                with self._changed:
                    self._pump()
                    if self._is_closed:
                        break
                    deadline = self._session.next_deadline()
                now = time.monotonic()
                wait = None if deadline is None else max(deadline - now, 0.0) * 1000 + 1
                poller.poll(wait)
                with self._changed:
                    self._receive()
        finally:  # or close() would wait for it
            self._woken.close()

    def _receive(self) -> None:
        now = time.monotonic()
        with contextlib.suppress(zmq.Again):
            while True:
                self._woken.recv(zmq.DONTWAIT)
        for _ in range(_SLICE):
            try:
                frames = self._dealer.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                return
            self._session.receive(frames, now)

    def _pump(self) -> None:
        self._session.handle_deadline(time.monotonic())
        for frames in self._session.data_to_send():
            with contextlib.suppress(zmq.Again):  # nobody is there; it is said again
                self._dealer.send_multipart(frames, zmq.DONTWAIT)
        for command in self._session.commands():
            self._hands.give(partial(self._carry_out, command))
        self._changed.notify_all()

    def _carry_out(self, command: Command) -> None:
        result = error = None
        try:
            result = call_in_thread(handler_of(self._commands, command), command.arguments)
        except BaseException as failure:  # noqa: BLE001 - it is the server's to know
            error = error_of(failure)
        with self._changed:
            self._session.end(command, result, error)
            self._wake()


class SyncControlClient:
    """Asks a server for its operations, one at a time. Several threads may.

    Args:
        endpoint: of the server.
        timeout: seconds for each reply, unless a call is given its own.

    Raises:
        ZMQError: the endpoint can't be connected.
    """

    def __init__(self, endpoint: str, *, timeout: float = 5.0) -> None:
        self._endpoint, self._timeout = endpoint, timeout
        self._lock = threading.Lock()
        self._uids = count(1)
        self._context = zmq.Context()
        try:
            self._dealer = self._context.socket(zmq.DEALER)
            self._dealer.linger = 0
            self._dealer.immediate = True  # what was given up is not said to who starts later
            self._dealer.ipv6 = "[" in endpoint
            self._dealer.connect(endpoint)
        except BaseException:
            self._context.destroy(linger=0)
            raise

    def call(self, operation: Operation, *arguments: Any, timeout: float | None = None) -> Any:
        """Ask for an operation, and wait for its result.

        Raises:
            RequestRefused: the server says why it does not do it.
            ProtocolMismatch: it did something else.
            NoAnswer: there was none in time. What nobody was there to hear is not said later.
            Unencodable: an argument has no form on the wire.
        """
        seconds = self._timeout if timeout is None else timeout
        uid = next(self._uids)
        frames = encode_call(uid, operation, *arguments)
        give_up = time.monotonic() + seconds
        if not self._lock.acquire(timeout=max(seconds, 0.0)):  # others ask
            raise NoAnswer(self._endpoint, str(operation), seconds)
        try:
            is_heard = self._say(frames, give_up)
            while is_heard and (left := give_up - time.monotonic()) > 0:
                if not self._dealer.poll(left * 1000):
                    break
                with contextlib.suppress(Malformed, zmq.Again):
                    reply = parse_reply(self._dealer.recv_multipart(zmq.DONTWAIT))
                    if reply.uid == uid:  # else it was given up
                        return result_of(reply, operation)
        finally:
            self._lock.release()
        raise NoAnswer(self._endpoint, str(operation), seconds)

    def _say(self, frames: list[bytes], give_up: float) -> bool:
        """Whether the server was there in time."""
        while True:
            try:
                self._dealer.send_multipart(frames, zmq.DONTWAIT)
            except zmq.Again:
                left = give_up - time.monotonic()
                if left <= 0 or not self._dealer.poll(left * 1000, zmq.POLLOUT):
                    return False
            else:
                return True

    def close(self) -> None:
        """Ask no more."""
        with self._lock:
            self._dealer.close()
            self._context.term()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
