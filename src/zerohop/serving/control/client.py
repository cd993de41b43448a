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
from abc import abstractmethod
from functools import partial
from itertools import count

import zerohop as zmq
from zerohop.serving.actor import Actor, ActorThread, ContextOwner, connected
from zerohop.serving.arguments import seconds
from zerohop.serving.closing import Closing, closed_error
from zerohop.serving.control.frames import encode_call, parse_reply, result_of
from zerohop.serving.control.hands import Hands, call_in_thread
from zerohop.serving.control.messages import Registration
from zerohop.serving.control.session import WorkerSession
from zerohop.serving.control.values import words_for
from zerohop.serving.errors import Malformed, NoAnswer, RequestRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from zerohop.serving.control.frames import OperationName, Reply
    from zerohop.serving.control.messages import Command, Key
    from zerohop.serving.control.session import SessionState

__all__ = ["Asking", "SyncControlClient", "SyncControlWorker", "Working", "jitters"]


def jitters() -> Iterator[float]:
    """Return numbers between 0 and 1 without end."""
    while True:
        yield random.random()  # noqa: S311 - it scatters, it keeps no secret


class Working(Actor):
    """What both workers are: a session with the server, and its DEALER.

    Attributes:
        boot: octets that are another in each worker.
    """

    _name = "zerohop-worker"

    def __init__(
        self,
        endpoint: str,
        worker: str,
        *,
        offers: dict[str, Any] | None = None,
        commands: Mapping[str, Callable[..., Any]] | None = None,
        patience: float = 2.0,
    ) -> None:
        """Connect, and register.

        Args:
            endpoint: of the server.
            worker: its name, the same after a restart.
            offers: what it offers.
            commands: what it can be told to do, by name; carried out one after the other.
            patience: seconds without a reply, after which a question is asked again.

        Raises:
            TypeError, ValueError: an argument is of another kind, or no time.
            Unencodable: something in what it offers has no form on the wire.
            ZMQError: the endpoint can't be connected.
        """
        super().__init__()
        self.boot = os.urandom(16)
        self._commands = commands or {}
        with self._starting():
            registration = Registration(worker, self.boot, offers=offers or {})
            self._session = WorkerSession(registration, jitters(), patience)
            dealer = self._context.socket(zmq.DEALER)
            dealer.immediate = True
            dealer.linger = 500  # for the farewell
            self._dealer = connected(dealer, endpoint)
            self._listen(self._dealer, self._session.receive)

    @property
    def state(self) -> SessionState:
        """``"registering"``, ``"syncing"``, ``"right"`` or ``"ended"``."""
        return self._session.state

    @property
    def refused_because(self) -> str | None:
        """The server's words, while it does not want this worker."""
        return self._session.refused_because

    @property
    def registrations(self) -> int:
        """How often a server has welcomed it."""
        return self._session.registrations

    def put(self, key: Key, value: Any) -> None:
        """Give a key a value, as it is now. Does not wait for the server.

        Raises:
            TypeError: the key is neither a number nor a text.
            Unencodable: something in it has no form on the wire, or it is too large.
        """
        with self._lock:
            self._session.put(key, value)
            self._wake()

    def remove(self, key: Key) -> None:
        """Take a key out of the table; one that is not there is no fault."""
        with self._lock:
            self._session.remove(key)
            self._wake()

    @abstractmethod
    def _give(self, command: Command) -> None:
        """Have a command carried out after those before it."""

    def _handler_of(self, command: Command) -> Callable[..., Any]:
        handler = self._commands.get(command.name)
        if handler is None:
            known = ", ".join(sorted(map(str, self._commands))) or "none"
            reason = f"this worker has no command {command.name!r}; it has: {known}"
            raise RequestRefused(command.name, reason)
        return handler

    def _has_settled(self) -> bool:
        """Whether the server has acknowledged all that there is, or does not want this worker."""
        return self._session.is_settled or self._session.refused_because is not None

    def _check_wanted(self) -> None:
        reason = self._session.refused_because
        if reason is not None:
            raise RequestRefused(self._session.registration.worker, reason)

    def _end(self, command: Command, result: Any, failure: BaseException | None) -> None:
        error = None if failure is None else words_for(failure)
        if isinstance(failure, RequestRefused):
            error = failure.reason
        with self._lock:
            self._session.end(command, result, error)
            self._wake()

    def _leave(self) -> None:
        self._session.leave()

    def _turn(self, now: float) -> float | None:
        session = self._session
        session.handle_deadline(now)
        for frames in session.data_to_send():
            self._send(self._dealer, frames)
        for command in session.commands():
            self._give(command)
        return session.next_deadline()


