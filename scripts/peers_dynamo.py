"""NVIDIA Dynamo's standalone KV indexer reads our publisher; its answers must be our own view's.

The indexer is a SUB and a replay DEALER in Rust, and answers over HTTP. Each round publishes random
batches over a way that loses some of them, and then compares: which blocks it says are stored, and
how much of random prompts it says is cached.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeAlias

from scripts.peers_kit import LossyRelay, free_port, say, say_versions
from zerohop.serving import (
    AllBlocksCleared,
    BlockRemoved,
    BlockStored,
    KvEventPublisher,
    PresentBlocks,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from zerohop.serving.kv.encode import EventForm

BLOCK = 16  # tokens
ROUNDS, BATCHES, PROMPTS = 20, 20, 40
LOSS = 0.2  # of the live batches
PATIENCE = 20.0  # seconds until the indexer must have what was published

Blocks: TypeAlias = tuple[int, ...]  # a sequence of them; also its last one, by what leads to it


def main() -> int:
    """Run it once with each form of the events."""
    say_versions(f"ai-dynamo-runtime {version('ai-dynamo-runtime')}")
    with tempfile.TemporaryFile() as log:
        for form, instance in (("map", 1), ("array", 2)):
            with indexer(log) as http:
                compare(http, form, instance)  # type: ignore[arg-type] # both are forms
        log.seek(0)
        said = log.read().decode(errors="replace")
    replays = said.count("Replay complete")
    say("gaps it saw, and replays it got from us", f"{replays} replays", replays > ROUNDS)
    return 0


@contextlib.contextmanager
def indexer(log: Any) -> Iterator[Http]:
    """The indexer, as a process, until the block ends."""
    port = free_port()
    command = [sys.executable, "-m", "dynamo.indexer", "--port", str(port), "--threads", "1"]
    process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        http = Http(port)
        give_up = time.monotonic() + PATIENCE
        while not http.is_up():
            if process.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError("Dynamo's indexer does not start")
            time.sleep(0.05)
        yield http
    finally:
        process.terminate()
        process.wait()


class Http:
    """What the indexer can be asked."""

    def __init__(self, port: int) -> None:
        self._root = f"http://127.0.0.1:{port}"

    def is_up(self) -> bool:
        """Whether it answers."""
        try:
            self._ask("/health")
        except OSError:
            return False
        return True

    def register(self, instance: int, endpoint: str, replay: str) -> None:
        """Have it read a publisher."""
        what = {"endpoint": endpoint, "replay_endpoint": replay, "block_size": BLOCK}
        self._ask("/register", {"instance_id": instance, "model_name": "m", **what})

    def cached_tokens(self, tokens: list[int], instance: int) -> int:
        """How many tokens of a prompt it says are cached."""
        said = self._ask("/query", {"token_ids": tokens, "model_name": "m"})
        scores: dict[str, int] = said["scores"].get(str(instance), {})
        return scores.get("0", 0)

    def stored(self) -> set[int]:
        """The hashes of all blocks that it says are stored."""
        said = self._ask("/dump").get("m:default", {"events": []})
        stored = (e["event"]["data"]["stored"] for e in said["events"])
        return {block["block_hash"] for each in stored for block in each["blocks"]}

    def _ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310 - our own
            self._root + path, data, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=10) as reply:  # noqa: S310 - our own
            return json.loads(reply.read() or "null")


class Engine:
    """Stores, removes and clears at random, as an engine does: parents first, children first.

    A block is the path of small numbers that leads to it; each number stands for sixteen tokens.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.present: set[Blocks] = set()

    def step(self) -> list[BlockStored | BlockRemoved | AllBlocksCleared]:
        """The events of one step."""
        drawn = self.random.random()
        if drawn < 0.01:
            self.present.clear()
            return [AllBlocksCleared()]
        if drawn < 0.35 and self.present:
            return [self._remove() for _ in range(self.random.randint(1, 4)) if self.present]
        return [event for _ in range(self.random.randint(1, 2)) for event in self._store()]

    def prompt(self) -> Blocks:
        """A random sequence of blocks, that others may have begun alike."""
        return tuple(self.random.randrange(3) for _ in range(self.random.randint(1, 9)))

    def _store(self) -> Iterator[BlockStored]:
        path = self.prompt()
        known = cached_blocks(path, self.present)
        new = [path[: at + 1] for at in range(known, len(path))]
        if new:
            self.present.update(new)
            parent = block_hash(path[:known]) if known else None
            hashes: list[int | bytes] = [block_hash(each) for each in new]
            yield BlockStored(hashes, parent, [*tokens_of(path)[known * BLOCK :]], BLOCK)

    def _remove(self) -> BlockRemoved:
        parents = {path[:-1] for path in self.present}
        leaves = sorted(self.present - parents)
        gone = self.random.choice(leaves)
        self.present.discard(gone)
        return BlockRemoved([block_hash(gone)])


