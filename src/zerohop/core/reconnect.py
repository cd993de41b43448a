"""When to connect again: back-off as a function of the attempt, and which failures end it.

    failure      what happened                                         next attempt
    REFUSED      nobody listens                                        delay()
    UNREACHABLE  no route, no such name, timeout: it never got there   delay()
    HANDSHAKE    closed, silent, or not ZMTP before the handshake      delay()
    LOST         the connection broke after the handshake              delay()
    MISMATCH     both sides will say the same next time: type,         slow_delay()
                 mechanism, credentials, version, a forbidden frame

``attempt`` counts the failures since the last *handshake*. libzmq counts from the last TCP connect,
so that a peer which accepts and then closes is tried at the base rate for ever. After a MISMATCH
libzmq gives the endpoint up without a word, and a peer that is corrected and restarted is never
found again; we go on, slowly.
"""

from enum import Enum, auto

from zerohop.constants import ReconnectStop
from zerohop.value import Value

__all__ = ["Failure", "ReconnectOptions", "delay", "next_delay", "slow_delay"]

_SLOW_FIRST, _SLOW_LAST = 1.0, 30.0
_MOST_DOUBLINGS = 64  # far beyond any limit; keeps a float from overflowing


class ReconnectOptions(Value):
    """How to connect again.

    Attributes:
        ivl: RECONNECT_IVL in seconds; None or 0.0: never.
        ivl_max: RECONNECT_IVL_MAX in seconds; None: the pause does not grow.
        stop: bits of :class:`~zerohop.constants.ReconnectStop`. AFTER_DISCONNECT changes nothing:
            an endpoint that ``disconnect`` took away is not tried again in any case.
    """

    ivl: float | None = 0.1
    ivl_max: float | None = None
    stop: int = 0


class Failure(Enum):
    """Why there is no connection, or no more; see the module."""

    REFUSED = auto()
    UNREACHABLE = auto()
    HANDSHAKE = auto()
    LOST = auto()
    MISMATCH = auto()


def delay(attempt: int, options: ReconnectOptions, jitter: float) -> float | None:
    """Return the seconds to wait before connecting again; None: do not.

    Without RECONNECT_IVL_MAX this is libzmq's rule, ``ivl`` and up to as much again. With it the
    pause doubles up to the maximum, as libzmq's; but libzmq adds no chance then, and a thousand
    clients of a restarted server come back in step. Here each waits between half of that pause
    and all of it: spread, and never later than libzmq would.

    Args:
        attempt: failures since the last handshake, before this one; 0 is the first.
        options: the socket's.
        jitter: random, in [0, 1).
    """
    if not options.ivl:
        return None
    if options.ivl_max is None:
        return options.ivl * (1 + jitter)
    pause: float = min(options.ivl * 2 ** min(attempt, _MOST_DOUBLINGS), options.ivl_max)
    return pause * (1 + jitter) / 2


def slow_delay(attempt: int, options: ReconnectOptions, jitter: float) -> float | None:
    """Return the seconds to wait after a MISMATCH: 1 to 30 s, doubling; None: do not.

    RECONNECT_IVL and RECONNECT_IVL_MAX raise these two limits and never lower them.
    """
    if not options.ivl:
        return None
    first = max(options.ivl, _SLOW_FIRST)
    last = max(options.ivl_max or 0.0, first, _SLOW_LAST)
    return delay(attempt, ReconnectOptions(first, last), jitter)


def next_delay(
    failure: Failure, attempt: int, options: ReconnectOptions, jitter: float
) -> float | None:
    """Return the seconds to wait after this failure; None: give the endpoint up.

    RECONNECT_STOP is obeyed: CONN_REFUSED ends it after REFUSED, HANDSHAKE_FAILED after HANDSHAKE
    and MISMATCH.
    """
    match failure:
        case Failure.REFUSED if options.stop & ReconnectStop.CONN_REFUSED:
            return None
        case Failure.HANDSHAKE | Failure.MISMATCH if options.stop & ReconnectStop.HANDSHAKE_FAILED:
            return None
        case Failure.MISMATCH:
            return slow_delay(attempt, options, jitter)
        case _:
            return delay(attempt, options, jitter)
