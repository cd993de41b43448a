"""What ``send`` and ``recv`` return: awaitables that behave like futures and lose no message.

Most operations of a busy socket are done when they return. Making an ``asyncio.Future`` for each
would cost more than the operation, so those that are done are light objects with a future's face
(:data:`SENT`, :class:`Received`); those that wait are real futures.

A message that was taken for a receive belongs to its awaitable until somebody gets it, by ``await``
or by ``result()``. If the awaitable goes without that (the task was cancelled in the same turn,
``gather`` was, nobody awaited) the message returns to the head of the queue::

    taken ──► await / result()      the caller's
          └─► dropped, cancelled    back to the queue, the next one to be received
"""

from __future__ import annotations

import asyncio
from functools import partial

from zerohop.api.receive import as_frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from contextvars import Context
    from typing import Any, Protocol, TypeVar

    T = TypeVar("T")
else:
    Protocol = object

as_frame_of_more = partial(as_frame, more=True)


class Returns(Protocol):
    """Whoever takes messages back (the Socket)."""

    def give_back(self, value: Any, *, part: bool) -> None:
        """Put what was taken, a message or a part, back to the head of the queue."""


class _Done:
    """The face of a future that is done without error. Subclasses give the result."""

    __slots__ = ()
    # Makes asyncio.isfuture() true, so that gather, wait and ensure_future take it as it is.
    _asyncio_future_blocking = False

    def result(self) -> Any:
        """The result, at once."""

    def done(self) -> bool:
        """Always."""
        return True

    def cancelled(self) -> bool:
        """Never: it was done from the beginning."""
        return False

    def exception(self) -> None:
        """None: it has a result."""

    def cancel(self, msg: object = None) -> bool:
        """Too late, as for every done future."""
        del msg
        return False

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The running loop."""
        return asyncio.get_running_loop()

    def add_done_callback(
        self, callback: Callable[[Any], object], *, context: Context | None = None
    ) -> None:
        """Call back in the loop's next turn."""
        asyncio.get_running_loop().call_soon(callback, self, context=context)

    def remove_done_callback(self, callback: Callable[[Any], object]) -> int:
        """It was called, or is about to be: none is removed."""
        del callback
        return 0


class _Sent(_Done, tuple):  # type: ignore[type-arg] # an empty tuple: awaiting it runs in C
    """A send that is done. One object for all of them: it carries nothing."""

    __slots__ = ()
    __await__: Any = tuple.__iter__
    __iter__: Any = tuple.__iter__

    def __repr__(self) -> str:
        return "<sent>"

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __bool__(self) -> bool:
        return True


SENT: Awaitable[None] = _Sent()


class Received(_Done, list):  # type: ignore[type-arg] # [value, socket]; empty once it was taken
    """A receive that is done: holds the value until it is taken.

    A list, because CPython makes one with two items faster than an object with two attributes.
    """

    __slots__ = ()
    _part = False

    def __await__(self) -> Generator[Any, None, Any]:
        return self.result()
        yield  # a generator that ends at once: it never suspends

    __iter__ = __await__

    def result(self) -> Any:
        """The value; again and again the same."""
        if len(self) == 2:
            del self[1]
        return self[0]

    def __del__(self) -> None:
        if len(self) == 2:
            self[1].give_back(self[0], part=self._part)

    def __repr__(self) -> str:
        return "<received>"

    def __hash__(self) -> int:  # type: ignore[override] # a future is hashable: asyncio.wait needs it
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


class ReceivedPart(Received):
    """As :class:`Received`, of one part of a message that has more."""

    __slots__ = ()
    _part = True


class Converted(_Done):
    """A receive that is done and whose value has another form for the caller (``recv_json``).

    The conversion runs when the value is taken; what it raises comes out there.
    """

    __slots__ = ("_convert", "_received")

    def __init__(self, received: Received, convert: Callable[[Any], Any]) -> None:
        self._received = received
        self._convert = convert

    def result(self) -> Any:
        """The converted value."""
        return self._convert(self._received.result())

    def __await__(self) -> Generator[Any, None, Any]:
        return self.result()
        yield

    __iter__ = __await__


