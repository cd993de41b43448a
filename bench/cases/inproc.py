"""PUSH to PULL inside one process: between two threads, and between two tasks of one loop.

One process plays both sides, since that is what inproc is for; its CPU seconds are those of both.
The floor is the standard library's own queue between threads; there is none within a loop.
"""

import asyncio
import threading
from typing import Any

from bench.case import Case, Part, Result, Role
from bench.cases.pushpull import arrived
from bench.clock import Clock
from bench.stream import (
    END,
    START,
    Account,
    make_pass,
    receive_until,
    receive_until_async,
    send_for,
    send_for_async,
)


def both_threads(role: Role) -> Result:
    """A thread pushes, this one pulls."""
    messages = make_pass(role.case["size"])
    pull, push = pair(role)

    def run() -> None:
        sent = send_for(push.send, messages, role.settings.warm_up_s)
        push.send(START)
        sent += send_for(push.send, messages, role.settings.measure_s)
        push.send(END + b"%d" % sent)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    account = Account(messages)
    receive_until(pull.recv, account, START)
    before, clock = account.received, Clock()
    receive_until(pull.recv, account, END)
    result = arrived(role, account, before, clock)
    thread.join()
    return result


async def both_tasks(role: Role) -> Result:
    """A task pushes, this one pulls, on one loop."""
    messages = make_pass(role.case["size"])
    pull, push = pair(role)

    async def run() -> None:
        sent = await send_for_async(push.send, messages, role.settings.warm_up_s)
        await push.send(START)
        sent += await send_for_async(push.send, messages, role.settings.measure_s)
        await push.send(END + b"%d" % sent)

    task = asyncio.create_task(run())
    account = Account(messages)
    await receive_until_async(pull.recv, account, START)
    before, clock = account.received, Clock()
    await receive_until_async(pull.recv, account, END)
    result = arrived(role, account, before, clock)
    await task
    return result


def pair(role: Role) -> tuple[Any, Any]:
    """A PULL and the PUSH that is connected to it, in one Context."""
    pull = role.library.open("PULL")
    role.library.bind(pull, role.bind_to)
    push = role.library.open("PUSH")
    push.connect(role.bind_to)
    return pull, push


CASES = (
    Case(
        name="inproc-threads",
        title="PUSH to PULL, 64 B, inproc between two blocking threads",
        unit="msg/s",
        parts={"both": Part(blocking=both_threads)},
        parameters={"size": 64, "frames": 1},
        transports=("inproc",),
    ),
    Case(
        name="inproc-loop",
        title="PUSH to PULL, 64 B, inproc between two tasks of one loop",
        unit="msg/s",
        parts={"both": Part(asyncio=both_tasks)},
        parameters={"size": 64, "frames": 1},
        transports=("inproc",),
        floor=False,
    ),
)
