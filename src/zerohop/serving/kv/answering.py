"""The publisher's second thread: it answers who missed something, and waits for the slow ones.

Each answer goes to one reader, who is sent as much as there is room for, and then left alone until
there is room again. The others are answered meanwhile, and so is who comes new. A ROUTER says that
there is no room (EAGAIN) only when it is asked to send, so it is asked again soon, and then less
and less often while the reader takes nothing.

A REQ takes one reply to a request, and would take a second one for the reply to its next request.
So it is sent the first message of an answer alone. Its requests look like those of vLLM's DEALERs,
delimiter and all; what it is, it said in its handshake (RFC 37, "Socket-Type").
"""

from __future__ import annotations

import logging
import time
from collections import deque
from dataclasses import dataclass, field
from itertools import islice

import zerohop as zmq
from zerohop.serving.actor import ActorThread, bound
from zerohop.serving.errors import Malformed
from zerohop.serving.kv.replies import parse_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from zerohop.serving.kv.replies import Request

__all__ = ["AnsweringThread"]

_log = logging.getLogger(__name__)

_SLICE = 16  # messages to one reader, before it is another's turn
_REST = 0.0002  # seconds between slices, for the engine's thread: the GIL is let go of at once
_SOON, _LATER = 0.001, 0.05  # seconds until a reader without room is tried again
_MAX_WAITING = 1024  # requests whose turn has not come
_FRAMES_OF_A_CORRELATED_REQ = 3  # its number, the delimiter, the request


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request whose turn has not come."""

    envelope: list[bytes]
    request: Request
    one_reply: bool


@dataclass(slots=True)
class _Reader:
    """An answer under way.

    Attributes:
        envelope: goes before each message: the identity, and what a REQ_CORRELATE put after it.
        messages: the answer's.
        unsent: the message that there was no room for.
        try_at: when there may be room for it.
        pause: until it is tried again after that.
        moved_at: when the reader last took something.
    """

    envelope: list[bytes]
    messages: Iterator[list[bytes]]
    unsent: list[bytes] | None = None
    try_at: float = 0.0
    pause: float = _SOON
    moved_at: float = field(default_factory=time.monotonic)


class AnsweringThread(ActorThread):
    """A ROUTER in a Context and a thread of its own. Where it is closed nothing more is answered.

    Args:
        endpoint: where to bind.
        answer: makes the messages that answer a request, without the identity.
        max_readers: how many are answered at the same time; the others wait for their turn.
        patience: seconds in which a reader must take something, or it is given up.
        hwm: how many messages may be on their way to one reader.

    Attributes:
        endpoint: where it is bound.
        answered: how many answers were sent to the end.
        refused: requests that could not be read, or that came when too many were waiting.
        given_up: answers that were not sent to the end: the reader went away, or took nothing.
        failed: requests whose answer raised.

    Raises:
        ZMQError: the endpoint can't be bound.
    """

    _name = "zerohop-kv-answers"

    def __init__(
        self,
        endpoint: str,
        answer: Callable[[Request], Iterator[list[bytes]]],
        *,
        max_readers: int,
        patience: float,
        hwm: int = 1000,
    ) -> None:
        super().__init__()
        self._answer, self._max_readers, self._patience = answer, max_readers, patience
        self.answered = self.refused = self.given_up = self.failed = 0
        self._found: list[list[bytes]] = []  # and not looked at yet
        self._readers: dict[bytes, _Reader] = {}
        self._waiting: deque[_Asked] = deque()
        self._has_ended = False  # an answer, so that another may begin
        with self._starting():
            router = self._context.socket(zmq.ROUTER)
            router.sndhwm = hwm
            router.router_mandatory = True  # or what has no room is thrown away
            self._router: zmq.Socket = bound(router, endpoint)
            self.endpoint: str = router.last_endpoint.decode()
            router.peers()  # the first time takes milliseconds: not from the first who asks
            self._listen(router, lambda frames, _: self._found.append(frames))

    def _leave(self) -> None:
        self._readers.clear()
        self._waiting.clear()

    def _turn(self, now: float) -> float | None:
        if self._found:
            self._look()
        self._begin()
        for reader in list(self._readers.values()):
            self._serve(reader)
            time.sleep(_REST)
        if self._waiting and self._has_ended:
            return now
        return min((reader.try_at for reader in self._readers.values()), default=None)

    def _look(self) -> None:
        """Read what was asked."""
        found, self._found = self._found, []
        requesters = {p.routing_id for p in self._router.peers() if p.socket_type == "REQ"}
        for identity, *frames in found:
            envelope, one_reply = [identity], identity in requesters
            if one_reply and len(frames) == _FRAMES_OF_A_CORRELATED_REQ:
                envelope.append(frames.pop(0))
            try:
                request = parse_request(frames)
            except Malformed:
                self.refused += 1
                continue
            if len(self._waiting) < _MAX_WAITING:
                self._waiting.append(_Asked(envelope, request, one_reply))
            else:
                self.refused += 1

    def _begin(self) -> None:
        """Start the answers whose turn it is. One reader's are given one after the other."""
        self._has_ended = False
        put_off: list[_Asked] = []
        while self._waiting and len(self._readers) < self._max_readers:
            asked = self._waiting.popleft()
            identity = asked.envelope[0]
            if identity in self._readers:
                put_off.append(asked)
                continue
            try:
                messages = self._answer(asked.request)
            except Exception:  # noqa: BLE001 - one request must not end the thread of all
                self.failed += 1
                _log.exception("a request for %s could not be answered", asked.request.ask)
                continue
            if asked.one_reply:
                messages = islice(messages, 1)
            self._readers[identity] = _Reader(asked.envelope, messages)
        self._waiting.extendleft(reversed(put_off))

    def _serve(self, reader: _Reader) -> None:
        """Send what there is room for now, and not too much of it."""
        now = time.monotonic()
        if now < reader.try_at:
            return
        for sent in range(_SLICE):
            if reader.unsent is None:
                reader.unsent = next(reader.messages, None)
                if reader.unsent is None:
                    self._end(reader, done=True)
                    return
            try:
                self._router.send_multipart([*reader.envelope, *reader.unsent], zmq.DONTWAIT)
            except zmq.Again:
                if sent:
                    reader.moved_at, reader.pause = now, _SOON
                elif now - reader.moved_at > self._patience:
                    self._end(reader, done=False)
                    return
                reader.try_at = now + reader.pause
                reader.pause = min(2 * reader.pause, _LATER)
                return
            except zmq.ZMQError as error:
                if error.errno != zmq.EHOSTUNREACH:
                    raise
                self._end(reader, done=False)  # it has gone away
                return
            reader.unsent = None
        reader.moved_at, reader.pause, reader.try_at = now, _SOON, 0.0

    def _end(self, reader: _Reader, *, done: bool) -> None:
        del self._readers[reader.envelope[0]]
        self._has_ended = True
        if done:
            self.answered += 1
        else:
            self.given_up += 1
