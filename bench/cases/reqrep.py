"""REQ and REP: the time of one round trip of 64 B, as the requester sees it.

REP binds, REQ connects, one request is under way at a time. The requester compares each reply with
its own request, so the replier, which returns what it got, need not compare again; it counts, and
its count must be the requester's.
"""

import math
import time
from array import array
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


def req_blocking(role: Role) -> Result:
    """Ask for a while; the round trips of the measured stretch count."""
    messages = make_pass(role.case["size"], messages=PASS)
    socket = role.connect(role.library.open("REQ"))
    asked = len(ask_for(socket, messages, role.settings.warm_up_s))
    socket.send(START)
    socket.recv()
    clock = Clock()
    samples = ask_for(socket, messages, role.settings.measure_s)
    used = clock.stop()
    socket.send(END + b"%d" % (asked + len(samples)))
    socket.recv()
    return timed(samples) | used


async def req_async(role: Role) -> Result:
    """``req_blocking`` with awaits."""
    messages = make_pass(role.case["size"], messages=PASS)
    socket = role.connect(role.library.open("REQ"))
    asked = len(await ask_for_async(socket, messages, role.settings.warm_up_s))
    await socket.send(START)
    await socket.recv()
    clock = Clock()
    samples = await ask_for_async(socket, messages, role.settings.measure_s)
    used = clock.stop()
    await socket.send(END + b"%d" % (asked + len(samples)))
    await socket.recv()
    return timed(samples) | used


def timed(samples: "array[int]") -> Result:
    """Percentiles in microseconds."""
    ordered = array("q", sorted(samples))
    p50, p99, p999 = (percentile(ordered, share) / 1e3 for share in (0.5, 0.99, 0.999))
    rate = 1e9 * len(samples) / sum(samples)
    return {
        "value": p50,
        "messages": len(samples),
        "detail": {"p99 µs": p99, "p99.9 µs": p999, "round trips/s": rate},
    }


def rep_blocking(role: Role) -> Result:
    """Return every request until the end marker."""
    socket = role.bind(role.library.open("REP"))
    counted, clock = 0, Clock()
    while not (message := socket.recv()).startswith(END):
        if message == START:
            clock.start()
        else:
            counted += 1
        socket.send(message)
    used = clock.stop()
    socket.send(agreed(counted, message))
    role.control.wait("stop")
    return used


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


CASES = (
    Case(
        name="reqrep-64",
        title="REQ and REP, round trip of 64 B, median (p50)",
        unit="µs",
        parts={
            "receiver": Part(rep_blocking, rep_async),
            "sender": Part(req_blocking, req_async),
        },
        higher_is_better=False,
        parameters={"size": 64},
        uvloop=True,
    ),
)
