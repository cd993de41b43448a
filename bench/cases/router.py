"""ROUTER that echoes to 8 and to 500 DEALERs: round trips a second, of all together.

Each DEALER keeps eight requests under way and sends the next when a reply has come, so ROUTER
always has something to do. Every DEALER has requests of its own and compares each reply with the
one due: a reply that is lost, repeated, out of order or another DEALER's fails the round, and so
does a ROUTER that counted otherwise.

The DEALERs live in one process: a task each on the loop, or one blocking thread that has them take
a window of replies in turn. Since every DEALER has a window under way, the one whose turn it is
waits for what ROUTER is sending anyway. A Poller would be measured in place of ROUTER: pyomq's
takes more than a millisecond, and pyzmq's, of 500 sockets, as long as the round trips.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from itertools import cycle, islice
from operator import length_hint
from typing import Any

from bench.case import Case, Part, Result, Role
from bench.clock import Clock
from bench.stream import (
    END,
    MARKER,
    START,
    Account,
    StreamError,
    make_pass,
    receive_pass,
    receive_pass_async,
    receive_until,
    receive_until_async,
)

BACKLOG = 4096
DESCRIPTORS = 4096  # libzmq needs two a socket; a process may have 1024 unless it asks for more
WINDOW = 8  # requests that a DEALER has under way
REQUESTS = 1024  # of all DEALERs' passes together, but at least two windows each


def listening(role: Role, kind: str) -> Any:
    """A socket whose BACKLOG holds everyone who comes at once.

    With the default of 100 the kernel refuses some, who try again after a second: a round would
    measure that second. (pyomq has no such option; its own backlog is 1024.)
    """
    socket = role.library.open(kind)
    role.library.set_if_known(socket, "BACKLOG", BACKLOG)
    return socket


def router_blocking(role: Role) -> Result:
    """Return everything to whom it came from, until the end marker."""
    socket = role.bind(listening(role, "ROUTER"))
    recv, send = socket.recv_multipart, socket.send_multipart
    answered, clock = 0, Clock()
    while True:
        parts = recv()
        if parts[1].startswith(MARKER):
            if parts[1] != START:
                break
            clock.start()
        else:
            answered += 1
        send(parts)
    used = clock.stop()
    send([parts[0], b"%s%d" % (END, answered)])
    role.control.wait("stop")
    return used


async def router_async(role: Role) -> Result:
    """``router_blocking`` with awaits."""
    socket = role.bind(listening(role, "ROUTER"))
    recv, send = socket.recv_multipart, socket.send_multipart
    answered, clock = 0, Clock()
    while True:
        parts = await recv()
        if parts[1].startswith(MARKER):
            if parts[1] != START:
                break
            clock.start()
        else:
            answered += 1
        await send(parts)
    used = clock.stop()
    await send([parts[0], b"%s%d" % (END, answered)])
    await role.control.wait_async("stop")
    return used


class Client:
    """One DEALER, its own requests without end, and the account of its replies.

    A request is sent for each reply, after the first window: so a window is under way, always, and
    what was asked need not be counted.
    """

    def __init__(self, socket: Any, requests: Sequence[bytes]) -> None:
        self.socket = socket
        self.account = Account(requests)
        self.next_request: Callable[[], bytes] = cycle(requests).__next__

    @property
    def asked(self) -> int:
        """Requests sent so far."""
        return self.account.received + WINDOW


def clients(role: Role) -> list[Client]:
    """The DEALERs, connected."""
    endpoint = role.control.wait("endpoint")
    count = role.case["dealers"]
    each = max(2 * WINDOW, REQUESTS // count)
    requests = make_pass(role.case["size"], messages=count * each)
    made = []
    for first in range(0, count * each, each):
        socket = role.library.open("DEALER")
        socket.connect(endpoint)
        made.append(Client(socket, requests[first : first + each]))
    return made


def received(made: Sequence[Client]) -> int:
    """Replies to all of them so far."""
    return sum(client.account.received for client in made)


def answered(made: Sequence[Client]) -> bool:
    """Whether every DEALER has had a reply: until then some are still connecting."""
    return all(client.account.received for client in made)


def exchange(client: Client) -> None:
    """Take a window of replies, and send a request for each."""
    account, next_request = client.account, client.next_request
    recv, send = client.socket.recv, client.socket.send
    for expected in islice(account.due, WINDOW):
        reply = recv()
        if reply != expected:
            account.surprise(reply)  # the start marker, or an error
            return
        send(next_request())
    if not length_hint(account.due):
        account.end_pass()


def dealers_blocking(role: Role) -> Result:
    """Ask for a while, wait for what is under way, and compare counts."""
    made = clients(role)

    def exchange_for(seconds: float) -> None:
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            for client in made:
                exchange(client)

    for client in made:
        for _ in range(WINDOW):
            client.socket.send(client.next_request())
    for client in made:
        exchange(client)  # then everyone is connected
    exchange_for(role.settings.warm_up_s)
    made[0].socket.send(START)
    before, clock = received(made), Clock()
    exchange_for(role.settings.measure_s)
    used, round_trips = clock.stop(), received(made) - before
    for client in made:
        asked = client.asked
        while client.account.received < asked:
            receive_pass(client.socket.recv, client.account, asked - client.account.received)
    made[0].socket.send(END)
    receive_until(made[0].socket.recv, made[0].account, END)
    return echoed(made, round_trips, used)


async def converse(client: Client, over: asyncio.Event) -> None:
    """Send a request for each reply until it is over; then take what is under way."""
    account, next_request = client.account, client.next_request
    recv, send = client.socket.recv, client.socket.send
    for _ in range(WINDOW):
        await send(next_request())
    while not over.is_set():
        for expected in islice(account.due, WINDOW):
            reply = await recv()
            if reply != expected:
                account.surprise(reply)
                break
            await send(next_request())
        else:
            if not length_hint(account.due):
                account.end_pass()
    asked = client.asked
    while account.received < asked:
        await receive_pass_async(recv, account, asked - account.received)


async def dealers_async(role: Role) -> Result:
    """A task for each DEALER."""
    made = clients(role)
    over = asyncio.Event()
    tasks = [asyncio.create_task(converse(client, over)) for client in made]
    while not answered(made):  # noqa: ASYNC110 - no event of any library says it
        await asyncio.sleep(0.01)
    await asyncio.sleep(role.settings.warm_up_s)
    await made[0].socket.send(START)
    before, clock = received(made), Clock()
    await asyncio.sleep(role.settings.measure_s)
    used, round_trips = clock.stop(), received(made) - before
    over.set()
    await asyncio.gather(*tasks)
    await made[0].socket.send(END)
    await receive_until_async(made[0].socket.recv, made[0].account, END)
    return echoed(made, round_trips, used)


def echoed(made: Sequence[Client], round_trips: int, used: Result) -> Result:
    """The figures, if every reply came, in order, and ROUTER counted as many.

    Raises:
        StreamError: something was out of order, or the counts differ.
    """
    counted, came = made[0].account.sent, received(made)
    if counted != came:
        raise StreamError(f"{came} replies came, {counted} were sent")
    if gaps := sum(client.account.gaps for client in made):
        raise StreamError(f"{gaps} replies out of order")
    return {"value": round_trips / used["seconds"], "messages": round_trips, **used}


CASES = tuple(
    Case(
        name=f"router-{count}",
        title=f"ROUTER echo to {text}, 64 B, eight requests of each under way",
        unit="round trips/s",
        parts={
            "receiver": Part(router_blocking, router_async),
            "sender": Part(dealers_blocking, dealers_async),
        },
        parameters={"size": 64, "dealers": count, "descriptors": DESCRIPTORS},
        floor=False,
        round_s=1.4 if count > 8 else 0.0,
    )
    for count, text in ((8, "eight DEALERs"), (500, "500 DEALERs"))
)
