"""What ``send`` and ``recv`` return: awaitables that behave like futures and lose no message.

Most operations of a busy socket are done when they return. Making an ``asyncio.Future`` for each
would cost more than the operation, so those that are done are light objects with a future's face
(:data:`SENT`, :class:`Received`); those that wait have a real future inside.

A message that was taken for a receive belongs to its awaitable until somebody gets it, by ``await``
or by ``result()``. If the awaitable goes without that (the task was cancelled in the same turn,
``gather`` was, nobody awaited) the message returns to where it was taken from::

    taken ──► await / result()      the caller's
          └─► dropped, cancelled    back to the queue, before all that were taken later
"""

from __future__ import annotations

import asyncio
from functools import partial

from zerohop.api.receive import as_frame, as_octets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from contextvars import Context
    from typing import Any, Protocol

    from zerohop.asyncio.returned import Key
    from zerohop.patterns.pipe import Message
else:
    Protocol = object

as_frame_of_more = partial(as_frame, more=True)


class Returns(Protocol):
    """Whoever takes messages back (the Front)."""

    def give_back(self, value: Any, key: Key) -> None:
        """Put what was taken, a message or a part, back to where it was taken from."""

    def take_again(self, key: Key) -> bool:
        """Take back what was given back; False: somebody else has received it."""


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


class Received(_Done, list):  # type: ignore[type-arg] # see the docstring
    """A receive that is done: holds the value until it is taken.

        [value, key, front]          nobody has got it
        [value, key]                 taken
        [value, key, front, None]    given back; to be asked for again

    A list, because CPython makes one of three items faster than an object of three attributes.
    """

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, Any]:
        return self.result()
        yield  # a generator that ends at once: it never suspends

    __iter__ = __await__

    def result(self) -> Any:
        """The value; again and again the same.

        Raises:
            CancelledError: it was called off, and another has received the message.
        """
        if len(self) == 3:
            del self[2]
        elif len(self) == 4:
            if not self[2].take_again(self[1]):
                raise asyncio.CancelledError
            del self[2:]
        return self[0]

    def cancel(self, msg: object = None) -> bool:
        """Too late, as for every done future; but others may now receive the message.

        Who asks first has it. (``gather``, when it is cancelled, cancels all its children, and
        then holds on to them, until a garbage collection.)
        """
        del msg
        if len(self) == 3 and type(self[1]) is int:
            self.append(None)
            self[2].give_back(self[0], self[1])
        return False

    def __del__(self) -> None:
        if len(self) == 3:
            self[2].give_back(self[0], self[1])

    def __repr__(self) -> str:
        return "<received>"

    def __hash__(self) -> int:  # type: ignore[override] # a future is hashable: asyncio.wait needs it
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


class _Conversion:
    """The form that the caller gets (``recv_json``): made once, however often it is asked for.

    What cannot be converted is the caller's trouble, and comes out where the value is taken: the
    message is then taken, too. Asking for the exception does not take what can be converted.
    """

    __slots__ = ("_convert", "_made", "_value")

    def __init__(self, convert: Callable[[Any], Any]) -> None:
        self._convert = convert
        self._made = False
        self._value: Any = None

    def of(self, value: Any) -> Any:
        """The value in the other form."""
        if not self._made:
            self._value = self._convert(value)
            self._made = True
        return self._value

    def failure(self, value: Any) -> Exception | None:
        """Why it has no such form, or None."""
        try:
            self.of(value)
        except Exception as error:  # noqa: BLE001 - whatever a deserializer raises is the result
            return error
        return None


class Converted(_Done):
    """A receive that is done and whose value has another form for the caller (``recv_json``)."""

    __slots__ = ("_conversion", "_received")

    def __init__(self, received: Received, convert: Callable[[Any], Any]) -> None:
        self._received = received
        self._conversion = _Conversion(convert)

    def result(self) -> Any:
        """The converted value; raises what the conversion did."""
        return self._conversion.of(self._received.result())

    def exception(self) -> Exception | None:  # type: ignore[override] # _Done's has none
        """What the conversion raises, or None. Takes what cannot be converted, and nothing else."""
        error = self._conversion.failure(self._received[0])
        if error is not None:
            self._received.result()
        return error

    def cancel(self, msg: object = None) -> bool:
        """As :meth:`Received.cancel`."""
        return self._received.cancel(msg)

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

    __slots__ = ("__weakref__", "_future", "timer", "value")
    _asyncio_future_blocking = False  # asyncio.isfuture() is true: taken as it is

    def __init__(self, loop: asyncio.AbstractEventLoop, value: object = None) -> None:
        self._future: asyncio.Future[Any] = loop.create_future()
        self.timer: asyncio.TimerHandle | None = None
        self.value = value

    # For the front

    def settle(self, value: object) -> None:
        """Set the result; the caller has checked that it is not done."""
        if self.timer is not None:
            self._stop_waiting()
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
        self._stop_waiting()
        if not self._future.done():
            self._future.set_exception(error)
            if quietly:
                self._future._log_traceback = False

    # For everybody: a future's face

    def __await__(self) -> Generator[Any, None, Any]:
        try:
            yield from self._future
        except asyncio.CancelledError:
            self._stop_waiting()
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
        self._stop_waiting()
        return self._future.cancel(msg)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The loop it waits on."""
        return self._future.get_loop()

    @property
    def _cancel_message(self) -> Any:
        """Asked for by ``asyncio.gather`` of Python 3.11 about a cancelled child."""
        return getattr(self._future, "_cancel_message", None)

    def _make_cancelled_error(self) -> asyncio.CancelledError:
        """Asked for by ``asyncio.gather`` when it was cancelled."""
        return asyncio.CancelledError()

    def add_done_callback(
        self, callback: Callable[[Any], object], *, context: Context | None = None
    ) -> None:
        """Call back with this object, in the loop's turn after it is done."""
        self._future.add_done_callback(_Callback(self, callback), context=context)

    def remove_done_callback(self, callback: Callable[[Any], object]) -> int:
        """Do not call back; how many calls that saves."""
        return self._future.remove_done_callback(_Callback(self, callback))

    def _stop_waiting(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._future!r}>"


