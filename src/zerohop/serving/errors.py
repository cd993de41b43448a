"""Every failure that a user of the serving plane can meet, and whose fault it is.

    ServingError (Exception)
    +- EngineDead            the engine's: it is gone, and with it every request that it had
    +- EngineOverloaded      the engine's: it takes no more requests now; later it may
    +- SlowConsumer          this process's: it read too slowly, and what it was sent overflowed
    +- DeadlineExceeded      a state: the time that the caller gave has run out
    +- RequestRefused        the caller's: the engine says why it won't do this
    +- UtilityFailed         the engine's: a utility call raised there
    +- ProtocolMismatch      nobody's: the two sides are of versions that do not fit together
    +- Malformed             the peer's: bytes that are not what they should be; has the bytes
    +- NoAnswer              the peer's or the network's: a question was not answered in time
    +- MissingHandlers       the server's author's: the protocol names what nobody handles
    +- Unencodable           the caller's: a value that the wire has no form for

A failure of the sockets themselves is a :class:`zerohop.ZMQError`, and passes through.
Each error has the values that it speaks of as attributes, so that programs need not read the text.
"""

from __future__ import annotations

from zerohop.serving.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = [
    "DeadlineExceeded",
    "EngineDead",
    "EngineOverloaded",
    "Malformed",
    "MissingHandlers",
    "NoAnswer",
    "ProtocolMismatch",
    "RequestRefused",
    "ServingError",
    "SlowConsumer",
    "Unencodable",
    "UtilityFailed",
]

_SHOWN = 64  # octets of foreign bytes in a text


class ServingError(Exception):
    """Base of what the serving plane raises.

    Args:
        text: what happened, and with which values.
        hint: what to do about it, added as a note (:pep:`678`).
    """

    def __init__(self, text: str, *, hint: str | None = None) -> None:
        super().__init__(text)
        if hint is not None:
            self.add_note(hint)


class EngineDead(ServingError):
    """The engine is gone; what it was doing for this request is lost.

    Attributes:
        engine: which engine.
        reason: how it was found out.
        request_id: the request that ended with it; ``None`` where the error is not of one request.
    """

    def __init__(
        self, engine: str, reason: str, request_id: str | None = None, *, hint: str | None = None
    ) -> None:
        lost = "" if request_id is None else f"; request {request_id} is lost"
        super().__init__(f"engine {engine} is gone ({reason}){lost}", hint=hint)
        self.engine, self.reason, self.request_id = engine, reason, request_id


class EngineOverloaded(ServingError):
    """The engine takes no more requests now.

    Attributes:
        engine: which engine.
        limit: how many requests it takes at a time.
    """

    def __init__(self, engine: str, limit: int, *, hint: str | None = None) -> None:
        super().__init__(
            f"engine {engine} has {counted(limit, 'open request')}, which is its limit; "
            "try again later, or another engine",
            hint=hint,
        )
        self.engine, self.limit = engine, limit


class SlowConsumer(ServingError):
    """What was sent to a reader overflowed its bounded queue, and its streams had to end.

    Attributes:
        consumer: who read too slowly.
        limit: how much the queue holds, in messages.
    """

    def __init__(self, consumer: str, limit: int, *, hint: str | None = None) -> None:
        super().__init__(
            f"{consumer} fell more than {counted(limit, 'message')} behind, and its streams were "
            "ended; read faster, or raise the limit",
            hint=hint,
        )
        self.consumer, self.limit = consumer, limit


class DeadlineExceeded(ServingError):
    """The time that the caller gave has run out.

    Attributes:
        what: what did not end in time.
        seconds: the time it was given.
    """

    def __init__(self, what: str, seconds: float, *, hint: str | None = None) -> None:
        super().__init__(f"{what} did not end within {seconds:g} s", hint=hint)
        self.what, self.seconds = what, seconds


class RequestRefused(ServingError):
    """The engine does not take this request, and says why.

    Attributes:
        request_id: the request.
        reason: the engine's words.
    """

    def __init__(self, request_id: str, reason: str, *, hint: str | None = None) -> None:
        super().__init__(f"request {request_id} was refused: {reason}", hint=hint)
        self.request_id, self.reason = request_id, reason


class UtilityFailed(ServingError):
    """A utility call raised in the engine.

    Attributes:
        name: the utility.
        failure: what the engine says of it.
    """

    def __init__(self, name: str, failure: str, *, hint: str | None = None) -> None:
        super().__init__(f"utility {name!r} failed in the engine: {failure}", hint=hint)
        self.name, self.failure = name, failure


class ProtocolMismatch(ServingError):
    """The two sides are of versions, or have features, that do not fit together.

    Attributes:
        what: what they differ in.
        ours: what this side has.
        theirs: what the other side has.
    """

    def __init__(self, what: str, ours: Any, theirs: Any, *, hint: str | None = None) -> None:
        super().__init__(f"{what} differs: here {ours!r}, there {theirs!r}", hint=hint)
        self.what, self.ours, self.theirs = what, ours, theirs


class Malformed(ServingError):
    """A peer's bytes are not what they should be. Only the message they came in is affected.

    Attributes:
        data: the bytes, whole.
        reason: what is wrong with them.
        offset: where in them, in octets; ``None`` where it is not at one place.
    """

    def __init__(
        self, data: bytes, reason: str, offset: int | None = None, *, hint: str | None = None
    ) -> None:
        where = "" if offset is None else f" at octet {offset}"
        more = "..." if len(data) > _SHOWN else ""
        super().__init__(
            f"malformed message of {counted(len(data), 'octet')}{where}: {reason}: "
            f"{data[:_SHOWN]!r}{more}",
            hint=hint,
        )
        self.data, self.reason, self.offset = data, reason, offset


class NoAnswer(ServingError):
    """A question was not answered in time.

    Attributes:
        endpoint: whom was asked.
        question: what was asked.
        seconds: for how long the answer was waited for.
    """

    def __init__(
        self, endpoint: str, question: str, seconds: float, *, hint: str | None = None
    ) -> None:
        super().__init__(f"{endpoint} did not answer {question} within {seconds:g} s", hint=hint)
        self.endpoint, self.question, self.seconds = endpoint, question, seconds


class MissingHandlers(ServingError):
    """A server's protocol names operations that nobody handles; it does not start.

    Attributes:
        protocol: the protocol.
        operations: those without a handler.
    """

    def __init__(
        self, protocol: str, operations: Sequence[str], *, hint: str | None = None
    ) -> None:
        super().__init__(
            f"protocol {protocol} has operations without a handler: {', '.join(operations)}; "
            "declare a handler for each of them, or serve a protocol without them",
            hint=hint,
        )
        self.protocol, self.operations = protocol, tuple(operations)


class Unencodable(ServingError, ValueError):
    """A value has no form on the wire.

    Attributes:
        value: the value.
        reason: what is wrong with it.
    """

    def __init__(self, value: Any, reason: str, *, hint: str | None = None) -> None:
        try:
            shown = repr(value)
        except Exception as error:  # noqa: BLE001 - of the value's own making, or nested too deeply
            shown = f"a {type(value).__name__} whose repr raises {type(error).__name__}"
        if len(shown) > _SHOWN:
            shown = f"{shown[:_SHOWN]}..."
        super().__init__(f"cannot encode {shown}: {reason}", hint=hint)
        self.value, self.reason = value, reason
