"""What a control server tells of its workers, and what it shows of one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.serving.control.messages import Key

__all__ = [
    "CommandEnded",
    "CommandLost",
    "ControlEvent",
    "WorkerChanged",
    "WorkerGone",
    "WorkerJoined",
    "WorkerSynced",
    "WorkerView",
]


@dataclass(frozen=True, slots=True)
class WorkerJoined:
    """A worker has registered; what was known of it before is void, and its table is to come.

    Attributes:
        worker: its name.
        boot: its boot token.
        offers: what it offers.
    """

    worker: str
    boot: bytes
    offers: dict[str, Any]


@dataclass(frozen=True, slots=True)
class WorkerChanged:
    """A worker's table has changed.

    Attributes:
        worker: its name.
        put: entries, new or in the place of older ones.
        removed: keys.
    """

    worker: str
    put: list[tuple[Key, Any]]
    removed: list[Key]


@dataclass(frozen=True, slots=True)
class WorkerSynced:
    """A worker's table is whole.

    Attributes:
        worker: its name.
    """

    worker: str


@dataclass(frozen=True, slots=True)
class WorkerGone:
    """A worker is here no longer; what was known of it is void.

    Attributes:
        worker: its name.
        reason: ``"left"``, ``"silent"`` or ``"replaced"``, as it has registered anew.
    """

    worker: str
    reason: Literal["left", "silent", "replaced"]


@dataclass(frozen=True, slots=True)
class CommandEnded:
    """A command was carried out, or failed.

    Attributes:
        worker: who did it.
        id: of the command.
        result: what the worker's handler returned.
        error: what it raised; ``None``: nothing.
    """

    worker: str
    id: int
    result: Any
    error: str | None


@dataclass(frozen=True, slots=True)
class CommandLost:
    """The worker is gone, and nobody can tell whether it did what it was told.

    Attributes:
        worker: who was to do it.
        id: of the command.
    """

    worker: str
    id: int


ControlEvent: TypeAlias = (
    WorkerJoined | WorkerChanged | WorkerSynced | WorkerGone | CommandEnded | CommandLost
)


@dataclass(frozen=True, slots=True)
class WorkerView:
    """What the server knows of a worker now.

    Attributes:
        worker: its name.
        boot: its boot token.
        offers: what it offers.
        is_right: whether the table is whole.
        table: a copy.
    """

    worker: str
    boot: bytes
    offers: dict[str, Any]
    is_right: bool
    table: dict[Key, Any]
