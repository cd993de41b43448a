"""Whether an engine is alive, hung or gone. Pure: ``now`` is an argument, in seconds.

    starting ──ready──► alive ◄──────── progress ────── hung
        │                 │ └────── work, no progress for hung_after ───────►│
        └─────────────────┴── silence for gone_after, or a broken connection ┴──► gone

The beats are the word of the engine's I/O thread; the progress in them is that of its loop. So a
loop that stands still while there is work, and a process that is not there, are told apart. What
is gone stays gone: the engine has to introduce itself anew. A broken connection is no pause, as
what was on its way may be lost, and nobody would be told.

Work that is taken away from an engine which has made no progress since it came, by a deadline, say,
acquits it of nothing: it would look idle then, and get the next requests.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from zerohop.serving.arguments import seconds

__all__ = ["EngineState", "Liveness", "Patience"]

_STANDS_STILL = 6  # times as long as an engine's pulse an API server's loop may be silent


class EngineState(enum.Enum):
    """What an API server knows of an engine.

    Attributes:
        STARTING: its I/O answers, its loop has not yet.
        ALIVE: it works, or waits for work.
        HUNG: its I/O answers, but its loop has made no progress though there is work.
        GONE: nothing comes from it.
    """

    STARTING = "starting"
    ALIVE = "alive"
    HUNG = "hung"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait before something is believed.

    Attributes:
        beat_every: seconds between two beats.
        gone_after: of silence, after which the other side is gone.
        hung_after: without progress though there is work, after which an engine is hung.
        server_gone_after: of silence, after which engines take this API server for gone; six times
            ``gone_after`` unless given. Its answers are those of its event loop, which may stand
            still for a while; a process that ends breaks its connections, which is seen at once.
    """

    beat_every: float = 1.0
    gone_after: float = 5.0
    hung_after: float = 10.0
    server_gone_after: float | None = None

    def __post_init__(self) -> None:
        for name in ("beat_every", "gone_after", "hung_after"):
            seconds(name, getattr(self, name))
        if self.server_gone_after is not None:
            seconds("server_gone_after", self.server_gone_after)
        if not 0 < self.beat_every < self.gone_after:
            raise ValueError(
                f"beat_every={self.beat_every:g} must be above 0 and below "
                f"gone_after={self.gone_after:g}; two or three beats should fit into it"
            )
        if not self.hung_after > 0:
            raise ValueError(f"hung_after={self.hung_after:g} must be above 0")
        if not self.of_server > self.beat_every:
            raise ValueError(
                f"server_gone_after={self.of_server:g} must be above "
                f"beat_every={self.beat_every:g}, as beats are what is answered"
            )

    @property
    def of_server(self) -> float:
        """Seconds of silence after which engines take the API server for gone."""
        if self.server_gone_after is None:
            return _STANDS_STILL * self.gone_after
        return self.server_gone_after


class Liveness:
    """One life of one engine, as seen by an API server.

    Args:
        patience: see there.
        now: the engine has just introduced itself.
    """

    def __init__(self, patience: Patience, now: float) -> None:
        self._patience = patience
        self._gone_at = now + patience.gone_after
        self._progress = -1
        self._has_work = False
        self._since: float | None = None  # there is work and no progress
        self._has_moved = False  # since there is work
        self._is_ready = self._is_gone = self._is_hung = False

    @property
    def state(self) -> EngineState:
        """As of the last call."""
        if self._is_gone:
            return EngineState.GONE
        if not self._is_ready:
            return EngineState.STARTING
        return EngineState.HUNG if self._is_hung else EngineState.ALIVE

    def ready(self, now: float) -> None:
        """The engine's loop has answered."""
        self._is_ready = True
        self.moved(now)

    def beat(self, progress: int, now: float) -> None:
        """A beat came."""
        self._gone_at = now + self._patience.gone_after
        if progress != self._progress:
            self._progress = progress
            self.moved(now)

    def moved(self, now: float) -> None:
        """The engine's loop has done something."""
        self._since = now if self._has_work else None
        self._has_moved = True
        self._is_hung = False

    def has_work(self, has_work: bool, now: float) -> None:
        """Say whether requests are open."""
        if has_work and self._since is None:
            self._since, self._has_moved = now, False
        elif not has_work and self._has_moved and not self._is_hung:
            self._since = None
        self._has_work = has_work

    def gone(self) -> None:
        """It said so itself, its connection broke, or another life of it has begun."""
        self._is_gone = True

    def next_deadline(self) -> float | None:
        """When :meth:`handle_deadline` has something to do; ``None``: never."""
        if self._is_gone:
            return None
        if self._is_ready and self._since is not None and not self._is_hung:
            return min(self._gone_at, self._since + self._patience.hung_after)
        return self._gone_at

    def handle_deadline(self, now: float) -> EngineState:
        """Take notice of the time."""
        if now >= self._gone_at:
            self._is_gone = True
        elif self._is_ready and self._since is not None:
            self._is_hung = now >= self._since + self._patience.hung_after
        return self.state
