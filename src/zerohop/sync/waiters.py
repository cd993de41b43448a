"""Who waits in one blocking socket: for what, and until when.

A wait is over when the core *may* answer otherwise than Again; whoever waited then asks it, and
perhaps waits on. One of those that want to receive is woken at a time, the others when it leaves
something (so a message wakes one thread and not twenty), and likewise of those that want to send.
"""

from __future__ import annotations

from zerohop.constants import Flag, PollEvent
from zerohop.errors import ZMQError
from zerohop.io.lookout import make_lookout
from zerohop.io.seat import FOREVER, Waiter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.core.socket import SocketCore
    from zerohop.io.lookout import Lookout
    from zerohop.io.reactor import Reactor

# What a mask is made of.
IN = int(PollEvent.POLLIN)
OUT = int(PollEvent.POLLOUT)
POLLER = 1 << 20  # only looks: does not keep a message from waking somebody else
NEWS = 1 << 21  # whatever happens to the socket

# Deadlines besides those on the reactor's clock.
AT_ONCE = 0.0  # do the I/O that can be done, and no more
OVER = -1.0  # the time is over: the next Again is the caller's

_DONTWAIT = int(Flag.DONTWAIT)


class Waiters:
    """The waiting calls of one socket. Every method is called with the lock held.

    Args:
        core: the socket's.
        reactor: what a wait drives, or sleeps on.

    Attributes:
        waiting: who waits, for what, in the order they came. Changed by :meth:`add` and
            :meth:`remove` alone.
    """

    __slots__ = ("_core", "_lookout", "_reactor", "_spare", "waiting")

    def __init__(self, core: SocketCore, reactor: Reactor) -> None:
        self._core = core
        self._reactor = reactor
        self._lookout: Lookout | None = None  # until the first wait
        self._spare: Waiter | None = None  # of a wait that is over, to be used again
        self.waiting: dict[Waiter, int] = {}

    def deadline(self, flags: int, timeout: float | None, option: float | None) -> float:
        """When a call gives up.

        Args:
            flags: DONTWAIT: at once.
            timeout: seconds, as the call was given it; None: as the option says.
            option: RCVTIMEO or SNDTIMEO in seconds; None: never.

        Raises:
            TypeError: ``timeout`` is no number.
        """
        seconds = option if timeout is None else timeout
        try:
            if flags & _DONTWAIT or (seconds is not None and seconds <= 0):
                return AT_ONCE
        except TypeError:
            raise TypeError(f"timeout is a number of seconds or None, not {timeout!r}") from None
        return FOREVER if seconds is None else self._reactor.time() + seconds

    def wait(self, mask: int, deadline: float) -> float:
        """Wait until the core should be asked again.

        Returns:
            The deadline for the next wait, if the core still says no: ``OVER`` when it has passed.
        """
        core = self._core
        if core.links.to_resume or core.context.writable:  # as in ready()
            core.driver.go_on_soon()
        if deadline == AT_ONCE:
            self._reactor.poll()
            return OVER
        waiter, self._spare = self._spare, None
        if waiter is None:
            waiter = Waiter(self._reactor)
        waiter.done = False
        waiter.lookout = (
            self._lookout or self._first_lookout()
            if self._reactor.moment and core.links.open_links
            else None
        )
        waiting = self.waiting
        waiting[waiter] = mask
        try:
            return deadline if self._reactor.wait(waiter, deadline) else OVER
        finally:
            del waiting[waiter]
            self._spare = waiter
            if waiting:
                self.wake()

    def new(self) -> Waiter:
        """A call that waits for this socket, perhaps for others too.

        It looks before it sleeps only where the network may have an answer: over ``inproc`` it
        comes from a thread of this process, which would be kept from the interpreter.
        """
        if not (self._reactor.moment and self._core.links.open_links):
            return Waiter(self._reactor)
        return Waiter(self._reactor, self._lookout or self._first_lookout())

    def _first_lookout(self) -> Lookout | None:
        """Most of a thousand sockets never wait."""
        self._lookout = make_lookout(self._reactor.moment)
        return self._lookout

    def add(self, waiter: Waiter, mask: int) -> None:
        """Wake ``waiter`` when the socket is ready for ``mask``, or has come to its end."""
        self.waiting[waiter] = mask

    def remove(self, waiter: Waiter) -> None:
        """Forget the waiter; what it did not use is somebody else's."""
        self.waiting.pop(waiter, None)
        if self.waiting:
            self.wake()

    def ready(self, wanted: int) -> int:
        """As ``core.ready``, which may have thrown away what cannot be received, and made room."""
        core = self._core
        ready = core.ready(wanted)
        if core.links.to_resume or core.context.writable:
            core.driver.go_on_soon()
        return ready

    def wake(self) -> None:
        """Wake those whose wait is over."""
        waiting = self.waiting
        try:
            ready = self.ready(IN | OUT) | NEWS
        except ZMQError:  # closed, or the context is terminated: everybody shall hear of it
            self.wake_all()
            return
        free = ready  # what nobody has been woken for yet
        for waiter, mask in waiting.items():
            if mask & (POLLER | NEWS):
                if mask & ready:
                    waiter.wake()
            elif mask & free:
                waiter.wake()
                free &= ~mask

    def wake_all(self) -> None:
        """Let everybody see for themselves that the socket has come to its end."""
        for waiter in self.waiting:
            waiter.wake()
