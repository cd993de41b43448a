"""The import: how long a fresh interpreter takes for it, and the memory that it costs.

What an import does not do, the first use has to. So there are three programs: the import alone;
the import, a socket made and closed; the import, and one message over tcp.

A round is the fastest of five fresh interpreters: an import does the same each time, so that what
differs is what other programs took. The clock and the memory counter start after the interpreter
has; compiled bytecode is in place, since a first run (not counted) wrote it. The floor is what both
styles need from the standard library anyway: ``socket`` and ``asyncio``.
"""

import subprocess
import sys
from functools import partial

from bench.case import Case, Result
from bench.contenders import Contender
from bench.machine import ordinary_environment

FLOOR = {"blocking": "socket", "asyncio": "asyncio"}
INTERPRETERS = 5
MEMORY = "memory MiB"

MEASURE = """
import sys, time
def resident():
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4096
    except OSError:
        return 0
program, *names = sys.argv[1:]
program = compile(program.format(*names), "program", "exec")
before, modules, began = resident(), len(sys.modules), time.perf_counter()
exec(program)
seconds = time.perf_counter() - began
print(seconds, resident() - before, len(sys.modules) - modules, time.process_time())
"""

IMPORT = "import {0}"
SOCKET = """
import {0}, {1}
context = {0}.Context()
context.socket({1}.PUSH).close()
context.term()
"""
MESSAGE = {
    "blocking": """
import {0}, {1}
context = {0}.Context()
pull, push = context.socket({1}.PULL), context.socket({1}.PUSH)
pull.bind("tcp://127.0.0.1:*")
push.connect(pull.getsockopt({1}.LAST_ENDPOINT).rstrip(bytes(1)).decode())
push.send(b"hello")
assert pull.recv() == b"hello"
context.destroy()
""",
    "asyncio": """
import asyncio, {0}, {1}
async def main():
    context = {0}.Context()
    pull, push = context.socket({1}.PULL), context.socket({1}.PUSH)
    pull.bind("tcp://127.0.0.1:*")
    push.connect(pull.getsockopt({1}.LAST_ENDPOINT).rstrip(bytes(1)).decode())
    await push.send(b"hello")
    assert await pull.recv() == b"hello"
    context.destroy()
asyncio.run(main())
""",
}


def run_once(program: str, *names: str) -> list[float]:
    """Seconds, octets, modules and the CPU seconds of the whole interpreter."""
    command = [sys.executable, "-c", MEASURE, program, *names]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        env=ordinary_environment(),
    )
    return [float(word) for word in done.stdout.split()]


def start(program: str | dict[str, str], contender: Contender) -> Result:
    """The fastest of several fresh interpreters, after one that is not counted."""
    floor = contender.family == "floor"
    module = FLOOR[contender.style] if floor else contender.module
    text = program if isinstance(program, str) else program[contender.style]
    arguments = (text, module, contender.names)
    run_once(*arguments)
    runs = [run_once(*arguments) for _ in range(INTERPRETERS)]
    seconds, octets, modules, cpu_s = min(runs)
    return {
        "value": seconds * 1e3,
        "detail": {MEMORY: octets / (1 << 20), "modules": modules},
        "cpu_s": cpu_s,
    }


CASES = (
    Case(
        name="import",
        title="Import in a fresh interpreter",
        unit="ms",
        higher_is_better=False,
        transports=("",),
        probe=partial(start, IMPORT),
        round_s=0.4,
        compared=(MEMORY,),
    ),
    Case(
        name="import-socket",
        title="Import in a fresh interpreter, a socket made and closed",
        unit="ms",
        higher_is_better=False,
        transports=("",),
        floor=False,
        probe=partial(start, SOCKET),
        round_s=0.5,
        compared=(MEMORY,),
    ),
    Case(
        name="import-message",
        title="Import in a fresh interpreter, and one message over tcp",
        unit="ms",
        higher_is_better=False,
        transports=("",),
        floor=False,
        probe=partial(start, MESSAGE),
        round_s=0.5,
        compared=(MEMORY,),
    ),
)
