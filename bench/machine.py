"""Where a result comes from: the machine, the interpreter, and the state of both."""

import os
import platform
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

# Each of these slows or changes the interpreter; without its bytecode, every import compiles.
DISTURBING = {
    "PYTHONASYNCIODEBUG",
    "PYTHONDEVMODE",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONMALLOC",
    "PYTHONTRACEMALLOC",
}

ROOT = Path(__file__).resolve().parent.parent


def first_value(path: str, key: str) -> str:
    """What follows ``key :`` in a file of ``/proc``; empty where there is none."""
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")


def ordinary_environment() -> dict[str, str]:
    """This environment, without what would make a measuring interpreter slower than a user's."""
    return {name: value for name, value in os.environ.items() if name not in DISTURBING}


def usable_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def allow_descriptors(count: int) -> None:
    """Raise this process's own limit to so many descriptors, or as far as it may be raised."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = count if most == resource.RLIM_INFINITY else min(count, most)
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, most))


def load() -> float:
    """How many processes wanted to run, averaged over the last minute."""
    return round(os.getloadavg()[0], 2)


def source_state() -> str:
    """The commit that was measured, with ``+`` when files had changed; empty outside a checkout."""
    commands = (["git", "rev-parse", "--short", "HEAD"], ["git", "status", "--porcelain", "src"])
    try:
        commit, changed = (
            subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, check=True
            ).stdout.strip()
            for command in commands
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return commit + ("+" if changed else "")


def describe() -> dict[str, Any]:
    """Everything about this place that a figure depends on; nothing that identifies it."""
    kib = first_value("/proc/meminfo", "MemTotal").split()
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    return {
        "cpu": first_value("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": usable_cores(),
        "virtual": "hypervisor" in first_value("/proc/cpuinfo", "flags").split(),
        "memory_gib": round(int(kib[0]) / (1 << 20), 1) if kib else None,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "gil": gil,
        "loop": "asyncio.SelectorEventLoop, or uvloop.Loop where the name says so",
        "commit": source_state(),
        "load_before": load(),
    }
