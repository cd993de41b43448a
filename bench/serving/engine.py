"""The engine channel beside the pattern that is written by hand on pyzmq.

Round trips of one request, tokens a second of 256 streams, and what it costs to do nothing: client
and engine in a process each, over ipc. All sides are there at once, and take turns; whoever's turn
it is not waits in a read. What comes is compared with what was asked for.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from bench.machine import ROOT, ordinary_environment
from bench.serving.engine_sides import WARM

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    Row = dict[str, Any]

ROUNDS = 5
STREAMS = 256
STEP = 0.02  # seconds of a step of an engine that has a model
ROUND_TRIPS = ("zerohop", "asyncio", "blocking", "zerohop-blocking")
TOKENS = ("zerohop", "asyncio", "merging")


class Side:
    """A client and its engine, which are joined."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._directory = tempfile.TemporaryDirectory(prefix="zh-")
        self._client = self._start("client", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._engine = self._start("engine")
        self._hear()

    def ask(self, **task: object) -> Row:
        """Have the client do something; the answer, and the CPU seconds of both."""
        before = self.cpu()
        print(json.dumps(task), file=self._client.stdin, flush=True)
        heard = self._hear()
        after = self.cpu()
        return heard | {"client_cpu": after[0] - before[0], "engine_cpu": after[1] - before[1]}

    def cpu(self) -> tuple[float, float]:
        """CPU seconds of the client and of the engine until now."""
        # The clock of another process, as clock_getcpuclockid(3) makes it of its id.
        client, engine = (
            time.clock_gettime(~process.pid << 3 | 2) for process in (self._client, self._engine)
        )
        return client, engine

    def _start(self, role: str, **pipes: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "bench.serving.engine_sides", role, self.name,
             self._directory.name],
            text=True, cwd=ROOT, env=ordinary_environment(), **pipes,
        )  # fmt: skip

    def _hear(self) -> Row:
        assert self._client.stdout is not None
        heard: Row = json.loads(self._client.stdout.readline())
        return heard

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._engine.kill()
        self._engine.wait()
        assert self._client.stdin is not None
        assert self._client.stdout is not None
        self._client.stdin.close()
        self._client.wait()
        self._client.stdout.close()
        self._directory.cleanup()


def run(quick: bool) -> list[Row]:
    """All figures. Each side is the first as often as any other."""
    rounds = 1 if quick else ROUNDS
    with ExitStack() as stack:
        every = {name: stack.enter_context(Side(name)) for name in {*ROUND_TRIPS, *TOKENS}}
        rows = round_trips([every[name] for name in ROUND_TRIPS], 50 if quick else 2000, rounds)
        sides = [every[name] for name in TOKENS]
        rows += streams(sides, 20 if quick else 1000, 0.0, rounds)
        rows += streams(sides, 5 if quick else 100, STEP, 1 if quick else 3)
        rows += rest([every[name] for name in TOKENS[:2]], 0.5 if quick else 10)
    return rows


def turns(sides: list[Side], rounds: int) -> list[list[Side]]:
    """Whose turn it is, in each round."""
    return [sides[at % len(sides) :] + sides[: at % len(sides)] for at in range(rounds)]


def round_trips(sides: list[Side], count: int, rounds: int) -> list[Row]:
    """One request of 16 tokens after the other, one token back."""
    found: dict[str, list[list[float]]] = {side.name: [] for side in sides}
    for order in turns(sides, rounds):
        for side in order:
            heard = side.ask(round_trips=count)
            took = sorted(heard["took"])
            cpu = [1e6 * heard[whose] / (WARM + count) for whose in ("client_cpu", "engine_cpu")]
            found[side.name].append([took[int(p * count)] / 1000 for p in (0.5, 0.99)] + cpu)
    rows = []
    for name, each in found.items():
        p50, p99, client, engine = (statistics.median(column) for column in zip(*each, strict=True))
        rows.append(
            {
                "measured": f"us of a round trip, 16 tokens in, one out, rounds of {count}",
                "side": name,
                "p50": p50,
                "p99": p99,
                "rounds_p50": [row[0] for row in each],
                "client_cpu_us": client,
                "engine_cpu_us": engine,
            }
        )
    ratios = {
        other: statistics.median(
            ours[0] / theirs[0] for ours, theirs in zip(found["zerohop"], found[other], strict=True)
        )
        for other in found
        if other != "zerohop"
    }
    rows[0] |= {
        "ratios": {other: round(ratio, 2) for other, ratio in ratios.items()},
        "required": "p50 not above asyncio's, the same pattern; aim 0.7 of it",
        "met": ratios["asyncio"] <= 1,
    }
    return rows


def streams(sides: list[Side], tokens: int, period: float, rounds: int) -> list[Row]:
    """Many streams, one token a step each: as fast as it goes, or in the time of a model."""
    found: dict[str, list[Row]] = {side.name: [] for side in sides}
    for order in turns(sides, rounds):
        for side in order:
            found[side.name].append(side.ask(streams=STREAMS, tokens=tokens, period=period))
    pace = f"a step each {1000 * period:g} ms" if period else "steps as fast as they go"
    rows = []
    for name, each in found.items():
        total = each[0]["tokens"]
        rates = [row["tokens"] / row["seconds"] for row in each]
        rows.append(
            {
                "measured": f"tokens/s, {STREAMS} streams of {tokens} tokens, {pace}",
                "side": name,
                "value": round(statistics.median(rates)),
                "rounds": [round(rate) for rate in rates],
                "tokens_a_piece": statistics.median(total / row["pieces"] for row in each),
                "client_cpu_us_a_token": cpu_a_token(each, "client_cpu"),
                "engine_cpu_us_a_token": cpu_a_token(each, "engine_cpu"),
            }
        )
    if not period:
        pairs = zip(rows[0]["rounds"], rows[1]["rounds"], strict=True)
        ratio = statistics.median(ours / theirs for ours, theirs in pairs)
        required = "3 times asyncio's"
        rows[0] |= {"ratio": round(ratio, 2), "required": required, "met": ratio >= 3}
    return rows


def cpu_a_token(rows: list[Row], whose: str) -> float:
    """Microseconds, of the client or of the engine."""
    each: list[float] = [1e6 * row[whose] / row["tokens"] for row in rows]
    return statistics.median(each)


def rest(sides: list[Side], seconds: float) -> list[Row]:
    """What they cost while nobody asks for anything."""
    before = [side.cpu() for side in sides]
    time.sleep(seconds)
    rows: list[Row] = []
    for side, (client, engine) in zip(sides, before, strict=True):
        now = side.cpu()
        row: Row = {
            "measured": f"percent of a core at rest, {seconds:g} s",
            "side": side.name,
            "client": 100 * (now[0] - client) / seconds,
            "engine": 100 * (now[1] - engine) / seconds,
        }
        if side.name == "zerohop":
            met = max(row["client"], row["engine"]) < 1
            row |= {"required": "below 1 each", "met": met}
        rows.append(row)
    return rows
