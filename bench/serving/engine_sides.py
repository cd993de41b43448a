"""The engine channels that are compared: clients and engines, each in a process of its own.

``asyncio`` is what LLM servers write by hand, as vLLM 0.32 does it: a client on ``zmq.asyncio``
whose task reads a PULL, decodes with msgspec, and puts what came for a request into its
``asyncio.Queue``; requests leave on a ROUTER; the engine is a loop that blocks on a pyzmq DEALER
and sends what a step made, one message for all requests, on a PUSH. ``merging`` is the same with a
slot for each request instead of the queue: what its reader has not taken yet is added to.
``blocking`` has the same engine, and a client without an event loop, for one request at a time;
``zerohop-blocking`` is the client for threads, asked likewise by one.

All carry the same: a number, tokens in, priority and deadline; a number, tokens out, a finish.
``python -m bench.serving.engine_sides client SIDE DIRECTORY`` reads a line of JSON for each thing
to do and writes one when it is done; ``... engine SIDE DIRECTORY`` takes requests until it is
ended.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import zmq as pyzmq
import zmq.asyncio as pyzmq_asyncio

from zerohop.serving import Delta, EngineClient, EngineServer, SyncEngineClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    Row = dict[str, Any]

PROMPT = 16  # tokens
VOCABULARY = 128_000
ENGINE = b"engine-0"
UNBOUNDED = 1_000_000  # messages: nobody is to be ended, or to wait, for being slow
WARM = 200  # requests before the clock starts


class Payload(msgspec.Struct, array_like=True):
    """What is asked for. ``period``: seconds between two steps of the engine, 0 for none."""

    tokens: list[int]
    count: int
    period: float = 0.0


class Request(msgspec.Struct, array_like=True, frozen=True):
    """What the hand-written clients send."""

    number: int
    payload: Payload
    priority: int = 0
    deadline: float | None = None


class Made(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What one step made for one request, as the hand-written engine sends it."""

    number: int
    token_ids: list[int]
    finish: str | None = None
    extra: Any = None


class Outputs(msgspec.Struct, array_like=True, frozen=True):
    """What one step made, as the hand-written engine sends it."""

    engine: int
    deltas: list[Made]
    timestamp: float


def prompt(number: int) -> list[int]:
    """Tokens of a request; the last one tells the engine what to begin with."""
    return [*range(PROMPT - 1), number % VOCABULARY]


def wanted(number: int, count: int) -> list[int]:
    """All tokens that are made of a request."""
    return list(range(number % VOCABULARY, number % VOCABULARY + count))


# Engines


class Steps:
    """What an engine without a model makes: one token for each request in each step."""

    def __init__(self, kind: type[Any]) -> None:
        self._kind = kind
        self.running: dict[int, list[int]] = {}  # by number: the next token, and the last
        self.period = 0.0
        self._next = 0.0

    def add(self, number: int, payload: Payload) -> None:
        """Take a request: its first token is told by its prompt."""
        first = payload.tokens[-1]
        self.running[number] = [first, first + payload.count - 1]
        self.period = payload.period

    def wait(self) -> None:
        """Be busy until the next step, as long as a model would be."""
        if self.period:
            now = time.perf_counter()
            self._next = max(self._next + self.period, now)
            time.sleep(self._next - now)

    def step(self) -> list[Any]:
        """Make one token for each."""
        kind, running = self._kind, self.running
        deltas, done = [], []
        for number, state in running.items():
            token, last = state
            if token == last:
                deltas.append(kind(number, [token], "length"))
                done.append(number)
            else:
                deltas.append(kind(number, [token]))
                state[0] = token + 1
        for number in done:
            del running[number]
        return deltas


def zerohop_engine(directory: Path) -> None:
    """The engine on :class:`EngineServer`."""
    steps = Steps(Delta)
    with EngineServer(
        places(directory)[0], engine=ENGINE.decode(), payload=Payload, outputs_limit=UNBOUNDED
    ) as server:
        while True:
            news = server.receive(0 if steps.running else None)
            for request in news.requests:
                steps.add(request.number, request.payload)
            for number in news.aborted:
                steps.running.pop(number, None)
            if steps.running:
                steps.wait()
                server.send_step(steps.step())


