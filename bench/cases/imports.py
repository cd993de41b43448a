"""The import: how long a fresh interpreter takes for it, and the memory that it costs.

A round is the median of five fresh interpreters. The clock and the memory counter start after the
interpreter has; compiled bytecode is in place, since a first import (not counted) wrote it. The
floor is what both styles need from the standard library anyway: ``socket`` and ``asyncio``.
"""

import statistics
import subprocess
import sys

from bench.case import Case, Result
from bench.contenders import Contender
from bench.machine import ordinary_environment

FLOOR = {"blocking": "socket", "asyncio": "asyncio"}
INTERPRETERS = 5

MEASURE = """
import sys, time
def resident():
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4096
    except OSError:
        return 0
before, modules, began = resident(), len(sys.modules), time.perf_counter()
__import__(sys.argv[1])
seconds = time.perf_counter() - began
print(seconds, resident() - before, len(sys.modules) - modules, time.process_time())
"""


def import_once(module: str) -> list[float]:
    """Seconds, octets, modules and the CPU seconds of the whole interpreter."""
    command = [sys.executable, "-c", MEASURE, module]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        env=ordinary_environment(),
    )
    return [float(word) for word in done.stdout.split()]


def import_time(contender: Contender) -> Result:
    """The medians of several fresh interpreters, after one that is not counted."""
    floor = contender.family == "floor"
    module = FLOOR[contender.style] if floor else contender.module
    import_once(module)
    runs = [import_once(module) for _ in range(INTERPRETERS)]
    seconds, octets, modules, cpu_s = map(statistics.median, zip(*runs, strict=True))
    return {
        "value": seconds * 1e3,
        "detail": {"memory MiB": octets / (1 << 20), "modules": modules},
        "cpu_s": cpu_s,
    }


CASES = (
    Case(
        name="import",
        title="Import in a fresh interpreter",
        unit="ms",
        higher_is_better=False,
        transports=("",),
        probe=import_time,
    ),
)
