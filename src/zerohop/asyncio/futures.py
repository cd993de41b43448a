"""What ``send`` and ``recv`` return: awaitables that behave like futures and lose no message.

Most operations of a busy socket are done when they return. Making an ``asyncio.Future`` for each
would cost more than the operation, so those that are done are light objects with a future's face
(:data:`SENT`, :class:`Received`); those that wait are in :mod:`zerohop.asyncio.waiting`.

A message that was taken for a receive belongs to its awaitable until somebody gets it, by ``await``
or by ``result()``. If the awaitable goes without that (the task was cancelled in the same turn,
``gather`` was, nobody awaited) the message returns to where it was taken from::

    taken ──► await / result()      the caller's
          └─► dropped, cancelled    back to the queue, before all that were taken later

What ``gather`` or ``shield`` has asked for already is theirs: if they then drop it, it is lost.
"""

from __future__ import annotations

import asyncio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from contextvars import Context
    from typing import Any, Protocol

    from zerohop.asyncio.returned import Key
else:
    Protocol = object


class Returns(Protocol):
    """Whoever takes messages back (the Front's ``receiving``).

    Attributes:
        over: it is time to let the loop go on, and it has not come round since.
    """

    over: bool

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


class _Sent(_Done, asyncio.Future):  # type: ignore[type-arg] # no Generic at run time
    """A send that is done. One object for all of them: it carries nothing.

    Of a Future it has how it is awaited: CPython asks its type for that, and nobody else.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(loop=_NoLoop())  # type: ignore[arg-type] # as much as it asks for
        self.set_result(None)

    def __repr__(self) -> str:
        return "<sent>"


class _NoLoop:
    """What a Future wants of a loop if it is done before anybody waits."""

    def get_debug(self) -> bool:
        """Whether to remember where it was made: no."""
        return False


class _SentLast(_Sent):
    """A send that is done, and the last of its turn: whoever awaits it lets the loop go on."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        yield

    __iter__ = __await__


SENT: Awaitable[None] = _Sent()
SENT_LAST: Awaitable[None] = _SentLast()


class Received(_Done):
    """A receive that is done: holds the value until it is taken.

    They are made by the million, and a constructor would cost as much as the rest: whoever makes
    one fills the attributes in.

    Attributes:
        value: the message, or a part of one.
        key: what :meth:`Returns.give_back` wants to know.
        front: takes the value back if nobody gets it; None: somebody has got it.
    """

    __slots__ = ("front", "key", "value")
    value: Any
    key: Key
    front: Returns | None

    def __await__(self) -> Generator[Any, None, Any]:
        self.front = None
        return self.value
        yield  # a generator that ends at once: it never suspends

    __iter__ = __await__

    def result(self) -> Any:
        """The value; again and again the same.

        Raises:
            CancelledError: it was called off, and another has received the message.
        """
        self.front = None
        return self.value

    def cancel(self, msg: object = None) -> bool:
        """Too late, as for every done future; but others may now receive the message.

        Who asks first has it. (``gather``, when it is cancelled, cancels all its children, and
        then holds on to them, until a garbage collection.)
        """
        del msg
        front = self.front
        if front is not None:
            self.__class__ = _Offered
            front.give_back(self.value, self.key)
        return False

    def __del__(self) -> None:
        if self.front is not None:
            self.front.give_back(self.value, self.key)

    def __repr__(self) -> str:
        return "<received>"


class ReceivedLast(Received):
    """A receive that is done, and the last of its turn: whoever awaits it lets the loop go on."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, Any]:
        if self.front is not None and self.front.over:
            try:
                yield
            except BaseException:
                self.cancel()  # now: a traceback may hold on to us
                raise
        return self.result()

    __iter__ = __await__


class _Offered(Received):
    """A receive that was called off: its message is back, and has to be asked for again."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, Any]:
        return self.result()
        yield

    __iter__ = __await__

    def result(self) -> Any:
        """The value, as :meth:`Received.result`."""
        assert self.front is not None
        if not self.front.take_again(self.key):
            raise asyncio.CancelledError
        self.front = None
        self.__class__ = Received  # type: ignore[assignment] # the way back
        return self.value

    def cancel(self, msg: object = None) -> bool:
        """It was before."""
        del msg
        return False

    def __del__(self) -> None:
        """The message is back already."""


class Conversion:
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
        self._conversion = Conversion(convert)

    def result(self) -> Any:
        """The converted value; raises what the conversion did."""
        return self._conversion.of(self._received.result())

    def exception(self) -> Exception | None:  # type: ignore[override] # _Done's has none
        """What the conversion raises, or None. Takes what cannot be converted, and nothing else."""
        error = self._conversion.failure(self._received.value)
        if error is not None:
            self._received.result()
        return error

    def cancel(self, msg: object = None) -> bool:
        """As :meth:`Received.cancel`."""
        return self._received.cancel(msg)

    def __await__(self) -> Generator[Any, None, Any]:
        return self._conversion.of((yield from self._received.__await__()))

    __iter__ = __await__


class _Later(_Done):
    """A result that is there, and the last of its turn: whoever awaits it lets the loop go on."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    def result(self) -> Any:
        """The result."""
        return self._value

    def __await__(self) -> Generator[Any, None, Any]:
        yield
        return self._value

    __iter__ = __await__


class _FailedLater(_Done):
    """As :class:`_Later`, for what has failed."""

    __slots__ = ("_error",)

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def result(self) -> Any:
        """Raises the error."""
        raise self._error

    def exception(self) -> BaseException:  # type: ignore[override] # _Done's has none
        """The error."""
        return self._error

    def __await__(self) -> Generator[Any, None, Any]:
        yield
        raise self._error

    __iter__ = __await__


def done_with(loop: asyncio.AbstractEventLoop, value: Any) -> Awaitable[Any]:
    """A plain future that is done."""
    future = loop.create_future()
    future.set_result(value)
    return future


def done_with_later(value: Any) -> Awaitable[Any]:
    """What is done, and suspends whoever awaits it until the loop has come round."""
    return _Later(value)


def failed(loop: asyncio.AbstractEventLoop, error: BaseException) -> Awaitable[Any]:
    """A plain future that has failed."""
    future = loop.create_future()
    future.set_exception(error)
    return future


def failed_later(error: BaseException) -> Awaitable[Any]:
    """What has failed, and suspends whoever awaits it until the loop has come round."""
    return _FailedLater(error)
