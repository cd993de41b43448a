"""The line between a measuring process and the one that conducts it.

    to the process, on stdin       its orders (one JSON line), then words as they become due:
                                   ``endpoint <where>``, ``go``, ``stop``
    from the process, on stdout    one JSON object a line:
                                   ``{"endpoint": ...}``, ``{"ready": true}``,
                                   ``{"result": {...}}``, ``{"error": "..."}``

Whatever a library prints goes to stderr, so that it cannot be mistaken for an event.
"""

import asyncio
import json
import os
import sys
from typing import Any, Self, TextIO


class ConductorGoneError(Exception):
    """The conducting process closed the line: there is nothing left to measure for."""


class Control:
    """The measuring process's end of the line."""

    def __init__(self, words: TextIO, events: TextIO) -> None:
        self._words = words
        self._events = events

    @classmethod
    def over_standard_streams(cls) -> Self:
        """Take stdin and stdout for the line; what is printed from now on goes to stderr."""
        events = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        return cls(sys.stdin, events)

    def orders(self) -> dict[str, Any]:
        """The first line: what to play, and for how long."""
        orders: dict[str, Any] = json.loads(self._words.readline() or "null")
        if orders is None:
            raise ConductorGoneError
        return orders

    def tell(self, **event: Any) -> None:
        """Send one event."""
        self._events.write(json.dumps(event) + "\n")
        self._events.flush()

    def wait(self, word: str) -> str:
        """Block until a word comes; return what follows it on its line.

        Words that come in between are dropped: they were meant for another kind of role.

        Raises:
            ConductorGoneError: the line was closed.
        """
        while line := self._words.readline():
            said, _, rest = line.strip().partition(" ")
            if said == word:
                return rest
        raise ConductorGoneError

    async def wait_async(self, word: str) -> str:
        """``wait`` in a thread, so that the loop can go on flushing what was sent."""
        return await asyncio.get_running_loop().run_in_executor(None, self.wait, word)
