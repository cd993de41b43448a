"""PUB with 1,000 and with 10,000 subscriptions: what matching costs a delivered message.

One SUB subscribes to every topic by itself; the messages go through all topics, in a shuffled
order, and each matches one subscription. So all are delivered, and the difference between the two
cases is what nine thousand subscriptions cost that a message does not match. ``subscribe ms`` is
the time from the first subscription until the publisher honours the last.

The SUB is connected first and its SNDHWM is 0 for all: libzmq counts subscriptions against it, and
loses nine thousand of ten thousand with the default of 1000.
"""

import time
from typing import Any

from bench.case import Case, Part, Result, Role
from bench.cases.pubsub import (
    Delivery,
    opened,
    pass_of,
    publish_async,
    publish_blocking,
    receive_alone,
    receive_alone_async,
    topics,
)
from bench.stream import MARKER, PROBE, Account, receive_until, receive_until_async


def connected(role: Role) -> Any:
    """A SUB without a subscription."""
    socket = opened(role, "SUB")
    role.library.set_if_known(socket, "SNDHWM", 0)
    return role.connect(socket)


def subscribe(socket: Any, wanted: list[bytes]) -> float:
    """Subscribe to each topic, and to the markers after them; return when it began."""
    began = time.perf_counter()
    for topic in wanted:
        socket.subscribe(topic)
    socket.subscribe(MARKER)
    return began


def with_set_up(result: Result, took_s: float) -> Result:
    """A result that also says how long the subscriptions took."""
    return result | {"detail": {"subscribe ms": took_s * 1e3}}


def subscribe_blocking(role: Role) -> Result:
    """Subscribe, and receive what the publisher sends."""
    account = Account(pass_of(role))
    socket = connected(role)
    began = subscribe(socket, topics(role))
    receive_until(socket.recv, account, PROBE)
    took_s = time.perf_counter() - began
    role.control.tell(ready=True)
    delivery = Delivery([account], role.settings.warm_up_s)
    receive_alone(socket.recv, account, delivery)
    return with_set_up(delivery.result(), took_s)


async def subscribe_async(role: Role) -> Result:
    """``subscribe_blocking`` with awaits."""
    account = Account(pass_of(role))
    socket = connected(role)
    began = subscribe(socket, topics(role))
    await receive_until_async(socket.recv, account, PROBE)
    took_s = time.perf_counter() - began
    role.control.tell(ready=True)
    delivery = Delivery([account], role.settings.warm_up_s)
    await receive_alone_async(socket.recv, account, delivery)
    return with_set_up(delivery.result(), took_s)


CASES = tuple(
    Case(
        name=f"topics-{short}",
        title=f"PUB to one SUB with {text} subscriptions, 64 B",
        unit="msg/s",
        parts={
            "sender": Part(publish_blocking, publish_async),
            "receiver": Part(subscribe_blocking, subscribe_async),
        },
        parameters={"size": 64, "subscribers": 1, "topics": count},
        floor=False,
        compared=("subscribe ms",),
    )
    for count, short, text in ((1_000, "1k", "1,000"), (10_000, "10k", "10,000"))
)
