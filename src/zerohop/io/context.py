"""What the sockets of one Context share: the lock, and the way to one another."""

from __future__ import annotations

import atexit
import threading
import weakref

from zerohop.core.context import ContextCore
from zerohop.errors import ZMQError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.io.driver import SocketDriver
    from zerohop.io.loop import Loop
    from zerohop.io.pump import Pump
    from zerohop.io.reactor import Reactor


class ContextIO:
    """One lock for every socket of a Context, blocking and asyncio alike.

    One and not many: inproc pipes belong to two sockets at once, and under the GIL a finer lock
    would let nobody run who could not run anyway. The fast lanes do without it.

    Attributes:
        core: the pure part.
        drivers: of every socket that is not yet released, lingering ones too.
        reactor: the loop of the blocking sockets and of ends that are waited for, once needed.
        newest_loop: the asyncio loop that a socket came to last.
        handing_over: :meth:`hand_over` is at work, and sees every note that is left meanwhile.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.core = ContextCore()
        self.drivers: set[SocketDriver] = set()
        self.reactor: Reactor | None = None
        self.newest_loop: Loop | None = None
        self.handing_over = False
        _contexts.add(self)

    def interrupted(self) -> None:
        """An exception, of a signal handler most likely, has broken into work on these sockets."""
        from zerohop.io.mending import mend_soon  # rare

        mend_soon(self)

    # ``with context.lock, context:`` around what an exception must not break into unnoticed.

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not issubclass(kind, ZMQError):
            self.interrupted()

    def hand_over(self, caller: Pump) -> None:
        """Bring the notes about shared pipes to their sockets and wake those; lock held.

        A woken socket may cause new notes; the outermost call deals with them all.
        """
        if self.handing_over:
            return
        self.handing_over = True
        try:
            while True:
                touched = self.core.hand_over()
                if not touched:
                    break
                for core in touched:
                    driver: SocketDriver | None = core.driver
                    if driver is caller:
                        caller.again()
                    elif driver is not None:
                        driver.woken()
        finally:
            self.handing_over = False


_contexts: weakref.WeakSet[ContextIO] = weakref.WeakSet()


@atexit.register
def _write_what_was_sent() -> None:
    """The interpreter's exit waits for messages that were sent and are queued, but not for long."""
    left = [context for context in _contexts if context.drivers]
    if left:
        from zerohop.io.ending import flush  # most programs have ended their contexts by now

        flush(left)
