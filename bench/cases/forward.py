"""PUSH to PULL through a process that forwards: what a relay takes, and what it adds.

The forwarder binds a PULL and a PUSH. One process has both other ends, so that two cores are
enough: first it sends one message at a time and waits for it (p50), then it keeps two windows under
way.
The forwarder either asks a Poller and moves one message each time, as most programs of this kind
do, or hands its two sockets to the library's own ``proxy``.
"""

import contextlib
import threading
import time
from array import array
from collections.abc import Callable
from functools import partial
from itertools import cycle
from types import SimpleNamespace
from typing import Any

from bench.case import Case, Part, Result, Role
from bench.cases.reqrep import ask_for, percentile
from bench.clock import Clock
from bench.stream import Account, make_pass, receive_pass

WINDOW = 256  # two of them fit into anyone's high-water marks of 1000
ALONE = 1 / 3  # of the measured time: one message at a time
P50 = "p50 µs"

FEW = 16  # messages between two looks at the clock: pyomq's Poller takes 10 ms for each
NOTICE_MS = 100  # pyomq's Poller is not ended with its context

Relay = Callable[[Role, Any, Any, threading.Event], object]


def by_poller(role: Role, front: Any, back: Any, over: threading.Event) -> None:
    """Poll, receive one message, send it on."""
    poll = role.library.poller([front]).poll
    while not over.is_set():
        for socket, _ in poll(NOTICE_MS):
            back.send_multipart(socket.recv_multipart())


def by_proxy(role: Role, front: Any, back: Any, _over: threading.Event) -> None:
    """The library's own."""
    role.library.proxy(front, back)


def forwarder(role: Role, relay: Relay) -> Result:
    """Forward until the other process has its figures; its clock runs while they are taken."""
    front, back = role.library.open("PULL"), role.library.open("PUSH")
    where = role.library.bind(front, role.bind_to)
    # A second place beside the first: another port, or another path.
    beside = role.bind_to + ("" if role.bind_to.startswith("tcp") else "2")
    role.control.tell(endpoint=f"{where} {role.library.bind(back, beside)}")
    clock = Clock()
    used: Result = {}
    over = threading.Event()

    def listen() -> None:
        role.control.wait("go")
        clock.start()
        role.control.wait("stop")
        used.update(clock.stop())
        over.set()
        role.library.end()

    listening = threading.Thread(target=listen)
    listening.start()
    try:
        relay(role, front, back, over)
    except BaseException:  # at the end of the context each library has its own; pyomq's is a panic
        if not over.is_set():
            raise
    for socket in (front, back):
        with contextlib.suppress(BaseException):  # pyomq may panic here, too; it has its figures
            role.library.close_one(socket)
    listening.join()
    return used


def client(role: Role) -> Result:
    """Send into the forwarder and receive from it."""
    messages = make_pass(role.case["size"], messages=2 * WINDOW)
    push, pull = role.library.open("PUSH"), role.library.open("PULL")
    front, back = role.control.wait("endpoint").split()
    push.connect(front)
    pull.connect(back)
    account = Account(messages)
    stream(push, pull, account, role.settings.warm_up_s)
    both = SimpleNamespace(send=push.send, recv=pull.recv)
    samples = ask_for(both, messages[:FEW], role.settings.measure_s * ALONE)
    before = account.received
    role.control.tell(ready=True)
    clock = Clock()
    stream(push, pull, account, role.settings.measure_s * (1 - ALONE))
    used = clock.stop()
    account.must_be_whole()
    forwarded = account.received - before
    return {
        "value": forwarded / used["seconds"],
        "messages": forwarded,
        "detail": {P50: percentile(array("q", sorted(samples)), 0.5) / 1e3},
        **used,
    }


def stream(push: Any, pull: Any, account: Account, seconds: float) -> None:
    """Keep two windows under way for so long; all that was sent has come back at the end."""
    send, recv = push.send, pull.recv
    first, second = account.messages[:WINDOW], account.messages[WINDOW:]
    until = time.perf_counter() + seconds
    for message in first:
        send(message)
    for window in cycle((second, first)):
        for message in window:
            send(message)
        receive_pass(recv, account, WINDOW)
        if window is second and time.perf_counter() > until:
            break
    receive_pass(recv, account, WINDOW)


CASES = tuple(
    Case(
        name=name,
        title=f"PUSH to PULL through a process with {what}, 64 B",
        unit="msg/s",
        parts={
            "forwarder": Part(partial(forwarder, relay=relay)),
            "client": Part(client),
        },
        parameters={"size": 64},
        floor=False,
        compared=(P50,),
    )
    for name, what, relay in (
        ("forward", "PULL, Poller and PUSH", by_poller),
        ("proxy", "proxy() of PULL and PUSH", by_proxy),
    )
)
