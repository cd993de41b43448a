"""What a run will play, and about how long that takes. Pure.

The whole run has to end within 20 minutes and each entry of it, one case over one transport,
within one. That is a budget: who adds a case, a contender or a transport looks at the estimate in
``python -m bench --list``, and ``tests/bench/test_plan.py`` holds it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.case import Case, Lineup, Settings
from bench.contenders import REFERENCE, Contender

WHOLE_RUN_S = 20 * 60
ENTRY_S = 60


@dataclass(frozen=True)
class Entry:
    """One case over one transport, and who plays it."""

    case: Case
    transport: str
    lineups: Sequence[Lineup]

    def estimate_s(self, settings: Settings) -> float:
        """About how long all rounds of it take, in seconds."""
        return settings.rounds * len(self.lineups) * self.case.estimate_s(settings)


def lineups(case: Case, contenders: Sequence[Contender], *, by_name: bool) -> list[Lineup]:
    """Who plays a case: each contender with itself; or ours with pyzmq, both ways.

    Where none of ours can play, everyone else meets pyzmq.
    """
    playing = [
        contender
        for contender in contenders
        if case.plays(contender) and (by_name or case.uvloop or not contender.uvloop)
    ]
    if not case.crossed:
        return [Lineup(contender, contender) for contender in playing]
    pairs: list[Lineup] = []
    ours = [contender for contender in playing if contender.family == "zerohop"]
    for contender in ours or playing:
        for other in playing:
            if other.name == REFERENCE[contender.style] and contender.family != other.family:
                pairs += Lineup(contender, other), Lineup(other, contender)
    return pairs


def entries(
    cases: Sequence[Case],
    contenders: Sequence[Contender],
    transports: Sequence[str] = (),
    *,
    by_name: bool = False,
) -> list[Entry]:
    """Everything that is to be played, in order; uvloop over one transport of a case only.

    Args:
        cases: which.
        contenders: those that are installed.
        transports: over these of tcp and ipc; if none are given, as each case plans.
        by_name: whether the contenders were chosen by name, and so play wherever they can.
    """
    found = []
    for case in cases:
        for transport in case.planned(transports):
            playing = [
                lineup
                for lineup in lineups(case, contenders, by_name=by_name)
                if by_name or not lineup.sender.uvloop or transport == case.transports[0]
            ]
            if playing:
                found.append(Entry(case, transport, playing))
    return found


def estimate_s(planned: Sequence[Entry], settings: Settings) -> float:
    """About how long all of it takes, in seconds."""
    return sum(entry.estimate_s(settings) for entry in planned)


def duration(seconds: float) -> str:
    """``12 s`` or ``17 min``."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
