"""Sockets, who waits for them, and how others wake and end him: what every actor of serving is.

    take(frames, now)   a message has come
    _turn(now)          decide, send; return when there is more to do
    close(), aclose()   one more turn, for a farewell, and the sockets are closed

An actor has a Context of its own, so that it waits for nobody else's sockets. Its turns follow one
after the other: what has come, what is due, what others gave it and woke it for. What it decides is
in pure files; a part that both kinds of programs have is written on :class:`Actor` and becomes
an :class:`ActorThread` or an ``ActorTask`` (``asyncio_actor``), which know how to wait.
"""

from __future__ import annotations

import contextlib
import threading
import time
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import zerohop as zmq
from zerohop.serving.arguments import apart, seconds
from zerohop.serving.closing import Closing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

__all__ = [
    "Actor",
    "ActorThread",
    "ContextOwner",
    "Waker",
    "bound",
    "connected",
    "milliseconds_until",
    "waiting",
]

_SLICE = 100  # messages of one socket that are received before the others have their turn


def bound(socket: Any, endpoint: str) -> Any:
    """Bind a socket, and return it; it is closed where it can't be bound."""
    return _placed(socket, endpoint, socket.bind)


def connected(socket: Any, endpoint: str) -> Any:
    """Connect a socket, and return it; it is closed where it can't be connected."""
    return _placed(socket, endpoint, socket.connect)


def _placed(socket: Any, endpoint: str, place: Callable[[str], object]) -> Any:
    try:
        socket.ipv6 = "[" in apart("endpoint", endpoint)
        place(endpoint)
    except BaseException:
        socket.close()
        raise
    return socket


def waiting(socket: zmq.Socket, most: int = _SLICE) -> Iterator[list[bytes]]:
    """What can be received from a blocking socket now, and not too much of it."""
    for _ in range(most):
        try:
            yield socket.recv_multipart(zmq.DONTWAIT)
        except zmq.Again:
            return


def milliseconds_until(deadline: float | None) -> float | None:
    """Return how long to poll for; a little longer than it takes, or it would be too early."""
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    return left * 1000 + 1 if left > 0 else 0.0


class Waker:
    """Wakes who polls, from any thread: two PAIRs in a Context.

    Args:
        context: in which there is one of them at most.

    Attributes:
        receiver: to be polled.
    """

    def __init__(self, context: zmq.Context) -> None:
        self._sender, self.receiver = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
        self._sender.bind("inproc://wake")
        self.receiver.connect("inproc://wake")

    def wake(self) -> None:
        """Never waits. Where many wakes are on their way, or nobody polls any more, it is none."""
        with contextlib.suppress(zmq.ZMQError):
            self._sender.send(b"", zmq.DONTWAIT)


class ContextOwner(ABC):
    """Who has a Context of his own, whose sockets are opened together or not at all."""

    _context_type: ClassVar[Any]  # whose sockets these are decides how they are waited for

    def __init__(self) -> None:
        self._context = self._context_type()
        self._context.linger = 0
        self._is_closed = False

    @contextlib.contextmanager
    def _starting(self) -> Iterator[None]:
        """Open sockets in here. Where that fails none of them is left; else he begins."""
        try:
            yield
            self._start()
        except BaseException:
            self._context.destroy(linger=0)
            raise

    @abstractmethod
    def _start(self) -> None:
        """Begin: all sockets are there."""


class Actor(ContextOwner):
    """What acts, however it waits. It has its first turn as soon as it begins."""

    _name: ClassVar[str]  # of its thread
    _lock: AbstractContextManager[Any]  # of what others than the actor look at and change

    @abstractmethod
    def _listen(self, socket: Any, take: Callable[[list[bytes], float], object]) -> None:
        """Have a socket's messages taken, each before a turn."""

    @abstractmethod
    def _send(self, socket: Any, frames: list[bytes]) -> None:
        """Send it if it can leave at once: else nobody is there, or it is asked for again."""

    @abstractmethod
    def _wake(self) -> None:
        """Have a turn soon."""

    @abstractmethod
    def _turn(self, now: float) -> float | None:
        """Decide, send; return when there is more to do."""

    def _leave(self) -> None:
        """Prepare a farewell: the last turn follows."""


class ActorThread(Actor, Closing):
    """An actor with a thread. Its lock is held while it takes messages and has its turn."""

    _context_type = zmq.Context

    def __init__(self) -> None:
        super().__init__()
        self._lock = self._changed = threading.Condition()  # notified after each turn
        self._takes: dict[zmq.Socket, Callable[[list[bytes], float], object]] = {}
        self._poller = zmq.Poller()
        self._waker = Waker(self._context)
        self._listen(self._waker.receiver, lambda *_: None)

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def _listen(self, socket: zmq.Socket, take: Callable[[list[bytes], float], object]) -> None:
        self._takes[socket] = take
        self._poller.register(socket, zmq.POLLIN)

    def _send(self, socket: zmq.Socket, frames: list[bytes]) -> None:
        with contextlib.suppress(zmq.ZMQError):
            socket.send_multipart(frames, zmq.DONTWAIT)

    def _wake(self) -> None:
        self._waker.wake()

    def _run(self) -> None:
        wait: float | None = 0.0
        try:
            while True:
                ready = self._poller.poll(wait)
                is_last = self._is_closed
                with self._changed:
                    now = time.monotonic()
                    for socket, _ in ready:
                        if socket in self._takes:  # else the turn looks what there is
                            for frames in waiting(socket):
                                self._takes[socket](frames, now)
                    if is_last:
                        self._leave()
                    deadline = self._turn(now)
                    self._changed.notify_all()
                if is_last:
                    return
                wait = milliseconds_until(deadline)
        finally:
            with self._changed:
                self._is_closed = True  # also where it fails: somebody may be waiting for it
                self._changed.notify_all()
            self._context.destroy()

    def close(self, timeout: float | None = None) -> None:
        """End.

        Args:
            timeout: seconds to wait for the thread, which ends afterwards, too; ``None``: without
                limit.

        Raises:
            TypeError, ValueError: the timeout is no time; nothing has ended.
        """
        timeout = None if timeout is None else seconds("timeout", timeout)
        self._is_closed = True
        self._wake()
        if self._thread is not threading.current_thread():  # a message may be what ends it
            self._thread.join(timeout)
