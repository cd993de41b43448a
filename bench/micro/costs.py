"""What single steps cost on this machine: ``python -m bench.micro.costs [--json FILE]``.

The steps that a message is made of, each by itself: calls of Python, locks, system calls, copies,
and being woken. The design weighs them against each other (docs/explanation/performance.md); where
they stand in another proportion, another design might be right. Nothing of zerohop is measured.

The least of many short stretches, and their median; of round trips between two processes the
median, for a processor that is woken never takes the same time twice.
"""

import argparse
import asyncio
import json
import os
import platform
import socket
import statistics
import sys
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from select import POLLIN, poll
from time import monotonic, perf_counter_ns

STRETCHES = 200
REPEATS = 200  # in a stretch: long beside the clock, short beside a slice of time
ROUND_TRIPS = 3_000
BODY = bytes(64)
CHUNK = bytes(64 * 1024)
LARGE = bytes(1024 * 1024)

Figures = dict[str, float]
Step = Callable[[], object]


def figures(times: list[int], count: int = 1) -> Figures:
    """Nanoseconds a step."""
    return {
        "least_ns": round(min(times) / count, 1),
        "median_ns": round(statistics.median(times) / count, 1),
    }


def stretch(step: Step | None, turns: range) -> int:
    """Nanoseconds of so many steps; of the loop around them if there is no step."""
    began = perf_counter_ns()
    if step is None:
        for _ in turns:
            pass
    else:
        for _ in turns:
            step()
    return perf_counter_ns() - began


def clock(step: Step, repeats: int = REPEATS, after: Step | None = None) -> Figures:
    """Time a step, less what the loop around it takes; ``after`` each stretch is not timed."""
    turns = range(repeats)
    loop = min(stretch(None, turns) for _ in range(STRETCHES))
    times = []
    for _ in range(STRETCHES):
        times.append(stretch(step, turns) - loop)
        if after is not None:
            after()
    return figures(times, repeats)


def nothing() -> None:
    """A call, and no more."""


def in_python() -> dict[str, Figures]:
    """Calls, queues, locks, the clock, copies."""
    queue: deque[bytes] = deque(maxlen=1000)
    lock = threading.RLock()

    def locked() -> None:
        with lock:
            pass

    call = clock(nothing)
    return {
        "a call of a Python function": call,
        "a call of a C function (deque.append)": clock(partial(queue.append, BODY)),
        "a lock, taken and given back": {
            name: round(value - call[name], 1) for name, value in clock(locked).items()
        },
        "the time (monotonic)": clock(monotonic),
        "copying 64 B": clock(partial(bytes.__getitem__, BODY + b"x", slice(0, 64))),
        "copying 64 KiB": clock(partial(bytearray, CHUNK)),
        "copying 1 MiB": clock(partial(bytearray, LARGE), 4),
    }


async def done() -> None:
    """A coroutine that never waits."""


