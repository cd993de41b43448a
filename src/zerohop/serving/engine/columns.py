"""Tokens of steps in which the same requests went on, kept until somebody is to read them. Pure.

    numbers   1   2   3
    a step    5   6   7        each step is a row, as it came;
    the next  8   9   10       to be read are the columns: 5 8, 6 9, 7 10

Most steps of a busy engine are of the same requests as the last one. Nothing is done for one token
of theirs: their numbers are not even decoded, and to turn rows into columns is a single call for
all of them.
"""

from __future__ import annotations

import msgspec

from zerohop.serving.codec import decode_with
from zerohop.serving.errors import Malformed
from zerohop.serving.wording import counted

__all__ = ["Columns"]

_decode = msgspec.msgpack.Decoder(list[int]).decode


class Columns:
    """Steps of one engine, in each of which the same requests have made one token.

    Attributes:
        numbers: of the requests.
        steps: the tokens of each step.
    """

    __slots__ = ("_octets", "numbers", "steps")

    def __init__(self) -> None:
        self._octets = b"\x90"  # an empty array
        self.numbers: list[int] = []
        self.steps: list[list[int]] = []

    def have(self, numbers: msgspec.Raw) -> bool:
        """Whether these are the numbers of the steps that are here."""
        return bytes(numbers) == self._octets

    def begin(self, numbers: msgspec.Raw) -> None:
        """Steps of other requests follow; there is none here now.

        Raises:
            Malformed: they are no numbers. It is as it was before.
        """
        octets = bytes(numbers)
        self.numbers = decode_with(_decode, octets)
        self._octets = octets

    def add(self, tokens: list[int]) -> None:
        """Take a step.

        Raises:
            Malformed: there is not one token for each request.
        """
        if len(tokens) != len(self.numbers):
            raise Malformed(
                self._octets,
                f"it has {counted(len(tokens), 'token')} for "
                f"{counted(len(self.numbers), 'request')}",
            )
        self.steps.append(tokens)

    def take(self) -> list[list[int]]:
        """Return the steps; none is here any more."""
        steps, self.steps = self.steps, []
        return steps
