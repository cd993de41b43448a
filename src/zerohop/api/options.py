"""Options by method and by attribute: ``s.get(LINGER)``, ``s.linger``, ``s.LINGER``.

A class with ``__getattr__`` pays for it with each look-up of whatever name: CPython finds neither
methods nor slots of such a class the short way (3.11: 40 ns more a call of ``s.send``, 20 ns more
for ``s._front``). So every option stands in the class, twice, and a name that is no option is an
AttributeError in Python's words. Only an *assignment* is looked at here, and costs 0.2 us: state
that changes with each message belongs in an object of its own, which the socket merely has
(``self._state.x``).
"""

from __future__ import annotations

from zerohop.constants import Errno, SocketOption
from zerohop.errors import ZMQError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from zerohop.core.socket import SocketCore
    from zerohop.io.driver import SocketDriver

__all__ = ["OptionAttribute", "SocketOptionAccess", "option_named"]

_OPTIONS: dict[str, SocketOption] = {
    **{name.lower(): option for name, option in SocketOption.__members__.items()},
    **SocketOption.__members__,
}
_METHODS_TOO = frozenset({"subscribe", "unsubscribe"})  # assigned to, they are options


def option_named(name: str) -> SocketOption | None:
    """Return the socket option of that name in any case, or None."""
    return _OPTIONS.get(name) or _OPTIONS.get(name.upper())


class OptionAttribute:
    """An option as an attribute of a Socket.

    Args:
        name: of the attribute.
        option: which one.
    """

    __slots__ = ("_name", "_option")

    def __init__(self, name: str, option: SocketOption) -> None:
        self._name = name
        self._option = option

    def __get__(self, socket: SocketOptionAccess | None, kind: type) -> Any:
        if socket is None:
            return self
        try:
            return socket.get(self._option)
        except ZMQError as error:
            if error.errno in (Errno.EINVAL, Errno.EFAULT):
                raise AttributeError(f"{self._name} attribute is write-only") from error
            raise

    def __set__(self, socket: SocketOptionAccess, value: Any) -> None:
        socket.set(self._option, value)


class SocketOptionAccess:
    """The methods and attributes by which a Socket's options are read and set.

    A class's own attributes are those that it has on the class, those whose names begin with an
    underscore, and those that an instance puts into ``__dict__`` itself; an assignment to any other
    name is to an option (in any case), or a mistake.
    """

    __slots__ = ()

    # Before the methods and properties of that name, which take their places.
    vars().update({name: OptionAttribute(name, option) for name, option in _OPTIONS.items()})

    if TYPE_CHECKING:
        _core: SocketCore
        _driver: SocketDriver

        def __getattr__(self, name: str) -> Any:
            """What an option's value is, int or bytes, depends on the option."""

    def get(self, option: int) -> int | bytes:
        """Return an option's value in libzmq's units (``zmq_getsockopt``).

        Raises:
            ZMQError: EINVAL, no such option, not one of this type, or it can only be set;
                ENOTSOCK, the socket is closed; for EVENTS also ETERM.
            TypeError: ``option`` is no number.
        """
        driver = self._driver
        with driver.lock:
            if option == SocketOption.EVENTS:
                return int(driver.events())
            if option == SocketOption.FD:
                return driver.fileno()
            return self._core.get_option(option)

    def set(self, option: int, value: Any) -> None:
        """Set an option, the value in libzmq's units (``zmq_setsockopt``).

        Raises:
            ZMQError: EINVAL, no such option, not one of this type, or not a value it takes;
                ENOTSOCK, the socket is closed. Nothing has changed.
            TypeError: the value is not of the kind that the option takes (``str`` never is), or
                ``option`` is no number.
            OverflowError: a number too large.
        """
        driver, core = self._driver, self._core
        with driver.lock:
            core.set_option(option, value)
            if core.pattern.announcements:
                self._announce(value)
            else:
                driver.pump()

    def _announce(self, topic: bytes) -> None:
        """Tell the peers of a subscription, or of its end, now or with what may follow. Lock held.

        Args:
            topic: what was (un)subscribed last.
        """
        del topic
        self._driver.pump()

    def getsockopt(self, option: int) -> int | bytes:
        """As :meth:`get`; pyzmq's older name."""
        return self.get(option)

    def setsockopt(self, option: int, value: Any) -> None:
        """As :meth:`set`; pyzmq's older name."""
        self.set(option, value)

    def get_string(self, option: int, encoding: str = "utf-8") -> str:
        """Return the value of an option of octets, decoded.

        Raises:
            TypeError: the option's value is a number.
            ZMQError: as :meth:`get`.
        """
        value = self.get(option)
        if not isinstance(value, bytes):
            raise TypeError(f"option {option} will not return a string to be decoded")
        return value.decode(encoding)

    def set_string(self, option: int, optval: str, encoding: str = "utf-8") -> None:
        """Set an option of octets to the encoded text.

        Raises:
            TypeError: ``optval`` is no ``str``, or the option wants a number.
            ZMQError: as :meth:`set`.
        """
        if not isinstance(optval, str):
            raise TypeError(f"strings only, not {type(optval)}: {optval!r}")
        self.set(option, optval.encode(encoding))

    getsockopt_string = getsockopt_unicode = get_string
    setsockopt_string = setsockopt_unicode = set_string

    def get_hwm(self) -> int:
        """Return SNDHWM, in messages per peer."""
        return int(self.get(SocketOption.SNDHWM))

    def set_hwm(self, value: int) -> None:
        """Set SNDHWM and RCVHWM, in messages per peer; 0: no limit.

        Raises:
            ZMQError: EINVAL, negative.
        """
        self.set(SocketOption.SNDHWM, value)
        self.set(SocketOption.RCVHWM, value)

    @property
    def hwm(self) -> int:
        """Both high-water marks at once: :meth:`get_hwm`, :meth:`set_hwm`."""
        return self.get_hwm()

    @hwm.setter
    def hwm(self, value: int) -> None:
        self.set_hwm(value)

    def subscribe(self, topic: str | bytes) -> None:
        """Receive what begins with ``topic``, too (SUB; ZMQ_SUBSCRIBE). ``""``: everything.

        A ``str`` is encoded as UTF-8. Subscribing twice needs two :meth:`unsubscribe`.

        Raises:
            ZMQError: EINVAL, not a SUB (nor an XPUB with XPUB_MANUAL).
            TypeError: neither ``str`` nor ``bytes``.
        """
        self.set(SocketOption.SUBSCRIBE, topic.encode() if isinstance(topic, str) else topic)

    def unsubscribe(self, topic: str | bytes) -> None:
        """Take one :meth:`subscribe` back; nothing happens when there was none.

        Raises:
            ZMQError, TypeError: as :meth:`subscribe`.
        """
        self.set(SocketOption.UNSUBSCRIBE, topic.encode() if isinstance(topic, str) else topic)

    def __setattr__(self, name: str, value: Any) -> None:
        if name[0] == "_":
            object.__setattr__(self, name, value)
        elif name in _METHODS_TOO:
            getattr(self, name)(value)
        elif hasattr(type(self), name) or name in self.__dict__:
            object.__setattr__(self, name, value)
        else:
            option = option_named(name)
            if option is None:
                raise AttributeError(f"{type(self).__name__} has no such option: {name.upper()}")
            self.set(option, value)
