"""The engine's side: a loop that takes requests and sends what its steps make.

    with EngineServer(endpoint, engine="engine-0", info={"model": "m"}) as server:
        while True:
            news = server.receive(timeout=0 if running else None)
            running.update(news.requests)...
            server.send_step([Delta(number, [token]), ...])

One DEALER takes the requests of all API servers, and each of them has a PUSH, whose queue is
bounded. The loop's thread does this I/O itself while it waits; a helper of the Context does it
while the loop computes. The pulse (:mod:`zerohop.serving.engine.pulse`) is a thread apart.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

import msgspec

import zerohop as zmq
from zerohop.serving.addresses import reachable_from
from zerohop.serving.engine.buffers import PayloadDecoder, PayloadEncoder
from zerohop.serving.engine.handshake import FEATURES, Identity, Joined, Left, Refused
from zerohop.serving.engine.messages import (
    PROTOCOL,
    SLOT_SHIFT,
    Abort,
    Delta,
    Ended,
    Hello,
    Leaving,
    Outputs,
    Ready,
    Request,
    Start,
    UtilityCall,
    UtilityResult,
)
from zerohop.serving.engine.outbox import Outbox, by_slot
from zerohop.serving.engine.pulse import Pulse
from zerohop.serving.errors import Malformed, ProtocolMismatch, Unencodable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Self

__all__ = ["EngineServer", "News"]

_log = logging.getLogger(__name__)

_LOOK_EVERY = 0.5  # seconds: how long the loop waits at a time; then it looks at the pulse's events
_RETRY_EVERY = 0.02  # seconds between two tries to send what is owed
_LINGER_MS = 1000  # for the last outputs, when the engine closes
_SLICE = 1024  # messages that one call of receive takes at most


@dataclass(slots=True)
class News:
    """What has come for the engine.

    Attributes:
        requests: new ones, in the order in which they came.
        aborted: numbers of requests that nobody wants any more.
    """

    requests: list[Request[Any]] = field(default_factory=list)
    aborted: list[int] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.requests or self.aborted)


@dataclass(slots=True)
class _Joined:
    """An API server that the engine has joined."""

    boot: int
    push: zmq.Socket
    outbox: Outbox


class EngineServer:
    """Connects an engine to its API servers. For one thread.

    Args:
        servers: the endpoints of the API servers' requests; they need not be there yet.
        engine: its id, which no other engine of these API servers has.
        info: what the API servers are told of it.
        payload: type of the requests' payloads, for msgspec; anything unless given.
        max_requests: that may be open; more are refused as ``EngineOverloaded``.
        outputs_limit: messages that may wait for one API server. One that falls further behind
            loses its requests, which end as ``SlowConsumer``.
        requires: features without which it does not work with an API server.

    Attributes:
        boot: its boot token.
        malformed: messages that could not be read.
        last_malformed: the last of them.
        strays: requests and aborts of an API server that the engine has not joined.
        refusals: by endpoint, why an API server does not take this engine.

    Raises:
        ValueError: the id is empty, or longer than 200 octets.
        ZMQError: an endpoint can't be connected to.
    """

    def __init__(
        self,
        servers: str | Sequence[str],
        *,
        engine: str,
        info: Mapping[str, Any] | None = None,
        payload: Any = Any,
        max_requests: int | None = None,
        outputs_limit: int = 1000,
        requires: Sequence[str] = (),
    ) -> None:
        endpoints = [servers] if isinstance(servers, str) else list(servers)
        self.boot = secrets.randbits(63)
        self.malformed = self.strays = 0
        self.last_malformed: Malformed | None = None
        self.refusals: dict[str, ProtocolMismatch] = {}
        self._endpoints, self._limit, self._max_requests = endpoints, outputs_limit, max_requests
        self._utilities: dict[str, Callable[..., Any]] = {}
        self._servers: dict[int, _Joined] = {}  # by slot
        self._slots: dict[int, int] = {}  # by boot token
        self._next_slot = 0
        self._owing: set[int] = set()  # slots of those who are owed something
        self._encoder = PayloadEncoder()
        self._decoder = PayloadDecoder(Request[payload] | Start | Abort | UtilityCall)
        self._number_alone = PayloadDecoder(Request[msgspec.Raw])
        identity = Identity(engine, self.boot)
        hello = Hello(PROTOCOL, engine, self.boot, list(FEATURES), list(requires), dict(info or {}))
        self._context = zmq.Context()
        try:
            self._dealer = self._context.socket(zmq.DEALER)
            self._dealer.routing_id, self._dealer.linger = identity.routing_id(b"r"), 0
            for endpoint in endpoints:
                self._dealer.ipv6 = "[" in endpoint
                self._dealer.connect(endpoint)
            self._pulse = Pulse(hello, identity.routing_id(b"p"), endpoints)
        except BaseException:
            self._context.destroy(linger=0)
            raise

    @property
    def open(self) -> int:
        """How many requests have not ended."""
        return sum(len(each.outbox.open) for each in self._servers.values())

    @property
    def servers(self) -> int:
        """How many API servers the engine has joined."""
        return len(self._servers)

    def utility(self, name: str, function: Callable[..., Any]) -> None:
        """Let API servers call a function, which :meth:`receive` then runs.

        Args:
            name: by which it is called.
            function: gets the arguments; what it returns, or raises, is sent back.
        """
        self._utilities[name] = function

    def receive(self, timeout: float | None = None) -> News:
        """Take what has come: requests, and numbers of requests that are not wanted any more.

        Utility calls are answered meanwhile.

        Args:
            timeout: seconds to wait for something; 0: not at all; ``None``: without limit.

        Returns:
            What has come; it is empty where the time has run out.

        Raises:
            ProtocolMismatch: no API server takes this engine. The engine goes on asking them.
        """
        news = News()
        give_up = None if timeout is None else time.monotonic() + timeout
        pulse = self._pulse
        while True:
            pulse.progress += 1
            if pulse.events:
                self._take_events(news)
            if self._owing:
                self._pay()
            if timeout == 0 or news:
                self._take_all(news)
            else:
                self._take_one(news, give_up)
            pulse.work = self.open
            if news or (give_up is not None and time.monotonic() >= give_up):
                return news

    def send_step(self, deltas: Sequence[Delta]) -> list[int]:
        """Send what one step made: one message for each API server. Never waits.

        Args:
            deltas: at most one for each request; of any API servers. Buffers in them must stay as
                they are until the message is out.

        Returns:
            Numbers of requests that are not wanted any more: their API server reads too slowly.

        Raises:
            Unencodable: something in a delta has no form on the wire. Nothing was sent to its API
                server.
        """
        self._pulse.progress += 1
        if len(self._servers) != 1:
            return self._send_by_slot(deltas)
        (server,) = self._servers.values()
        return self._send(server, deltas)

    def refuse(self, number: int, reason: str) -> None:
        """End a request with an error: its API server raises ``RequestRefused``.

        Args:
            number: of the request.
            reason: what to tell who asked.
        """
        self._end(Ended(number, "refused", reason))

    def close(self, reason: str = "it was closed") -> None:
        """Say goodbye, after all outputs, and end. What is open ends as ``EngineDead``."""
        if self._context.closed:
            return
        for server in self._servers.values():
            with contextlib.suppress(zmq.ZMQError):
                server.push.send(self._encoder.frames(Leaving(server.boot, self.boot, reason))[0])
            server.push.close(linger=_LINGER_MS)
        self._servers.clear()
        self._slots.clear()
        self._owing.clear()
        self._dealer.close()
        self._pulse.close()
        self._context.term()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close("it was closed" if error is None else f"{type(error).__name__}: {error}")

    # What comes

    def _take_one(self, news: News, give_up: float | None) -> None:
        """Wait for one message, not for too long at a time. What came with it can wait."""
        wait = _RETRY_EVERY if self._owing else _LOOK_EVERY
        if give_up is not None:
            wait = min(wait, max(give_up - time.monotonic(), 0.0))
        try:
            frames = self._dealer.recv_multipart(timeout=wait)
        except zmq.Again:
            return
        self._take(frames, news)

    def _take_all(self, news: News) -> None:
        receive = self._dealer.recv_multipart
        for _ in range(_SLICE):
            try:
                frames = receive(zmq.DONTWAIT)
            except zmq.Again:
                return
            self._take(frames, news)

    def _take(self, frames: list[bytes], news: News) -> None:
        try:
            message = self._decoder.message(frames)
        except Malformed as error:
            self._take_malformed(frames, error)
            return
        match message:
            case Request(number=number):
                if (server := self._servers.get(number >> SLOT_SHIFT)) is None:
                    self.strays += 1
                elif self._max_requests is not None and self.open >= self._max_requests:
                    self._end(Ended(number, "overloaded", limit=self._max_requests))
                else:
                    server.outbox.open.add(number)
                    news.requests.append(message)
            case Abort():
                for number in message.numbers:
                    if (server := self._servers.get(number >> SLOT_SHIFT)) is not None:
                        news.aborted += server.outbox.abort([number])
            case UtilityCall():
                self._call(message)
            case Start():
                self._start(message.server, news)

    def _take_malformed(self, frames: list[bytes], error: Malformed) -> None:
        self.malformed += 1
        self.last_malformed = error
        _log.warning("an API server sent what can't be read: %s", error)
        with contextlib.suppress(Malformed):
            # A request whose payload is wrong has a number: who asked is told.
            number = self._number_alone.message(frames).number
            self._end(Ended(number, "refused", f"its payload can't be read: {error.reason}"))

    def _start(self, boot: int, news: News) -> None:
        if boot not in self._slots and self._pulse.events:
            self._take_events(news)  # the pulse may have heard of it just now
        slot = self._slots.get(boot)
        if slot is not None:
            ready = Ready(boot, self.boot, slot)
            with contextlib.suppress(zmq.Again):  # then it is asked again
                self._servers[slot].push.send(self._encoder.frames(ready)[0])

    def _call(self, call: UtilityCall) -> None:
        if (server := self._servers.get(call.number >> SLOT_SHIFT)) is None:
            self.strays += 1
            return
        function = self._utilities.get(call.name)
        if function is None:
            have = ", ".join(sorted(self._utilities)) or "none"
            result = UtilityResult(call.number, f"there is no such utility (there are: {have})")
        else:
            try:
                result = UtilityResult(call.number, None, self._encoder.lift(function(*call.args)))
                self._encoder.frames(result)
            except Unencodable as error:
                result = UtilityResult(call.number, f"its result has no form on the wire: {error}")
            except Exception as error:  # noqa: BLE001 - the caller's to deal with, over there
                result = UtilityResult(call.number, f"{type(error).__name__}: {error}")
        server.outbox.results.append(result)
        self._owing.add(server.outbox.slot)
        self._pay()

    # What the pulse has heard

    def _take_events(self, news: News) -> None:
        events = self._pulse.events
        while events:
            endpoint, event = events.popleft()
            match event:
                case Joined():
                    self._join(endpoint, event, news)
                case Left():
                    self._leave(event.boot, news)
                case Refused():
                    self.refusals[endpoint] = event.error
                    _log.warning("%s does not take this engine: %s", endpoint, event.error)
                    if not self._servers and self.refusals.keys() >= set(self._endpoints):
                        raise event.error

    def _join(self, endpoint: str, joined: Joined, news: News) -> None:
        self._leave(joined.boot, news)
        self.refusals.pop(endpoint, None)
        push = self._context.socket(zmq.PUSH)
        push.sndhwm, push.linger = self._limit, 0
        push.sndtimeo = 0  # a flag in each call would cost the fast way
        outputs = reachable_from(joined.welcome.outputs, endpoint)
        try:
            push.ipv6 = "[" in outputs
            push.connect(outputs)
        except zmq.ZMQError as error:
            _log.error("%s says that its outputs go to %s: %s", endpoint, outputs, error)
            push.close(linger=0)
            return
        slot = self._next_slot
        self._next_slot += 1
        self._slots[joined.boot] = slot
        self._servers[slot] = _Joined(joined.boot, push, Outbox(slot, self._limit))

    def _leave(self, boot: int, news: News) -> None:
        slot = self._slots.pop(boot, None)
        if slot is not None:
            server = self._servers.pop(slot)
            server.push.close(linger=0)
            news.aborted += sorted(server.outbox.open)
            self._owing.discard(slot)

    # What goes

    def _send_by_slot(self, deltas: Sequence[Delta]) -> list[int]:
        lost: list[int] = []
        for slot, own in by_slot(deltas).items():
            if (server := self._servers.get(slot)) is not None:
                lost += self._send(server, own)
        return lost

    def _send(self, server: _Joined, deltas: Sequence[Delta]) -> list[int]:
        outbox = server.outbox
        deltas = outbox.wanted(deltas)
        if not deltas and not outbox.owes:
            return []
        outputs = Outputs(
            server.boot, self.boot, outbox.seq, deltas, outbox.ended, outbox.results  # type: ignore[arg-type] # a list or a tuple
        )  # fmt: skip
        frames = self._encoder.frames(outputs)
        try:
            if len(frames) == 1:
                server.push.send(frames[0])
            else:
                server.push.send_multipart(frames, copy=False)
        except zmq.Again:
            self._owing.add(outbox.slot)
            return outbox.overflow() if deltas else []
        outbox.sent(deltas)
        self._owing.discard(outbox.slot)
        return []

    def _pay(self) -> None:
        """Send what is owed, where there is room."""
        for slot in list(self._owing):
            self._send(self._servers[slot], [])

    def _end(self, ended: Ended) -> None:
        slot = ended.number >> SLOT_SHIFT
        if (server := self._servers.get(slot)) is not None:
            server.outbox.end(ended)
            self._owing.add(slot)
            self._pay()
