"""SocketBase: everything about a Socket that does not wait.

A Socket has, under the names that both kinds use::

    _core          SocketCore    the socket without I/O; its lanes are the hot path
    _driver        SocketDriver  moves the core's octets; ``_driver.lock`` guards both
    _options       SocketOptions
    _context_io    ContextIO     what the sockets of one Context share
    copy_threshold               for make_part and make_message

and a kind of Socket fills these hooks::

    _start()       at the end of the constructor, the lock held: give the driver a front, which must
                   not hold the Socket (a Socket that is dropped shall be found), and a loop if it
                   has none (a shadow's driver has one)
    _on_close()    close() was called, the lock held: let those who wait go
    send, recv, send_multipart, recv_multipart, poll     the verbs, which wait
    _receive(flags, timeout, convert, part=)             what recv_string and the like stand on

and it calls ``_warn_before_waiting(POLLIN or POLLOUT)`` when a verb is about to wait.

Assigning to an attribute of a Socket costs 0.2 us (:mod:`zerohop.api.options`): what changes with
each message is kept in an object of its own, the front.
"""

from __future__ import annotations

import atexit
import operator
import os
import threading
import warnings
import weakref
from functools import cache

from zerohop.api.endpoints import EndpointMethods
from zerohop.api.frame import COPY_THRESHOLD
from zerohop.api.insight import InsightMethods
from zerohop.api.monitor import MonitorMethods
from zerohop.api.options import SocketOptionAccess
from zerohop.api.values import ValueMethods
from zerohop.constants import Errno, SocketOption, SocketType
from zerohop.core.options import SocketOptions
from zerohop.core.socket import SocketCore
from zerohop.errors import UsageError, ZMQError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable
    from typing import Any, ClassVar, Self

    from zerohop.api.context import ContextBase
    from zerohop.api.fronts import Fronts
    from zerohop.io.context import ContextIO
    from zerohop.io.driver import SocketDriver
    from zerohop.io.pump import Front

__all__ = ["SocketBase"]

_by_handle: weakref.WeakValueDictionary[int, SocketBase] = weakref.WeakValueDictionary()
_exiting = False
_assign = object.__setattr__  # past the Socket's own, which looks for an option of that name
_INVENT_IDS = (SocketType.ROUTER, SocketType.STREAM, SocketType.REQ, SocketType.REP)


@atexit.register
def _begin_exit() -> None:
    global _exiting
    _exiting = True