class Waiting:
    """An operation that has to wait: the face of a future over a plain one.

    A task waits on the ``asyncio.Future`` inside, which the loop and the task treat in C; a
    subclass of it would cost half as much again a wait (bench/micro).

    Attributes:
        value: what the operation's result will be, where it is known beforehand.
        timer: the time limit.
    """

    __slots__ = ("__weakref__", "_callbacks", "_future", "timer", "value")
    _asyncio_future_blocking = False  # asyncio.isfuture() is true: taken as it is

    def __init__(self, loop: asyncio.AbstractEventLoop, value: object = None) -> None:
        self._future: asyncio.Future[Any] = loop.create_future()
        self._callbacks: list[tuple[Any, Any]] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.value = value

    # For the front

    def settle(self, value: object) -> None:
        """Set the result; the caller has checked that it is not done."""
        if self.timer is not None:
            self._stop_timer()
        self._future.set_result(value)

    def end(self, value: object) -> None:
        """Set the result, unless it is done already."""
        if not self._future.done():
            self.settle(value)

    def fail(self, error: BaseException, *, quietly: bool = False) -> None:
        """Set the exception, unless it is done already.

        Args:
            error: the exception.
            quietly: nobody has to look at it: no "exception was never retrieved".
        """
        self._stop_timer()
        if not self._future.done():
            self._future.set_exception(error)
            if quietly:
                self._future._log_traceback = False

    # For everybody: a future's face

    def __await__(self) -> Generator[Any, None, Any]:
        try:
            yield from self._future
        except asyncio.CancelledError:
            self._stop_timer()
            raise
        return self.result()

    __iter__ = __await__

    def result(self) -> Any:
        """The result; raises what went wrong, or InvalidStateError while it waits."""
        return self._future.result()

    def done(self) -> bool:
        """Whether it waits no more."""
        return self._future.done()

    def cancelled(self) -> bool:
        """Whether it was called off."""
        return self._future.cancelled()

    def exception(self) -> BaseException | None:
        """What went wrong, or None."""
        return self._future.exception()

    def cancel(self, msg: Any = None) -> bool:
        """Call the operation off: nothing was sent, nothing was taken."""
        self._stop_timer()
        return self._future.cancel(msg)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The loop it waits on."""
        return self._future.get_loop()

    def add_done_callback(
        self, callback: Callable[[Any], object], *, context: Context | None = None
    ) -> None:
        """Call back with this object, in the loop's turn after it is done."""

        def call(_: asyncio.Future[Any]) -> None:
            callback(self)

        if self._callbacks is None:
            self._callbacks = []
        self._callbacks.append((callback, call))
        self._future.add_done_callback(call, context=context)

    def remove_done_callback(self, callback: Callable[[Any], object]) -> int:
        """Do not call back; how many calls that saves."""
        removed = 0
        for pair in (self._callbacks or [])[:]:
            if pair[0] == callback and self._callbacks is not None:
                self._callbacks.remove(pair)
                removed += self._future.remove_done_callback(pair[1])
        return removed

    def _stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._future!r}>"


class WaitingReceive(Waiting):
    """A receive that has to wait.

    Args:
        socket: takes the message back if the result is never got.
        convert: what the caller gets of the message, or None for the message itself.
        part: a single part is wanted (``recv``), not a whole message.
        loop: where to wait.

    Attributes:
        part: as above.
        whole: what it got is a whole message all the same.
    """

    __slots__ = ("_convert", "_held", "_socket", "part", "whole")

    def __init__(
        self,
        socket: Returns,
        convert: Callable[[Any], Any] | None,
        *,
        part: bool,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._future = loop.create_future()
        self._callbacks = None
        self.timer = None
        self.part = part
        self.whole = not part
        self._socket = socket
        self._convert = convert
        self._held = False

    def has_more(self) -> None:
        """What it gets is a part whose message has more: a Frame knows that."""
        if self._convert is as_frame:
            self._convert = as_frame_of_more

    def settle(self, value: object) -> None:
        """Hand a message over; it is this object's until somebody gets it."""
        self._held = True
        if self.timer is not None:
            self._stop_timer()
        self._future.set_result(value)

    def __await__(self) -> Generator[Any, None, Any]:
        try:
            value = yield from self._future
        except BaseException:
            self._stop_timer()
            self.return_message()
            raise
        self._held = False
        return value if self._convert is None else self._convert(value)

    __iter__ = __await__

    def result(self) -> Any:
        """The value; raises what went wrong, or InvalidStateError while it waits."""
        value = self._future.result()
        self._held = False
        return value if self._convert is None else self._convert(value)

    def return_message(self) -> None:
        """Put a message that nobody got back to the head of the queue."""
        if self._held:
            self._held = False
            self._socket.give_back(self._future.result(), part=not self.whole)

    def __del__(self) -> None:
        if self._held:
            self.return_message()
