"""A reconnect storm: the one who binds goes away, 200 clients notice, and it comes back.

Each PUSH sends a message, PULL receives them all, closes, and stays away for 100 ms. Then each PUSH
sends another message, which has to wait for a connection, and a new PULL binds to the same place:
its clock runs from there until a message of every client has come. A library may lose what was
sent meanwhile, so the clients go on sending every 50 ms. Each client's messages are numbered: one
that is passed over is lost and reported, one that comes twice or never was fails the round.

All libraries are given the same options: a new attempt 20 ms after the last (RECONNECT_IVL), not
growing (RECONNECT_IVL_MAX 0, or what stands for it). Each spreads its attempts in its own way, so
some 20 to 40 ms of a result are waiting; what is above them is the storm.
"""

import asyncio
import contextlib
import random
import threading
import time
from collections.abc import Sequence
from itertools import count
from typing import Any

from bench.case import Case, Part, Result, Role
from bench.cases.router import listening
from bench.clock import Clock
from bench.stream import StreamError

INTERVAL_MS = 20
AWAY_S = 0.1
REPEAT_S = 0.05
# Below the ports that the kernel gives to connecting sockets: a client that calls a closed port of
# that range may be given the very same port, and then it is connected to itself.
PORTS = range(20_000, 30_000)


def place(role: Role) -> str:
    """An endpoint that can be bound a second time."""
    if not role.bind_to.startswith("tcp:"):
        return role.bind_to
    return f"tcp://127.0.0.1:{random.choice(PORTS)}"


def bound(role: Role, endpoint: str) -> Any:
    """A PULL, bound there."""
    socket = listening(role, "PULL")
    role.library.bind(socket, endpoint)
    return socket


def bound_somewhere(role: Role) -> tuple[Any, str]:
    """A PULL, and where it is bound: a port that was free."""
    for _ in range(20):
        endpoint = place(role)
        with contextlib.suppress(Exception):  # each library has its own error for a port in use
            return bound(role, endpoint), endpoint
    endpoint = place(role)
    return bound(role, endpoint), endpoint


class Roll:
    """Whose message has come; every client numbers its own from nought.

    Attributes:
        lost: messages that were passed over.
    """

    def __init__(self, clients: int) -> None:
        self._due = [0] * clients
        self._missing: set[int] = set()
        self.lost = 0

    def call(self) -> None:
        """From now on a message of each is wanted."""
        self._missing = set(range(len(self._due)))

    def came(self, message: bytes) -> bool:
        """Note one message; True when none is missing any more.

        Raises:
            StreamError: it came before, or later ones of that client did.
        """
        client, number = map(int, message.split())
        due = self._due[client]
        if number < due:
            raise StreamError(f"{message!r} came, message {due} of this client was due")
        self.lost += number - due
        self._due[client] = number + 1
        self._missing.discard(client)
        return not self._missing


def pull_blocking(role: Role) -> Result:
    """Receive from all, go away, come back, and receive from all again."""
    roll = Roll(role.case["clients"])
    roll.call()
    pull, endpoint = bound_somewhere(role)
    role.control.tell(endpoint=endpoint)
    while not roll.came(pull.recv()):
        pass
    role.library.close_one(pull)
    time.sleep(AWAY_S)
    role.control.tell(ready=True)
    role.control.wait("go")
    roll.call()
    clock = Clock()
    pull = bound(role, endpoint)
    while not roll.came(pull.recv()):
        pass
    return returned(roll, role.case["clients"], clock)


async def pull_async(role: Role) -> Result:
    """``pull_blocking`` with awaits."""
    roll = Roll(role.case["clients"])
    roll.call()
    pull, endpoint = bound_somewhere(role)
    role.control.tell(endpoint=endpoint)
    while not roll.came(await pull.recv()):
        pass
    role.library.close_one(pull)
    await asyncio.sleep(AWAY_S)
    role.control.tell(ready=True)
    await role.control.wait_async("go")
    roll.call()
    clock = Clock()
    pull = bound(role, endpoint)
    while not roll.came(await pull.recv()):
        pass
    return returned(roll, role.case["clients"], clock)


def returned(roll: Roll, clients: int, clock: Clock) -> Result:
    """How long it took until everyone was back."""
    used = clock.stop()
    return {"value": used["seconds"] * 1e3, "messages": clients, "lost": roll.lost, **used}


def connected(role: Role, endpoint: str) -> list[Any]:
    """The clients' sockets; they are connecting."""
    made = []
    for _ in range(role.case["clients"]):
        socket = role.library.open("PUSH")
        role.library.set_if_known(socket, "RECONNECT_IVL", INTERVAL_MS)
        role.library.set_if_known(socket, "RECONNECT_IVL_MAX", 0)
        socket.connect(endpoint)
        made.append(socket)
    return made


def send_from_all(sockets: Sequence[Any], number: int) -> None:
    """A message of each client."""
    for client, socket in enumerate(sockets):
        socket.send(b"%d %d" % (client, number))


async def send_from_all_async(sockets: Sequence[Any], number: int) -> None:
    """``send_from_all`` with awaits."""
    for client, socket in enumerate(sockets):
        await socket.send(b"%d %d" % (client, number))


def push_blocking(role: Role) -> Result:
    """Send a message from each, and more of them from when PULL is away."""
    sockets = connected(role, role.control.wait("endpoint"))
    send_from_all(sockets, 0)
    role.control.wait("go")
    clock = Clock()
    send_from_all(sockets, 1)
    role.control.tell(ready=True)
    waiting = threading.Thread(target=role.control.wait, args=("stop",), daemon=True)
    waiting.start()
    for number in count(2):
        waiting.join(REPEAT_S)
        if not waiting.is_alive():
            break
        send_from_all(sockets, number)
    return clock.stop()


async def push_async(role: Role) -> Result:
    """``push_blocking`` with awaits; none of them may have to wait for the connection."""
    sockets = connected(role, await role.control.wait_async("endpoint"))
    await send_from_all_async(sockets, 0)
    await role.control.wait_async("go")
    clock = Clock()
    await send_from_all_async(sockets, 1)
    role.control.tell(ready=True)
    waiting = asyncio.create_task(role.control.wait_async("stop"))
    for number in count(2):
        await asyncio.wait([waiting], timeout=REPEAT_S)
        if waiting.done():
            break
        await send_from_all_async(sockets, number)
    return clock.stop()


CASES = (
    Case(
        name="reconnect",
        title="200 PUSHes reconnect to a PULL that was away, and a message of each arrives",
        unit="ms",
        parts={
            "receiver": Part(pull_blocking, pull_async),
            "sender": Part(push_blocking, push_async),
        },
        higher_is_better=False,
        parameters={"clients": 200, "descriptors": 4096},
        floor=False,
        round_s=1.0,
    ),
)
