"""The descriptor of a socket, for programs that wait by other means than ours (ZMQ_FD)."""

from __future__ import annotations

from zerohop.constants import PollEvent
from zerohop.io.signal import Signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.core.socket import SocketCore

_IN, _OUT = int(PollEvent.POLLIN), int(PollEvent.POLLOUT)


class Descriptor:
    """Readable while a message can be received, and from when one can be sent until that is seen.

    Were it readable for as long as the socket is writable, a program that waits for messages would
    never sleep.

    Args:
        core: the socket's.

    Attributes:
        fd: the number.
    """

    __slots__ = ("_became_writable", "_core", "_signal", "_was_writable", "fd")

    def __init__(self, core: SocketCore) -> None:
        self._core = core
        self._signal = Signal()
        self._was_writable = False
        self._became_writable = False
        self.fd = self._signal.fd

    def show(self) -> None:
        """Something may have changed."""
        core = self._core
        if core.closed or core.context.terminated:
            self._signal.set()  # whoever waits shall look, and get ENOTSOCK or ETERM
            return
        events = core.ready()
        writable = bool(events & _OUT)
        if writable and not self._was_writable:
            self._became_writable = True
        self._was_writable = writable
        if events & _IN or self._became_writable:
            self._signal.set()
        else:
            self._signal.clear()

    def asked(self) -> None:
        """The program has seen what the socket is ready for."""
        self._became_writable = False
        self.show()

    def close(self) -> None:
        """Give the number back."""
        self._signal.close()
