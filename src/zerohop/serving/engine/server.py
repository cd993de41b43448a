"""The engine's side: a loop that takes requests and sends what its steps make.

    with EngineServer(endpoint, engine="engine-0", info={"model": "m"}) as server:
        while True:
            news = server.receive(timeout=0 if running else None)
            running.update(news.requests)...
            server.send_step([Delta(number, [token]), ...])

One DEALER takes the requests of all API servers, and each of them has a PUSH, whose queue is
bounded. The loop's thread does this I/O itself while it waits; a thread of the Context does it
while the loop computes. The pulse (:mod:`zerohop.serving.engine.pulse`) is a thread apart.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import time
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from operator import index
from typing import Any

import zerohop as zmq
from zerohop.serving.addresses import reachable_from
from zerohop.serving.arguments import apart, seconds, text, whole
from zerohop.serving.closing import Closing, closed_error
from zerohop.serving.engine.buffers import PayloadDecoder, PayloadEncoder
from zerohop.serving.engine.handshake import FEATURES, Identity, Joined, Left, Refused
from zerohop.serving.engine.messages import (
    PROTOCOL,
    SLOT_SHIFT,
    Abort,
    Delta,
    Ended,
    FromEngine,
    Hello,
    Leaving,
    Outputs,
    Ready,
    Request,
    Start,
    UtilityCall,
    UtilityResult,
    as_read,
    first_numbers,
)
from zerohop.serving.engine.outbox import Outbox, Step, by_slot
from zerohop.serving.engine.pulse import Pulse
from zerohop.serving.engine.unreachable import end_when_unreachable
from zerohop.serving.errors import Malformed, ProtocolMismatch, Unencodable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["EngineServer", "News"]

_log = logging.getLogger(__name__)

_LOOK_EVERY = 0.5  # seconds: how long the loop waits at a time; then it looks at the pulse's events
_RETRY_EVERY = 0.02  # seconds between two tries to send what is owed
_LINGER_MS = 1000  # for the last outputs, when the engine closes
_SLICE = 1024  # messages that one call of receive takes at most
_LONGEST = 10_000  # characters of a text that says why


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

    endpoint: str
    boot: int
    life: int
    push: zmq.Socket
    outbox: Outbox


class EngineServer(Closing):
    """Connects an engine to its API servers. For one thread.

    Args:
        servers: the endpoints of the API servers' requests; they need not be there yet. One that
            is named twice counts once.
        engine: its id, which no other engine of these API servers has.
        info: what the API servers are told of it.
        payload: type of the requests' payloads, for msgspec; anything unless given.
        max_requests: that may be open; more are refused as ``EngineOverloaded``.
        outputs_limit: messages that may wait for one API server. One that falls further behind
            loses its requests, which end as ``SlowConsumer``. 0: any number, and all of them are
            held in memory.
        requires: features without which it does not work with an API server.

    Attributes:
        boot: its boot token.
        malformed: messages that could not be read.
        last_malformed: the last of them.
        strays: requests and aborts of an API server that the engine has not joined.
        unencodable: outputs without a form on the wire, which have ended their requests.
        refusals: by endpoint, why an API server does not take this engine.

    Raises:
        TypeError: an argument is of another kind.
        ValueError: the id is empty, or longer than 200 octets; a limit is below 0; there is no
            endpoint, or one of ``inproc``.
        Unencodable: something in ``info`` or ``requires`` can't be told to API servers.
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
        endpoints = [servers] if isinstance(servers, str) else _texts("servers", servers)
        endpoints = list(dict.fromkeys(apart("servers", each) for each in endpoints))
        if not endpoints:
            raise ValueError("servers has no endpoint: an engine works for one API server at least")
        if info is not None and not isinstance(info, Mapping):
            raise TypeError(f"info is a dict of what API servers are told, not {info!r:.64}")
        self.boot = secrets.randbits(63)
        self.malformed = self.strays = self.unencodable = 0
        self.last_malformed: Malformed | None = None
        self.refusals: dict[str, ProtocolMismatch] = {}
        self._mismatch: ProtocolMismatch | None = None  # to be raised
        self._endpoints, self._limit = endpoints, whole("outputs_limit", outputs_limit)
        self._max_requests = None if max_requests is None else whole("max_requests", max_requests)
        self._utilities: dict[str, Callable[..., Any]] = {}
        self._servers: dict[int, _Joined] = {}  # by slot
        self._slots: dict[int, int] = {}  # by boot token
        self._next_slot = 0
        self._owing: set[int] = set()  # slots of those who are owed something
        self._encoder = PayloadEncoder()
        self._decoder = PayloadDecoder(Request[payload] | Start | Abort | UtilityCall)
        identity = Identity(text("engine", engine), self.boot)
        needs = _texts("requires", requires)
        hello = as_read(
            Hello(PROTOCOL, engine, self.boot, list(FEATURES), needs, dict(info or {})),
            FromEngine,
        )
        self._context = zmq.Context()
        try:
            self._dealer = self._context.socket(zmq.DEALER)
            self._dealer.routing_id, self._dealer.linger = identity.routing_id(b"r"), 0
            for endpoint in endpoints:
                self._dealer.ipv6 = "[" in endpoint
                end_when_unreachable(self._dealer)
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

        Raises:
            TypeError: it is none, or the name no text.
        """
        if not callable(function):
            raise TypeError(f"a utility is a function, not {function!r:.64}")
        self._utilities[text("name", name)] = function

    def receive(self, timeout: float | None = None) -> News:
        """Take what has come: requests, and numbers of requests that are not wanted any more.

        Utility calls are answered meanwhile. Without a limit to the time it returns with the first
        message, as nothing is to be waited for then; what came with it is for the next call.

        Args:
            timeout: seconds to wait for something; 0: not at all; ``None``: without limit.

        Returns:
            What has come; it is empty where the time has run out.

        Raises:
            ProtocolMismatch: no API server takes this engine; raised once for each reason. The
                engine goes on asking them.
            TypeError, ValueError: the timeout is no time.
            RuntimeError: the server is closed.
        """
        if self._is_closed:
            raise closed_error(self)
        if timeout is not None:
            timeout = seconds("timeout", timeout)
        news = News()
        give_up = None if timeout is None else time.monotonic() + timeout
        pulse = self._pulse
        while True:
            pulse.progress += 1
            if pulse.events:
                self._take_events(news)
            if self._mismatch is not None and not news:
                mismatch, self._mismatch = self._mismatch, None
                raise mismatch
            if self._owing:
                self._pay()
            if timeout == 0 or news:
                self._take_all(news)
            else:
                self._take_one(news, give_up)
                if news and timeout is not None:
                    self._take_all(news)
            pulse.work = self.open
            if news or (give_up is not None and time.monotonic() >= give_up):
                return news

    def send_step(self, deltas: Sequence[Delta]) -> list[int]:
        """Send what one step made: one message for each API server. Never waits.

        Args:
            deltas: at most one for each request; of any API servers. Buffers in them must stay as
                they are until the message is out.

        Returns:
            Numbers of requests that are not wanted any more: their API server reads too slowly, or
            their delta has no form on the wire, and they have ended as ``RequestRefused``.

        Raises:
            TypeError: what is given are no deltas, or the number of one is no whole number. Nothing
                was sent.
            RuntimeError: the server is closed.
        """
        if self._is_closed:
            raise closed_error(self)
        if not hasattr(type(deltas), "__iter__"):
            raise TypeError(f"a step is a list of Delta, not {deltas!r:.64}")
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

        Raises:
            TypeError: the number is no whole number.
        """
        number = whole("number", number)
        self._end(Ended(number, "refused", _encodable(reason)))

    def close(self, reason: str = "it was closed") -> None:
        """Say goodbye, after all outputs, and end. What is open ends as ``EngineDead``.

        Args:
            reason: what the API servers are told, in words.
        """
        if self._is_closed:
            return
        self._is_closed = True
        reason = _encodable(reason)
        self._pulse.is_leaving = True
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

    def __exit__(self, *raised: object) -> None:
        error = raised[1]
        self.close(_words_for(error) if isinstance(error, BaseException) else "it was closed")

    # What comes

    def _take_one(self, news: News, give_up: float | None) -> None:
        """Wait for one message, not for too long at a time."""
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
                frames = receive(timeout=0)  # a flag costs more
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
        if self.malformed & (self.malformed - 1) == 0:  # the first, the second, the fourth ...
            _log.warning("message %d that can't be read: %s", self.malformed, error)
        match first_numbers(frames[0], 2):  # who asked is told
            case [9, number]:  # a Request
                self.refuse(number, f"its payload can't be read: {error.reason}")
            case [11, number]:  # a UtilityCall
                why = _encodable(f"its arguments can't be read: {error.reason}")
                self._answer(UtilityResult(number, why))

    def _start(self, boot: int, news: News) -> None:
        if boot not in self._slots and self._pulse.events:
            self._take_events(news)  # the pulse may have heard of it just now
        slot = self._slots.get(boot)
        if slot is not None:
            server = self._servers[slot]
            ready = Ready(boot, self.boot, slot, server.life)
            with contextlib.suppress(zmq.Again):  # then it is asked again
                server.push.send(self._encoder.frames(ready)[0])

    def _call(self, call: UtilityCall) -> None:
        if (server := self._servers.get(call.number >> SLOT_SHIFT)) is None:
            self.strays += 1
            return
        function = self._utilities.get(call.name)
        if function is None:
            have = ", ".join(sorted(self._utilities)) or "none"
            why = _encodable(f"there is no such utility (there are: {have})")
            result = UtilityResult(call.number, why)
        else:
            try:
                result = UtilityResult(call.number, None, self._encoder.lift(function(*call.args)))
                self._owed(server, [], [result])
            except Unencodable as error:
                why = f"its result has no form on the wire: {error}"
                result = UtilityResult(call.number, _encodable(why))
            except Exception as error:  # noqa: BLE001 - the caller's to deal with, over there
                result = UtilityResult(call.number, _words_for(error))
        self._answer(result)

    def _answer(self, result: UtilityResult) -> None:
        slot = result.number >> SLOT_SHIFT
        if (server := self._servers.get(slot)) is not None:
            server.outbox.results.append(result)
            self._owing.add(slot)
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
                    if str(self.refusals.get(endpoint)) == str(event.error):
                        continue  # it was asked again, and says the same
                    self.refusals[endpoint] = event.error
                    _log.warning("%s does not take this engine: %s", endpoint, event.error)
                    if not self._servers and self.refusals.keys() >= set(self._endpoints):
                        self._mismatch = event.error

    def _join(self, endpoint: str, joined: Joined, news: News) -> None:
        known = self._servers.get(self._slots.get(joined.boot, -1))
        if known is not None and known.endpoint != endpoint:  # each takes over the other's place
            _log.warning("%s and %s are one API server: name it once", known.endpoint, endpoint)
        self._leave(joined.boot, news)
        self.refusals.pop(endpoint, None)
        push = self._context.socket(zmq.PUSH)
        push.sndhwm, push.linger = self._limit, 0
        push.sndtimeo = 0  # a flag in each call would cost the fast way
        end_when_unreachable(push)
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
        outbox = Outbox(slot, self._limit)
        self._servers[slot] = _Joined(endpoint, joined.boot, joined.welcome.life, push, outbox)

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
        has_room = not outbox.owes or self._pay_to(server)
        step = outbox.wanted(deltas)
        if not step:
            return []
        if not has_room:
            return self._overflow(outbox)
        try:
            frames = self._step(server, step)
        except Unencodable:
            return self._send_apart(server, step)
        if not _put(server, frames):
            return self._overflow(outbox)
        outbox.sent(step)
        return []

    def _send_apart(self, server: _Joined, step: Step) -> list[int]:
        """Send a step that has no form on the wire: what is wrong in it ends alone."""
        lost = []
        ones = map(Delta, step.numbers, [[token] for token in step.tokens])
        for delta in [*ones, *step.deltas]:
            one = Step([], [], [delta])
            try:
                frames = self._step(server, one)
            except Unencodable as error:
                self.unencodable += 1
                if self.unencodable & (self.unencodable - 1) == 0:
                    _log.warning("output of request %d: %s", delta.number, error)
                lost.append(delta.number)
                self.refuse(delta.number, f"its output has no form on the wire: {error}")
                continue
            if server.outbox.owes or not _put(server, frames):
                return lost + self._overflow(server.outbox)
            server.outbox.sent(one)
        return lost

    def _overflow(self, outbox: Outbox) -> list[int]:
        self._owing.add(outbox.slot)
        return outbox.overflow()

    def _step(self, server: _Joined, step: Step) -> list[Any]:
        """The frames of what a step made."""
        deltas = [self._ready(delta) for delta in step.deltas]
        seq = server.outbox.seq
        outputs = Outputs(
            server.boot, self.boot, server.life, seq, step.numbers, step.tokens, deltas
        )
        return self._encoder.frames(outputs)

    def _ready(self, delta: Delta) -> Delta:
        """A delta as it travels: what an API server can't read would end the engine there."""
        finish = delta.finish
        if finish is not None and not isinstance(finish, str):
            raise Unencodable(finish, "a finish is a str")
        if isinstance(delta.token_ids, Mapping | AbstractSet | str | bytes):
            raise Unencodable(delta.token_ids, "tokens are a list of whole numbers")
        try:
            tokens = [index(token) for token in delta.token_ids]
        except TypeError as error:
            raise Unencodable(delta.token_ids, f"tokens are whole numbers: {error}") from error
        try:
            extra = self._encoder.lift(delta.extra)
        except ValueError as error:  # a memoryview that was released
            raise Unencodable(delta.extra, str(error)) from error
        return Delta(delta.number, tokens, finish, extra)

    def _owed(self, server: _Joined, ended: list[Ended], results: list[UtilityResult]) -> list[Any]:
        """The frames of what is owed."""
        outputs = Outputs[list[int]](
            server.boot, self.boot, server.life, server.outbox.seq, [], [], [], ended, results
        )
        return self._encoder.frames(outputs)

    def _pay(self) -> None:
        """Send what is owed, where there is room."""
        for slot in list(self._owing):
            self._pay_to(self._servers[slot])

    def _pay_to(self, server: _Joined) -> bool:
        """Send what is owed to one of them; return whether there was room for all of it."""
        outbox = server.outbox
        while outbox.owes:
            # Each result is a message of its own: together they may be more than a message holds.
            results = [] if outbox.ended else outbox.results[:1]
            if not _put(server, self._owed(server, outbox.ended, results)):
                self._owing.add(outbox.slot)
                return False
            outbox.paid()
        self._owing.discard(outbox.slot)
        return True

    def _end(self, ended: Ended) -> None:
        slot = ended.number >> SLOT_SHIFT
        if (server := self._servers.get(slot)) is not None:
            server.outbox.end(ended)
            self._owing.add(slot)
            self._pay()


def _texts(name: str, given: Sequence[str]) -> list[str]:
    """Texts that a user gives, of which there may be several."""
    if isinstance(given, str | bytes) or not hasattr(type(given), "__iter__"):
        raise TypeError(f"{name} is a list of str, not {given!r:.64}")
    return [text(f"each of {name}", each) for each in given]


def _put(server: _Joined, frames: list[Any]) -> bool:
    """Send a message; return whether there was room for it."""
    try:
        if len(frames) == 1:
            server.push.send(frames[0])
        else:
            server.push.send_multipart(frames, copy=False)
    except zmq.Again:
        return False
    return True


def _encodable(text: object) -> str:
    """Words of an engine, which may be anything, such that they can be sent."""
    try:
        words = str(text)
    except Exception as failure:  # noqa: BLE001 - of the value's own making
        words = f"(its text raised {type(failure).__name__})"
    return words[:_LONGEST].encode(errors="backslashreplace").decode()


def _words_for(error: BaseException) -> str:
    return ": ".join(filter(None, (_encodable(type(error).__name__), _encodable(error))))
