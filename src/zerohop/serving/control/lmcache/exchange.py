"""A controller, and a worker of one, without their sockets: frames in, frames out.

What cannot be read is counted, told to the log now and then, and answered with an error where it
was a question; it never ends who serves the others.
"""

from __future__ import annotations

from zerohop.serving.addresses import reachable_from
from zerohop.serving.control.lmcache.messages import (
    Failure,
    decode_message,
    encode_message,
    request_of,
)
from zerohop.serving.control.protocol import Complaints
from zerohop.serving.errors import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from zerohop.serving.control.lmcache.reporter import LmcacheReporter, Place
    from zerohop.serving.control.lmcache.table import ControllerTable

__all__ = ["ControllerExchange", "WorkerExchange", "where_to_beat"]

_EVERY_INTERFACE = ("0.0.0.0", "[::]")  # noqa: S104 - recognized, not bound


def where_to_beat(heartbeat: str, host: str | None) -> str:
    """Return what workers are told: ``host:port``, or an endpoint that is not of tcp.

    Args:
        heartbeat: the endpoint, as bound.
        host: by which workers reach it; ``None``: the one that it is bound to.

    Raises:
        ValueError: it is bound to every interface, and there is no host.
    """
    if not heartbeat.startswith("tcp://"):
        return heartbeat
    bound, _, port = heartbeat.removeprefix("tcp://").rpartition(":")
    if host is None and bound in _EVERY_INTERFACE:
        raise ValueError(
            f"{heartbeat} is every interface; name the host by which workers reach it "
            "as heartbeat_host"
        )
    return f"{host or bound}:{port}"


class _Complaining:
    """Counts what cannot be read."""

    def __init__(self, who: str) -> None:
        self._who, self._lines = who, list[str]()
        self._complaints = Complaints()

    @property
    def malformed(self) -> int:
        """How many messages could not be read, or made no sense."""
        return self._complaints.counts["malformed"]

    def complain(self, reason: str, now: float) -> None:
        """Something made no sense."""
        line = self._complaints.note("malformed", reason, now)
        if line is not None:
            self._lines.append(f"{self._who}: {line}")

    def lines_to_log(self) -> list[str]:
        """Return what the log is to have now."""
        lines, self._lines = self._lines, []
        return lines


class ControllerExchange(_Complaining):
    """What a controller makes of what it receives. Time is an argument: seconds, monotonic.

    Args:
        table: what it knows.

    Attributes:
        table: as given.
    """

    def __init__(self, table: ControllerTable) -> None:
        super().__init__("LMCache controller")
        self.table = table

    def take(self, frames: Sequence[bytes], now: float) -> None:
        """Take what a worker pushed: any number of messages."""
        for frame in frames:
            try:
                self.table.receive(decode_message(frame), now)
            except Malformed as error:
                self.complain(str(error), now)

    def answer(self, frames: list[bytes], now: float) -> list[list[bytes]]:
        """Take what a worker asked, the routing id first; return the reply, if there is one."""
        route, *request = frames
        try:
            reply = self.table.receive(decode_message(request_of(request)), now)
        except Malformed as error:
            self.complain(str(error), now)
            reply = Failure(str(error))
        return [] if reply is None else [[route, b"", encode_message(reply)]]


class WorkerExchange(_Complaining):
    """What a worker makes of what a controller says. Time is an argument: seconds, monotonic.

    Args:
        reporter: what it has to tell.
        controller: the endpoint that it asks.

    Attributes:
        reporter: as given.
    """

    def __init__(self, reporter: LmcacheReporter, controller: str) -> None:
        super().__init__("LMCache worker")
        self.reporter = reporter
        self._controller = controller
        self._knows_where_to_beat = False

    def receive(self, frames: list[bytes], now: float) -> None:
        """Take what the controller sent."""
        try:
            self.reporter.receive(decode_message(request_of(frames)), now)
        except Malformed as error:
            self.complain(str(error), now)

    def new_heartbeat(self) -> str | None:
        """Return where to connect for heartbeats, once it is known; once.

        A controller says ``host:port``, of its own may say another endpoint, and one that is
        bound to every interface is where it is asked.
        """
        url = self.reporter.heartbeat_url
        if url is None or self._knows_where_to_beat:
            return None
        self._knows_where_to_beat = True
        return reachable_from(url if "://" in url else f"tcp://{url}", self._controller)

    def data_to_send(self, now: float) -> list[tuple[Place, list[bytes]]]:
        """Return what is to be sent now, and through which socket."""
        self.reporter.handle_deadline(now)
        return [
            (place, [data] if place == "push" else [b"", data])
            for place, message in self.reporter.messages_to_send()
            for data in (encode_message(message),)
        ]
