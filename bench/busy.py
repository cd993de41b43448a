"""Whether the machine was doing something else during a round: marked, never left out.

Linux counts, since it started, how long its cores worked, and how long the hypervisor gave them to
another guest ("steal"). What the cores worked in a round and our own processes did not is somebody
else's. (In a container the counters may be the whole machine's. Elsewhere there are none, and no
round is marked.)
"""

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

DISTURBED = 0.1  # of all cores' time; the accounting itself is off by some hundredths in a round


@dataclass(frozen=True)
class Counters:
    """What has been counted up to a moment, in seconds.

    Attributes:
        at: when.
        worked: of all cores, in programs and for them in the kernel.
        stolen: given to other guests of the same machine.
        ours: worked by this process and the children it has waited for.
        cores: how many there are; 0 where nothing is counted.
    """

    at: float
    worked: float
    stolen: float
    ours: float
    cores: int

    @classmethod
    def now(cls, path: str = "/proc/stat") -> Self:
        """Read the counters."""
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        ours = sum(of.ru_utime + of.ru_stime for of in used)
        at = time.monotonic()
        try:
            lines = [line.split() for line in Path(path).read_text().splitlines()]
        except OSError:
            return cls(at, 0.0, 0.0, ours, 0)
        tick = os.sysconf("SC_CLK_TCK")
        # cpu user nice system idle iowait irq softirq steal ...; what the kernel did in interrupts
        # for our own packets is in irq and softirq, and cannot be told from others'.
        total = [int(word) / tick for word in lines[0][1:]]
        cores = sum(line[0].startswith("cpu") for line in lines if line) - 1
        return cls(at, sum(total[:3]), total[7], ours, cores)


def disturbance(before: Counters, after: Counters) -> dict[str, float]:
    """What others took between two moments, as shares of all cores' time; empty if not counted."""
    capacity = (after.at - before.at) * after.cores
    if not capacity:
        return {}
    ours = after.ours - before.ours
    others = max(0.0, after.worked - before.worked - ours) / capacity
    stolen = (after.stolen - before.stolen) / capacity
    return {"others": round(others, 3), "stolen": round(stolen, 3)}


def disturbed(shares: dict[str, float]) -> bool:
    """Whether that was enough to doubt the round."""
    return sum(shares.values()) > DISTURBED