def block_hash(path: Blocks) -> int:
    """A name for a block, of 64 bits."""
    return int.from_bytes(hashlib.sha256(bytes(path)).digest()[:8], "big")


def tokens_of(path: Blocks) -> list[int]:
    """The tokens of a sequence of blocks."""
    return [1000 * number + at for number in path for at in range(BLOCK)]


def cached_blocks(path: Blocks, present: set[Blocks]) -> int:
    """How many blocks of a sequence are there, from its beginning on."""
    return next((at for at in range(len(path)) if path[: at + 1] not in present), len(path))


def compare(http: Http, form: EventForm, instance: int) -> None:
    """One publisher, from a late start over gaps and clears, with our own view beside it."""
    engine, view = Engine(instance), PresentBlocks()
    lost = random.Random(instance)
    right_blocks = right_prompts = clears = 0
    with KvEventPublisher(replay="tcp://127.0.0.1:*", events=form, topic="kv") as publisher:

        def publish(count: int) -> None:
            nonlocal clears
            for _ in range(count):
                events = engine.step()
                clears += AllBlocksCleared() in events
                view.apply(events, 0)
                publisher.publish(events)

        publish(BATCHES)  # before anybody reads
        with LossyRelay(publisher.endpoint, lambda seq: lost.random() < LOSS) as relay:
            relay.wait_connected()
            assert publisher.replay_endpoint is not None
            http.register(instance, relay.endpoint, publisher.replay_endpoint)
            for _ in range(ROUNDS):
                publish(BATCHES)
                right_blocks += agrees(http, view, publisher)
                present = {path for path in engine.present if block_hash(path) in view}
                for path in (engine.prompt() for _ in range(PROMPTS)):
                    expected = BLOCK * cached_blocks(path, present)
                    right_prompts += http.cached_tokens(tokens_of(path), instance) == expected
            dropped, batches = len(relay.dropped), publisher.next_seq
    say(
        f"{batches} batches in {form} form, the first {BATCHES} before it reads, {dropped} lost on "
        f"the way, {clears} clears: the blocks that it has",
        f"{right_blocks} of {ROUNDS} times those of `PresentBlocks`",
        right_blocks == ROUNDS,
    )
    asked = ROUNDS * PROMPTS
    say(
        f"{asked} prompts, in between: the tokens that it says are cached",
        f"{right_prompts} of {asked} times as many as by `PresentBlocks`",
        right_prompts == asked,
    )


def agrees(http: Http, view: PresentBlocks, publisher: KvEventPublisher) -> bool:
    """Wait until the indexer has the blocks of our view.

    What it missed last it sees by the next number, so there is a next number until it has all.
    """
    wanted = {h for blocks in view.copies().values() for h in blocks}
    give_up = time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        publisher.publish([])
        if http.stored() == wanted:
            return True
        time.sleep(0.02)
    return False


if __name__ == "__main__":
    sys.exit(main())
