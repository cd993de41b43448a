"""What encoding and decoding cost: ``python -m bench.micro.frames [--json FILE]``.

Each case is a batch of messages as a flush or a read has it, about 64 KiB. The figures are
nanoseconds a message: the best of many short rounds, which is what the code costs where nothing
else runs, and their median, which says how busy the machine was.
"""

import argparse
import json
import platform
import random
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from zerohop.wire.decoder import FrameDecoder
from zerohop.wire.frames import Message, Part, encode

BATCH = 65_536  # octets
ROUNDS = 60
ROUND = 0.002  # seconds, at least


def bodies(smallest: int, largest: int, count: int) -> list[bytes]:
    """Bodies of sizes in this range, the same ones at every call."""
    dice = random.Random(1)
    return [bytes(dice.randint(smallest, largest)) for _ in range(count)]


def parts(smallest: int, largest: int) -> list[list[Part]]:
    """Messages of 2 to 6 parts of sizes in this range, the same ones at every call."""
    dice = random.Random(2)
    return [
        [bytes(dice.randint(smallest, largest)) for _ in range(dice.randint(2, 6))]
        for _ in range(BATCH // (2 * (smallest + largest)))
    ]


def cases() -> dict[str, list[Message]]:
    """Messages by the name of the case."""
    found: dict[str, list[Message]] = {}
    for size in (16, 64, 128, 255, 256, 1024, 4096, 16_384):
        found[f"{size} B"] = [bytes(size)] * max(1, BATCH // (size + 9))
    for smallest, largest in ((8, 24), (32, 96), (96, 160), (200, 300), (768, 1280)):
        found[f"{smallest}-{largest} B"] = [*bodies(smallest, largest, BATCH // largest)]
    for name, sizes in {
        "2 parts, 8 + 64 B": (8, 64),
        "3 parts, 5 + 0 + 64 B": (5, 0, 64),
        "3 parts, 5 + 0 + 1024 B": (5, 0, 1024),
        "5 parts of 64 B": (64,) * 5,
    }.items():
        message: Message = [bytes(size) for size in sizes]
        found[name] = [message] * (BATCH // (sum(sizes) + 2 * len(sizes)))
    for name, smallest, largest in (("small", 8, 96), ("long", 200, 1280)):
        mixed = parts(smallest, largest)
        found[f"2-6 {name} parts, any"] = [*mixed]
        found[f"id, empty, {name} body"] = [[bytes(5), b"", message[0]] for message in mixed]
    found["one message of 64 B alone"] = [bytes(64)]
    found["one message of 1 MiB alone"] = [bytes(2**20)]
    return found


def clock(function: Callable[[], object], count: int) -> tuple[float, float]:
    """Nanoseconds a message: the best of the rounds, and their median."""
    repeats, taken = 1, 0.0
    while taken < ROUND:
        repeats *= 2
        start = perf_counter()
        for _ in range(repeats):
            function()
        taken = perf_counter() - start
    results = []
    for _ in range(ROUNDS):
        start = perf_counter()
        for _ in range(repeats):
            function()
        results.append((perf_counter() - start) / repeats / count * 1e9)
    return round(min(results), 1), round(statistics.median(results), 1)


def measure(messages: list[Message]) -> dict[str, Any]:
    """The figures of one case, after a look whether what is encoded comes back."""
    wire = b"".join(encode(messages))
    decoder = FrameDecoder()
    if decoder.receive_data(wire) != messages:
        raise AssertionError("what was encoded does not come back")
    encoding = clock(lambda: encode(messages), len(messages))
    decoding = clock(lambda: decoder.receive_data(wire), len(messages))
    return {"messages": len(messages), "encode_ns": encoding, "decode_ns": decoding}


def main() -> None:
    """Print a table of all cases."""
    parser = argparse.ArgumentParser(prog="python -m bench.micro.frames", description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures there")
    arguments = parser.parse_args()
    print(f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}")
    print(f"{'ns a message':28} {'encode':>8} {'median':>8} {'decode':>8} {'median':>8}")
    results = {}
    for name, messages in cases().items():
        result = results[name] = measure(messages)
        figures = (*result["encode_ns"], *result["decode_ns"])
        print(f"{name:28}", *(f"{figure:8.0f}" for figure in figures))
    if arguments.json:
        about = {"python": sys.version, "machine": platform.platform()}
        arguments.json.write_text(json.dumps({"about": about, "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
