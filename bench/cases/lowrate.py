"""A hundred messages a second to a socket that waits: what the receiving process uses for each.

Most sockets of most programs have little to do. What a message then costs is not reading it but
waking up for it, once or several times, in one thread or in several. The figure is the processor
time of the receiving process, all its threads, for one message; the delay of a message (PULL), and
the round trip as the other side sees it (REP), stand beside it.
"""

import time
from array import array
from typing import Any

from bench.case import Case, Part, Result, Role
from bench.cases.reqrep import agreed, percentile, rep_blocking, req_blocking
from bench.clock import Clock
from bench.stream import END, START, StreamError, make_pass

PAUSE_S = 0.01
P50 = "p50 µs"
STAMP = 8  # octets: when the message was sent, by a clock that both processes have


def send_rarely_for(socket: Any, messages: list[bytes], first: int, seconds: float) -> int:
    """Send the message that is due, and when, after each pause; return the next one's number."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        time.sleep(PAUSE_S)
        stamp = time.perf_counter_ns().to_bytes(STAMP, "big")
        socket.send(messages[first % len(messages)] + stamp)
        first += 1
    return first


def push(role: Role) -> Result:
    """Send rarely for a while."""
    messages = make_pass(role.case["size"] - STAMP)
    socket = role.connect(role.library.open("PUSH"))
    sent = send_rarely_for(socket, messages, 0, role.settings.warm_up_s)
    clock = Clock()
    socket.send(START)
    sent = send_rarely_for(socket, messages, sent, role.settings.measure_s)
    socket.send(END + b"%d" % sent)
    role.control.wait("stop")
    return clock.stop()


def pull(role: Role) -> Result:
    """Receive what comes, in order and whole; see how old it is."""
    messages = make_pass(role.case["size"] - STAMP)
    socket = role.bind(role.library.open("PULL"))
    ages, before, clock = array("q"), 0, Clock()
    while not (message := socket.recv()).startswith(END):
        if message == START:
            before = len(ages)
            clock.start()
            continue
        ages.append(time.perf_counter_ns() - int.from_bytes(message[-STAMP:], "big"))
        due = messages[(len(ages) - 1) % len(messages)]
        if message[:-STAMP] != due:
            raise StreamError(f"{due[:8]!r} was due, {message[:8]!r} came")
    used = clock.stop()
    agreed(len(ages), message)
    return woken(len(ages) - before, used) | {
        "detail": {P50: percentile(array("q", sorted(ages[before:])), 0.5) / 1e3}
    }


def rep(role: Role) -> Result:
    """Return every request; what each cost is the figure."""
    used = rep_blocking(role)
    return woken(used.pop("answered"), used)


def req(role: Role) -> Result:
    """Ask after each pause; the round trip is a detail here, and the other role counts."""
    asked = req_blocking(role)
    return {
        "detail": {P50: asked["value"]},
        "cpu_s": asked["cpu_s"],
        "memory_mib": asked["memory_mib"],
    }


def woken(messages: int, used: Result) -> Result:
    """Processor time of this process for one message."""
    return {"value": 1e6 * used["cpu_s"] / messages, "messages": messages, **used}


def case(kind: str, parts: Any) -> Case:
    """A receiving socket of this kind."""
    return Case(
        name=f"lowrate-{kind.lower()}",
        title=f"100 messages/s to a blocking {kind}, CPU time of its process a message",
        unit="µs",
        parts=parts,
        higher_is_better=False,
        parameters={"size": 64, "idle_ms": int(PAUSE_S * 1e3)},
        floor=False,
        compared=(P50,),
    )


CASES = (
    case("PULL", {"receiver": Part(pull), "sender": Part(push)}),
    case("REP", {"receiver": Part(rep), "sender": Part(req)}),
)
