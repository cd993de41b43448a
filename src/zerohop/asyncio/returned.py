"""Messages that were taken and never got go back to where they were taken from.

Tasks give up in any order. So what is taken is numbered, and what returns is put in order again::

    key = number               a whole message
    key = (number, indexes)    some parts of one: one, or all that were left

Parts of the message that is begun return to what is left of it; with its first part it is begun no
more. Parts of an older message wait together, as far as they have come back, for the next receive.
"""

from __future__ import annotations

from bisect import bisect_left

from zerohop.value import NOTHING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from zerohop.core.socket import SocketCore
    from zerohop.patterns.pipe import Message, Part

    Key: TypeAlias = int | tuple[int, list[int]]


class Returned:
    """What came back to one socket. The lock is held.

    Args:
        core: where it is received from once more.

    Attributes:
        numbers: of the messages that are back, as the core has them.
    """

    __slots__ = ("_begun", "_core", "_indexes", "_next", "_parts", "numbers")

    def __init__(self, core: SocketCore) -> None:
        self._core = core
        self.numbers: list[int] = NOTHING
        self._parts: dict[int, list[int]] = {}  # of those that are back in part: their indexes
        self._begun = -1  # the number of the message that is received part by part
        self._indexes: list[int] = NOTHING  # of its parts that are back: they are the next ones
        self._next = 0  # the index of its next part that was never taken

    def key(self, number: int, value: Message, *, begun: bool) -> Key:
        """Note that something was taken; return what :meth:`put` wants to know of it.

        Args:
            number: for a message of which this is the first that is taken.
            value: a message, a part, or what was left of a message.
            begun: a message was begun before.
        """
        if not begun:
            indexes: list[int] = []
            if len(self.numbers) > self._core.returned:  # it comes for the second time
                number = self.numbers.pop(0)
                indexes = self._parts.pop(number, indexes)
            if not indexes and not self._core.receiving_more:
                return number
            self._begun, self._indexes, self._next = number, indexes, 0
        return self._begun, self._indexes_of(len(_listed(value)))

    def _indexes_of(self, count: int) -> list[int]:
        """The indexes of so many parts, the next ones."""
        indexes, self._indexes = self._indexes[:count], self._indexes[count:]
        new = count - len(indexes)
        self._next += new
        return [*indexes, *range(self._next - new, self._next)]

    def put(self, value: Message, key: Key) -> None:
        """Put what was taken back: before all that was taken later."""
        if not isinstance(key, tuple):
            at = self._place(key)
            self.numbers.insert(at, key)
            self._core.put_back(value, at)
            return
        number, indexes = key
        parts = _listed(value)
        if number != self._begun:
            self._put_parts(number, parts, indexes)
            return
        self._indexes = self._indexes or []
        for part, index in zip(parts, indexes, strict=True):
            at = bisect_left(self._indexes, index)
            self._indexes.insert(at, index)
            self._core.put_back_part(part, at)
        if indexes[0] == 0:
            parts = _listed(self._core.receive())
            self._put_parts(number, parts, self._indexes_of(len(parts)))
            self._begun = -1

    def take_again(self, key: Key) -> bool:
        """Take once more what is back; return whether it still was."""
        if isinstance(key, tuple):
            return self._take_parts_again(*key)
        at = self._place(key)
        if self.numbers[at : at + 1] != [key]:
            return False
        del self.numbers[at]
        self._core.take_back(at)
        return True

    def _take_parts_again(self, number: int, indexes: list[int]) -> bool:
        if number == self._begun:
            if not set(indexes) <= set(self._indexes):
                return False
            for index in indexes:
                at = self._indexes.index(index)
                del self._indexes[at]
                self._core.take_back_part(at)
            return True
        at = self._place(number)
        if not set(indexes) <= set(self._parts.get(number, ())):
            return False
        there = zip(_listed(self._core.take_back(at)), self._parts.pop(number), strict=True)
        left = [(part, index) for part, index in there if index not in indexes]
        del self.numbers[at]
        if left:
            self._put_parts(number, [part for part, _ in left], [index for _, index in left])
        return True

    def _put_parts(self, number: int, parts: list[Part], indexes: list[int]) -> None:
        at = self._place(number)
        if self.numbers[at : at + 1] == [number]:
            parts = [*parts, *_listed(self._core.take_back(at))]
            indexes = [*indexes, *self._parts[number]]
            order = sorted(range(len(parts)), key=indexes.__getitem__)
            parts, indexes = [parts[n] for n in order], [indexes[n] for n in order]
        else:
            self.numbers.insert(at, number)
        self._parts[number] = indexes
        self._core.put_back(parts if len(parts) > 1 else parts[0], at)

    def _place(self, number: int) -> int:
        """How many messages are back that come before this one."""
        self.numbers = numbers = self.numbers or []
        received = len(numbers) - self._core.returned
        if received > 0:  # meanwhile, through a shadow
            for gone in numbers[:received]:
                self._parts.pop(gone, None)
            del numbers[:received]
        else:
            numbers[:0] = [-1] * -received  # put back by a shadow, which gives no number
        return bisect_left(numbers, number)


def _listed(message: Message) -> list[Part]:
    return message if isinstance(message, list) else [message]
