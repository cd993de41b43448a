"""PUB to one and to eight SUBs: how many messages are delivered in a second, to all together.

The publisher waits at its high-water mark instead of dropping (``Library.never_drop``), so the
slowest subscriber sets the pace; what is lost all the same is reported, not hidden. The SUBs live
in one process: a task each on the loop, or taken in turn, a pass each, by one blocking thread.
"""

import asyncio
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
    receive_until,
    receive_until_async,
    send_for,
)

# In turn, each SUB may be this far ahead of the others: well below the high-water mark of 1000, or
# the publisher would wait for a SUB that is not being read.
PASS = 128
REPEAT_S = 0.005

# Left to itself, the kernel keeps some 50,000 messages for each SUB, and a slow contender's round
# would be six parts emptying buffers to one part sending.
BUFFER = 128 << 10


def publisher(role: Role) -> Any:
    """A bound PUB that waits rather than drops."""
    socket = role.library.open("PUB")
    role.library.never_drop(socket)
    role.library.bound_buffers(socket, BUFFER)
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
    messages = make_pass(role.case["size"], messages=PASS)
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
    messages = make_pass(role.case["size"], messages=PASS)
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


def subscribers(role: Role) -> tuple[list[Any], list[Account]]:
    """The SUBs, subscribed to everything, and an account for each."""
    endpoint = role.control.wait("endpoint")
    messages = make_pass(role.case["size"], messages=PASS)
    count = role.case["subscribers"]
    sockets = [role.library.open("SUB") for _ in range(count)]
    for socket in sockets:
        role.library.bound_buffers(socket, BUFFER)
        socket.subscribe(b"")
        socket.connect(endpoint)
    return sockets, [Account(messages) for _ in range(count)]


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

    def pass_done(self) -> None:
        """Some SUB has received a pass; the first begins the warm-up."""
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
    """Take the SUBs in turn, a pass each."""
    sockets, accounts = subscribers(role)
    waiting = list(zip(sockets, accounts, strict=True))
    for socket, account in waiting:
        receive_until(socket.recv, account, PROBE)
    role.control.tell(ready=True)
    delivery = Delivery(accounts, role.settings.warm_up_s)
    while waiting:
        for socket, account in waiting:
            if not receive_pass(socket.recv, account):
                delivery.pass_done()
        waiting = [(socket, account) for socket, account in waiting if account.sent is None]
    return delivery.result()


async def subscribe_async(role: Role) -> Result:
    """A task for each SUB."""
    sockets, accounts = subscribers(role)
    pairs = list(zip(sockets, accounts, strict=True))
    await asyncio.gather(*(receive_until_async(s.recv, a, PROBE) for s, a in pairs))
    role.control.tell(ready=True)
    delivery = Delivery(accounts, role.settings.warm_up_s)

    async def receive(socket: Any, account: Account) -> None:
        while account.sent is None:
            if not await receive_pass_async(socket.recv, account):
                delivery.pass_done()

    await asyncio.gather(*(receive(socket, account) for socket, account in pairs))
    return delivery.result()


CASES = tuple(
    Case(
        name=f"pubsub-{count}",
        title=f"PUB to {text}, 64 B, delivered to all together",
        unit="msg/s",
        parts={
            "sender": Part(publish_blocking, publish_async),
            "receiver": Part(subscribe_blocking, subscribe_async),
        },
        parameters={"size": 64, "subscribers": count},
        floor=False,
    )
    for count, text in ((1, "one SUB"), (8, "eight SUBs"))
)
