"""A ticker of 1 ms beside a flooded PULL on one event loop: does the loop still breathe?

One task receives, an ``await`` a message, as fast as it can; another sleeps 1 ms at a time and
counts. The flood is the same for all contenders and more than any of them can take (see
``bench.floor.flood``). Who ticks well by receiving little shows it in ``received/s``.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable

from bench.case import Case, Part, Result, Role
from bench.clock import Clock
from bench.floor.flood import connect_as_push, flood
from bench.stream import Account, make_pass, receive_pass_async, receive_until_async

TICK_S = 0.001
LONGER_S = 0.5


class Watch:
    """Ticks, and the clock they are counted by.

    The receiving task starts it, once its first pass is in: were it the ticker's own, a loop that
    is starved from the beginning would be measured only when the flood is over.
    """

    def __init__(self) -> None:
        self.clock = Clock()
        self.ticks = 0
        self.longest = 0.0  # seconds between two ticks
        self._began = self._last = math.nan

    def begin(self) -> None:
        """The flood is on: count from now."""
        self.clock.start()
        self._began = self._last = time.perf_counter()

    def tick(self) -> float:
        """Count one tick; return the seconds since the beginning."""
        if math.isnan(self._began):
            return 0.0
        now = time.perf_counter()
        self.ticks += 1
        self.longest = max(self.longest, now - self._last)
        self._last = now
        return now - self._began


async def receive(recv: Callable[[], Awaitable[bytes]], account: Account, watch: Watch) -> None:
    """Receive without end; the watch begins after the first pass."""
    await receive_pass_async(recv, account)
    watch.begin()
    await receive_until_async(recv, account, b"no marker comes")


async def idle_ticks_per_second(seconds: float) -> float:
    """What this loop reaches on this machine when it has nothing else to do."""
    watch = Watch()
    watch.begin()
    while watch.tick() < seconds:  # noqa: ASYNC110 - the sleep is what is measured
        await asyncio.sleep(TICK_S)
    elapsed: float = watch.clock.stop()["seconds"]
    return watch.ticks / elapsed


async def pull_beside_ticker(role: Role) -> Result:
    """Tick here while another task receives."""
    account, watch = Account(make_pass(role.case["size"])), Watch()
    idle = await idle_ticks_per_second(role.settings.warm_up_s)
    socket = role.bind(role.library.open("PULL"))
    receiving = asyncio.create_task(receive(socket.recv, account, watch))
    limit = role.settings.measure_s
    while watch.tick() < limit and not receiving.done():  # noqa: ASYNC110 - as above
        await asyncio.sleep(TICK_S)
    if receiving.done():
        receiving.result()  # raises what ended it
    used = watch.clock.stop()
    receiving.cancel()
    await asyncio.wait([receiving])
    account.must_be_whole()
    messages = account.received - len(account.messages)
    return {
        "value": watch.ticks / used["seconds"],
        "messages": messages,
        "detail": {
            "idle ticks/s": idle,
            "longest pause ms": watch.longest * 1e3,
            "received/s": messages / used["seconds"],
        },
        **used,
    }


def flood_receiver(role: Role) -> Result:
    """Flood longer than the receiver measures; its closing ends the flood early.

    A receiver that starves its loop gets to look at the time only when the flood is over.
    """
    messages = make_pass(role.case["size"])
    connection = connect_as_push(role.control.wait("endpoint"))
    clock = Clock()
    with connection:
        written = flood(connection, messages, role.settings.measure_s + LONGER_S)
    role.control.wait("stop")
    return {"written": written, **clock.stop()}


CASES = (
    Case(
        name="ticker",
        title="1 ms ticker beside a flooded PULL, 64 B",
        unit="ticks/s",
        parts={
            "receiver": Part(asyncio=pull_beside_ticker),
            "sender": Part(asyncio=flood_receiver),
        },
        parameters={"size": 64},
        floor=False,
        uvloop=True,
    ),
)
