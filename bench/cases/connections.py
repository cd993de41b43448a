"""1,000 connections: the time until all are made and one message of each has arrived; the memory.

1,000 DEALERs in one process connect to a ROUTER in the other, and each sends its number as soon as
it is opened. That is how a server meets its clients, and ROUTER has to keep a table of them, which
PULL has not. Every library lets DEALER send before it is connected, so the time is the library's
and not that of a program which waits. The clock runs in the clients' process, from the first
``socket()`` until ROUTER's word that all numbers have come, each of them once.

A first DEALER is connected before, so that what a library loads and makes at first use is not
divided among the others. The memory is what both processes hold when all is connected, above what
they held with that one; for one connection, both ends together.

One Context for all DEALERs, since libzmq's limit (MAX_SOCKETS, 1023) allows it.
"""

import gc
from typing import Any

from bench.case import Case, Part, Result, Role
from bench.cases.router import listening
from bench.clock import Clock, memory_now_kib
from bench.stream import StreamError

HELLO = b"hello"
MEMORY = "KiB a connection"


def settled_memory_kib() -> float:
    """The memory in use once what nobody needs any more is gone."""
    gc.collect()
    return memory_now_kib()


class Roll:
    """Who has reported: numbers from nought, each once, each from a peer of its own."""

    def __init__(self, count: int) -> None:
        self._due = set(range(count))
        self._peers: set[bytes] = set()

    def report(self, parts: list[bytes]) -> bool:
        """Note one message; True when it was the last.

        Raises:
            StreamError: nobody has that number, or it came before; or the peer did.
        """
        peer, body = parts
        number = int(body)
        if number not in self._due or peer in self._peers:
            raise StreamError(f"{body!r} came from {peer!r}: twice, or never sent")
        self._due.remove(number)
        self._peers.add(peer)
        return not self._due


def router_blocking(role: Role) -> Result:
    """Answer the first, take a number from each other, and say what that took of memory."""
    socket = role.bind(listening(role, "ROUTER"))
    first = socket.recv_multipart()
    socket.send_multipart(first)
    before, clock, roll = settled_memory_kib(), Clock(), Roll(role.case["connections"])
    while not roll.report(socket.recv_multipart()):
        pass
    socket.send_multipart([first[0], b"%.0f" % (memory_now_kib() - before)])
    used = clock.stop()
    role.control.wait("stop")
    return used


async def router_async(role: Role) -> Result:
    """``router_blocking`` with awaits."""
    socket = role.bind(listening(role, "ROUTER"))
    first = await socket.recv_multipart()
    await socket.send_multipart(first)
    before, clock, roll = settled_memory_kib(), Clock(), Roll(role.case["connections"])
    while not roll.report(await socket.recv_multipart()):
        pass
    await socket.send_multipart([first[0], b"%.0f" % (memory_now_kib() - before)])
    used = clock.stop()
    await role.control.wait_async("stop")
    return used


def connected(role: Role, endpoint: str) -> Any:
    """Another DEALER; it is connecting."""
    socket = role.library.open("DEALER")
    socket.connect(endpoint)
    return socket


def dealers_blocking(role: Role) -> Result:
    """Connect the first, then all the others; each sends its number at once."""
    endpoint = role.control.wait("endpoint")
    first = connected(role, endpoint)
    first.send(HELLO)
    first.recv()
    before, clock = settled_memory_kib(), Clock()
    for number in range(role.case["connections"]):
        connected(role, endpoint).send(b"%d" % number)
    server_kib = float(first.recv())
    return opened(role, clock, server_kib, memory_now_kib() - before)


async def dealers_async(role: Role) -> Result:
    """``dealers_blocking`` with awaits: one program, not a task for each."""
    endpoint = await role.control.wait_async("endpoint")
    first = connected(role, endpoint)
    await first.send(HELLO)
    await first.recv()
    before, clock = settled_memory_kib(), Clock()
    for number in range(role.case["connections"]):
        await connected(role, endpoint).send(b"%d" % number)
    server_kib = float(await first.recv())
    return opened(role, clock, server_kib, memory_now_kib() - before)


def opened(role: Role, clock: Clock, server_kib: float, clients_kib: float) -> Result:
    """The figures, for one connection where they are of memory."""
    used, count = clock.stop(), role.case["connections"]
    return {
        "value": used["seconds"] * 1e3,
        "messages": count,
        "detail": {
            MEMORY: (server_kib + clients_kib) / count,
            "of it the ROUTER's": server_kib / count,
        },
        **used,
    }


CASES = (
    Case(
        name="connections",
        title="1,000 DEALERs connect to a ROUTER, and a message of each arrives",
        unit="ms",
        parts={
            "receiver": Part(router_blocking, router_async),
            "sender": Part(dealers_blocking, dealers_async),
        },
        higher_is_better=False,
        parameters={"connections": 1000, "descriptors": 8192},
        floor=False,
        round_s=1.6,
        compared=(MEMORY,),
    ),
)
