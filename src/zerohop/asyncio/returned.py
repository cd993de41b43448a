"""Messages that were taken and never got go back to where they were taken from.

Tasks give up in any order. So what is taken is numbered, and what returns is put in order again::

    key = number             a whole message
    key = (number, index)    a part of one

Parts of the message that is begun return to what is left of it; with its first part it is begun no
more. Parts of an older message wait together, as far as they have come back, for the next receive.
"""

from __future__ import annotations

from bisect import bisect_left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from zerohop.core.socket import SocketCore
    from zerohop.patterns.pipe import Message, Part

    Key: TypeAlias = int | tuple[int, int]

_NEVER_TAKEN = 1 << 62  # the index of parts that were not taken: behind all that were


class Returned:
    """What came back to one socket. The lock is held.

    Args:
        core: where it is received from once more.
    """

    __slots__ = ("_begun", "_core", "_index", "_indexes", "_numbers", "_parts")

    def __init__(self, core: SocketCore) -> None:
        self._core = core
        self._numbers: list[int] = []  # of the messages that are back, as the core has them
        self._parts: dict[int, list[int]] = {}  # of those that are back in part: their indexes
        self._begun = -1  # the number of the message that is received part by part
        self._index = 0  # of the part that was taken last
        self._indexes: list[int] = []  # of its parts that are back

    def key_of_part(self, number: int, *, begun: bool) -> Key:
        """Note that a part was taken; return what :meth:`put` wants to know of it.

        Args:
            number: for a message that begins with this part.
            begun: a message was begun before.
        """
        if begun:
            self._index += 1
            del self._indexes[:1]
        elif not self._core.receiving_more:
            return number
        else:
            self._begun, self._index = number, 0
            self._indexes.clear()
        return self._begun, self._index

    def put(self, value: Message, key: Key) -> None:
        """Put a message or part back: before all that were taken later."""
        if not isinstance(key, tuple):
            numbers = self._aligned()
            at = bisect_left(numbers, key)
            numbers.insert(at, key)
            self._core.put_back(value, at)
            return
        number, index = key
        assert not isinstance(value, list)  # a part
        if number != self._begun:
            self._put_parts(number, [value], [index])
            return
        at = bisect_left(self._indexes, index)
        self._indexes.insert(at, index)
        self._core.put_back_part(value, at)
        if not index:
            parts = _listed(self._core.receive())
            left = [_NEVER_TAKEN] * (len(parts) - len(self._indexes))
            self._put_parts(number, parts, [*self._indexes, *left])
            self._begun = -1

    def _put_parts(self, number: int, parts: list[Part], indexes: list[int]) -> None:
        numbers = self._aligned()
        at = bisect_left(numbers, number)
        if at < len(numbers) and numbers[at] == number:
            parts = [*parts, *_listed(self._core.take_back(at))]
            indexes = [*indexes, *self._parts[number]]
            order = sorted(range(len(parts)), key=indexes.__getitem__)
            parts, indexes = [parts[n] for n in order], [indexes[n] for n in order]
        else:
            numbers.insert(at, number)
        self._parts[number] = indexes
        self._core.put_back(parts if len(parts) > 1 else parts[0], at)

    def _aligned(self) -> list[int]:
        """The numbers, without those of messages that were received meanwhile."""
        numbers = self._numbers
        for number in numbers[: len(numbers) - self._core.returned]:
            self._parts.pop(number, None)
        del numbers[: len(numbers) - self._core.returned]
        return numbers


def _listed(message: Message) -> list[Part]:
    return message if isinstance(message, list) else [message]
