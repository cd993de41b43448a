"""The engine's I/O thread: it says who the engine is, and that it is alive, whatever the loop does.

It has a Context of its own, so that neither waits for the other: while the loop waits for requests
it does its I/O itself, and this thread wakes once a beat. It needs the interpreter's lock now and
then: a loop that holds it for as long as ``gone_after`` looks gone.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque

import msgspec

import zerohop as zmq
from zerohop.serving.codec import decode_with
from zerohop.serving.engine.handshake import ServerLink
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


class Pulse:
    """Keeps an engine known to its API servers.

    Args:
        hello: what it says of itself.
        routing_id: of its sockets.
        endpoints: of the API servers' requests.

    Attributes:
        progress: of the engine's loop, which counts it up.
        work: how many requests the loop has open, which it writes.
        events: what has happened, by endpoint; the loop takes from it.
        malformed: messages that could not be read.

    Raises:
        ZMQError: an endpoint can't be connected to.
    """

    def __init__(self, hello: Hello, routing_id: bytes, endpoints: Sequence[str]) -> None:
        self.progress = self.work = self.malformed = 0
        self.events: deque[tuple[str, LinkEvent]] = deque()
        self._decode = msgspec.msgpack.Decoder(FromServer).decode
        self._encode = msgspec.msgpack.Encoder().encode
        self._context = zmq.Context()
        self._links: list[tuple[str, zmq.Socket, zmq.Socket, ServerLink]] = []
        try:
            self._stopper = self._context.socket(zmq.PAIR)
            self._stopper.bind("inproc://stop")
            self._stopped = self._context.socket(zmq.PAIR)
            self._stopped.connect("inproc://stop")
            for endpoint in endpoints:
                dealer = self._context.socket(zmq.DEALER)
                dealer.routing_id, dealer.linger, dealer.sndhwm = routing_id, 0, _QUEUED
                dealer.ipv6 = "[" in endpoint
                end_when_unreachable(dealer)
                dealer.tcp_maxrt = UNACKNOWLEDGED_MS
                broken = dealer.get_monitor_socket(zmq.EVENT_DISCONNECTED)
                dealer.connect(endpoint)
                link = ServerLink(hello, time.monotonic())
                self._links.append((endpoint, dealer, broken, link))
        except BaseException:
            self._context.destroy(linger=0)
            raise
        self._thread = threading.Thread(target=self._run, name="zerohop-pulse", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End; the API servers see the connection close."""
        with contextlib.suppress(zmq.ZMQError):
            self._stopper.send(b"", zmq.DONTWAIT)
        self._thread.join()
        self._context.destroy(linger=0)

    def _run(self) -> None:
        poller = zmq.Poller()
        poller.register(self._stopped, zmq.POLLIN)
        for _, dealer, broken, _ in self._links:
            poller.register(dealer, zmq.POLLIN)
            poller.register(broken, zmq.POLLIN)
        while True:
            for endpoint, dealer, broken, link in self._links:
                if _has_something(broken):
                    self._tell(endpoint, link.broke(time.monotonic()))
                self._serve(endpoint, dealer, link)
            soonest = min((link.next_deadline() for *_, link in self._links), default=None)
            wait = None if soonest is None else max(soonest - time.monotonic(), 0.001) * 1000
            if self._stopped in dict(poller.poll(wait)):
                return

    def _serve(self, endpoint: str, dealer: zmq.Socket, link: ServerLink) -> None:
        for _ in range(_SLICE):
            try:
                frames = dealer.recv_multipart(zmq.DONTWAIT)
            except zmq.Again:
                break
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
        for each in link.to_send:
            with contextlib.suppress(zmq.Again):  # nobody is there: it is said again
                dealer.send(self._encode(each), zmq.DONTWAIT)
        link.to_send.clear()

    def _tell(self, endpoint: str, events: list[LinkEvent]) -> None:
        self.events.extend((endpoint, event) for event in events)


def _has_something(socket: zmq.Socket) -> bool:
    """Take all that has come, and return whether it was anything."""
    has_something = False
    with contextlib.suppress(zmq.Again):
        while True:
            socket.recv_multipart(zmq.DONTWAIT)
            has_something = True
    return has_something
