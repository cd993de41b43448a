"""The calls of a blocking socket that wait for something other than a message."""

from __future__ import annotations

from zerohop.api.insight import InsightMethods
from zerohop.api.options import SocketOptionAccess
from zerohop.constants import Errno, PollEvent, SocketOption
from zerohop.errors import Again, ZMQError
from zerohop.sync.waiters import AT_ONCE, NEWS, OVER, POLLER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from zerohop.core.socket import SocketCore
    from zerohop.io.driver import SocketDriver
    from zerohop.io.reactor import Reactor
    from zerohop.sync.front import Front

    _T = TypeVar("_T")


class WaitMethods(InsightMethods, SocketOptionAccess):
    """For peers, for subscribers, for readiness."""

    __slots__ = ()

    _core: SocketCore
    _driver: SocketDriver
    _front: Front
    _reactor: Reactor

    def get(self, option: int) -> int | bytes:
        """Return an option's value (``zmq_getsockopt``). EVENTS first does what I/O can be done.

        Raises:
            ZMQError: EINVAL, no such option, or it can only be set; ENOTSOCK, closed; ETERM.
            TypeError: ``option`` is no number.
        """
        if option == SocketOption.EVENTS and not self._core.closed:
            with self._driver.lock:
                self._reactor.poll()
        return super().get(option)

    def poll(self, timeout: float | None = None, flags: int = PollEvent.POLLIN) -> int:
        """Wait until the socket is ready.

        Args:
            timeout: milliseconds; None or negative: without limit.
            flags: ``POLLIN``, ``POLLOUT`` or both.

        Returns:
            Those of ``flags`` that it is ready for; 0 when the time is over.

        Raises:
            ZMQError: ENOTSUP, the socket is closed; ETERM.
        """
        if self._core.closed:
            raise ZMQError(Errno.ENOTSUP)
        wanted = int(flags)
        ready = self._front.ready(wanted)
        if ready:
            return ready
        seconds = None if timeout is None or timeout < 0 else timeout / 1000
        return self._wait_until(
            lambda: self._front.ready(wanted), wanted | POLLER, seconds, warn_of=wanted
        )

    def wait_connected(self, timeout: float | None = None) -> None:
        """Wait until every endpoint it connects to has a peer; if it only binds, for the first one.

        A peer is there when its handshake is done.

        Args:
            timeout: seconds; None: without limit.

        Raises:
            Again: not in time; a note names the endpoints and their last errors.
        """
        if not self._wait_until(self._core.connected, NEWS, timeout):
            raise Again(hint=self._core.why_not_connected())

    def wait_for_subscribers(
        self, topic: bytes | str = b"", n: int = 1, timeout: float | None = None
    ) -> None:
        """Wait until ``n`` connected peers would get a message that starts with ``topic``.

        For PUB and XPUB: the end of ``sleep(0.1)`` for slow joiners.

        Args:
            topic: as :meth:`subscribe` takes it at the other end.
            n: how many peers.
            timeout: seconds; None: without limit.

        Raises:
            Again: not in time; a note says how many there are.
            UsageError: ENOTSUP, no other type has subscribers.
        """
        self._check_publisher()
        prefix = topic.encode() if isinstance(topic, str) else topic
        pattern = self._core.pattern
        if not self._wait_until(lambda: pattern.subscribers(prefix) >= n, NEWS, timeout):
            there = pattern.subscribers(prefix)
            raise Again(hint=f"{there} of {n} subscribers to {prefix!r}")

    def _wait_until(
        self, condition: Callable[[], _T], mask: int, seconds: float | None, warn_of: int = 0
    ) -> _T:
        """Wait until a condition of the core is true, or the time is over; return what it gives.

        Args:
            condition: asked again whenever something has happened that ``mask`` names.
            mask: as :meth:`Waiters.wait` has it.
            seconds: the time; None: without limit.
            warn_of: the events of a wait that is worth a warning if it cannot end.
        """
        waiters = self._front.waiters
        with self._driver.lock:
            deadline = waiters.deadline(0, seconds, None)
            while True:
                with self._driver.context:
                    self._core.check_open()
                    value = condition()
                    if value or deadline == OVER:
                        return value
                    if warn_of and deadline != AT_ONCE:
                        self._front.check(self, warn_of)
                deadline = waiters.wait(mask, deadline)
