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
from zerohop.patterns.dealer import Dealer
from zerohop.patterns.pair import Pair
from zerohop.patterns.pipeline import Pull, Push
from zerohop.patterns.publish import Pub, XPub
from zerohop.patterns.reqrep import Rep, Req
from zerohop.patterns.router import Router
from zerohop.patterns.stream import Stream
from zerohop.patterns.subscribe import Sub, XSub

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from zerohop.patterns.pattern import Pattern, PatternOptions

__all__ = ["make_pattern"]

_PATTERNS: dict[int, Callable[[PatternOptions, int], Pattern]] = {
    SocketType.PAIR: Pair,
    SocketType.PUB: Pub,
    SocketType.SUB: Sub,
    SocketType.REQ: Req,
    SocketType.REP: Rep,
    SocketType.DEALER: Dealer,
    SocketType.ROUTER: Router,
    SocketType.PULL: Pull,
    SocketType.PUSH: Push,
    SocketType.XPUB: XPub,
    SocketType.XSUB: XSub,
    SocketType.STREAM: Stream,
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
        pattern = _PATTERNS[socket_type]
    except KeyError:
        raise UsageError(
            Errno.EINVAL,
            hint=f"socket type {socket_type!r} is none of "
            + ", ".join(SocketType(known).name for known in _PATTERNS),
        ) from None
    return pattern(options, seed)
