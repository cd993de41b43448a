"""What an engine owes one API server: which of its requests are open, and what had no room. Pure.

The outputs of a step go to the API server's socket, whose queue is bounded, or they find no room.
Then every request that the API server has open ends as ``slow``: its streams would have gaps from
here on. That it ended is owed, and goes out before anything else, as soon as there is room. The
engine does not wait, and what it has for others is not held up.
"""

from __future__ import annotations

from operator import index
from typing import NamedTuple

from zerohop.serving.engine.messages import SLOT_SHIFT, Delta, Ended, UtilityResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Outbox", "Step", "by_slot"]


class Step(NamedTuple):
    """What one step made for one API server, as it travels.

    Attributes:
        numbers: of the requests that have made one token and nothing else.
        tokens: theirs, each an ``int``: what samplers make may be of other types.
        deltas: of the others.
    """

    numbers: list[int]
    tokens: list[int]
    deltas: list[Delta]

    def __bool__(self) -> bool:
        return bool(self.numbers or self.deltas)


class Outbox:
    """One API server's requests in an engine.

    Args:
        slot: which numbers are its own.
        limit: messages that its queue holds.

    Attributes:
        open: numbers of the requests that have not ended.
        ended: owed.
        results: of utility calls, owed.
        overflows: how often something had no room.
        seq: of the next message.
    """

    def __init__(self, slot: int, limit: int) -> None:
        self.slot, self.limit = slot, limit
        self.open: set[int] = set()
        self.ended: list[Ended] = []
        self.results: list[UtilityResult] = []
        self.overflows = self.seq = 0

    @property
    def owes(self) -> bool:
        """Whether something waits for room."""
        return bool(self.ended or self.results)

    def wanted(self, deltas: Sequence[Delta]) -> Step:
        """Return what was made for requests that are open.

        Raises:
            TypeError: one is no delta, or a request's number no whole number.
        """
        try:
            return self._sorted(deltas)
        except AttributeError:
            given: Sequence[object] = deltas
            raise _no_delta(next(each for each in given if not isinstance(each, Delta))) from None

    def _sorted(self, deltas: Sequence[Delta]) -> Step:
        step = numbers, tokens, others = Step([], [], [])
        is_open = self.open
        for delta in deltas:  # a hot loop: once for each token
            number = delta.number
            if type(number) is not int:
                delta = _with_whole_number(delta)
                number = delta.number
            if number not in is_open:
                continue
            made = delta.token_ids
            if (
                delta.finish is None
                and delta.extra is None
                and type(made) is list
                and len(made) == 1
                and type(token := made[0]) is int
            ):
                numbers.append(number)
                tokens.append(token)
            else:
                others.append(delta)
        return step

    def sent(self, step: Step) -> None:
        """This went out."""
        self.seq += 1
        for delta in step.deltas:
            if delta.finish is not None:
                self.open.discard(delta.number)

    def paid(self) -> None:
        """What has ended went out, or the first result where nothing has."""
        self.seq += 1
        if self.ended:
            self.ended = []
        else:
            del self.results[0]

    def overflow(self) -> list[int]:
        """They had no room: end all that is open, and return the numbers."""
        self.overflows += 1
        numbers = sorted(self.open)
        self.open.clear()
        self.ended += [Ended(number, "slow", limit=self.limit) for number in numbers]
        return numbers

    def end(self, ended: Ended) -> None:
        """The engine ends a request with an error."""
        self.open.discard(ended.number)
        self.ended.append(ended)

    def abort(self, numbers: Iterable[int]) -> list[int]:
        """Nobody wants them any more; return those that were open."""
        known = [number for number in numbers if number in self.open]
        self.open.difference_update(known)
        return known


def by_slot(deltas: Iterable[Delta]) -> dict[int, list[Delta]]:
    """Return the deltas of each API server, in their order.

    Raises:
        TypeError: one is no delta, or a request's number no whole number.
    """
    sorted_out: dict[int, list[Delta]] = {}
    for each in deltas:
        delta = each if type(getattr(each, "number", None)) is int else _with_whole_number(each)
        sorted_out.setdefault(delta.number >> SLOT_SHIFT, []).append(delta)
    return sorted_out


def _with_whole_number(delta: Delta) -> Delta:
    """The delta of a request whose number is equal to a whole one: numpy's, for example."""
    if not isinstance(delta, Delta):
        raise _no_delta(delta)
    if type(delta.number) is int:
        return delta
    try:
        number = index(delta.number)
    except TypeError:
        raise TypeError(
            f"a request's number is an int, not {delta.number!r}; it is told by Request.number"
        ) from None
    return Delta(number, delta.token_ids, delta.finish, delta.extra)


def _no_delta(given: object) -> TypeError:
    return TypeError(f"a step is made of Delta, not {given!r:.64}")
