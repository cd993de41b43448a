"""The publisher of KV events beside the loop that engines write by hand: rates, calls, replays.

Whoever reads is the same for both: libzmq, through pyzmq, in another process. What comes is
compared with what was published, event by event, after the clock has stopped.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import msgspec
import zmq as pyzmq

from bench.machine import ROOT, ordinary_environment
from bench.serving.kv_sides import END, KEPT, TOPIC, VARIANTS, Stored, events_of

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from types import TracebackType
    from typing import Self

    Row = dict[str, Any]

SIDES = ("zerohop", "stock")
ROUNDS = 5
BURSTS = 3  # of each side in a round, one after the other
ASKED = 15  # times, for the first reply
PATIENCE = 30_000  # milliseconds without a message, after which nothing comes any more


class Publisher:
    """One side, in a process, with a SUB that is joined."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.serving.kv_sides", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=ordinary_environment(),
        )
        places = self._hear()
        self.endpoint, self.replay = places["endpoint"], places["replay"]
        self._context = pyzmq.Context()
        self.sub = self._context.socket(pyzmq.SUB)
        self.sub.rcvhwm, self.sub.rcvtimeo = 0, PATIENCE
        self.sub.subscribe(b"")
        self.sub.connect(self.endpoint)
        self.next_seq = 0
        while not self.sub.poll(20):
            self.publish(1, 1)
        self.drain()

    def publish(self, count: int, blocks: int, period: float = 0.0) -> Row:
        """Have it publish, and wait until it has."""
        self.begin(count, blocks, period)
        return self._hear()

    def begin(self, count: int, blocks: int, period: float = 0.0) -> None:
        """Have it publish. What it says at the end is heard by :meth:`end`."""
        assert self._process.stdin is not None
        task = {"count": count, "blocks": blocks, "period": period}
        print(json.dumps(task), file=self._process.stdin, flush=True)
        self.next_seq += count

    def end(self) -> Row:
        """Wait until it has published what it was to."""
        return self._hear()

    def drain(self) -> None:
        """Take what was published until now."""
        while True:
            _, number, _ = self.receive()
            if int.from_bytes(number, "big") == self.next_seq - 1:
                return

    def receive(self) -> list[bytes]:
        """The next live message."""
        return self.sub.recv_multipart()

    def dealer(self) -> Any:
        """A socket for a replay, connected. Its queue is libzmq's own."""
        made = self._context.socket(pyzmq.DEALER)
        made.connect(self.replay)
        time.sleep(0.1)
        return made

    def _hear(self) -> Row:
        assert self._process.stdout is not None
        heard: Row = json.loads(self._process.stdout.readline())
        return heard

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._context.destroy(linger=0)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def run(quick: bool) -> list[Row]:
    """All figures. The sides take turns, and each is the first as often as the other."""
    with ExitStack() as stack:
        sides = [stack.enter_context(Publisher(name)) for name in SIDES]
        rounds = 1 if quick else ROUNDS
        for side in sides:
            fill(side, 200 if quick else KEPT)
        rows = deliveries(sides, 4, 300 if quick else 8_000, rounds)
        rows += deliveries(sides, 64, 100 if quick else 3_000, rounds)
        rows += calls(sides, 100 if quick else 2_000, rounds)
    for name in SIDES:
        with Publisher(name) as side:
            rows += replay(side, 300 if quick else 10_000)
    return rows


