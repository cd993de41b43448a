"""Socket semantics: which peer gets a message, whose message comes next, and in what envelope.

Knows peers and the two pipes of each. May not know the wire's bytes, connections, clocks or
threads; so an ``inproc`` connection is simply two patterns that share their pipes.

    pipe           the queue between a socket and one peer
    pattern        what every socket type answers, and what it is told
    routing        fair queue, load balancer, fan-out: what the types are put together from
    subscriptions  which topics somebody wants
    routing_ids    by which id a peer is addressed
    pair pipeline dealer router reqrep publish subscribe stream   the types

``make_pattern`` is the one place where a socket type is turned into its semantics.
"""

from __future__ import annotations

from zerohop.constants import Errno, SocketType
from zerohop.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.patterns.pattern import Pattern, PatternOptions

__all__ = ["make_pattern"]

# The module and the class; the module is imported for the first socket of the type.
_PATTERNS: dict[int, tuple[str, str]] = {
    SocketType.PAIR: ("pair", "Pair"),
    SocketType.PUB: ("publish", "Pub"),
    SocketType.SUB: ("subscribe", "Sub"),
    SocketType.REQ: ("reqrep", "Req"),
    SocketType.REP: ("reqrep", "Rep"),
    SocketType.DEALER: ("dealer", "Dealer"),
    SocketType.ROUTER: ("router", "Router"),
    SocketType.PULL: ("pipeline", "Pull"),
    SocketType.PUSH: ("pipeline", "Push"),
    SocketType.XPUB: ("publish", "XPub"),
    SocketType.XSUB: ("subscribe", "XSub"),
    SocketType.STREAM: ("stream", "Stream"),
}


def make_pattern(socket_type: int, options: PatternOptions, *, seed: int) -> Pattern:
    """Return the semantics of a socket type, without peers yet.

    Args:
        socket_type: one of libzmq's twelve stable types.
        options: shared: what the caller changes in them takes effect at once.
        seed: a random number, where the ids that ROUTER and REQ invent begin.

    Raises:
        UsageError: EINVAL: no such type, or one of libzmq's drafts.
    """
    try:
        module, name = _PATTERNS[socket_type]
    except KeyError:
        raise UsageError(
            Errno.EINVAL,
            hint=f"socket type {socket_type!r} is none of "
            + ", ".join(SocketType(known).name for known in _PATTERNS),
        ) from None
    place = __import__(f"zerohop.patterns.{module}", fromlist=[name])
    pattern: Pattern = getattr(place, name)(options, seed)
    return pattern
