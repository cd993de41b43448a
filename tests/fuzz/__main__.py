"""Fuzz a target for a while: ``python -m tests.fuzz frames 60``, or ``all`` for each in turn.

With atheris installed its coverage guides the search (``pip install atheris``); without it octets
of the corpus are mutated at random. What breaks a target is kept in its corpus, where the ordinary
tests replay it.
"""

import argparse
import hashlib
import os
import random
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

NAMES = sorted({path.parent.name for path in Path(__file__).parent.glob("corpus/*/*.hex")})
MAX_SIZE = 4096  # octets in one input


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=[*NAMES, "all"])
    parser.add_argument("seconds", type=int, nargs="?", default=60)
    arguments = parser.parse_args()
    if arguments.target == "all":
        # A process each: a coverage-guided fuzzer owns its own, and ends it.
        command = [sys.executable, "-m", "tests.fuzz"]
        codes = [subprocess.call([*command, name, str(arguments.seconds)]) for name in NAMES]
        return max(codes)
    fuzz = guided if find_spec("atheris") else at_random
    return fuzz(arguments.target, arguments.seconds)


def load(name: str):
    """The target, which keeps what breaks it, and its corpus.

    Imported here and not above: a guided search instruments what it imports.
    """
    from tests.fuzz.corpus import entries, keep
    from tests.fuzz.targets import TARGETS

    def target(data: bytes) -> None:
        try:
            TARGETS[name](data)
        except Exception as error:
            digest = hashlib.sha256(data).hexdigest()[:12]
            why = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            print(f"{name}: {why}: kept as", keep(name, f"broke_{digest}", data, why))
            raise

    return target, entries(name)


def guided(name: str, seconds: int) -> int:
    import atheris

    with atheris.instrument_imports(include=["zerohop"]):
        target, corpus = load(name)
    with tempfile.TemporaryDirectory() as folder:
        for entry, data in corpus.items():
            (Path(folder) / entry).write_bytes(data)
        options = [f"-max_total_time={seconds}", f"-max_len={MAX_SIZE}", "-print_final_stats=1"]
        os.chdir(folder)  # libFuzzer leaves files where it runs
        atheris.Setup([sys.argv[0], folder, *options], target)
        atheris.Fuzz()  # ends the process
    return 0


def at_random(name: str, seconds: int) -> int:
    target, entries = load(name)
    corpus = list(entries.values())
    seed = random.randrange(2**32)
    dice, end, runs = random.Random(seed), time.monotonic() + seconds, 0
    print(f"{name}: at random, seed {seed} (install atheris for a guided search)")
    while time.monotonic() < end:
        target(mutated(corpus, dice))
        runs += 1
    print(f"{name}: {runs} inputs, none broke it")
    return 0


def mutated(corpus: list[bytes], dice: random.Random) -> bytes:
    """Some entry with a few octets changed, removed, repeated or taken from another."""
    data = bytearray(dice.choice(corpus))
    for _ in range(dice.randrange(1, 8)):
        place = dice.randrange(len(data) + 1)
        end = place + dice.choice([1, 1, 2, 8, 64])
        match dice.randrange(4):
            case 0:
                data[place:end] = dice.randbytes(end - place)
            case 1:
                del data[place:end]
            case 2:
                data[place:place] = data[place:end] * dice.choice([1, 2, 30])
            case _:
                other = dice.choice(corpus)
                data[place:place] = other[dice.randrange(len(other) + 1) :]
    return bytes(data[:MAX_SIZE])


if __name__ == "__main__":
    sys.exit(main())
