"""What a process used, and the clock that a receiver starts and stops."""

import resource
import sys
import time
from pathlib import Path
from typing import Any


def peak_memory_mib() -> float:
    """The most memory this process ever held, in MiB.

    Linux: ``VmHWM``, because ``ru_maxrss`` survives ``exec`` and would show the parent's.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def memory_now_kib() -> float:
    """The memory that this process holds now, in KiB; its peak where there is no ``/proc``."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return peak_memory_mib() * 1024
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return float(resident.split()[1])


class Clock:
    """Seconds and CPU seconds (of all threads of this process) between two moments."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Start, or start again."""
        self._began, self._cpu = time.perf_counter(), time.process_time()

    def stop(self) -> dict[str, Any]:
        """What was used since ``start``: ``seconds``, ``cpu_s``; and the peak ``memory_mib``."""
        seconds, cpu_s = time.perf_counter() - self._began, time.process_time() - self._cpu
        return {"seconds": seconds, "cpu_s": cpu_s, "memory_mib": peak_memory_mib()}
