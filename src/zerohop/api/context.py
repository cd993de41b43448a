"""ContextBase: everything about a Context that does not wait.

A kind of Context fills these hooks::

    _socket_class                  what socket() makes
    _start()                       at the end of the constructor
    _wait_released(seconds)        wait until ``_io.drivers`` is empty, at most so many seconds
                                   (None: without limit); whether it is
    _stop()                        nothing is left: end the loop, give descriptors back
"""

from __future__ import annotations

import errno
import os
import sys
import threading
import warnings
import weakref

from zerohop.api import fork
from zerohop.api.context_options import ContextOptionAccess
from zerohop.api.socket import SocketBase, name_of
from zerohop.constants import ContextOption, Errno
from zerohop.core.options import ContextOptions
from zerohop.errors import Again, ContextTerminated, ZMQError
from zerohop.io.context import ContextIO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar, Self

    from zerohop.constants import SocketOption

__all__ = ["ContextBase"]

_by_handle: weakref.WeakValueDictionary[int, ContextBase] = weakref.WeakValueDictionary()


class ContextBase(ContextOptionAccess):
    """Sockets that can reach each other over ``inproc``, their common options, and their end.

    Args:
        io_threads: kept for programs that ask; our sockets need none. Or another Context, as
            ``shadow``.
        shadow: another Context, or the ``underlying`` of one: share its sockets' world instead of
            beginning a new one. Ending a shadow closes what was made by it, and not the other.

    Raises:
        ZMQError: EINVAL, ``io_threads`` is negative.
        TypeError: it is no number.

    Options of new sockets can be set here, as attributes in any case: ``context.linger = 0``. Those
    that a type of socket does not have are ignored for it.
    """

    __slots__ = ("__dict__", "__weakref__", "_closed", "_io", "_options", "_shadowed", "_sockets",
                 "sockopts")  # fmt: skip

    sockopts: dict[SocketOption, Any]

    _socket_class: ClassVar[Any] = SocketBase
    _shown_as: ClassVar[str | None] = None
    _instance: ClassVar[ContextBase | None] = None
    _instance_lock: ClassVar[Any] = threading.Lock()
    _instance_pid: ClassVar[int] = 0

    def __init__(
        self, io_threads: int | ContextBase = 1, shadow: ContextBase | int | None = None
    ) -> None:
        self._closed = True  # until all is there: see __del__
        self.sockopts = {}
        self._sockets: weakref.WeakSet[SocketBase] = weakref.WeakSet()
        if isinstance(io_threads, ContextBase):
            shadow = io_threads
        self._shadowed = _resolve(shadow) if shadow else None
        if self._shadowed is not None:
            self._io: ContextIO = self._shadowed._io
            self._options: ContextOptions = self._shadowed._options
        else:
            if not isinstance(io_threads, int):
                raise TypeError("an integer is required")
            self._options = ContextOptions()
            self._options.set(ContextOption.IO_THREADS, io_threads)
            self._io = ContextIO()
            _by_handle[id(self._io)] = self
        fork.contexts.add(self)
        self._start()
        self._closed = False

    # What a kind of Context fills

    def _start(self) -> None:
        """Begin; nothing to do unless there is a loop of one's own."""

    def _wait_released(self, seconds: float | None) -> bool:
        """Wait until no driver is left; return whether none is. Lock not held."""
        del seconds
        return not self._io.drivers

    def _stop(self) -> None:
        """End what ``_start`` began; nothing is left that needs it. Lock not held."""

    # Who it is

    @property
    def closed(self) -> bool:
        """Whether it was ended, here or (by a fork) in the parent process."""
        return self._closed

    @property
    def underlying(self) -> int:
        """A number by which :meth:`shadow` finds this context in this process; 0 when closed."""
        return 0 if self._closed else id(self._io)

    @classmethod
    def shadow(cls, address: ContextBase | int) -> Self:
        """Return a second Context for the same sockets, perhaps of the other kind.

        Raises:
            ValueError: ``address`` is neither a Context nor a number.
            ZMQError: EFAULT, there is no such context.
        """
        return cls(shadow=address)

    shadow_pyczmq = shadow

    @classmethod
    def instance(cls, *args: Any, **kwargs: Any) -> Self:
        """Return the context that all parts of a program share: one for each class and process.

        A new one when the last was ended, and in a child process. The arguments are those of the
        constructor, for the first call.
        """
        with ContextBase._instance_lock:
            shared = cls.__dict__.get("_instance")
            if shared is None or cls._instance_pid != os.getpid() or shared.closed:
                shared = cls._instance = cls(*args, **kwargs)
                cls._instance_pid = os.getpid()
            return shared

    def __class_getitem__(cls, item: object) -> type[Self]:
        """Return the class itself: pyzmq's ``Context[zmq.Socket]`` is no error here."""
        del item
        return cls

    # Sockets

    def socket(
        self, socket_type: int, socket_class: Callable[..., Any] | None = None, **kwargs: Any
    ) -> Any:
        """Return a new socket with this context's socket options.

        Args:
            socket_type: ``PUSH``, ``SUB``, ...
            socket_class: another class, or a function of context and type.
            kwargs: further arguments of that class.

        Raises:
            ZMQError: ENOTSUP, the context is closed; EINVAL, no such type; EMFILE, MAX_SOCKETS are
                open; ETERM, it is being ended.
            TypeError: ``socket_type`` is no number; an option of the context has a wrong value.
        """
        if self._closed:
            raise ZMQError(Errno.ENOTSUP, hint="the context is closed; make another one")
        make = self._socket_class if socket_class is None else socket_class
        made = make(self, socket_type, **kwargs)
        try:
            for option, value in self.sockopts.items():
                try:
                    made.set(option, value)
                except ZMQError:  # not an option of this type: pyzmq ignores it, too
                    continue
        except BaseException:
            made.close(0)  # nobody else will ever have it
            raise
        return made

    def _check_room(self) -> None:
        """Raise unless a socket may be made now. Lock held."""
        core = self._io.core
        if core.terminated:
            raise ContextTerminated
        if len(core.sockets) >= self._options.max_sockets:
            raise ZMQError(
                errno.EMFILE,
                hint=f"{self._options.max_sockets} sockets are open (the context's MAX_SOCKETS); "
                "close what is not needed, or set the option before the first socket",
            )

    def _add_socket(self, socket: SocketBase) -> None:
        self._sockets.add(socket)

    def _remove_socket(self, socket: SocketBase) -> None:
        self._sockets.discard(socket)

    # The end

    def term(self, timeout: float | None = None) -> None:
        """End the context: wait until its sockets are closed and what they have queued is sent.

        Every call on an open socket now answers ETERM, also those that wait. Sockets must be
        closed by their users; :meth:`destroy` closes them.

        Args:
            timeout: seconds to wait at most; None: without limit.

        Raises:
            Again: the time is over; a note names the sockets that hold the context. They still
                answer ETERM, and ``term`` can be called again.
        """
        if self._closed:
            return
        if self._shadowed is None:
            with self._io.lock:
                self._io.core.terminated = True
                for driver in list(self._io.drivers):
                    driver.woken()
            if not self._wait_released(timeout):
                raise Again(hint=f"the context is held by {self._holders()}")
        if self._shadowed is None:
            self._stop()
        self._closed = True  # at last: a signal handler may have raised, and term() called again

    def _holders(self) -> str:
        still_open = [repr(socket) for socket in self._sockets if not socket.closed]
        lingering = [
            f"a closed {driver.core.type_name} socket with messages for "
            + (", ".join(dialer.address for dialer in driver.core.links.dialers) or "its peers")
            for driver in self._io.drivers
            if driver.core.closed
        ]
        return "; ".join([*still_open, *lingering]) or "nothing any more"

    def destroy(self, linger: int | None = None) -> None:
        """Close every socket made by this context, then :meth:`term`.

        Not while other threads use them.

        Args:
            linger: milliseconds, instead of each socket's LINGER option.
        """
        if self._closed:
            return
        for socket in list(self._sockets):
            if not socket.closed:
                socket.close(linger)
        self._sockets.clear()
        self.term()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Destroy it; a socket that is still open is worth a ResourceWarning."""
        try:
            for socket in list(self._sockets):
                if not (self._closed or socket.closed):
                    warnings.warn(
                        f"Destroying context with unclosed socket {socket}",
                        ResourceWarning,
                        stacklevel=2,
                        source=socket,
                    )
        finally:
            self.destroy()

    def __del__(self) -> None:
        """Its sockets hold it, so they are gone: nothing can be waited for but their messages."""
        try:
            # At exit everything goes: no news to anybody, and no thread is left to wait for.
            if self._closed or self._shadowed is not None or sys.is_finalizing():
                return
        except AttributeError:  # the constructor has failed
            return
        try:
            warnings.warn(f"Unclosed context {self}", ResourceWarning, stacklevel=2, source=self)
        finally:
            self._drop()

    def _drop(self) -> None:
        """End without waiting: what still lingers goes on as long as its loop does."""
        self._closed = True
        self._io.core.terminated = True
        if not self._io.drivers:
            self._stop()

    def __copy__(self, memo: object = None) -> Self:
        """Return a shadow (pyzmq's ``copy.copy``)."""
        del memo
        return type(self).shadow(self)

    __deepcopy__ = __copy__

    def __reduce__(self) -> Any:
        raise TypeError(f"cannot pickle {type(self).__name__}: a context belongs to its process")

    def __repr__(self) -> str:
        name = self._shown_as or name_of(type(self))
        count = len(self._sockets)
        sockets = f"{count} socket{'s' * (count > 1)}" if count else ""
        closed = " closed" if self._closed else ""
        return f"<{name}({sockets}) at {id(self):#x}{closed}>"

    def _abandon(self) -> None:
        """In a forked child: give back copies of descriptors; the parent's sockets go on.

        No lane may lead into a queue that nobody reads, so each Socket is told, too.
        """
        object.__setattr__(self, "_closed", True)
        for driver in list(self._io.drivers):
            driver.abandon()
        self._io.drivers.clear()
        for socket in list(self._sockets):
            for front in (socket, *(socket._shadows or ())):
                front._on_close()


fork.locks.append(ContextBase._instance_lock)


def _resolve(address: ContextBase | int) -> ContextBase:
    """The context that ``shadow`` is told of: the original, where it is itself a shadow."""
    if isinstance(address, ContextBase):
        return address._shadowed or address
    if not isinstance(address, int):
        raise ValueError(f"Cannot cast {address!r} to int")
    context = _by_handle.get(address)
    if context is None:
        raise ZMQError(Errno.EFAULT, hint=f"no open context of this process is {address}")
    return context