class _Callback:
    """Calls back with the object that others know, where the future inside would name itself."""

    __slots__ = ("_callback", "_waiting")

    def __init__(self, waiting: Waiting, callback: Callable[[Any], object]) -> None:
        self._waiting = waiting
        self._callback = callback

    def __call__(self, _: asyncio.Future[Any]) -> None:
        self._callback(self._waiting)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Callback) and self._callback == other._callback

    __hash__ = None  # type: ignore[assignment] # compared only, to be removed


class WaitingSend(Waiting):
    """A send that has to wait.

    Attributes:
        message: what is to be sent; nothing once it waits no more, for it may be lent.
        more: its message has more parts (SNDMORE).
    """

    __slots__ = ("message", "more")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, value: object, message: Message, *, more: bool
    ) -> None:
        super().__init__(loop, value)
        self.message: Message = message
        self.more = more

    def settle(self, value: object) -> None:
        """Set the result: the message is sent."""
        self._stop_waiting()
        self._future.set_result(value)

    def _stop_waiting(self) -> None:
        self.message = b""
        super()._stop_waiting()


class WaitingReceive(Waiting):
    """A receive that has to wait.

    Args:
        front: takes the message back if the result is never got.
        convert: what the caller gets of the message, or None for the message itself.
        part: a single part is wanted (``recv``), not a whole message.
        loop: where to wait.

    Attributes:
        part: as above.
    """

    __slots__ = ("_awaiting", "_conversion", "_convert", "_front", "_key", "_offered", "part")

    def __init__(
        self,
        front: Returns,
        convert: Callable[[Any], Any] | None,
        *,
        part: bool,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._key: Key | None = None  # of a message that is here and that nobody has got
        self._future = loop.create_future()
        self.timer = None
        self.part = part
        self._front = front
        self._convert = convert
        self._conversion: _Conversion | None = None
        self._offered = False  # the message was given back, to whoever asks first
        self._awaiting = 0

    def has_more(self) -> None:
        """What it gets is a part whose message has more: a Frame knows that."""
        if self._convert is as_frame:
            self._convert = as_frame_of_more

    def hand_over(self, value: Any, key: Key) -> None:
        """Hand a message over; it is this object's until somebody gets it."""
        self._key = key
        if self.timer is not None:
            self._stop_waiting()
        convert = self._convert
        if convert is not None and not (convert is as_octets and type(value) is bytes):
            self._conversion = _Conversion(convert)
        self._future.set_result(value)

    def __await__(self) -> Generator[Any, None, Any]:
        self._awaiting += 1
        try:
            value = yield from self._future
        except BaseException:
            self._stop_waiting()
            self._awaiting -= 1
            if not self._awaiting:
                self._return_message()
            raise
        if self._offered:
            self._take_again()
        self._key = None
        return value if self._conversion is None else self._conversion.of(value)

    __iter__ = __await__

    def result(self) -> Any:
        """The value; raises what went wrong, or InvalidStateError while it waits.

        Raises:
            CancelledError: it was called off, and another has received the message.
        """
        value = self._future.result()
        if self._offered:
            self._take_again()
        self._key = None
        return value if self._conversion is None else self._conversion.of(value)

    def exception(self) -> BaseException | None:
        """What went wrong, or None. Takes what cannot be converted, and nothing else."""
        error = self._future.exception()
        if error is None and self._conversion is not None:
            error = self._conversion.failure(self._future.result())
            if error is not None:
                if self._offered:
                    self._take_again()
                self._key = None
        return error

    def cancel(self, msg: Any = None) -> bool:
        """Call the operation off. As :meth:`Received.cancel` when a message is here."""
        if type(self._key) is int and not self._awaiting and not self._offered:
            self._offered = True
            self._front.give_back(self._future.result(), self._key)
        return super().cancel(msg)

    def _take_again(self) -> None:
        if self._key is None or not self._front.take_again(self._key):
            raise asyncio.CancelledError
        self._offered = False

    def _return_message(self) -> None:
        key, self._key = self._key, None
        if key is not None and not self._offered:
            self._front.give_back(self._future.result(), key)

    def __del__(self) -> None:
        if self._key is not None:
            self._return_message()
