"""Threads that carry out what users give, so that the threads of the sockets never do.

What hangs in there holds up nobody's end: the threads are daemons, and who closes waits for them
for as long as he says. ``concurrent.futures`` joins its threads when the interpreter ends, however
long that takes.
"""

from __future__ import annotations

import inspect
import logging
import threading
import time
from queue import SimpleQueue

from zerohop.serving.arguments import seconds, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = ["Hands", "call_in_thread"]

_log = logging.getLogger(__name__)


def call_in_thread(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """Call what a user gave, where there is no event loop.

    Raises:
        TypeError: it is a coroutine function.
    """
    result = function(*arguments)
    if inspect.iscoroutine(result):
        result.close()
        raise TypeError("it is a coroutine function, and there is no event loop to await it")
    return result


class Hands:
    """Carries out what it is given, as many at a time as it has threads, in order.

    Args:
        threads: at most; each is started when it is needed.
        name: of the threads.

    Raises:
        TypeError, ValueError: the number of threads is none, or 0.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._most, self._name = whole("threads", threads, least=1), name
        self._todo: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._is_closed = False

    def give(self, task: Callable[[], None]) -> None:
        """Have a task carried out, which never raises. One thread at a time gives.

        Not once it is closed.
        """
        if self._is_closed:
            return
        self._todo.put(task)
        if len(self._threads) < self._most:
            name = f"{self._name}-{len(self._threads)}"
            self._threads.append(threading.Thread(target=self._run, name=name, daemon=True))
            self._threads[-1].start()

    def close(self, timeout: float | None) -> None:
        """Begin nothing more, and wait for what is at work.

        Args:
            timeout: seconds, after which it is left to itself; ``None``: without limit.

        Raises:
            TypeError, ValueError: the timeout is no time; nothing has changed.
        """
        give_up = None if timeout is None else time.monotonic() + seconds("timeout", timeout)
        if self._is_closed:
            return
        self._is_closed = True
        for _ in self._threads:
            self._todo.put(None)
        for thread in self._threads:
            if thread is not threading.current_thread():  # what it carries out closes it
                thread.join(None if give_up is None else max(give_up - time.monotonic(), 0.0))
                if thread.is_alive():
                    _log.warning("%s is still at work and is left to itself", thread.name)

    def _run(self) -> None:
        while (task := self._todo.get()) is not None and not self._is_closed:
            task()
