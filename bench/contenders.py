"""Who is measured: one line a contender, and whether it can be imported here.

A contender is a module with pyzmq's API, called in one style, on one event loop. The floor is
ours: plain sockets with ZMTP's framing and nothing else (no handshake, no routing, no high-water
mark, no lock), which shows what the calls and the bytes alone cost in Python.
"""

import json
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Style = Literal["blocking", "asyncio"]

PROBE = """
import importlib, importlib.metadata, json, sys
distribution, module, *others = sys.argv[1:]
importlib.import_module(module).Context
versions = {}
for name in (distribution, *others):
    try:
        versions[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:  # run from its sources
        versions[name] = getattr(importlib.import_module(name), "__version__", "unknown")
if distribution == "pyzmq":
    versions["libzmq"] = importlib.import_module("zmq").zmq_version()
print(json.dumps(versions))
"""


@dataclass(frozen=True)
class Contender:
    """One library, used in one style.

    Attributes:
        name: what tables and ``--contenders`` call it.
        family: the library it belongs to, which is what ``--against`` chooses.
        module: where ``Context`` is imported from.
        names: where the constants (``PUSH``, ``LAST_ENDPOINT``) are imported from.
        distribution: the installed distribution that knows its version; empty for the floor.
        style: how it is called.
        uvloop: whether it runs on uvloop instead of the standard library's loop.
    """

    name: str
    family: str
    module: str
    names: str
    distribution: str
    style: Style
    uvloop: bool = False


CONTENDERS = (
    Contender("zerohop", "zerohop", "zerohop", "zerohop", "zerohop", "blocking"),
    Contender("pyzmq", "pyzmq", "zmq", "zmq", "pyzmq", "blocking"),
    Contender("pyomq", "pyomq", "pyomq", "pyomq", "pyomq", "blocking"),
    Contender("floor", "floor", "bench.floor.blocking", "bench.floor.names", "", "blocking"),
    Contender("zerohop.asyncio", "zerohop", "zerohop.asyncio", "zerohop", "zerohop", "asyncio"),
    Contender("zmq.asyncio", "pyzmq", "zmq.asyncio", "zmq", "pyzmq", "asyncio"),
    Contender("pyomq.asyncio", "pyomq", "pyomq.asyncio", "pyomq", "pyomq", "asyncio"),
    Contender("floor.asyncio", "floor", "bench.floor.aio", "bench.floor.names", "", "asyncio"),
    Contender(
        "zerohop.asyncio+uvloop",
        "zerohop",
        "zerohop.asyncio",
        "zerohop",
        "zerohop",
        "asyncio",
        True,
    ),
    Contender("zmq.asyncio+uvloop", "pyzmq", "zmq.asyncio", "zmq", "pyzmq", "asyncio", True),
)
BY_NAME = {contender.name: contender for contender in CONTENDERS}
FAMILIES = tuple(dict.fromkeys(contender.family for contender in CONTENDERS))

# What a contender's figure is divided by in the tables: pyzmq, called in the same style.
REFERENCE: dict[Style, str] = {"blocking": "pyzmq", "asyncio": "zmq.asyncio"}


@dataclass(frozen=True)
class Presence:
    """Whether a contender can be measured here.

    Attributes:
        versions: what is installed, by name; empty when it cannot be imported.
        missing: why it is skipped; empty when it can be measured.
    """

    versions: dict[str, str]
    missing: str = ""


def find(contender: Contender) -> Presence:
    """Import a contender in an interpreter of its own, so that nothing is loaded into this one."""
    if not contender.distribution:
        return Presence({})
    asked = [contender.distribution, contender.module, *(["uvloop"] if contender.uvloop else [])]
    try:
        probe = subprocess.run(
            [sys.executable, "-c", PROBE, *asked],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Presence({}, "its import did not end within 30 s")
    if probe.returncode:
        return Presence({}, (probe.stderr.strip().splitlines() or ["no reason given"])[-1])
    return Presence(json.loads(probe.stdout.splitlines()[-1]))


def choose(families: Iterable[str], names: Iterable[str] = ()) -> tuple[Contender, ...]:
    """The contenders of these families, in the table's order; or exactly those named.

    Raises:
        ValueError: a family or a name that is not in the table.
    """
    families, names = tuple(families), tuple(names)
    for asked, known, kind in ((families, FAMILIES, "library"), (names, BY_NAME, "contender")):
        for unknown in set(asked) - set(known):
            raise ValueError(f"no {kind} is called {unknown!r}; there are: {', '.join(known)}")
    if names:
        return tuple(contender for contender in CONTENDERS if contender.name in names)
    return tuple(contender for contender in CONTENDERS if contender.family in families)
