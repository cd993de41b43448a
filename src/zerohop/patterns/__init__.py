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

from functools import cache

from zerohop.constants import Errno, SocketType
from zerohop.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from zerohop.patterns.pattern import Pattern, PatternOptions

__all__ = ["make_pattern"]


def make_pattern(socket_type: int, options: PatternOptions, *, seed: int) -> Pattern:
    """Return the semantics of a socket type, without peers yet.

    Args:
        socket_type: one of libzmq's twelve stable types.
        options: shared: what the caller changes in them takes effect at once.
        seed: a random number, where the ids that ROUTER and REQ invent begin.

    Raises:
        UsageError: EINVAL: no such type, or one of libzmq's drafts.
    """
    return _class_of(socket_type)(options, seed)


@cache  # an import costs as much as ten calls, even of what is there
def _class_of(socket_type: int) -> Callable[[PatternOptions, int], Pattern]:  # noqa: C901 - a table
    """The class of a type. A program uses two or three of them, and imports no others."""
    match socket_type:
        case SocketType.PAIR:
            from zerohop.patterns.pair import Pair

            return Pair
        case SocketType.PUB:
            from zerohop.patterns.publish import Pub

            return Pub
        case SocketType.SUB:
            from zerohop.patterns.subscribe import Sub

            return Sub
        case SocketType.REQ:
            from zerohop.patterns.reqrep import Req

            return Req
        case SocketType.REP:
            from zerohop.patterns.reqrep import Rep

            return Rep
        case SocketType.DEALER:
            from zerohop.patterns.dealer import Dealer

            return Dealer
        case SocketType.ROUTER:
            from zerohop.patterns.router import Router

            return Router
        case SocketType.PULL:
            from zerohop.patterns.pipeline import Pull

            return Pull
        case SocketType.PUSH:
            from zerohop.patterns.pipeline import Push

            return Push
        case SocketType.XPUB:
            from zerohop.patterns.publish import XPub

            return XPub
        case SocketType.XSUB:
            from zerohop.patterns.subscribe import XSub

            return XSub
        case SocketType.STREAM:
            from zerohop.patterns.stream import Stream

            return Stream
        case _:
            known = ", ".join(kind.name for kind in SocketType if kind <= SocketType.STREAM)
            raise UsageError(Errno.EINVAL, hint=f"socket type {socket_type!r} is none of {known}")
