"""What users of both engine clients see of them: how they are made, and what they know."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from zerohop.serving.arguments import apart, seconds, text, whole
from zerohop.serving.engine.channel import Channel
from zerohop.serving.engine.liveness import Patience
from zerohop.serving.errors import DeadlineExceeded, UtilityFailed
from zerohop.serving.wording import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.serving.engine.exchange import OpenCall
    from zerohop.serving.engine.liveness import EngineState
    from zerohop.serving.engine.roster import EngineStatus
    from zerohop.serving.errors import Malformed, ProtocolMismatch

__all__ = ["Requesting", "result_of"]

C = TypeVar("C", bound=Channel)

_LEAST = -(1 << 63)  # priority that has a form on the wire


class Requesting(Generic[C]):
    """What both clients are."""

    _channel_type: Any  # of Channel

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        outputs: str | None = None,
        name: str = "api",
        patience: Patience | None = None,
        default_deadline: float | None = 600.0,
        requests_limit: int = 10_000,
        stream_limit: int = 65_536,
        end_hung: bool = False,
        requests_fd: int = -1,
        outputs_fd: int = -1,
    ) -> None:
        """Bind.

        Args:
            endpoint: where requests are bound, which engines connect to. Unless given: a short
                ``ipc`` endpoint of its own. ``tcp://127.0.0.1:*`` takes a free port; see
                :attr:`endpoint`.
            outputs: where outputs are bound. Unless given: beside the requests.
            name: by which engines know it, in their logs.
            patience: when an engine is hung, or gone.
            default_deadline: seconds that a request has, where it isn't told; ``None``: no limit.
            requests_limit: messages that may wait for one engine; with more it is overloaded. 0:
                any number.
            stream_limit: tokens, or deltas with something else in them, that may wait to be read,
                of one stream.
            end_hung: who is hung is taken for gone: its requests end.
            requests_fd: a listening descriptor to use for ``endpoint`` (option ``USE_FD``). It
                stays the caller's to close.
            outputs_fd: likewise for ``outputs``.

        Raises:
            TypeError, ValueError: an argument is of another kind, or no time; an endpoint is of
                ``inproc``.
            ZMQError: an endpoint can't be bound.
        """
        for given, of in ((endpoint, "endpoint"), (outputs, "outputs")):
            if given is not None:
                apart(of, given)
        if patience is not None and not isinstance(patience, Patience):
            raise TypeError(f"patience is a Patience, not {patience!r:.64}")
        self._default_deadline = _seconds("default_deadline", default_deadline)
        self._channel: C = self._channel_type(
            endpoint,
            outputs,
            text("name", name),
            patience or Patience(),
            requests_limit=whole("requests_limit", requests_limit),
            stream_limit=whole("stream_limit", stream_limit, 1),
            end_hung=end_hung,
            requests_fd=whole("requests_fd", requests_fd, -1),
            outputs_fd=whole("outputs_fd", outputs_fd, -1),
        )

    @property
    def boot(self) -> int:
        """Its boot token."""
        return self._channel.exchange.boot

    @property
    def endpoint(self) -> str:
        """Where requests are bound: what engines are told."""
        return self._channel.endpoint

    @property
    def outputs_endpoint(self) -> str:
        """Where outputs are bound; engines learn it by themselves."""
        return self._channel.outputs_endpoint

    @property
    def malformed(self) -> int:
        """How many messages could not be read."""
        return self._channel.exchange.malformed

    @property
    def last_malformed(self) -> Malformed | None:
        """The last of them, with its bytes."""
        return self._channel.exchange.last_malformed

    @property
    def stale(self) -> int:
        """How many deltas came for requests that had ended, or from another life of an engine."""
        return self._channel.exchange.streams.stale

    @property
    def refusals(self) -> dict[str, ProtocolMismatch]:
        """Why engines were not taken, by their ids."""
        with self._channel.held():
            return dict(self._channel.exchange.refusals)

    @property
    def engines(self) -> dict[str, EngineStatus]:
        """The engines that have introduced themselves and are not gone, by id."""
        with self._channel.held():
            exchange = self._channel.exchange
            load = exchange.streams.load
            return {each.identity.engine: each.status(load) for each in exchange.roster.members()}

    @property
    def health(self) -> dict[str, EngineState]:
        """The state of each of them."""
        with self._channel.held():
            members = self._channel.exchange.roster.members()
            return {each.identity.engine: each.liveness.state for each in members}

    def _asked_for(
        self, deadline: float | None, priority: int, engine: str | None
    ) -> tuple[float | None, int, str | None]:
        """What is asked for of a request, as it is sent."""
        given = self._default_deadline if deadline is None else seconds("deadline", deadline)
        if engine is not None:
            text("engine", engine)
        return given, whole("priority", priority, _LEAST), engine

    def _called(
        self, name: str, engine: str | None, timeout: float | None
    ) -> tuple[float | None, str | None]:
        """How long a call of a utility may take, and of which engine."""
        text("name", name)
        given = self._default_deadline if timeout is None else seconds("timeout", timeout)
        return given, None if engine is None else text("engine", engine)

    def _too_few(self, count: int, given: float | None) -> DeadlineExceeded:
        what = f"waiting for {counted(count, 'engine')}"
        hint = self._channel.why_not() or f"engines connect to {self.endpoint}"
        return DeadlineExceeded(what, given or 0, hint=hint)


def _seconds(name: str, given: float | None) -> float | None:
    return None if given is None else seconds(name, given)


def result_of(call: OpenCall) -> Any:
    """Return what a utility returned, or raise how it ended."""
    if call.error is not None:
        raise call.error
    assert call.result is not None
    if call.result.failure is not None:
        raise UtilityFailed(call.name, call.result.failure)
    return call.result.result
