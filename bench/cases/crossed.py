"""Two libraries, one at each end: what a program gets that changes one side first.

The same roles as in the cases of the same name; the row ``a -> b`` has a's sockets in the sending
(PUSH, REQ, PUB, DEALER) process and b's in the other.
"""

from dataclasses import replace

from bench.case import Case
from bench.cases import pubsub, pushpull, reqrep, router

NAMES = ("pushpull-64", "pushpull-256k", "reqrep-64", "pubsub-8", "router-8")


def crossed(case: Case) -> Case:
    """The same between two libraries."""
    return replace(
        case,
        name=f"crossed-{case.name}",
        title=f"{case.title}: from one library to another",
        crossed=True,
        floor=False,
        uvloop=False,
        in_full=(),
    )


ORIGINALS = (*pushpull.CASES, *reqrep.CASES, *pubsub.CASES, *router.CASES)
CASES = tuple(crossed(case) for case in ORIGINALS if case.name in NAMES)
