"""A control server without its socket: frames of a ROUTER in, frames out.

The operations of the user's protocol, and with a membership those of the control channel, too.
What the channel's own operations do is quick, so they are carried out at once, and so is a PING:
who asks whether there is anybody does not wait for others' work. Any other handler of the user
is handed to the driver, which knows where it may take its time.
"""

from __future__ import annotations

import inspect
from collections import deque
from dataclasses import replace

from zerohop.serving.codec import pack
from zerohop.serving.control.messages import (
    VERSION,
    Batch,
    Beat,
    Farewell,
    Presence,
    Registration,
)
from zerohop.serving.control.protocol import (
    Call,
    Complaint,
    Complaints,
    Handlers,
    Operation,
    Protocol,
    Refusal,
)
from zerohop.serving.control.session import COMMAND
from zerohop.serving.errors import RequestRefused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from zerohop.serving.control.membership import Membership

__all__ = ["CHANNEL", "Exchange"]

CHANNEL = (
    Operation("register", (Registration,)),
    Operation("beat", (Beat,)),
    Operation("sync", (Batch,)),
    Operation("leave", (Farewell,)),
)
"""The operations of the control channel itself."""

_MAX_CALLS = 1000  # that may wait for the user's handlers


class Exchange:
    """What a server makes of what it receives. Time is an argument: seconds, monotonic.

    Args:
        protocol: what the server does for its user.
        handlers: by the operations' names.
        membership: of the workers; ``None``: there are none, and the protocol is all.
        says_why: whether a refusal has a reason, or is a reply without a result.
        complain_every: seconds between two log lines of one kind.

    Raises:
        MissingHandlers: an operation of the protocol has no handler.
        ValueError: a handler or an operation that is not the user's to give.
        TypeError: a handler cannot take the arguments of its operation.
    """

    def __init__(
        self,
        protocol: Protocol,
        handlers: Mapping[str, Callable[..., Any]],
        membership: Membership | None = None,
        *,
        says_why: bool = True,
        complain_every: float = 60.0,
    ) -> None:
        self.membership = membership
        self._complaints = Complaints(complain_every)
        self._out: deque[list[bytes]] = deque()
        self._lines: deque[str] = deque()
        self._calls = 0
        self._at_once = {"ping"}
        self._held_back = 0
        self._here: tuple[bytes, float] = (b"", 0.0)  # who asks, and when
        if membership is None:
            self._handlers = Handlers(protocol, handlers, says_why=says_why)
            return
        presence = Presence(protocol.name, VERSION, membership.boot)
        own: dict[str, Callable[..., Any]] = {
            "register": lambda message: membership.register(message, *self._here),
            "beat": lambda message: membership.beat(message, *self._here),
            "sync": lambda message: membership.sync(message, *self._here),
            "leave": membership.leave,
        }
        taken = own.keys() & handlers.keys()
        if taken:
            raise ValueError(f"{', '.join(sorted(taken))}: of the control channel itself")
        self._at_once |= own.keys()
        whole = Protocol(protocol.name, (*CHANNEL, *protocol.operations))
        self._handlers = Handlers(whole, {**own, **handlers}, pong=presence, says_why=says_why)

    @property
    def counts(self) -> Counter[Complaint]:
        """What was wrong with requests, and how often."""
        return self._complaints.counts

    def receive(self, frames: Sequence[bytes], now: float) -> tuple[bytes, Call] | None:
        """Take what the ROUTER received.

        Returns:
            The routing id and what the user's handler is to do, for :meth:`answer` or
            :meth:`fail` afterwards; ``None``: it is done with.
        """
        route, *request = frames
        found = self._handlers.find(request)
        match found:
            case Refusal():
                self._refuse(route, found, now)
            case Call() if found.operation.name in self._at_once:
                return self._carry_out(route, found, now)
            case Call() if self._calls >= _MAX_CALLS:
                busy = RequestRefused(found.operation.name, f"{_MAX_CALLS} calls are under way")
                self._refuse(route, self._handlers.fail(found, busy), now)
            case Call():
                self._calls += 1
                return route, found
        return None

    def _carry_out(self, route: bytes, call: Call, now: float) -> tuple[bytes, Call] | None:
        self._here = route, now
        try:
            result = call.handler(*call.arguments)
        except BaseException as error:  # noqa: BLE001 - it is the asker's reply, not our end
            self._refuse(route, self._handlers.fail(call, error), now)
            self._look_for_readers(now)
            return None
        if inspect.isawaitable(result):  # a PING of the user's: the driver knows where to wait
            self._calls += 1
            return route, replace(call, handler=lambda *_: result)
        self._reply(route, call, result, now)
        self._look_for_readers(now)
        return None

    def answer(self, route: bytes, call: Call, result: Any, now: float) -> None:
        """Reply with what the handler returned."""
        self._calls -= 1
        self._reply(route, call, result, now)

    def fail(self, route: bytes, call: Call, error: BaseException, now: float) -> None:
        """Reply that the handler raised."""
        self._calls -= 1
        self._refuse(route, self._handlers.fail(call, error), now)

    def data_to_send(self) -> list[list[bytes]]:
        """Return the messages to send, the routing id first."""
        out = list(self._out)
        self._out.clear()
        if self.membership is not None:
            out.extend([route, *COMMAND, pack(it)] for route, it in self.membership.pushes())
        return out

    def lines_to_log(self) -> list[str]:
        """Return what the log is to have now."""
        lines = list(self._lines)
        self._lines.clear()
        return lines

    def _reply(self, route: bytes, call: Call, result: Any, now: float) -> None:
        reply = self._handlers.answer(call, result)
        if isinstance(reply, Refusal):
            self._refuse(route, reply, now)
        else:
            self._out.append([route, *reply])

    def _refuse(self, route: bytes, refused: Refusal, now: float) -> None:
        self._out.append([route, *refused.frames])
        if refused.kind is None:
            return
        self._complain(refused.kind, f"refused: {refused.reason}", now)

    def _look_for_readers(self, now: float) -> None:
        if self.membership is None or self.membership.held_back == self._held_back:
            return
        self._held_back = self.membership.held_back
        most = self.membership.options.max_events
        text = f"the events are not read (waiting: {most}); the workers' batches are held back"
        self._complain("held_back", text, now)

    def _complain(self, kind: Complaint, text: str, now: float) -> None:
        line = self._complaints.note(kind, text, now)
        if line is not None:
            self._lines.append(f"{self._handlers.protocol.name}: {line}")