def fill(side: Publisher, count: int) -> None:
    """Have it keep as much as it may: memory that is new to a process costs more than its own."""
    for _ in range(count // 1000):
        side.publish(1000, 64)
        side.drain()


def deliveries(sides: list[Publisher], blocks: int, count: int, rounds: int) -> list[Row]:
    """Batches a second, from the first call to the last batch with the reader."""
    rates: dict[str, list[float]] = {name: [] for name in SIDES}
    for _ in range(rounds):
        took = dict.fromkeys(SIDES, 0.0)
        for at in range(BURSTS):
            for side in sides if at % 2 == 0 else reversed(sides):
                took[side.name] += delivery(side, blocks, count)
        for name, seconds in took.items():
            rates[name].append(BURSTS * count / seconds)
    rows = []
    ratios = [ours / theirs for ours, theirs in zip(*rates.values(), strict=True)]
    for name, each in rates.items():
        rows.append(
            {
                "measured": f"batches/s delivered, {blocks} blocks a batch, bursts of {count}",
                "side": name,
                "value": round(statistics.median(each)),
                "rounds": [round(rate) for rate in each],
            }
        )
    ratio = statistics.median(ratios)
    rows[0] |= {"ratio": round(ratio, 2), "required": "2 times the other", "met": ratio >= 2}
    return rows


def delivery(side: Publisher, blocks: int, count: int) -> float:
    """Seconds that one burst takes, of an engine that has done nothing for a moment."""
    time.sleep(0.1)
    first = side.next_seq
    side.begin(count, blocks)
    receive = side.receive
    got = [receive() for _ in range(count)]
    ended = time.perf_counter()
    began: float = side.end()["began"]
    check(got, first, blocks)
    return ended - began


def check(got: list[list[bytes]], first: int, blocks: int) -> None:
    """Compare what came with what was published.

    Raises:
        RuntimeError: it is not the same.
    """
    wanted = [
        msgspec.msgpack.decode(msgspec.msgpack.encode(events_of(each, blocks, Stored)))
        for each in range(VARIANTS)
    ]
    for at, (topic, number, payload) in enumerate(got):
        _, events, rank = msgspec.msgpack.decode(payload)
        same = events == wanted[at % VARIANTS] and rank == 0 and topic == TOPIC.encode()
        if not same or int.from_bytes(number, "big") != first + at:
            raise RuntimeError(f"batch {first + at} is not what was published: {payload!r:.200}")


def calls(sides: list[Publisher], count: int, rounds: int) -> list[Row]:
    """What ``publish()`` takes of a step loop: a batch of 64 blocks each millisecond."""
    found: dict[str, list[list[float]]] = {name: [] for name in SIDES}
    for at in range(rounds):
        for side in sides if at % 2 == 0 else reversed(sides):
            side.begin(count, 64, 0.001)
            side.drain()
            took = sorted(side.end()["took"])
            found[side.name].append([took[int(part * count)] / 1000 for part in (0.5, 0.99)])
    rows: list[Row] = [
        {
            "measured": f"us of publish(), 64 blocks, one a ms, rounds of {count} calls",
            "side": name,
            "p50": statistics.median(p50 for p50, _ in each),
            "p99": statistics.median(p99 for _, p99 in each),
            "rounds_p99": [p99 for _, p99 in each],
        }
        for name, each in found.items()
    ]
    rows[0] |= {"required": "p99 below 50 us", "met": rows[0]["p99"] < 50}
    return rows


def replay(side: Publisher, count: int) -> list[Row]:
    """A replay of all that it keeps to a reader that takes 100 us each, while live batches flow."""
    start = side.next_seq
    side.publish(count, 64)
    side.drain()
    ours, theirs = get_context("spawn").Pipe()
    listener = get_context("spawn").Process(target=listen, args=(side.endpoint, theirs))
    listener.start()
    ours.recv()
    seconds = 8 if count >= 1000 else 4
    side.begin(seconds * 1000, 4, 0.001)
    firsts = [first_reply(side, start) for _ in range(ASKED)]
    dealer = side.dealer()
    asked = time.perf_counter()
    dealer.send_multipart([b"", start.to_bytes(8, "big")])
    got: list[int] = []
    ended = False
    while not ended and dealer.poll(3000):
        *_, number, _ = dealer.recv_multipart()
        ended = number == END
        got.append(int.from_bytes(number, "big"))
        time.sleep(100e-6)
    took = time.perf_counter() - asked
    side.end()
    ours.send(None)
    late = sorted(lateness for at, lateness in ours.recv() if asked <= at <= asked + took)
    listener.join()
    whole = ended and got[:count] == list(range(start, start + count))
    p99 = 1000 * late[int(0.99 * len(late))]
    first = 1000 * statistics.median(firsts)
    row: Row = {
        "measured": f"replay of {count} batches of 64 blocks, 100 us each with the reader",
        "side": side.name,
        "batches": len([each for each in got[:count] if each < start + count]),
        "end_marker": ended,
        "first_reply_p50_ms": round(first, 2),
        "first_reply_max_ms": round(1000 * max(firsts), 2),
        "live_p50_ms": round(1000 * late[len(late) // 2], 3),
        "live_p99_ms": round(p99, 3),
        "live_max_ms": round(1000 * late[-1], 3),
        "seconds": round(took, 2),
    }
    if side.name == "zerohop":
        row |= {
            "required": "all, the end, first reply below 5 ms, live p99 below 10 ms",
            "met": whole and first < 5 and p99 < 10,
        }
    return [row]


def first_reply(side: Publisher, start: int) -> float:
    """Seconds to the first reply, of a reader that then goes away."""
    dealer = side.dealer()
    asked = time.perf_counter()
    dealer.send_multipart([b"", start.to_bytes(8, "big")])
    if not dealer.poll(3000):
        raise RuntimeError(f"{side.name} does not reply")
    took = time.perf_counter() - asked
    dealer.close(linger=0)
    return took


def listen(endpoint: str, pipe: Connection) -> None:
    """Read live batches until something comes down the pipe; then say when each came, how late."""
    context = pyzmq.Context()
    sub = context.socket(pyzmq.SUB)
    sub.rcvhwm = 0
    sub.subscribe(b"")
    sub.connect(endpoint)
    time.sleep(0.3)  # until the subscription is there; what comes before is not missed by anybody
    pipe.send(None)
    found = []
    while not pipe.poll(0):
        if sub.poll(50):
            payload = sub.recv_multipart()[-1]
            ts = msgspec.msgpack.decode(payload)[0]
            found.append((time.perf_counter(), time.time() - ts))
    pipe.recv()
    pipe.send(found)
    context.destroy(linger=0)