class SyncControlWorker(Working, ActorThread):
    """Registers with a control server, and keeps its copy of a table right.

        with SyncControlWorker(endpoint, "decode-3", offers={"slots": 8}) as worker:
            worker.put("model", "tiny")

    It goes on in a thread of its own, whatever happens to the server, and its commands in another.
    """

    def _start(self) -> None:
        self._hands = Hands(1, "zerohop-commands")
        super()._start()

    def wait_settled(self, timeout: float) -> bool:
        """Wait until the server has acknowledged all that there is; return whether it has.

        Args:
            timeout: seconds; it ends sooner where the worker is closed.

        Raises:
            RequestRefused: the server does not want this worker.
        """
        given = seconds("timeout", timeout)
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._has_settled(), given)
            self._check_wanted()
            return self._session.is_settled

    def close(self, timeout: float | None = 5.0) -> None:
        """Say farewell and end.

        Args:
            timeout: seconds for the command that is at work, after which it is left to itself;
                ``None``: without limit.

        Raises:
            TypeError, ValueError: the timeout is no time; nothing has ended.
        """
        self._hands.close(timeout)
        super().close()

    def _give(self, command: Command) -> None:
        self._hands.give(partial(self._carry_out, command))

    def _carry_out(self, command: Command) -> None:
        try:
            result = call_in_thread(self._handler_of(command), command.arguments)
        except BaseException as failure:  # noqa: BLE001 - it is the server's to know
            self._end(command, None, failure)
        else:
            self._end(command, result, None)


class Asking(ContextOwner):
    """What both clients are: a DEALER, and numbers for what is asked."""

    def __init__(self, endpoint: str, *, timeout: float = 5.0) -> None:
        """Connect.

        Args:
            endpoint: of the server.
            timeout: seconds for each reply, unless a call is given its own.

        Raises:
            TypeError, ValueError: an argument is of another kind, or no time.
            ZMQError: the endpoint can't be connected.
        """
        self._endpoint, self._timeout = endpoint, seconds("timeout", timeout)
        super().__init__()
        self._uids = count(1)
        with self._starting():
            dealer = self._context.socket(zmq.DEALER)
            dealer.immediate = True  # what was given up is not said to who starts later
            self._dealer = connected(dealer, endpoint)


class SyncControlClient(Asking, Closing):
    """Asks a server for its operations, one at a time. Several threads may."""

    _context_type = zmq.Context

    def _start(self) -> None:
        self._lock = threading.Lock()  # whoever asks has it

    def call(self, operation: OperationName, *arguments: Any, timeout: float | None = None) -> Any:
        """Ask for an operation, and wait for its result.

        Args:
            operation: its name, or its number.
            arguments: as the protocol has them.
            timeout: seconds; the client's own unless given.

        Raises:
            RequestRefused: the server says why it does not do it.
            ProtocolMismatch: it did something else.
            NoAnswer: there was none in time. What nobody was there to hear is not said later.
            RuntimeError: the client is closed, or was meanwhile.
            TypeError, ValueError: the timeout is no time.
            Unencodable: an argument has no form on the wire.
        """
        given = self._timeout if timeout is None else seconds("timeout", timeout)
        uid = next(self._uids)
        frames = encode_call(uid, operation, *arguments)
        give_up = time.monotonic() + given
        reply: Reply | None = None
        if self._lock.acquire(timeout=given):  # else others ask
            try:
                reply = self._ask(uid, frames, give_up)
            except zmq.ZMQError:
                if self._is_closed:
                    raise closed_error(self) from None
                raise
            finally:
                self._lock.release()
        if reply is None:
            raise NoAnswer(self._endpoint, str(operation), given)
        return result_of(reply, operation)

    def _ask(self, uid: int, frames: list[bytes], give_up: float) -> Reply | None:
        """The reply, if there is one in time."""
        is_heard = self._say(frames, give_up)
        while is_heard and (left := give_up - time.monotonic()) > 0:
            if not self._dealer.poll(left * 1000):
                break
            with contextlib.suppress(Malformed, zmq.Again):
                reply = parse_reply(self._dealer.recv_multipart(zmq.DONTWAIT))
                if reply.uid == uid:  # else it was given up
                    return reply
        return None

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
        """Ask no more. What is asked now ends at once, in an error."""
        self._is_closed = True
        self._context.destroy()