def stock_engine(directory: Path) -> None:
    """The engine on pyzmq, one thread: whoever has two has more to hand over."""
    steps = Steps(Made)
    requests, outputs = places(directory)
    context = pyzmq.Context()
    dealer = context.socket(pyzmq.DEALER)
    dealer.setsockopt(pyzmq.IDENTITY, ENGINE)
    push = context.socket(pyzmq.PUSH)
    push.set_hwm(0)
    dealer.connect(requests)
    push.connect(outputs)
    decode = msgspec.msgpack.Decoder(Request).decode
    encode = msgspec.msgpack.Encoder().encode
    dealer.send(b"ready")
    while True:
        while not steps.running or dealer.poll(0):
            request = decode(dealer.recv())
            steps.add(request.number, request.payload)
        steps.wait()
        push.send(encode(Outputs(0, steps.step(), time.time())))


# Clients


class ZerohopClient:
    """The client on :class:`EngineClient`."""

    def __init__(self, directory: Path) -> None:
        requests, outputs = places(directory)
        self._client = EngineClient(requests, outputs=outputs, stream_limit=UNBOUNDED)

    async def start(self) -> None:
        """Wait for the engine."""
        await self._client.__aenter__()
        await self._client.wait_for_engines(timeout=30)

    async def close(self) -> None:
        """End."""
        await self._client.aclose()

    def generate(self, payload: Payload) -> AsyncIterator[Any]:
        """Give a request, and iterate over what comes."""
        return self._client.generate(payload)


class Collected:
    """What came for one request, in one piece: vLLM's alternative to a queue."""

    def __init__(self) -> None:
        self._ready = asyncio.Event()
        self._made: Made | None = None

    def put_nowait(self, made: Made) -> None:
        """Add to what has not been taken yet."""
        if self._made is None:
            self._made = made
            self._ready.set()
        else:
            self._made.token_ids.extend(made.token_ids)
            self._made = Made(made.number, self._made.token_ids, made.finish)

    async def get(self) -> Made:
        """Take what is there, or wait for it."""
        while (made := self._made) is None:
            await self._ready.wait()
        self._made = None
        self._ready.clear()
        return made


