"""What whole paths cost: ``python -m bench.micro.paths [PATH ...] [--seconds S] [--json FILE]``.

Both ends of a connection in one thread of one process, so that nobody ever has to be woken: what is
left is what the library and the system calls cost. Each path is a batch of messages that are sent
and then received, again and again; the figure is the least time of any batch, which a busy machine
can hardly change, and the median, which says how busy it was. So two interpreters, two commits or
two builds can be compared where a benchmark of two processes says nothing.

``calls`` are those of Python and of C functions that a profiler sees, for a message: the same on
every machine. (What the helper thread does is not among them.)
"""

import argparse
import asyncio
import json
import platform
import random
import statistics
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Self

import zerohop as zmq
import zerohop.asyncio

DICE = random.Random(1)
SMALL = [DICE.randbytes(64) for _ in range(900)]  # a batch stays under the high-water mark
LONGER = [DICE.randbytes(1024) for _ in range(60)]
PARTS = [[DICE.randbytes(64) for _ in range(5)] for _ in range(180)]
QUESTIONS = SMALL[:20]
NEWS = SMALL[:200]
SUBSCRIBERS = 8

ROUND_TRIP = "REQ/REP round trip"
SHORT = "PUSH/PULL 64 B"
LONG = "PUSH/PULL 1 KiB"
SEVERAL = "PUSH/PULL 5 x 64 B"
FAN_OUT = f"PUB to {SUBSCRIBERS} SUBs, 64 B, each delivery"

Work = Callable[[], object]
AsyncWork = Callable[[], Coroutine[Any, Any, None]]


def joined(context: Any, binds: int, connects: int, count: int = 1) -> list[Any]:
    """A socket that binds, and as many that connect to it."""
    server = context.socket(binds)
    server.bind("tcp://127.0.0.1:*")
    clients = [context.socket(connects) for _ in range(count)]
    for client in clients:
        client.connect(server.last_endpoint)
    return [server, *clients]


def subscribed(context: Any) -> list[Any]:
    """A PUB, and its SUBs, which want everything."""
    pub, *subs = joined(context, zmq.PUB, zmq.SUB, SUBSCRIBERS)
    for sub in subs:
        sub.subscribe(b"")
    return [pub, *subs]


def asking(rep: Any, req: Any) -> Work:
    """Questions and answers, one at a time."""

    def work() -> None:
        for message in QUESTIONS:
            req.send(message)
            rep.send(rep.recv())
            req.recv()

    return work


def streaming(send: Callable[[Any], Any], recv: Callable[[], Any], batch: Sequence[Any]) -> Work:
    """A batch, sent and then received."""

    def work() -> None:
        for message in batch:
            send(message)
        for _ in batch:
            recv()

    return work


def publishing(pub: Any, subs: list[Any]) -> Work:
    """News that all hear."""

    def work() -> None:
        for message in NEWS:
            pub.send(message)
        for sub in subs:
            for _ in NEWS:
                sub.recv()

    return work


def asking_async(rep: Any, req: Any) -> AsyncWork:
    """``asking`` with awaits."""

    async def work() -> None:
        for message in QUESTIONS:
            await req.send(message)
            await rep.send(await rep.recv())
            await req.recv()

    return work


def streaming_async(
    send: Callable[[Any], Any], recv: Callable[[], Any], batch: Sequence[Any]
) -> AsyncWork:
    """``streaming`` with awaits."""

    async def work() -> None:
        for message in batch:
            await send(message)
        for _ in batch:
            await recv()

    return work


def publishing_async(pub: Any, subs: list[Any]) -> AsyncWork:
    """``publishing`` with awaits."""

    async def work() -> None:
        for message in NEWS:
            await pub.send(message)
        for sub in subs:
            for _ in NEWS:
                await sub.recv()

    return work


def blocking(context: Any) -> list[tuple[str, Work, int]]:
    """Name, work and number of messages of each path of blocking sockets."""
    pub, *subs = subscribed(context)
    pub.wait_for_subscribers(b"", SUBSCRIBERS)
    pull, push = joined(context, zmq.PULL, zmq.PUSH)
    return [
        (ROUND_TRIP, asking(*joined(context, zmq.REP, zmq.REQ)), len(QUESTIONS)),
        (SHORT, streaming(push.send, pull.recv, SMALL), len(SMALL)),
        (LONG, streaming(push.send, pull.recv, LONGER), len(LONGER)),
        (SEVERAL, streaming(push.send_multipart, pull.recv_multipart, PARTS), len(PARTS)),
        (FAN_OUT, publishing(pub, subs), len(NEWS) * SUBSCRIBERS),
    ]


