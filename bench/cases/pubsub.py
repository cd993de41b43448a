"""PUB to 1, 8 and 64 SUBs: how many messages are delivered in a second, to all together.

The publisher waits at its high-water mark instead of dropping (``Library.never_drop``), so the
slowest subscriber sets the pace; what is lost all the same is reported, not hidden.

The SUBs live in one process, served as a program would serve them: a task each on the loop; or one
blocking thread that waits in a Poller for any of them and takes from each what is there. (Waiting
for one particular SUB while others have messages is what no program does, and it holds up a
library whose caller does the I/O.)
"""

import asyncio
import random
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from bench.case import Case, Part, Result, Role
from bench.clock import Clock
from bench.stream import (
    END,
    PROBE,
    Account,
    StreamError,
    make_pass,
    receive_pass,
    receive_pass_async,
    receive_ready,
    receive_until,
    receive_until_async,
    send_for,
)

PASS = 128  # messages between two looks at the clock, and at one SUB before the next has its turn
REPEAT_S = 0.005

# Octets that the kernel keeps for each connection, at each end. Left to itself it keeps some 50,000
# messages, and a slow contender's round would be six parts emptying buffers to one part sending.
BUFFER = 128 << 10


def opened(role: Role, kind: str) -> Any:
    """A PUB or a SUB.

    From nine SUBs on, kernel buffers and high-water marks shrink, for all, so that no more messages
    are under way than for eight.
    """
    socket = role.library.open(kind)
    part = max(1, role.case["subscribers"] // 8)
    role.library.bound_buffers(socket, BUFFER // part)
    if part > 1:
        for option in ("SNDHWM", "RCVHWM"):
            role.library.set_if_known(socket, option, 1000 // part)
    return socket


def publisher(role: Role) -> Any:
    """A bound PUB that waits rather than drops."""
    socket = opened(role, "PUB")
    role.library.never_drop(socket)
    return role.bind(socket)


def repeat_blocking(
    role: Role, send: Callable[[bytes], object], message: bytes, until: str
) -> None:
    """Send a marker every few milliseconds until the word comes: some of them may be dropped."""
    waiting = threading.Thread(target=role.control.wait, args=(until,), daemon=True)
    waiting.start()
    while waiting.is_alive():
        send(message)
        time.sleep(REPEAT_S)


def publish_blocking(role: Role) -> Result:
    """Probe until every subscription has come, then send for a while."""
    messages = pass_of(role)
    send = publisher(role).send
    repeat_blocking(role, send, PROBE, until="go")
    sent = send_for(send, messages, role.settings.warm_up_s)
    clock = Clock()
    sent += send_for(send, messages, role.settings.measure_s)
    repeat_blocking(role, send, END + b"%d" % sent, until="stop")
    return {"sent": sent, **clock.stop()}


async def repeat_async(
    role: Role, send: Callable[[bytes], Awaitable[object]], message: bytes, until: str
) -> None:
    """``repeat_blocking`` with awaits."""
    waiting = asyncio.create_task(role.control.wait_async(until))
    while not waiting.done():
        await publish_for_async(send, role.library.again, [message], 0.0)
        await asyncio.sleep(REPEAT_S)
    waiting.result()


async def publish_async(role: Role) -> Result:
    """``publish_blocking`` with awaits."""
    messages = pass_of(role)
    send, again = publisher(role).send, role.library.again
    await repeat_async(role, send, PROBE, until="go")
    sent = await publish_for_async(send, again, messages, role.settings.warm_up_s)
    clock = Clock()
    sent += await publish_for_async(send, again, messages, role.settings.measure_s)
    await repeat_async(role, send, END + b"%d" % sent, until="stop")
    return {"sent": sent, **clock.stop()}


async def publish_for_async(
    send: Callable[[bytes], Awaitable[object]],
    again: type[Exception],
    messages: Sequence[bytes],
    seconds: float,
) -> int:
    """Send whole passes, at least one, until the time is over.

    ``zmq.asyncio`` raises ``Again`` at the high-water mark of a PUB that must not drop, because
    libzmq calls a PUB always writable. Its user has to try again, and so does everyone here.
    """
    sent = 0
    until = time.perf_counter() + seconds
    while True:
        for message in messages:
            while True:
                try:
                    await send(message)
                    break
                except again:
                    await asyncio.sleep(0)
        sent += len(messages)
        if time.perf_counter() >= until:
            return sent


def topics(role: Role) -> list[bytes]:
    """The case's topics, in a shuffled order that is the same in both processes; or none."""
    count = role.case.get("topics", 0)
    made = [b"topic.%05d" % number for number in range(count)]
    random.Random(count).shuffle(made)
    return made


def pass_of(role: Role) -> list[Any]:
    """The messages: one for each topic, or numbered."""
    return make_pass(role.case["size"], messages=PASS, heads=topics(role))


def subscribers(role: Role) -> tuple[list[Any], list[Account]]:
    """The SUBs, subscribed to everything, and an account for each."""
    endpoint = role.control.wait("endpoint")
    messages = pass_of(role)
    sockets = [opened(role, "SUB") for _ in range(role.case["subscribers"])]
    for socket in sockets:
        socket.subscribe(b"")
        socket.connect(endpoint)
    return sockets, [Account(messages) for _ in sockets]


class Delivery:
    """When the warm-up is over, and what all SUBs together received since.

    Nobody waits for it: a SUB that stopped reading until the others are warm would fill up, stop
    the publisher, and so starve the others of the messages that they are to warm up with.
    """

    def __init__(self, accounts: Sequence[Account], warm_up_s: float) -> None:
        self._accounts = accounts
        self._warm_up_s = warm_up_s
        self._until = 0.0
        self._before: int | None = None
        self._clock = Clock()

    def _received(self) -> int:
        return sum(account.received for account in self._accounts)

    def progress(self) -> None:
        """Some SUB has received something; the first begins the warm-up."""
        now = time.perf_counter()
        if not self._until:
            self._until = now + self._warm_up_s
        elif self._before is None and now >= self._until:
            self._before = self._received()
            self._clock.start()

    def result(self) -> Result:
        """The figures, once every SUB has seen the end.

        Raises:
            StreamError: the stream ended before it was warm.
        """
        used = self._clock.stop()
        if self._before is None:
            raise StreamError("the stream ended within its warm-up")
        messages = self._received() - self._before
        return {
            "value": messages / used["seconds"],
            "messages": messages,
            "lost": sum(account.lost for account in self._accounts),
            **used,
        }


def subscribe_blocking(role: Role) -> Result:
    """One SUB is received from; several are waited for in a Poller."""
    sockets, accounts = subscribers(role)
    for socket, account in zip(sockets, accounts, strict=True):
        receive_until(socket.recv, account, PROBE)
    role.control.tell(ready=True)
    delivery = Delivery(accounts, role.settings.warm_up_s)
    if len(sockets) == 1:
        receive_alone(sockets[0].recv, accounts[0], delivery)
    else:
        receive_polling(role, dict(zip(sockets, accounts, strict=True)), delivery)
    return delivery.result()


def receive_alone(recv: Callable[[], bytes], account: Account, delivery: Delivery) -> None:
    """Receive to the end."""
    while account.sent is None:
        if not receive_pass(recv, account, PASS):
            delivery.progress()


def receive_polling(role: Role, accounts: dict[Any, Account], delivery: Delivery) -> None:
    """Receive to the end of all, from whichever SUB has something."""
    poller, no_wait, empty = (
        role.library.poller([*accounts]),
        role.library.no_wait,
        role.library.empty,
    )
    waiting = len(accounts)
    while waiting:
        for socket, _ in poller.poll():
            account = accounts[socket]
            if not receive_ready(socket.recv, no_wait, empty, account, PASS):
                delivery.progress()
            elif account.sent is not None:
                poller.unregister(socket)
                waiting -= 1


async def subscribe_async(role: Role) -> Result:
    """A task for each SUB."""
    sockets, accounts = subscribers(role)
    pairs = list(zip(sockets, accounts, strict=True))
    await asyncio.gather(*(receive_until_async(s.recv, a, PROBE) for s, a in pairs))
    role.control.tell(ready=True)
    delivery = Delivery(accounts, role.settings.warm_up_s)
    await asyncio.gather(*(receive_alone_async(s.recv, a, delivery) for s, a in pairs))
    return delivery.result()


async def receive_alone_async(
    recv: Callable[[], Awaitable[bytes]], account: Account, delivery: Delivery
) -> None:
    """``receive_alone`` with awaits."""
    while account.sent is None:
        if not await receive_pass_async(recv, account, PASS):
            delivery.progress()


PARTS = {
    "sender": Part(publish_blocking, publish_async),
    "receiver": Part(subscribe_blocking, subscribe_async),
}

CASES = tuple(
    Case(
        name=f"pubsub-{count}",
        title=f"PUB to {text}, 64 B, delivered to all together",
        unit="msg/s",
        parts=PARTS,
        parameters={"size": 64, "subscribers": count},
        floor=False,
        round_s=1.3 if count > 8 else 0.0,
    )
    for count, text in ((1, "one SUB"), (8, "eight SUBs"), (64, "64 SUBs"))
)