async def in_asyncio() -> dict[str, Figures]:
    """What it costs to await."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    future.set_result(None)
    found: dict[str, list[int]] = {
        "await of a coroutine that does not wait": [],
        "await of a future that is done": [],
        "a turn of the loop": [],
    }
    for _ in range(STRETCHES):
        clocks = [perf_counter_ns()]
        for _ in range(REPEATS):
            await done()
        clocks.append(perf_counter_ns())
        for _ in range(REPEATS):
            await future
        clocks.append(perf_counter_ns())
        for _ in range(REPEATS):
            await asyncio.sleep(0)
        clocks.append(perf_counter_ns())
        for times, began, end in zip(found.values(), clocks, clocks[1:], strict=False):
            times.append(end - began)
    return {name: figures(times, REPEATS) for name, times in found.items()}


def connected() -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection over loopback tcp."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        one = socket.create_connection(server.getsockname())
        other = server.accept()[0]
    for end in (one, other):
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return one, other


def drain(end: socket.socket) -> None:
    """Read all there is."""
    end.setblocking(False)
    try:
        while end.recv(1 << 20):
            pass
    except BlockingIOError:
        end.setblocking(True)


def system_calls() -> dict[str, Figures]:
    """Sending and receiving without ever waiting."""
    one, other = connected()

    def fill(size: int) -> None:
        drain(other)
        one.sendall(bytes(size))

    ready = poll()
    with one, other:
        ready.register(other, POLLIN)
        drained = partial(drain, other)
        found = {
            "send of 64 B over tcp": clock(partial(one.send, BODY), 50, drained),
            "send of 64 KiB over tcp": clock(partial(one.send, CHUNK), 2, drained),
        }
        fill(100 * 64)
        found |= {
            "recv of 64 B over tcp": clock(partial(other.recv, 64), 50, partial(fill, 100 * 64)),
            "asking what is ready (poll)": clock(partial(ready.poll, 0)),
            "giving way (sched_yield)": clock(os.sched_yield),
        }
        fill(2 * len(CHUNK))
        found["recv of 64 KiB over tcp"] = clock(
            partial(other.recv, len(CHUNK)), 2, partial(fill, 2 * len(CHUNK))
        )
    return found


def threads() -> Figures:
    """Half of a round trip between two threads that wait for each other's locks."""
    ping, pong = threading.Lock(), threading.Lock()
    ping.acquire()
    pong.acquire()

    def answer() -> None:
        for _ in range(ROUND_TRIPS):
            ping.acquire()
            pong.release()

    other = threading.Thread(target=answer)
    other.start()
    times = []
    for _ in range(ROUND_TRIPS):
        began = perf_counter_ns()
        ping.release()
        pong.acquire()
        times.append(perf_counter_ns() - began)
    other.join()
    return figures(times, 2)


def receive_by_sleeping(end: socket.socket) -> bytes:
    """Have the system wake us."""
    return end.recv(64)


def receive_by_asking(end: socket.socket) -> bytes:
    """Ask again and again, giving way to who would like to run here."""
    while True:
        try:
            return end.recv(64, socket.MSG_DONTWAIT)
        except BlockingIOError:
            os.sched_yield()


def processes(receive: Callable[[socket.socket], bytes]) -> Figures:
    """A round trip of 64 B between two processes over loopback tcp, each with its processor."""
    one, other = connected()
    # macOS has no say in where a process runs.
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    child = os.fork()
    if not child:
        try:
            if usable:
                os.sched_setaffinity(0, usable[-1:])
            one.close()
            while octets := receive(other):
                other.send(octets)
        finally:
            os._exit(0)
    if usable:
        os.sched_setaffinity(0, usable[:1])
    other.close()
    times = []
    with one:
        for _ in range(ROUND_TRIPS):
            began = perf_counter_ns()
            one.send(BODY)
            receive(one)
            times.append(perf_counter_ns() - began)
    os.waitpid(child, 0)
    if usable:
        os.sched_setaffinity(0, usable)
    return figures(times)


def measure() -> dict[str, Figures]:
    """Every step, in the order of the table."""
    return {
        **in_python(),
        **asyncio.run(in_asyncio()),
        **system_calls(),
        "a thread woken by another": threads(),
        "round trip of two processes that sleep": processes(receive_by_sleeping),
        "round trip of two processes that ask": processes(receive_by_asking),
    }


def main(arguments: list[str] | None = None) -> None:
    """Print a table of the steps."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.micro.costs", description="What single steps cost on this machine."
    )
    parser.add_argument("--json", type=Path, help="write the figures there")
    options = parser.parse_args(arguments)
    results = measure()
    print(f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}")
    print(f"{'ns':40} {'least':>9} {'median':>9}")
    for name, row in results.items():
        print(f"{name:40} {row['least_ns']:9,.0f} {row['median_ns']:9,.0f}")
    if options.json:
        about = {"python": sys.version, "machine": platform.platform()}
        options.json.write_text(json.dumps({"about": about, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
