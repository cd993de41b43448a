"""What a poll waits for that is the system's and not ours: descriptors, and objects that have one.

While a poll waits for sockets too, its descriptors are put into an epoll of their own, and the
reactor watches *its* descriptor: another thread, or the reactor itself, may watch the same numbers
for something else.
"""

from __future__ import annotations

import select as system

from zerohop.constants import PollEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from zerohop.io.reactor import Reactor
    from zerohop.io.seat import Waiter

_IN, _OUT, _ERR, _PRI = map(
    int, (PollEvent.POLLIN, PollEvent.POLLOUT, PollEvent.POLLERR, PollEvent.POLLPRI)
)


class SystemItems:
    """Those of a poll's items that are the system's, not ours."""

    def __init__(self) -> None:
        self._items: list[int] = []
        self._flags: dict[int, int] = {}
        self._epoll: Any = None

    def add(self, item: Any, flags: int) -> None:
        """Wait for ``flags`` of this, too.

        Raises:
            TypeError: it is no descriptor, and has none.
        """
        fd = descriptor_of(item)
        if fd not in self._flags:
            self._items.append(fd)
        self._flags[fd] = self._flags.get(fd, 0) | flags

    def wait(self, timeout: float) -> list[tuple[Any, int]]:
        """What is ready after at most ``timeout`` milliseconds, negative: whenever it is."""
        if not self._items:
            return []
        ready = _system_poll(self._flags, timeout)
        # By its number, whatever was given: as pyzmq.
        return [(fd, ready[fd]) for fd in self._items if fd in ready]

    def watch(self, reactor: Reactor, waiter: Waiter) -> None:
        """Wake ``waiter`` when any of them is ready. Lock held."""
        if not self._items:
            return
        if hasattr(system, "epoll"):
            self._epoll = system.epoll()
            for fd, flags in self._flags.items():
                self._epoll.register(fd, _system_flags(flags))
            reactor.add_reader(self._epoll.fileno(), waiter.wake)
            return
        for fd, flags in self._flags.items():
            if flags & ~_OUT:
                reactor.add_reader(fd, waiter.wake)
            if flags & _OUT:
                reactor.add_writer(fd, waiter.wake)

    def unwatch(self, reactor: Reactor) -> None:
        """Undo :meth:`watch`. Lock held."""
        if self._epoll is not None:
            reactor.remove_reader(self._epoll.fileno())
            self._epoll.close()
            self._epoll = None
            return
        for fd in self._flags:
            reactor.remove_reader(fd)
            reactor.remove_writer(fd)


def descriptor_of(item: Any) -> int:
    """The number of a descriptor, or of what has one.

    Raises:
        TypeError: it is no descriptor, and has none.
    """
    if isinstance(item, int):
        return item
    if hasattr(item, "fileno"):
        return int(item.fileno())
    raise TypeError(
        f"Socket must be a 0MQ socket, an integer fd or have a fileno() method: {item!r}"
    )


def _system_flags(flags: int) -> int:
    return (
        (system.POLLIN if flags & _IN else 0)
        | (system.POLLOUT if flags & _OUT else 0)
        | (system.POLLPRI if flags & _PRI else 0)
    )


def _system_poll(wanted: dict[int, int], timeout: float) -> dict[int, int]:
    """Wait for descriptors alone; what each of them is ready for, in our flags."""
    if not hasattr(system, "poll"):  # Windows
        return _system_select(wanted, timeout)
    poll = system.poll()
    for fd, flags in wanted.items():
        poll.register(fd, _system_flags(flags))
    ready = {}
    for fd, events in poll.poll(None if timeout < 0 else timeout):
        found = (
            (_IN if events & system.POLLIN else 0)
            | (_OUT if events & system.POLLOUT else 0)
            | (_PRI if events & system.POLLPRI else 0)
        )
        if events & ~(system.POLLIN | system.POLLOUT | system.POLLPRI):
            found |= _ERR  # broken, hung up, or closed: as libzmq, whether asked for or not
        ready[fd] = found
    return ready


def _system_select(wanted: dict[int, int], timeout: float) -> dict[int, int]:
    readable, writable, failed = system.select(
        [fd for fd, flags in wanted.items() if flags & _IN],
        [fd for fd, flags in wanted.items() if flags & _OUT],
        [fd for fd, flags in wanted.items() if flags & (_ERR | _PRI)],
        None if timeout < 0 else timeout / 1000,
    )
    ready: dict[int, int] = {}
    for fds, flag in ((readable, _IN), (writable, _OUT), (failed, _ERR)):
        for fd in fds:
            ready[fd] = ready.get(fd, 0) | flag
    return ready