async def awaiting(context: Any) -> list[tuple[str, AsyncWork, int]]:
    """The same paths, awaited."""
    pub, *subs = subscribed(context)
    await pub.wait_for_subscribers(b"", SUBSCRIBERS)
    pull, push = joined(context, zmq.PULL, zmq.PUSH)
    return [
        (ROUND_TRIP, asking_async(*joined(context, zmq.REP, zmq.REQ)), len(QUESTIONS)),
        (SHORT, streaming_async(push.send, pull.recv, SMALL), len(SMALL)),
        (LONG, streaming_async(push.send, pull.recv, LONGER), len(LONGER)),
        (SEVERAL, streaming_async(push.send_multipart, pull.recv_multipart, PARTS), len(PARTS)),
        (FAN_OUT, publishing_async(pub, subs), len(NEWS) * SUBSCRIBERS),
    ]


class Calls:
    """Counts calls on this thread while a ``with`` block runs."""

    count = 0

    def __enter__(self) -> Self:
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *exc_info: object) -> None:
        sys.setprofile(None)

    def _profile(self, frame: object, event: str, arg: object) -> None:
        self.count += event in ("call", "c_call")


def figures(times: list[int], calls: int, count: int) -> dict[str, float]:
    """What is told of a path: nanoseconds and calls a message."""
    return {
        "least_ns": round(min(times) / count, 1),
        "median_ns": round(statistics.median(times) / count, 1),
        "calls": round(calls / count, 2),
    }


def clock(work: Work, count: int, seconds: float) -> dict[str, float]:
    """Play a path for so long."""
    work()  # connected, and warm
    with Calls() as calls:
        work()
    times: list[int] = []
    end = perf_counter_ns() + int(seconds * 1e9)
    while not times or perf_counter_ns() < end:
        began = perf_counter_ns()
        work()
        times.append(perf_counter_ns() - began)
    return figures(times, calls.count, count)


async def clock_async(work: AsyncWork, count: int, seconds: float) -> dict[str, float]:
    """``clock`` with awaits."""
    await work()
    with Calls() as calls:
        await work()
    times: list[int] = []
    end = perf_counter_ns() + int(seconds * 1e9)
    while not times or perf_counter_ns() < end:
        began = perf_counter_ns()
        await work()
        times.append(perf_counter_ns() - began)
    return figures(times, calls.count, count)


def measure(wanted: list[str], seconds: float) -> dict[str, dict[str, float]]:
    """The figures of every path whose name has one of the words in it; of all if there are none."""

    def chosen(name: str) -> bool:
        return not wanted or any(word in name for word in wanted)

    found = {}
    context = zmq.Context()
    played = blocking(context)  # holds the sockets
    for name, work, count in played:
        if chosen(f"blocking {name}"):
            found[f"blocking {name}"] = clock(work, count, seconds)
    context.destroy(linger=0)

    async def play() -> None:
        context = zmq.asyncio.Context()
        played = await awaiting(context)
        for name, work, count in played:
            if chosen(f"asyncio {name}"):
                found[f"asyncio {name}"] = await clock_async(work, count, seconds)
        context.destroy(linger=0)

    asyncio.run(play())
    return found


def main(arguments: list[str] | None = None) -> None:
    """Print a table of the paths."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.micro.paths",
        description="What whole paths cost, both ends in one thread.",
    )
    parser.add_argument("paths", nargs="*", metavar="PATH", help="words that its name has in it")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each path; default: 1")
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args(arguments)
    results = measure(options.paths, options.seconds)
    print(f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}")
    print(f"{'ns a message':40} {'least':>9} {'median':>9} {'calls':>7}")
    for name, row in results.items():
        print(f"{name:40} {row['least_ns']:9,.0f} {row['median_ns']:9,.0f} {row['calls']:7.1f}")
    if options.json:
        about = {"python": sys.version, "machine": platform.platform()}
        options.json.write_text(json.dumps({"about": about, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
