"""The engine's I/O thread: it says who the engine is, and that it is alive, whatever the loop does.

It has a Context of its own, so that neither waits for the other: while the loop waits for requests
it does its I/O itself, and this thread wakes once a beat. It needs the interpreter's lock now and
then: a loop that holds it for as long as ``gone_after`` looks gone.
"""

from __future__ import annotations

import logging
import time
from collections import deque

import msgspec

import zerohop as zmq
from zerohop.serving.actor import ActorThread, connected, waiting
from zerohop.serving.codec import decode_with
from zerohop.serving.engine.handshake import Refused, ServerLink
from zerohop.serving.engine.messages import FromServer
from zerohop.serving.engine.unreachable import UNACKNOWLEDGED_MS, end_when_unreachable
from zerohop.serving.errors import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from zerohop.serving.engine.handshake import LinkEvent
    from zerohop.serving.engine.messages import Hello

__all__ = ["Pulse"]

_log = logging.getLogger(__name__)

_QUEUED = 2  # messages for an API server that is not there: what it should hear is what is new
_SLICE = 16  # messages of one API server, before it is another's turn


class Pulse(ActorThread):
    """Keeps an engine known to its API servers.

    Args:
        hello: what it says of itself.
        routing_id: of its sockets.
        endpoints: of the API servers' requests.

    Attributes:
        progress: of the engine's loop, which counts it up.
        work: how many requests the loop has open, which it writes.
        is_leaving: it says nothing any more: who hears that the engine leaves, and then a beat of
            it, would ask it to join anew.
        events: what has happened, by endpoint; the loop takes from it.
        malformed: messages that could not be read.

    Raises:
        ZMQError: an endpoint can't be connected to.
    """

    _name = "zerohop-pulse"

    def __init__(self, hello: Hello, routing_id: bytes, endpoints: Sequence[str]) -> None:
        super().__init__()
        self.progress = self.work = self.malformed = 0
        self.is_leaving = False
        self.events: deque[tuple[str, LinkEvent]] = deque()
        self._decode = msgspec.msgpack.Decoder(FromServer).decode
        self._encode = msgspec.msgpack.Encoder().encode
        self._links: list[tuple[str, zmq.Socket, zmq.Socket, ServerLink]] = []
        with self._starting():
            for endpoint in endpoints:
                dealer = self._context.socket(zmq.DEALER)
                dealer.routing_id, dealer.sndhwm = routing_id, _QUEUED
                end_when_unreachable(dealer)
                dealer.tcp_maxrt = UNACKNOWLEDGED_MS
                broken = dealer.get_monitor_socket(zmq.EVENT_DISCONNECTED)
                connected(dealer, endpoint)
                for socket in (dealer, broken):
                    self._poller.register(socket, zmq.POLLIN)
                link = ServerLink(hello, time.monotonic())
                self._links.append((endpoint, dealer, broken, link))

    def _turn(self, now: float) -> float | None:
        for endpoint, dealer, broken, link in self._links:
            if any([*waiting(broken)]):  # before what a new connection has brought
                self._tell(endpoint, link.broke(now))
            self._serve(endpoint, dealer, link)
        return min((link.next_deadline() for *_, link in self._links), default=None)

    def _serve(self, endpoint: str, dealer: zmq.Socket, link: ServerLink) -> None:
        for frames in waiting(dealer, _SLICE):
            try:
                message = decode_with(self._decode, frames[0])
            except Malformed as error:
                self.malformed += 1
                if self.malformed & (self.malformed - 1) == 0:  # the first, the second, the fourth
                    _log.warning("%s sent what can't be read: %s", endpoint, error)
                continue
            self._tell(endpoint, link.receive(message, time.monotonic()))
        now = time.monotonic()
        if now >= link.next_deadline():
            self._tell(endpoint, link.handle_deadline(now, self.progress, self.work))
        for each in () if self.is_leaving else link.to_send:
            self._send(dealer, [self._encode(each)])  # where nobody is there it is said again
        link.to_send.clear()

    def _tell(self, endpoint: str, events: list[LinkEvent]) -> None:
        for event in events:
            untold = [each for place, each in list(self.events) if place == endpoint]
            if isinstance(event, Refused) and untold and isinstance(untold[-1], Refused):
                continue  # once a second, while the loop may load its model for an hour
            self.events.append((endpoint, event))
