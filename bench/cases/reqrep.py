"""REQ and REP: the time of one round trip of 64 B, as the requester sees it.

Busy, the next request follows the last reply at once. Idle, 5 ms of sleep lie between them, as in
most programs, and both sides have gone to sleep when the request comes.

REP binds, REQ connects, one request is under way at a time. The requester compares each reply with
its own request, so the replier, which returns what it got, need not compare again; it counts, and
its count must be the requester's.
"""

import asyncio
import math
import time
from array import array
from functools import partial
from itertools import cycle
from typing import Any

from bench.case import Case, Part, Result, Role
from bench.clock import Clock
from bench.stream import END, START, StreamError, make_pass

PASS = 64  # round trips between two looks at the clock that ends the stretch


def percentile(ordered: "array[int]", share: float) -> int:
    """The smallest sample that at least this share of all samples does not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def ask_for(socket: Any, messages: list[bytes], seconds: float) -> "array[int]":
    """Ask until the time is over; return the nanoseconds of each round trip."""
    send, recv, clock = socket.send, socket.recv, time.perf_counter_ns
    samples = array("q")
    until = clock() + int(seconds * 1e9)
    while clock() < until:
        for message in messages:
            began = clock()
            send(message)
            reply = recv()
            samples.append(clock() - began)
            if reply != message:
                raise StreamError(f"asked {message[:8]!r}, got {reply[:8]!r}")
    return samples


async def ask_for_async(socket: Any, messages: list[bytes], seconds: float) -> "array[int]":
    """``ask_for`` with awaits."""
    send, recv, clock = socket.send, socket.recv, time.perf_counter_ns
    samples = array("q")
    until = clock() + int(seconds * 1e9)
    while clock() < until:
        for message in messages:
            began = clock()
            await send(message)
            reply = await recv()
            samples.append(clock() - began)
            if reply != message:
                raise StreamError(f"asked {message[:8]!r}, got {reply[:8]!r}")
    return samples


def ask_rarely_for(
    socket: Any, messages: list[bytes], seconds: float, idle_s: float
) -> "array[int]":
    """``ask_for`` with a sleep before each request, which is not part of the round trip."""
    send, recv, clock = socket.send, socket.recv, time.perf_counter_ns
    samples = array("q")
    until = clock() + int(seconds * 1e9)
    for message in cycle(messages):
        time.sleep(idle_s)
        began = clock()
        send(message)
        reply = recv()
        samples.append(clock() - began)
        if reply != message:
            raise StreamError(f"asked {message[:8]!r}, got {reply[:8]!r}")
        if clock() > until:
            break
    return samples


async def ask_rarely_for_async(
    socket: Any, messages: list[bytes], seconds: float, idle_s: float
) -> "array[int]":
    """``ask_rarely_for`` with awaits."""
    send, recv, clock = socket.send, socket.recv, time.perf_counter_ns
    samples = array("q")
    until = clock() + int(seconds * 1e9)
    for message in cycle(messages):
        await asyncio.sleep(idle_s)
        began = clock()
        await send(message)
        reply = await recv()
        samples.append(clock() - began)
        if reply != message:
            raise StreamError(f"asked {message[:8]!r}, got {reply[:8]!r}")
        if clock() > until:
            break
    return samples


def req_blocking(role: Role) -> Result:
    """Ask for a while; the round trips of the measured stretch count."""
    messages = make_pass(role.case["size"], messages=PASS)
    socket = role.connect(role.library.open("REQ"))
    idle_s = role.case["idle_ms"] / 1e3
    ask = partial(ask_rarely_for, idle_s=idle_s) if idle_s else ask_for
    asked = len(ask(socket, messages, role.settings.warm_up_s))
    socket.send(START)
    socket.recv()
    clock = Clock()
    samples = ask(socket, messages, role.settings.measure_s)
    used = clock.stop()
    socket.send(END + b"%d" % (asked + len(samples)))
    socket.recv()
    return timed(samples, idle_s) | used


async def req_async(role: Role) -> Result:
    """``req_blocking`` with awaits."""
    messages = make_pass(role.case["size"], messages=PASS)
    socket = role.connect(role.library.open("REQ"))
    idle_s = role.case["idle_ms"] / 1e3
    ask = partial(ask_rarely_for_async, idle_s=idle_s) if idle_s else ask_for_async
    asked = len(await ask(socket, messages, role.settings.warm_up_s))
    await socket.send(START)
    await socket.recv()
    clock = Clock()
    samples = await ask(socket, messages, role.settings.measure_s)
    used = clock.stop()
    await socket.send(END + b"%d" % (asked + len(samples)))
    await socket.recv()
    return timed(samples, idle_s) | used


def timed(samples: "array[int]", idle_s: float = 0.0) -> Result:
    """Percentiles in microseconds; of few samples only those that they can tell."""
    ordered = array("q", sorted(samples))
    p50, p99, p999 = (percentile(ordered, share) / 1e3 for share in (0.5, 0.99, 0.999))
    detail = {"p99 µs": p99}
    if len(samples) >= 1000:
        detail["p99.9 µs"] = p999
    if not idle_s:
        detail["round trips/s"] = 1e9 * len(samples) / sum(samples)
    return {"value": p50, "messages": len(samples), "detail": detail}


def rep_blocking(role: Role) -> Result:
    """Return every request until the end marker; ``answered`` are those of the measured stretch."""
    socket = role.bind(role.library.open("REP"))
    counted, before, clock = 0, 0, Clock()
    while not (message := socket.recv()).startswith(END):
        if message == START:
            before = counted
            clock.start()
        else:
            counted += 1
        socket.send(message)
    used = clock.stop()
    socket.send(agreed(counted, message))
    role.control.wait("stop")
    return {"answered": counted - before, **used}


async def rep_async(role: Role) -> Result:
    """``rep_blocking`` with awaits."""
    socket = role.bind(role.library.open("REP"))
    counted, clock = 0, Clock()
    while not (message := await socket.recv()).startswith(END):
        if message == START:
            clock.start()
        else:
            counted += 1
        await socket.send(message)
    used = clock.stop()
    await socket.send(agreed(counted, message))
    await role.control.wait_async("stop")
    return used


def agreed(counted: int, end: bytes) -> bytes:
    """The end marker, if it carries our own count.

    Raises:
        StreamError: the requester asked more or less often than we answered.
    """
    asked = int(end[len(END) :])
    if asked != counted:
        raise StreamError(f"{asked} requests were sent, {counted} came")
    return end


PARTS = {
    "receiver": Part(rep_blocking, rep_async),
    "sender": Part(req_blocking, req_async),
}

CASES = (
    Case(
        name="reqrep-64",
        title="REQ and REP, round trip of 64 B, median (p50)",
        unit="µs",
        parts=PARTS,
        higher_is_better=False,
        parameters={"size": 64, "idle_ms": 0},
        uvloop=True,
        in_full=("tcp", "ipc"),
        compared=("p99 µs",),
    ),
    Case(
        name="reqrep-idle",
        title="REQ and REP, round trip of 64 B after 5 ms of sleep, median (p50)",
        unit="µs",
        parts=PARTS,
        higher_is_better=False,
        parameters={"size": 64, "idle_ms": 5},
        compared=("p99 µs",),
    ),
)
