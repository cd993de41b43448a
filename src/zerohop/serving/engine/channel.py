"""An API server's sockets, and how requests get to engines: what both kinds of programs have.

    a request ──► choose an engine ──► ROUTER      ROUTER, PULL, monitor ──► Exchange ──► streams

What comes is the business of the :class:`~zerohop.serving.engine.exchange.Exchange`; how it is
waited for, and how readers wait, of ``asyncio_channel`` and of ``channel_thread``.
"""

from __future__ import annotations

import logging
import os
import secrets
from abc import abstractmethod
from typing import Any

import zerohop as zmq
from zerohop.serving.actor import ContextOwner
from zerohop.serving.addresses import ipc_endpoint, outputs_beside
from zerohop.serving.engine.buffers import PayloadEncoder
from zerohop.serving.engine.exchange import Exchange, OpenCall
from zerohop.serving.engine.handshake import Identity
from zerohop.serving.engine.messages import Abort, Request, UtilityCall
from zerohop.serving.engine.unreachable import end_when_unreachable
from zerohop.serving.errors import EngineDead, EngineOverloaded, RequestRefused, ServingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from zerohop.serving.engine.liveness import Patience
    from zerohop.serving.engine.roster import Member
    from zerohop.serving.engine.streams import OpenStream

__all__ = ["ABORT_AGAIN", "LAST_OUTPUTS", "LISTEN", "LISTEN_LONGEST", "Channel"]

LAST_OUTPUTS = 0.02  # seconds without outputs, after which a broken connection is the end
ABORT_AGAIN = 0.1  # seconds
LISTEN = 8  # turns, in each of which the sockets are looked at, before anybody is late
LISTEN_LONGEST = 200  # turns, where outputs never cease
_HWM = 10_000  # messages that may be waiting from one engine
_LINGER_MS = 200  # for the goodbye
_NO_ENGINE = "no engine is ready; wait_for_engines() waits for one"

_log = logging.getLogger(__name__)