class SocketBase(EndpointMethods, InsightMethods, MonitorMethods, SocketOptionAccess, ValueMethods):
    """A ZeroMQ socket without the calls that wait.

    Args:
        ctx_or_socket: the Context it belongs to; or another Socket, which it then shadows.
        socket_type: one of libzmq's twelve stable types.
        shadow: another Socket, or the ``underlying`` of one: use that socket instead of a new one.
            Both are one socket: closing either closes both.
        copy_threshold: octets below which ``copy=False`` copies all the same; None: 65536.

    Raises:
        TypeError: no context, or ``socket_type`` is no number.
        ZMQError: EINVAL, no such type; EMFILE, the Context has MAX_SOCKETS open; ETERM.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_context_io",
        "_core",
        "_driver",
        "_options",
        "context",
    )

    context: ContextBase
    _context_io: ContextIO
    _core: SocketCore
    _driver: SocketDriver
    _options: SocketOptions

    _shown_as: ClassVar[str | None] = None  # in repr, instead of the class's own name

    # What most sockets never have; those that do have it in their __dict__.
    copy_threshold: int = COPY_THRESHOLD
    _shadowed: SocketBase | None = None  # whose shadow it is
    _shadows: weakref.WeakSet[SocketBase] | None = None
    _front_among: tuple[Fronts, Front] | None = None  # a shadow's own front
    _mistakes: frozenset[str] = frozenset()

    def __init__(
        self,
        ctx_or_socket: ContextBase | SocketBase | None = None,
        socket_type: int = SocketType.PAIR,
        *,
        shadow: SocketBase | int | None = None,
        copy_threshold: int | None = None,
    ) -> None:
        if copy_threshold is not None:
            self.copy_threshold = copy_threshold
        if isinstance(ctx_or_socket, SocketBase):
            shadow = ctx_or_socket
        if shadow:
            self._become_shadow(_resolve(shadow))
            return
        if ctx_or_socket is None or isinstance(ctx_or_socket, SocketBase):
            raise TypeError("context must be specified")
        context: ContextBase = ctx_or_socket
        check_room = getattr(context, "_check_room", None)
        if check_room is None:
            raise TypeError(f"Cannot convert {type(context).__name__} to Context")
        kind = _checked_type(socket_type)
        shared = context._io
        options = SocketOptions.of(kind, context._options)
        _assign(self, "context", context)
        _assign(self, "_context_io", shared)
        _assign(self, "_options", options)
        with shared.lock:
            check_room()
            seed = int.from_bytes(os.urandom(4)) if kind in _INVENT_IDS else 0
            core = SocketCore(kind, options, shared.core, seed, _jitter)
            _assign(self, "_core", core)
            try:
                _assign(self, "_driver", _driver_class()(core, shared))
                self._start()
            except BaseException:  # a signal handler's: nobody will ever have this socket
                for driver in list(shared.drivers):
                    if driver.core is core:
                        driver.close(0.0)
                raise
        context._add_socket(self)

    def _become_shadow(self, other: SocketBase) -> None:
        from zerohop.api.fronts import Fronts  # few sockets have shadows

        self._shadowed = other
        self.context = other.context
        self._context_io = other._context_io
        self._options = other._options
        self._core = other._core
        self._driver = driver = other._driver
        if other._shadows is None:
            other._shadows = weakref.WeakSet()
        other._shadows.add(self)
        with driver.lock:
            driver.watched = True
            first, driver.front = driver.front, None
            self._start()
            own, driver.front = driver.front, first
            if first is not None and own is not None:
                if not isinstance(first, Fronts):
                    driver.front = first = Fronts(first)
                first.add(own)
                self._front_among = first, own

    # What a kind of Socket fills

    def _start(self) -> None:
        """Begin: attach the driver to a loop, if there is one."""

    def _on_close(self) -> None:
        """Let those who wait go: the socket has been closed."""

    def __class_getitem__(cls, item: object) -> builtins.type[Self]:
        """Return the class itself: pyzmq's annotations, ``Socket[bytes]``, are no errors here."""
        del item
        return cls

    # Who it is

    @property
    def type(self) -> SocketType:
        """Its type."""
        return self._core.type

    @property
    def socket_type(self) -> SocketType:
        """Its type; pyzmq's older name."""
        warnings.warn(
            "Socket.socket_type is deprecated, use Socket.type", DeprecationWarning, stacklevel=2
        )
        return self._core.type

    @property
    def closed(self) -> bool:
        """Whether it was closed: by :meth:`close`, by a shadow's, or with its Context."""
        return self._core.closed

    @property
    def underlying(self) -> int:
        """A number by which :meth:`shadow` finds this socket in this process; 0 when closed."""
        if self._core.closed:
            return 0
        _by_handle[id(self._driver)] = self._shadowed or self  # whom nobody asks, nobody finds
        return id(self._driver)

    @classmethod
    def shadow(cls, address: SocketBase | int) -> Self:
        """Return a second Socket for the same socket, perhaps of the other kind.

        A shadow has no life of its own: dropping it changes nothing, closing it closes the socket.
        A blocking shadow of an asyncio socket must not wait on the loop's thread: the loop would
        have to do what it waits for.

        Raises:
            ZMQError: ENOTSOCK, there is no such socket.
        """
        return cls(shadow=address)

    def fileno(self) -> int:
        """A descriptor that becomes readable when EVENTS should be asked (ZMQ_FD).

        Level-triggered as to messages: readable while one can be received. As to sending, readable
        from the moment it becomes possible until EVENTS is read.

        Raises:
            ZMQError: ENOTSOCK, closed.
        """
        with self._driver.lock:
            return self._driver.fileno()

    # Groups: of draft socket types only

    def join(self, group: str | bytes) -> None:
        """Refuse: only DISH, a draft type, has groups.

        Raises:
            RuntimeError: always; pyzmq's text, who built it without drafts.
        """
        del group
        raise RuntimeError("libzmq and pyzmq must be built with draft support")

    leave = join

    # The end

    def close(self, linger: int | None = None) -> None:
        """Close: ports and names are free at return; what is queued is sent meanwhile, for LINGER.

        Whoever waits in this socket is let go. A second time changes nothing but LINGER, and ends
        what a signal handler that raised in the middle of the first may have left.

        Args:
            linger: milliseconds, instead of the LINGER option: -1 without limit, 0 not at all.
        """
        driver = self._driver
        with driver.lock, driver.context:
            if driver.released:
                return
            if linger is not None:
                self._options.set(SocketOption.LINGER, linger, self._core.type)
            original = self._shadowed or self
            if original._feed is not None:
                driver.on_released.append(original._stop_feed)
            unread = [peer.inbound.messages for peer in self._core.links.peers]
            driver.close(self._options.linger)
            for messages in unread:
                messages.clear()  # nobody will receive them, and some may be lent
            for socket in (original, *(original._shadows or ())):
                socket._on_close()
        self.context._remove_socket(original)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __del__(self) -> None:
        try:
            if self._front_among is not None:
                fronts, own = self._front_among
                fronts.remove(own)
            if self._shadowed is not None or self._driver.core.closed or _exiting:
                return
        except AttributeError:  # the constructor has failed
            return
        try:
            warnings.warn(f"Unclosed socket {self}", ResourceWarning, stacklevel=2, source=self)
        finally:  # the warning may be an error
            self._when_free(self.close)

    def _when_free(self, close: Callable[[], object]) -> None:
        """Close where nobody holds the socket any more: perhaps in a garbage collection.

        That may come on any thread, in the middle of anything: so never wait for the lock, never
        act inside somebody's work with it, and never call an asyncio loop from outside its thread.
        """
        driver = self._driver
        lock, loop = driver.lock, driver.loop
        at_home = driver._thread in (None, threading.get_ident())
        inside: bool = lock._is_owned()  # type: ignore[attr-defined] # typeshed has no such method
        if at_home and not inside and lock.acquire(blocking=False):
            try:
                close()
            finally:
                lock.release()
        elif loop is None:
            close()
        else:
            try:
                loop.call_soon_threadsafe(close)
            except RuntimeError:  # the loop is closed: nobody is there to be disturbed
                close()

    def __copy__(self) -> Self:
        """Return a shadow (pyzmq's ``copy.copy``)."""
        return type(self)(shadow=self)

    def __deepcopy__(self, memo: object = None) -> Self:
        """Return a shadow: there is only one of a socket."""
        del memo
        return type(self)(shadow=self)

    def __reduce__(self) -> Any:
        raise TypeError(f"cannot pickle {type(self).__name__}: a socket belongs to its process")

    def __repr__(self) -> str:
        name = self._shown_as or name_of(type(self))
        closed = " closed" if self.closed else ""
        return f"<{name}(zmq.{self._core.type_name}) at {id(self):#x}{closed}>"