class StockClient:
    """The client that is written by hand on ``zmq.asyncio``."""

    def __init__(self, directory: Path, kind: type[Any]) -> None:
        requests, outputs = places(directory)
        self._kind = kind
        self._context = pyzmq_asyncio.Context()
        self._router = self._context.socket(pyzmq.ROUTER)
        self._router.set_hwm(0)
        self._router.bind(requests)
        self._pull = self._context.socket(pyzmq.PULL)
        self._pull.set_hwm(0)
        self._pull.bind(outputs)
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(Outputs).decode
        self._count = 0
        self._queues: dict[int, Any] = {}

    async def start(self) -> None:
        """Wait for the engine."""
        await self._router.recv_multipart()
        self._task = asyncio.create_task(self._read())

    async def close(self) -> None:
        """End."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._context.destroy(linger=0)

    async def generate(self, payload: Payload) -> AsyncIterator[Made]:
        """Give a request, and iterate over what comes."""
        self._count += 1
        number = self._count
        queue = self._queues[number] = self._kind()
        try:
            request = Request(number, payload, 0, 600.0)
            await self._router.send_multipart((ENGINE, self._encode(request)))
            while True:
                made = await queue.get()
                yield made
                if made.finish is not None:
                    return
        finally:
            del self._queues[number]

    async def _read(self) -> None:
        receive, decode, queues = self._pull.recv_multipart, self._decode, self._queues
        while True:
            (frame,) = await receive()
            for made in decode(frame).deltas:
                if (queue := queues.get(made.number)) is not None:
                    queue.put_nowait(made)


async def take(client: Any, number: int, count: int, period: float = 0.0) -> tuple[int, int]:
    """Ask for tokens and compare them; return how many came, in how many pieces.

    Raises:
        RuntimeError: they are not what they should be.
    """
    payload = Payload(prompt(number), count, period)
    tokens: list[int] = []
    pieces = 0
    finish = None
    async for delta in client.generate(payload):
        tokens += delta.token_ids
        finish = delta.finish
        pieces += 1
    if tokens != wanted(number, count) or finish != "length":
        raise RuntimeError(f"request {number}: {len(tokens)} tokens, {tokens[:4]}, {finish}")
    return len(tokens), pieces


async def round_trips(client: Any, count: int) -> Row:
    """One request after the other, one token each; nanoseconds of each."""
    took = []
    for number in range(WARM + count):
        began = time.perf_counter_ns()
        await take(client, number, 1)
        took.append(time.perf_counter_ns() - began)
    return {"took": took[WARM:]}


async def streams(client: Any, count: int, tokens: int, period: float) -> Row:
    """Many requests at once."""
    began = time.perf_counter()
    each = [take(client, number, tokens, period) for number in range(count)]
    done = await asyncio.gather(*each)
    seconds = time.perf_counter() - began
    return {
        "seconds": seconds,
        "tokens": sum(made for made, _ in done),
        "pieces": sum(pieces for _, pieces in done),
    }


async def asyncio_client(client: Any) -> None:
    """Be a client on an event loop, and do what is asked for."""
    await client.start()
    say(ready=True)
    loop = asyncio.get_running_loop()
    # While nothing is asked, the thread stands in a read, and the loop is at rest.
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        match json.loads(line):
            case {"round_trips": count}:
                say(**await round_trips(client, count))
            case {"streams": count, "tokens": tokens, "period": period}:
                say(**await streams(client, count, tokens, period))
    await client.close()


def blocking_client(ask: Callable[[int], list[int]]) -> None:
    """Be a client that waits for each answer in its own thread.

    Args:
        ask: gives a request of this number, and returns the tokens that were made of it.
    """
    say(ready=True)
    for line in sys.stdin:
        took = []
        for number in range(WARM + json.loads(line)["round_trips"]):
            began = time.perf_counter_ns()
            tokens = ask(number)
            took.append(time.perf_counter_ns() - began)
            if tokens != wanted(number, 1):
                raise RuntimeError(f"request {number}: {tokens}")
        say(took=took[WARM:])


def stock_blocking_client(directory: Path) -> None:
    """The client that is written by hand on pyzmq without an event loop."""
    requests, outputs = places(directory)
    context = pyzmq.Context()
    router = context.socket(pyzmq.ROUTER)
    router.bind(requests)
    pull = context.socket(pyzmq.PULL)
    pull.bind(outputs)
    encode = msgspec.msgpack.Encoder().encode
    decode = msgspec.msgpack.Decoder(Outputs).decode

    def ask(number: int) -> list[int]:
        payload = Payload(prompt(number), 1)
        router.send_multipart((ENGINE, encode(Request(number, payload, 0, 600.0))))
        (made,) = decode(pull.recv()).deltas
        return made.token_ids if made.number == number else []

    router.recv_multipart()
    blocking_client(ask)
    context.destroy(linger=0)


def zerohop_blocking_client(directory: Path) -> None:
    """The client on :class:`SyncEngineClient`."""
    requests, outputs = places(directory)
    with SyncEngineClient(requests, outputs=outputs, stream_limit=UNBOUNDED) as client:

        def ask(number: int) -> list[int]:
            stream = client.generate(Payload(prompt(number), 1))
            return [token for delta in stream for token in delta.token_ids]

        client.wait_for_engines(timeout=30)
        blocking_client(ask)


def places(directory: Path) -> tuple[str, str]:
    """Where requests and outputs are bound."""
    return f"ipc://{directory / 'requests'}", f"ipc://{directory / 'outputs'}"


def say(**what: object) -> None:
    """Write a line."""
    print(json.dumps(what), flush=True)


def main(role: str, side: str, where: str) -> None:
    """Be one of them."""
    directory = Path(where)
    match role, side:
        case "engine", "zerohop" | "zerohop-blocking":
            zerohop_engine(directory)
        case "engine", _:
            stock_engine(directory)
        case _, "zerohop":
            asyncio.run(with_client(ZerohopClient, directory))
        case _, "blocking":
            stock_blocking_client(directory)
        case _, "zerohop-blocking":
            zerohop_blocking_client(directory)
        case _, _:
            kind = Collected if side == "merging" else asyncio.Queue
            asyncio.run(with_client(StockClient, directory, kind))


async def with_client(kind: Any, *arguments: Any) -> None:
    """Make it on the running loop."""
    await asyncio_client(kind(*arguments))


if __name__ == "__main__":
    main(*sys.argv[1:])
