"""What ``send`` and ``recv`` return where they have to wait: the face of a future over a plain one.

Who waits holds on to what it is to send, or to what it has got, no longer than it must: see
:mod:`zerohop.asyncio.futures` for what becomes of a message that nobody gets.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial

from zerohop.api.receive import as_frame, as_octets
from zerohop.asyncio.futures import Conversion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextvars import Context
    from typing import Any

    from zerohop.asyncio.futures import Returns
    from zerohop.asyncio.returned import Key
    from zerohop.io.driver import SocketDriver
    from zerohop.patterns.pipe import Message

as_frame_of_more = partial(as_frame, more=True)
_CROWD = 64


class Waiting:
    """An operation that has to wait: the face of a future over a plain one.

    A task waits on the ``asyncio.Future`` inside, which the loop and the task treat in C; a
    subclass of it would cost half as much again a wait (bench/micro).

    Attributes:
        future: the one inside, for the front.
        value: what the operation's result will be, where it is known beforehand.
        timer: the time limit.
    """

    __slots__ = ("__weakref__", "future", "timer", "value")
    _asyncio_future_blocking = False  # asyncio.isfuture() is true: taken as it is

    def __init__(self, loop: asyncio.AbstractEventLoop, value: object = None) -> None:
        self.future: asyncio.Future[Any] = loop.create_future()
        self.timer: asyncio.TimerHandle | None = None
        self.value = value

    # For the front

    def settle(self, value: object) -> None:
        """Set the result; the caller has checked that it is not done."""
        if self.timer is not None:
            self._stop_waiting()
        self.future.set_result(value)

    def end(self, value: object) -> None:
        """Set the result, unless it is done already."""
        if not self.future.done():
            self.settle(value)

    def fail(self, error: BaseException, *, quietly: bool = False) -> None:
        """Set the exception, unless it is done already.

        Args:
            error: the exception.
            quietly: nobody has to look at it: no "exception was never retrieved".
        """
        self._stop_waiting()
        if not self.future.done():
            self.future.set_exception(error)
            if quietly:
                self.future._log_traceback = False

    # For everybody: a future's face

    def __await__(self) -> Generator[Any, None, Any]:
        try:
            yield from self.future
        except asyncio.CancelledError:
            self._stop_waiting()
            raise
        return self.result()

    __iter__ = __await__

    def result(self) -> Any:
        """The result; raises what went wrong, or InvalidStateError while it waits."""
        return self.future.result()

    def done(self) -> bool:
        """Whether it waits no more."""
        return self.future.done()

    def cancelled(self) -> bool:
        """Whether it was called off."""
        return self.future.cancelled()

    def exception(self) -> BaseException | None:
        """What went wrong, or None."""
        return self.future.exception()

    def cancel(self, msg: Any = None) -> bool:
        """Call the operation off: nothing was sent, nothing was taken."""
        self._stop_waiting()
        return self.future.cancel(msg)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The loop it waits on."""
        return self.future.get_loop()

    @property
    def _cancel_message(self) -> Any:
        """Asked for by ``asyncio.gather`` of Python 3.11 about a cancelled child."""
        return getattr(self.future, "_cancel_message", None)

    def _make_cancelled_error(self) -> asyncio.CancelledError:
        """Asked for by ``asyncio.gather`` when it was cancelled."""
        return asyncio.CancelledError()

    def add_done_callback(
        self, callback: Callable[[Any], object], *, context: Context | None = None
    ) -> None:
        """Call back with this object, in the loop's turn after it is done."""
        self.future.add_done_callback(_Callback(self, callback), context=context)

    def remove_done_callback(self, callback: Callable[[Any], object]) -> int:
        """Do not call back; how many calls that saves."""
        return self.future.remove_done_callback(_Callback(self, callback))

    def _stop_waiting(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.future!r}>"


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
        self.future.set_result(value)

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
        self.future = loop.create_future()
        self.timer = None
        self.part = part
        self._front = front
        self._convert = convert
        self._conversion: Conversion | None = None
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
            self._conversion = Conversion(convert)
        self.future.set_result(value)

    def __await__(self) -> Generator[Any, None, Any]:
        self._awaiting += 1
        try:
            value = yield from self.future
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
        value = self.future.result()
        if self._offered:
            self._take_again()
        self._key = None
        return value if self._conversion is None else self._conversion.of(value)

    def exception(self) -> BaseException | None:
        """What went wrong, or None. Takes what cannot be converted, and nothing else."""
        error = self.future.exception()
        if error is None and self._conversion is not None:
            error = self._conversion.failure(self.future.result())
            if error is not None:
                if self._offered:
                    self._take_again()
                self._key = None
        return error

    def cancel(self, msg: Any = None) -> bool:
        """Call the operation off. As :meth:`Received.cancel` when a message is here."""
        if self._key is not None and not self._awaiting and not self._offered:
            self._offered = True
            self._front.give_back(self.future.result(), self._key)
        return super().cancel(msg)

    def _take_again(self) -> None:
        if self._key is None or not self._front.take_again(self._key):
            raise asyncio.CancelledError
        self._offered = False

    def _return_message(self) -> None:
        key, self._key = self._key, None
        if key is not None and not self._offered:
            self._front.give_back(self.future.result(), key)

    def __del__(self) -> None:
        if self._key is not None:
            self._return_message()


class Line(deque):  # type: ignore[type-arg] # of Waiting; no Generic at run time
    """Waiters, the first in front: first come, first served.

    Those that were cancelled, or whose time is over, tell nobody. They leave when somebody looks:
    a program that receives with a time limit, again and again, must not fill the memory.
    """

    __slots__ = ("_crowd",)

    def __init__(self) -> None:
        super().__init__()
        self._crowd = _CROWD  # with so many it is worth looking behind the first

    def tidy(self) -> None:
        """Let those go that wait no more: at once in front, now and then behind one that waits."""
        while self and self[0].done():
            self.popleft()
        if len(self) > self._crowd:
            still_waiting = [waiting for waiting in self if not waiting.done()]
            self.clear()
            self.extend(still_waiting)
            self._crowd = max(_CROWD, 2 * len(self))


def at_least_0(seconds: float) -> float:
    """A time limit as it was given, 0 for a negative one.

    Raises:
        TypeError: it is no number.
    """
    try:
        return max(seconds, 0)
    except TypeError:
        raise TypeError(f"timeout is a number of seconds or None, not {seconds!r}") from None


def released(driver: SocketDriver) -> asyncio.Future[None]:
    """A future that is done when the driver has nothing left, whoever drives it by then."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def done() -> None:
        if not future.done():
            future.set_result(None)

    def tell() -> None:
        if not loop.is_closed():  # else whoever waited there has gone
            loop.call_soon_threadsafe(done)

    if driver.released:
        done()
    else:
        driver.awaited = True
        driver.on_released.append(tell)
    return future