@cache
def _driver_class() -> type[SocketDriver]:
    """Imported with the first socket, and found at once from then on."""
    from zerohop.io.driver import SocketDriver

    return SocketDriver


def _jitter() -> float:
    """A number in [0, 1) for a reconnect's delay. ``random`` would cost 3 ms, at the first."""
    return int.from_bytes(os.urandom(4)) / 2**32


def name_of(kind: type) -> str:
    """The name of a Socket or Context class as users import it: ``zerohop.asyncio.Socket``."""
    package, *modules = kind.__module__.split(".")
    if package == "zerohop":
        modules = [module for module in modules if module == "asyncio"]
    return ".".join([package, *modules, kind.__qualname__])


def _resolve(address: SocketBase | int) -> SocketBase:
    """The socket that ``shadow`` is told of: the original, where it is itself a shadow."""
    socket = _by_handle.get(address) if isinstance(address, int) else address
    if not isinstance(socket, SocketBase):
        raise ZMQError(Errno.ENOTSOCK, hint=f"no open socket of this process is {address!r}")
    return socket._shadowed or socket


def _checked_type(socket_type: int) -> SocketType:
    if type(socket_type) is SocketType and socket_type <= SocketType.STREAM:
        return socket_type
    try:
        number = operator.index(socket_type)
    except TypeError:
        raise TypeError("an integer is required") from None
    if not SocketType.PAIR <= number <= SocketType.STREAM:
        raise UsageError(
            Errno.EINVAL,
            hint=f"there is no socket type {number}; libzmq's draft types are not offered, only "
            + ", ".join(kind.name for kind in SocketType if kind <= SocketType.STREAM),
        )
    return SocketType(number)
