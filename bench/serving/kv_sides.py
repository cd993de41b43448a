"""The publishers that are compared, each in a process of its own, told what to do over a pipe.

``stock`` is what engines write by hand, as vLLM 0.32 does it: ``publish`` puts a batch into a
``queue.Queue``; a thread takes it out, encodes it with msgspec, sends it on a pyzmq PUB, and keeps
the last ones; between two batches it looks whether a ROUTER was asked for a replay, and answers.

A process reads a line of JSON for each thing to do, and writes one when it is done.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
import time
from collections import deque
from typing import Any, Protocol

import msgspec
import zmq as pyzmq

from zerohop.serving import BlockStored, KvEventPublisher

VARIANTS = 64  # batches that differ; they come round again
BLOCK = 16  # tokens
KEPT = 20_000  # batches, for replays: a replay of 10,000 stays whole while others come
TOPIC = "kv@pod@model"
END = b"\xff" * 8


class Batch(msgspec.Struct, array_like=True):
    """A batch as the stock loop encodes it."""

    ts: float
    events: list[Any]
    dp_rank: int | None = None


class Stored(msgspec.Struct, tag="BlockStored", tag_field="type", omit_defaults=True):
    """An event as the stock loop encodes it: the same fields on the wire as ours."""

    block_hashes: list[int]
    parent_block_hash: int | None
    token_ids: list[int]
    block_size: int
    lora_id: int | None = msgspec.field(default_factory=type(None))
    medium: str | None = msgspec.field(default_factory=type(None))
    lora_name: str | None = msgspec.field(default_factory=type(None))


class Side(Protocol):
    """What both have."""

    @property
    def endpoint(self) -> str:
        """Of the PUB."""

    @property
    def replay_endpoint(self) -> str | None:
        """Of the ROUTER."""

    def publish(self, events: list[Any], ts: float | None = None) -> object:
        """Publish what happened in one step."""

    def close(self) -> None:
        """End."""


class StockPublisher:
    """Queue, thread, msgspec, pyzmq: see the module's docstring."""

    def __init__(self) -> None:
        self._queue: queue.Queue[Batch | None] = queue.Queue(maxsize=100_000)
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=KEPT)
        self._context = pyzmq.Context()
        self._pub = self._context.socket(pyzmq.PUB)
        self._pub.set_hwm(100_000)
        self._pub.bind("tcp://127.0.0.1:*")
        self._router = self._context.socket(pyzmq.ROUTER)
        self._router.bind("tcp://127.0.0.1:*")
        self.endpoint = self._pub.getsockopt_string(pyzmq.LAST_ENDPOINT)
        self.replay_endpoint: str | None = self._router.getsockopt_string(pyzmq.LAST_ENDPOINT)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def publish(self, events: list[Any], ts: float | None = None) -> None:
        """Hand a batch over."""
        self._queue.put(Batch(time.time() if ts is None else ts, events, 0))

    def close(self) -> None:
        """Send what waits, and end."""
        self._queue.put(None)
        self._thread.join()
        self._context.destroy(linger=0)

    def _run(self) -> None:
        encode = msgspec.msgpack.Encoder().encode
        topic, seq = TOPIC.encode(), 0
        while True:
            if self._router.poll(0):
                self._replay()
            try:
                batch = self._queue.get(timeout=0.1)
            except queue.Empty:
                continue
            if batch is None:
                return
            payload = encode(batch)
            self._pub.send_multipart((topic, seq.to_bytes(8, "big"), payload))
            self._kept.append((seq, payload))
            seq += 1
            self._queue.task_done()

    def _replay(self) -> None:
        identity, _, start = self._router.recv_multipart()
        first, topic = int.from_bytes(start, "big"), TOPIC.encode()
        for seq, payload in self._kept:
            if seq >= first:
                number = seq.to_bytes(8, "big")
                self._router.send_multipart((identity, b"", topic, number, payload))
        self._router.send_multipart((identity, b"", b"", END, b""))


def events_of(variant: int, blocks: int, kind: type[Any]) -> list[Any]:
    """The events of a batch: some blocks that were stored, each with a hash of 64 bits."""
    hashes = [(variant << 40) + (at << 20) + (1 << 63) for at in range(blocks)]
    tokens = [(variant * 31 + at * 7) % 128_000 for at in range(blocks * BLOCK)]
    return [kind(hashes, hashes[0] - 1, tokens, BLOCK, None, "GPU", None)]


def serve(name: str) -> None:
    """Be a publisher, and do what is asked for."""
    made: Side
    kind: type[Any]
    if name == "stock":
        made, kind = StockPublisher(), Stored
    else:
        made, kind = (
            KvEventPublisher(replay="tcp://127.0.0.1:*", topic=TOPIC, buffer=KEPT),
            BlockStored,
        )
    batches: dict[int, list[list[Any]]] = {}
    say(endpoint=made.endpoint, replay=made.replay_endpoint)
    for line in sys.stdin:
        task = json.loads(line)
        blocks = task["blocks"]
        if blocks not in batches:
            batches[blocks] = [events_of(each, blocks, kind) for each in range(VARIANTS)]
        began = time.perf_counter()
        took = publish(made, batches[blocks], task["count"], task.get("period", 0.0))
        say(began=began, took=took)
    made.close()


def publish(made: Side, batches: list[list[Any]], count: int, period: float) -> list[int]:
    """Publish so many, all at once or one a period; return the nanoseconds that each call took."""
    took = []
    at = time.perf_counter()
    for each in range(count):
        events = batches[each % VARIANTS]
        if period:
            at += period
            time.sleep(max(at - time.perf_counter(), 0))
        began = time.perf_counter_ns()
        made.publish(events)
        took.append(time.perf_counter_ns() - began)
    return took


def say(**what: object) -> None:
    """Write a line."""
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
