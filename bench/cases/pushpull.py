"""PUSH to PULL, one call a message: how many arrive in a second.

PULL binds, PUSH connects. The sender sends for a fixed time; the receiver's clock runs from the
start marker to the end marker, so all that was sent in between has arrived.

The high-water marks are everyone's own, 1000, up to 256 KiB. A thousand messages of 4 MiB would be
4 GB on each side, which no program wants to wait in a queue: there the marks are 64, for all.
"""

from collections.abc import Callable
from typing import Any

from bench.case import Case, Part, Result, Role
from bench.clock import Clock
from bench.stream import (
    END,
    START,
    Account,
    make_pass,
    marker,
    receive_until,
    receive_until_async,
    send_for,
    send_for_async,
)


def verb(role: Role, socket: Any, name: str) -> Callable[..., Any]:
    """``send`` or ``recv``, or its multipart form where a message has several frames."""
    several = role.case["frames"] > 1
    method: Callable[..., Any] = getattr(socket, f"{name}_multipart" if several else name)
    return method


def opened(role: Role, kind: str) -> Any:
    """A socket, with the case's high-water marks if it has any."""
    socket = role.library.open(kind)
    if marks := role.case.get("hwm"):
        for option in ("SNDHWM", "RCVHWM"):  # the floor has none
            role.library.set_if_known(socket, option, marks)
    return socket


def push_blocking(role: Role) -> Result:
    """Send for a while, say how many those were, and live until all have arrived."""
    frames = role.case["frames"]
    messages = make_pass(role.case["size"], frames)
    socket = role.connect(opened(role, "PUSH"))
    send = verb(role, socket, "send")
    sent = send_for(send, messages, role.settings.warm_up_s)
    clock = Clock()
    send(marker(START, frames))
    sent += send_for(send, messages, role.settings.measure_s)
    send(marker(END + b"%d" % sent, frames))
    role.library.flush(socket)
    role.control.wait("stop")
    return {"sent": sent, **clock.stop()}


async def push_async(role: Role) -> Result:
    """``push_blocking`` with awaits."""
    frames = role.case["frames"]
    messages = make_pass(role.case["size"], frames)
    socket = role.connect(opened(role, "PUSH"))
    send = verb(role, socket, "send")
    sent = await send_for_async(send, messages, role.settings.warm_up_s)
    clock = Clock()
    await send(marker(START, frames))
    sent += await send_for_async(send, messages, role.settings.measure_s)
    await send(marker(END + b"%d" % sent, frames))
    await role.control.wait_async("stop")
    return {"sent": sent, **clock.stop()}


def pull_blocking(role: Role) -> Result:
    """Receive everything, comparing each message with the one that is due."""
    account = Account(make_pass(role.case["size"], role.case["frames"]))
    socket = role.bind(opened(role, "PULL"))
    recv = verb(role, socket, "recv")
    receive_until(recv, account, START)
    before, clock = account.received, Clock()
    receive_until(recv, account, END)
    return arrived(role, account, before, clock)


async def pull_async(role: Role) -> Result:
    """``pull_blocking`` with awaits."""
    account = Account(make_pass(role.case["size"], role.case["frames"]))
    socket = role.bind(opened(role, "PULL"))
    recv = verb(role, socket, "recv")
    await receive_until_async(recv, account, START)
    before, clock = account.received, Clock()
    await receive_until_async(recv, account, END)
    return arrived(role, account, before, clock)


def arrived(role: Role, account: Account, before: int, clock: Clock) -> Result:
    """The figures of a stream that came whole."""
    used = clock.stop()
    account.must_be_whole()
    messages = account.received - before
    rate = messages / used["seconds"]
    octets = role.case["size"] * role.case["frames"]
    return {
        "value": rate,
        "messages": messages,
        "detail": {"MB/s": rate * octets / 1e6},
        **used,
    }


PARTS = {
    "receiver": Part(pull_blocking, pull_async),
    "sender": Part(push_blocking, push_async),
}
SIZES = {
    16: "16 B",
    64: "64 B",
    128: "128 B",
    1 << 10: "1 KiB",
    16 << 10: "16 KiB",
    256 << 10: "256 KiB",
    4 << 20: "4 MiB",
}
OVER_IPC_TOO = (64, 1 << 10, 256 << 10)  # in a run of everything
FEW = {4 << 20: 64}  # size -> high-water marks, where the defaults would be out of place


def short(text: str) -> str:
    """``64``, ``1k`` or ``4m`` for ``64 B``, ``1 KiB`` or ``4 MiB``."""
    return text.replace(" ", "").removesuffix("iB").removesuffix("B").lower()


CASES = (
    *(
        Case(
            name=f"pushpull-{short(text)}",
            title=f"PUSH to PULL, {text}",
            unit="msg/s",
            parts=PARTS,
            parameters={"size": size, "frames": 1, "hwm": FEW.get(size, 0)},
            uvloop=size == 64,
            in_full=("tcp", "ipc") if size in OVER_IPC_TOO else (),
        )
        for size, text in SIZES.items()
    ),
    Case(
        name="multipart",
        title="PUSH to PULL, five frames of 64 B",
        unit="msg/s",
        parts=PARTS,
        parameters={"size": 64, "frames": 5},
    ),
)