class Channel(ContextOwner):
    """Everything between one API server and its engines.

    Args:
        endpoint: as of :class:`~zerohop.serving.EngineClient`, like those that follow.
        outputs: likewise.
        name: likewise.
        patience: likewise.
        requests_limit: likewise.
        stream_limit: likewise.
        end_hung: likewise.
        requests_fd: likewise.
        outputs_fd: likewise.

    Attributes:
        endpoint: where requests are bound.
        outputs_endpoint: where outputs are bound.
        exchange: what has come, and what follows from it.

    Raises:
        ZMQError: an endpoint can't be bound.
    """

    def __init__(
        self,
        endpoint: str | None,
        outputs: str | None,
        name: str,
        patience: Patience,
        *,
        requests_limit: int,
        stream_limit: int,
        end_hung: bool,
        requests_fd: int,
        outputs_fd: int,
    ) -> None:
        super().__init__()
        boot = secrets.randbits(63)
        self._requests_limit, self._hung_after = requests_limit, patience.hung_after
        self._encoder = PayloadEncoder()
        self._count = 0  # of requests and calls
        with self._starting():
            self._context.linger = _LINGER_MS
            self._router = self._context.socket(zmq.ROUTER)
            self._router.router_mandatory = True  # or what has no room is thrown away
            # An engine that was cut off comes back before its old connection is known to be broken.
            self._router.router_handover = True
            self._router.sndhwm, self._router.rcvhwm = requests_limit, _HWM
            self._pull = self._outputs_context().socket(zmq.PULL)
            self._pull.rcvhwm = _HWM
            for each in (self._router, self._pull):
                end_when_unreachable(each)
            place = endpoint
            if place is None:
                place = ipc_endpoint(f"engines of {os.getpid()}: {boot}")
            self.endpoint = _bind(self._router, place, requests_fd)
            place = outputs_beside(self.endpoint) if outputs is None else outputs
            self.outputs_endpoint = _bind(self._pull, place, outputs_fd)
            self.exchange = Exchange(
                name, boot, self.outputs_endpoint, patience,
                stream_limit=stream_limit, end_hung=end_hung,
            )  # fmt: skip

    def _outputs_context(self) -> Any:
        """The Context of the PULL."""
        return self._context

    @abstractmethod
    def held(self) -> AbstractContextManager[Any]:
        """Return what is to be entered by who looks at the exchange, or changes it."""

    @abstractmethod
    def _post(self, member: Member, message: list[Any], *, copy: bool) -> None:
        """Send a message to an engine's loop now, or raise ZMQError."""

    @abstractmethod
    def _say(self, routing_id: bytes, message: Any) -> bool:
        """Send a message that may be lost; return whether it is on its way."""

    # What is asked of engines

    def open(
        self,
        payload: Any,
        seconds: float | None,
        priority: int,
        engine: str | None,
        waiter: Any,
        now: float,
    ) -> OpenStream:
        """Give a request to an engine. Within :meth:`held`.

        Args:
            payload: lifted by :meth:`lift`.
            seconds: it has.
            priority: see there.
            engine: the id of who is to have it; the least loaded one unless given.
            waiter: of its reader.
            now: the time.

        Raises:
            RequestRefused: no engine is ready, or not this one.
            EngineOverloaded: there is no room.
            EngineDead: the engine that was named has just gone.
            Unencodable: the payload has no form on the wire.
        """
        while True:
            member = self._member(engine, str(self._count + 1))
            number, identity = self._number(member), member.identity
            frames = self._encoder.frames(Request(number, payload, priority, seconds))
            streams = self.exchange.streams
            try:
                # Open before it is sent: an interrupt in between leaves nothing that is unknown.
                stream = streams.open(number, identity.engine, identity.boot, now, seconds)
                stream.waiter = waiter
                self._hand_over(member, frames)
                member.liveness.has_work(True, now)
                return stream
            except BaseException as error:
                if (begun := streams.find(identity.boot, number)) is None:
                    raise
                if not isinstance(error, ServingError):
                    self.exchange.abandon(begun, now)
                    raise
                streams.abort(begun)  # the engine does not have it
                if isinstance(error, EngineDead) and engine is None:
                    continue  # another one may have it: this one is not chosen again
                raise

    def ask(
        self, name: str, arguments: Sequence[Any], engine: str | None, waiter: Any
    ) -> tuple[int, OpenCall]:
        """Call a utility of an engine; return the call and its number. Within :meth:`held`.

        Args:
            name: of the utility.
            arguments: each lifted by :meth:`lift`.
            engine: the id of the one that is asked; there must be just one unless given.
            waiter: of who calls.

        Raises:
            RequestRefused: no engine is ready, or not this one, or it must be named.
            EngineOverloaded: there is no room.
            EngineDead: the engine has just gone.
            Unencodable: an argument has no form on the wire.
        """
        if engine is None and len(self.exchange.roster.members()) > 1:
            raise RequestRefused(
                f"to call {name!r}", f"there are several engines; name one{self._ready()}"
            )
        member = self._member(engine, f"to call {name!r}")
        number = self._number(member)
        self._hand_over(member, self._encoder.frames(UtilityCall(number, name, list(arguments))))
        call = self.exchange.calls[number] = OpenCall(member.identity.boot, name, waiter)
        return number, call

    def lift(self, value: Any) -> Any:
        """Return something for an engine, made ready to be sent.

        Raises:
            Unencodable: as of :meth:`~zerohop.serving.engine.buffers.PayloadEncoder.lift`.
        """
        return self._encoder.lift(value)

    def why_not(self) -> str | None:
        """What is known of engines that are not ready."""
        refusals = self.exchange.refusals
        if not refusals:
            return None
        return "; ".join(f"engine {name} was not taken: {why}" for name, why in refusals.items())

    def is_ready(self, count: int) -> bool:
        """Whether so many engines are ready."""
        return sum(each.takes_requests for each in self.exchange.roster.members()) >= count

    def _member(self, engine: str | None, request_id: str) -> Member:
        exchange = self.exchange
        if engine is None:
            member = exchange.roster.choose(exchange.streams.load)
        else:
            member = exchange.roster.member(engine)
        if member is None or member.slot is None:
            why = _NO_ENGINE if engine is None else f"engine {engine} is not ready{self._ready()}"
            raise RequestRefused(request_id, why, hint=self.why_not())
        if member.is_breaking:
            raise EngineDead(member.identity.engine, "its connection broke")
        return member

    def _ready(self) -> str:
        """Which engines are, as an error says it."""
        members = self.exchange.roster.members()
        ready = sorted(each.identity.engine for each in members if each.takes_requests)
        return f" (ready: {', '.join(ready) or 'none'})"

    def _number(self, member: Member) -> int:
        self._count += 1
        return self.exchange.roster.number(member, self._count)

    def _hand_over(self, member: Member, frames: list[Any]) -> None:
        """Send to an engine's loop.

        Raises:
            EngineOverloaded: there is no room.
            EngineDead: it is not there.
        """
        if self.exchange.aborts:
            self._send_aborts()  # or this would overtake them
        try:
            self._post(member, [member.takes, *frames], copy=len(frames) == 1)
        except zmq.Again:
            raise EngineOverloaded(
                member.identity.engine,
                self._requests_limit,
                hint="so many messages wait for it: requests_limit",
            ) from None
        except zmq.ZMQError as error:
            member.is_breaking = True  # what has come of it is read before it is given up
            raise EngineDead(member.identity.engine, f"no connection: {error}") from error

    # What else is said

    def _send_aborts(self) -> None:
        """Tell engines what nobody wants any more; what there is no room for is kept."""
        exchange = self.exchange
        for takes, numbers in list(exchange.aborts.items()):
            identity = Identity.of(takes)
            is_there = identity is not None and exchange.roster.of(identity.boot) is not None
            if not is_there or self._say(takes, Abort(numbers)):
                del exchange.aborts[takes]  # not before: an interrupt may come

    def _speak(self) -> None:
        """Say, to engines and in the log, what the exchange has to say."""
        exchange = self.exchange
        while exchange.to_say:
            self._say(*exchange.to_say[0])
            del exchange.to_say[0]  # not before: an interrupt may come
        remarks, exchange.remarks = exchange.remarks, []
        for is_warning, text in remarks:
            _log.log(logging.WARNING if is_warning else logging.INFO, text)


def _bind(socket: Any, endpoint: str, descriptor: int) -> str:
    """Bind, and return where."""
    socket.ipv6 = "[" in endpoint
    if descriptor != -1:
        socket.use_fd = descriptor
    socket.bind(endpoint)
    bound: str = socket.last_endpoint.decode()
    return bound
