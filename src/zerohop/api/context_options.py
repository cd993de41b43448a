"""Options of a Context: its own, and those that its new sockets begin with."""

from __future__ import annotations

from zerohop.api.options import option_named
from zerohop.constants import ContextOption, SocketOption

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from zerohop.core.options import ContextOptions

__all__ = ["ContextOptionAccess"]

_OWN: dict[str, ContextOption] = dict(ContextOption.__members__)
_MISSING = object()


class ContextOptionAccess:
    """The methods and attributes by which a Context's options are read and set.

    A name in any case is an option of the context (``max_sockets``), else a socket option that
    new sockets begin with (``linger``). IPV6 and BLOCKY are both: by attribute the sockets' one.
    """

    __slots__ = ()

    if TYPE_CHECKING:
        _closed: bool
        _options: ContextOptions
        sockopts: dict[SocketOption, Any]

    def get(self, option: int) -> int:
        """Return an option of the context (``zmq_ctx_get``).

        Raises:
            ZMQError: EINVAL, no such option, or it can only be set.
            TypeError: ``option`` is no number.
            RuntimeError: the context is closed.
        """
        self._check_open()
        return self._options.get(option)

    def set(self, option: int, optval: int) -> None:
        """Set an option of the context (``zmq_ctx_set``), for sockets made from now on.

        Raises:
            ZMQError: EINVAL, no such option, or not a value it takes.
            TypeError: one of the two is no number.
            RuntimeError: the context is closed.
        """
        self._check_open()
        if not isinstance(optval, int):
            raise TypeError(f"expected int, got: {optval!r}")
        self._options.set(option, optval)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("Context has been destroyed")

    def getsockopt(self, opt: int) -> Any:
        """Return what :meth:`setsockopt` has set for new sockets.

        Raises:
            KeyError: nothing.
        """
        return self.sockopts[SocketOption(opt)]

    def setsockopt(self, opt: int, value: Any) -> None:
        """Set an option of all sockets made from now on; its value is looked at only then.

        Raises:
            ValueError: there is no such option.
        """
        self.sockopts[SocketOption(opt)] = value

    def __getattr__(self, name: str) -> Any:  # whatever was set
        own = _OWN.get(name.upper())
        if own is not None:
            return self.get(own)
        try:
            return self.sockopts[self._socket_option(name)]
        except KeyError:
            raise AttributeError(name.upper()) from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name[0] == "_" or hasattr(type(self), name) or name in self.__dict__:
            object.__setattr__(self, name, value)
        elif (own := _OWN.get(name.upper())) is not None:
            self.set(own, value)
        else:
            self.sockopts[self._socket_option(name)] = value

    def __delattr__(self, name: str) -> None:
        """Forget a default socket option."""
        option = option_named(name)
        if name in self.__dict__:
            object.__delattr__(self, name)
        elif option is None:
            raise AttributeError(f"No such socket option: {name.upper()!r}")
        elif self.sockopts.pop(option, _MISSING) is _MISSING:
            raise AttributeError(name.upper())

    def _socket_option(self, name: str) -> SocketOption:
        option = option_named(name)
        if option is None:
            raise AttributeError(f"{type(self).__name__} has no such option: {name.upper()}")
        return option

    def __dir__(self) -> list[str]:
        """Return what the object has, and the options of contexts and sockets."""
        return sorted({*super().__dir__(), *_OWN, *SocketOption.__members__})
