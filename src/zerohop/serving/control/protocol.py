"""What a server does, said before it starts: operations, and a handler for each of them.

    request = uid operation argument*          frames, see ``frames``
    reply   = uid operation [result]
    refusal = uid "refused: ..."

A :class:`Protocol` names the operations and the types of their arguments; :class:`Handlers` joins
it with the functions that carry them out, and raises :class:`MissingHandlers` unless each has one.
PING is always there. Whatever comes at run time has a reply: what is not in the protocol, or not
as it says, or what a handler raises, is refused in words, counted by kind, and told to the log now
and then. A second list of what is handled, kept by hand beside the first, is how a cache server
came to lack its PING for months while its clients saw time-outs only; here there is one.
"""

from __future__ import annotations

import inspect
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import msgspec

from zerohop.serving.arguments import text, whole
from zerohop.serving.codec import decode_with
from zerohop.serving.control.frames import (
    Credit,
    Request,
    encode_reply,
    parse_request,
    refusal,
)
from zerohop.serving.control.values import encoded, text_of, words_for
from zerohop.serving.errors import Malformed, MissingHandlers, RequestRefused
from zerohop.serving.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Call", "Complaint", "Complaints", "Handlers", "Operation", "Protocol", "Refusal"]

NIL = b"\xc0"  # the request id in a reply to what had none
Complaint: TypeAlias = Literal[
    "malformed", "unknown_operation", "wrong_arguments", "failed", "held_back"
]


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that a server does when it is asked.

    Attributes:
        name: what it is asked for by.
        arguments: their types, as msgspec checks them; ``None``: as they come, any number.
        optional: how many of the last arguments may be left out.
        number: it may be asked for by, too.

    Raises:
        TypeError: one of them is of another kind.
        ValueError: more may be left out than there are.
    """

    name: str
    arguments: tuple[Any, ...] | None = ()
    optional: int = 0
    number: int | None = None

    def __post_init__(self) -> None:
        text("an operation's name", self.name)
        most = whole("optional", self.optional)
        if self.number is not None:
            whole("an operation's number", self.number)
        if self.arguments is None:
            return
        if not isinstance(self.arguments, tuple | list):
            raise TypeError(
                f"the arguments of {self.name!r} are a tuple of types, not {self.arguments!r:.64}; "
                "(str,) is that of one"
            )
        if most > len(self.arguments):
            have = counted(len(self.arguments), "argument")
            raise ValueError(f"{self.name!r} has {have}, of which {most} may not be left out")


_Entry: TypeAlias = "tuple[Operation, Callable[..., Any], Sequence[Callable[[bytes], Any]] | None]"
_decode_anything = msgspec.msgpack.Decoder().decode
PING = Operation("ping", (Any,), optional=1, number=22)  # LMCache's number of it


@dataclass(frozen=True, slots=True)
class Protocol:
    """What a server does. Its PING need not be named: it is always there.

    Attributes:
        name: what errors and logs call it.
        operations: of which no two have the same name or number.

    Raises:
        TypeError: the name is no text, or the operations are no tuple of them.
        ValueError: two have.
        Unencodable: the name has no form on the wire.
    """

    name: str
    operations: tuple[Operation, ...] = ()

    def __post_init__(self) -> None:
        encoded(text("a protocol's name", self.name))  # a PING is told it
        if not isinstance(self.operations, tuple | list):
            raise TypeError(
                f"the operations of {self.name!r} are a tuple of them, not "
                f"{self.operations!r:.64}; (Operation(...),) is that of one"
            )
        for each in self.operations:
            if not isinstance(each, Operation):
                raise TypeError(f"{each!r:.64} in protocol {self.name!r} is no Operation")
        if all(each.name != PING.name for each in self.operations):
            object.__setattr__(self, "operations", (*self.operations, PING))
        names = Counter[int | str](each.name for each in self.operations)
        names.update(each.number for each in self.operations if each.number is not None)
        twice = [name for name, count in names.items() if count > 1]
        if twice:
            raise ValueError(f"protocol {self.name} has two operations {twice[0]!r}")


@dataclass(frozen=True, slots=True)
class Call:
    """A request that is in order: somebody has to carry it out.

    Attributes:
        request: what was asked.
        operation: what is to be done.
        handler: who does it.
        arguments: for the handler.
    """

    request: Request
    operation: Operation
    handler: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that nobody carries out.

    Attributes:
        frames: of the reply.
        kind: what is wrong, to be counted; ``None``: the handler declines, which is no fault.
        reason: in words.
    """

    frames: list[bytes]
    kind: Complaint | None
    reason: str


class Complaints:
    """Counts what went wrong, and says which of it goes into the log: a line a kind and period.

    Args:
        period: seconds between two lines of a kind.

    Attributes:
        counts: how often, by kind.
    """

    def __init__(self, period: float = 60.0) -> None:
        self.counts: Counter[Complaint] = Counter()
        self._period = period
        self._told: dict[Complaint, tuple[float, int]] = {}  # when, and the count then

    def note(self, kind: Complaint, text: str, now: float) -> str | None:
        """Count it; return the line to log, or ``None``."""
        self.counts[kind] += 1
        count = self.counts[kind]
        told_at, told_count = self._told.get(kind, (-self._period, 0))
        if count > 1 and now < told_at + self._period:
            return None
        self._told[kind] = now, count
        silent = count - told_count - 1
        return f"{text} ({silent} more of this kind since the last line)" if silent else text


