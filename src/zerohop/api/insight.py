"""What a socket tells about itself: statistics when asked, and the classic mistakes unasked."""

from __future__ import annotations

from zerohop.constants import Errno, PollEvent, SocketType
from zerohop.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.api.statistics import PeerInfo, SocketStats
    from zerohop.core.socket import SocketCore
    from zerohop.io.driver import SocketDriver

__all__ = ["InsightMethods"]


class InsightMethods:
    """The part of a Socket that libzmq does not have."""

    __slots__ = ()

    if TYPE_CHECKING:
        _core: SocketCore
        _driver: SocketDriver
        _mistakes: frozenset[str]

    def stats(self) -> SocketStats:
        """Return queues, traffic and drops of the whole socket, at this moment."""
        from zerohop.api import statistics  # not worth its time where nobody asks

        with self._driver.lock:
            self._see_all()
            return statistics.stats(self._core)

    def peers(self) -> list[PeerInfo]:
        """Return who is connected, who will be, and what is queued for whom, at this moment."""
        from zerohop.api import statistics  # not worth its time where nobody asks

        with self._driver.lock:
            self._see_all()
            return statistics.peers(self._core)

    def _see_all(self) -> None:
        """Have what was sent queued for whom it goes to, as if the driver's turn had come."""
        core = self._core
        if core.pattern.hands_out and not core.closed:
            core.pattern.hand_out()
            self._driver.woken()

    def last_error(self, endpoint: str) -> Exception | None:
        """Return what went wrong last at an endpoint; None: nothing since it is connected.

        Raises:
            ZMQError: ENOENT, no such tcp or ipc endpoint.
        """
        from zerohop.api import statistics  # not worth its time where nobody asks

        with self._driver.lock:
            return statistics.last_error(self._core, endpoint)

    def _check_publisher(self) -> None:
        """Refuse to wait for subscribers where there can be none.

        Raises:
            UsageError: ENOTSUP, neither PUB nor XPUB.
        """
        core = self._core
        if core.type not in (SocketType.PUB, SocketType.XPUB):
            raise UsageError(
                Errno.ENOTSUP,
                hint=f"a {core.type_name} socket has no subscribers: only PUB and XPUB do; "
                "wait_connected() waits for peers",
            )

    def _warn_before_waiting(self, event: int) -> None:
        """Say once what can never come true as things are; called before a call waits.

        Args:
            event: what is waited for: POLLIN, POLLOUT or both.

        Log lines and not ``warnings``: another thread may be about to put it right.
        """
        core = self._core
        if (
            event & PollEvent.POLLIN
            and core.type == SocketType.SUB
            and not core.pattern.topics_count()
        ):
            self._warn(
                "waits for messages and has not subscribed to any; "
                'subscribe("") receives everything'
            )
        if not (
            core.links.dialers or core.links.listeners or core.inproc.names or core.links.peers
        ):
            self._warn("waits, and is neither bound nor connected to anything")

    def _warn(self, mistake: str) -> None:
        if mistake not in self._mistakes:
            vars(self)["_mistakes"] = self._mistakes | {mistake}
            from zerohop.io.log import log

            log.warning("%s socket %s", self._core.type_name, mistake)
