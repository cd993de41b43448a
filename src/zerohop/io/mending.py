"""After an exception has broken into the I/O: everything is looked at afresh.

Python runs signal handlers between any two instructions of the main thread, and what they raise
(``KeyboardInterrupt``, a time limit by SIGALRM) passes through whatever runs there: it may be ours.
Then something may be left half done: a peer between two queues, a note that nobody will read, a
timer that has rung for nobody (nothing, if it was only a sleep that it ended: ``Waiter.sleeps``).
To be safe against that in every line would cost each message something. Instead whoever lets such
an exception pass asks for mending, and in the next turn of the loop what stands in lists, flags and
timers is compared with what it stands for::

    the octets of a connection          in doubt: the connection is made anew (io.stream)
    links, dialers, listeners, timers   here, and Links.mend
    peers in the queues of the pattern  Pattern.mend
    waiting calls, the seat             Reactor.mend

What the interrupted call itself was about may have happened or not; a message that it had taken
and not yet returned is lost.
"""

from __future__ import annotations

import errno

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container

    from zerohop.core.link import Link
    from zerohop.io.context import ContextIO
    from zerohop.io.driver import SocketDriver


def mend_soon(context: ContextIO) -> None:
    """Have every socket of the context looked at in the next turn of its loop. Lock held."""
    for driver in list(context.drivers):
        loop = driver.loop
        if loop is None:
            continue
        try:
            loop.call_soon_threadsafe(mend, driver)
        except RuntimeError:  # the loop is closed
            continue
    if context.reactor is not None:
        context.reactor.mend()


def mend(driver: SocketDriver) -> None:
    """Compare a socket's lists, flags, timers with what they stand for; put right what differs."""
    with driver.lock:
        if driver.loop is None:
            return
        if not driver.released:
            core = driver.core
            if core.closed:
                driver.close(core.options.linger)
            _mend_connections(driver)
            driver.mend_timers()
            core.links.mend()
            core.inproc.mend()
            if driver.front is not None:
                driver.front.mend()
        driver.pump()


def _mend_connections(driver: SocketDriver) -> None:
    """Every link has an open stream, every dialer a link or an attempt or a time for it."""
    links, now = driver.core.links, driver.now()
    if driver.partings is not None:
        driver.partings.mend()
    parting: Container[Link] = driver.partings or ()
    for link, stream in list(driver._streams.items()):
        if stream.closed or link not in links.open_links:
            stream.close()
            link.lost = False  # it may have been left halfway: once more
            links.lost(link, link.failure, now)
            driver.stream_closed(link)
        else:
            stream.mend()
    for link in list(links.open_links):
        if link not in driver._streams and link not in parting:
            links.lost(link, OSError(errno.EINTR, "a signal handler raised"), now)
    for listener, acceptor in list(driver._acceptors.items()):
        if driver.core.closed or acceptor.closed or listener not in links.listeners:
            driver.stop_listening(listener, acceptor)
        else:
            acceptor.mend()
    links.listeners = [each for each in links.listeners if each in driver._acceptors]
    for dialer, dialing in list(driver._dialings.items()):
        dialing.close()
        del driver._dialings[dialer]