class Handlers:
    """The operations of a protocol, each with who carries it out.

    Args:
        protocol: what the server does.
        handlers: by the operations' names. One for ``ping`` may be left out.
        pong: what a PING is answered with, unless there is a handler for it.
        says_why: whether a refusal has a reason, or is a reply without a result.

    Raises:
        MissingHandlers: an operation has none.
        ValueError: a handler's operation is not in the protocol.
        TypeError: a handler cannot take the arguments of its operation.
    """

    def __init__(
        self,
        protocol: Protocol,
        handlers: Mapping[str, Callable[..., Any]],
        *,
        pong: Any = True,
        says_why: bool = True,
    ) -> None:
        self.protocol, self._says_why = protocol, says_why
        have = {PING.name: lambda *_: pong, **handlers}
        missing = [each.name for each in protocol.operations if each.name not in have]
        if missing:
            raise MissingHandlers(protocol.name, missing)
        foreign = have.keys() - {each.name for each in protocol.operations}
        if foreign:
            raise ValueError(
                f"handlers for what protocol {protocol.name} does not name: "
                f"{', '.join(sorted(foreign))}"
            )
        self._entries: dict[int | str, _Entry] = {}
        for operation in protocol.operations:
            handler = have[operation.name]
            decoders = None
            if operation.arguments is not None:
                _check_arguments(operation, handler, len(operation.arguments))
                decoders = [msgspec.msgpack.Decoder(each).decode for each in operation.arguments]
            entry = operation, handler, decoders
            self._entries[operation.name] = entry
            if operation.number is not None:
                self._entries[operation.number] = entry

    def find(self, frames: Sequence[bytes]) -> Call | Credit | Refusal:
        """Read what a ROUTER received, without the routing id. Never raises."""
        try:
            request = parse_request(frames)
        except Malformed as error:
            return self._refuse_unread(frames, error.reason)
        if isinstance(request, Credit):
            return request
        entry = self._entries.get(request.operation)
        if entry is None:
            reason = f"protocol {self.protocol.name} has no operation {request.operation!r:.64}"
            return self._refuse(request, "unknown_operation", reason)
        operation, handler, decoders = entry
        if decoders is None:
            decoders = [_decode_anything] * len(request.arguments)
        count, most = len(request.arguments), len(decoders)
        if not most - operation.optional <= count <= most:
            wanted = counted(most, "argument")
            if operation.optional:
                wanted = f"{most - operation.optional} to {most} arguments"
            reason = f"{operation.name!r} has {wanted}, not {count}"
            return self._refuse(request, "wrong_arguments", reason)
        arguments = []
        for number, (decode, frame) in enumerate(
            zip(decoders, request.arguments, strict=False), start=1
        ):
            try:
                arguments.append(decode_with(decode, frame))
            except Malformed as error:
                reason = f"argument {number} of {operation.name!r}: {error.reason}"
                return self._refuse(request, "wrong_arguments", reason)
            except BaseException as error:  # noqa: BLE001 - a type of the user's may raise any
                reason = f"argument {number} of {operation.name!r}: {words_for(error)}"
                return self._refuse(request, "wrong_arguments", reason)
        return Call(request, operation, handler, tuple(arguments))

    def answer(self, call: Call, result: Any) -> list[bytes] | Refusal:
        """Return the reply with what the handler returned. Never raises."""
        try:
            return encode_reply(call.request, result)
        except Exception as error:  # noqa: BLE001 - whatever a result does while it is encoded
            return self.fail(call, error)

    def fail(self, call: Call, error: BaseException) -> Refusal:
        """Return the reply for a handler that raised.

        :class:`RequestRefused` is how a handler says no: the reply has its words, and nothing is
        counted. Anything else is a fault. Never raises.
        """
        if isinstance(error, RequestRefused):
            return self._refuse(call.request, None, text_of(error.reason))
        reason = f"the handler of {call.operation.name!r} raised {words_for(error)}"
        return self._refuse(call.request, "failed", reason)

    def _refuse(self, request: Request, kind: Complaint | None, reason: str) -> Refusal:
        reason = text_of(reason)
        frames = refusal(request, reason) if self._says_why else encode_reply(request)
        return Refusal(frames, kind, reason)

    def _refuse_unread(self, frames: Sequence[bytes], reason: str) -> Refusal:
        """Its request id is sent back if there is one that a client may have made."""
        uid = frames[0] if len(frames) > 1 and len(frames[0]) <= 9 else NIL
        return self._refuse(Request(uid, NIL.hex()), "malformed", reason)


def _check_arguments(operation: Operation, handler: Callable[..., Any], most: int) -> None:
    try:
        signature = inspect.signature(handler)
    except ValueError:  # a builtin that does not tell
        return
    for count in {most - operation.optional, most}:
        try:
            signature.bind(*[None] * count)
        except TypeError as error:
            raise TypeError(
                f"the handler of {operation.name!r} cannot take its {counted(count, 'argument')}: "
                f"{error}"
            ) from None
