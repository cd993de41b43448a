"""The command line: choose, play, write down.

python -m bench --name NAME             every case, five rounds: some 20 minutes on two cores
python -m bench --quick                 each case for a moment: does everything still run?
python -m bench pushpull-64 reqrep-64 --against pyzmq --transports tcp,ipc --rounds 9
python -m bench --list                  the cases, how long they take, and the contenders
"""

import argparse
import datetime
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.busy import disturbed
from bench.case import Case, Lineup, Settings
from bench.cases import all_cases, find_case
from bench.contenders import CONTENDERS, Contender, Presence, choose, find
from bench.document import as_json
from bench.machine import describe, load, usable_cores
from bench.markdown import number
from bench.plan import Entry, duration, entries, estimate_s
from bench.plots import draw
from bench.required import verdicts
from bench.rounds import Round, play_round, shown
from bench.summary import Row, rows_of
from bench.table import page

RESULTS = Path(__file__).resolve().parent / "results"  # committed; what has no name is not
LOCAL = RESULTS / "local"
TRANSPORTS = ("tcp", "ipc")
GIVE_UP_AFTER = 2  # failed rounds in a row; a contender that hangs costs 10 s each time
QUICK = Settings(rounds=1, warm_up_s=0.05, measure_s=0.05)
DEFAULT = Settings()

Draw = Callable[[Path, Sequence[Case], Sequence[Row]], list[Path]]
Play = Callable[[Case, Lineup, str, int, Settings], Round]


def names(text: str) -> list[str]:
    """A comma-separated list, each name once.

    Raises:
        argparse.ArgumentTypeError: there is no name in it.
    """
    found = list(dict.fromkeys(word for word in text.split(",") if word))
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} names nothing")
    return found


def transports(text: str) -> list[str]:
    """The transports that a case can be played over by choice.

    Raises:
        argparse.ArgumentTypeError: another name is among them.
    """
    found = names(text)
    for unknown in set(found) - set(TRANSPORTS):
        raise argparse.ArgumentTypeError(
            f"no transport is called {unknown!r}; there are: {', '.join(TRANSPORTS)} (cases over "
            "inproc, or over none, are played wherever they are asked for)"
        )
    return found


def number_within(kind: type[int] | type[float], least: float, most: float) -> Callable[[str], Any]:
    """A number of this kind, from the least to the most."""

    def within(text: str) -> int | float:
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            what = "a whole number" if kind is int else "a number"
            raise argparse.ArgumentTypeError(f"{text!r} is not {what} from {least:g} to {most:g}")
        return value

    return within


def parser() -> argparse.ArgumentParser:
    """Every option, with its default."""
    made = argparse.ArgumentParser(
        prog="python -m bench", description="Zerohop beside other ZeroMQ bindings."
    )
    made.add_argument("cases", nargs="*", metavar="CASE", help="default: all of them")
    made.add_argument("--list", action="store_true", help="name the cases and contenders, and end")
    made.add_argument("--quick", action="store_true", help="each case for a moment; writes nothing")
    made.add_argument(
        "--against", type=names, default=["pyzmq", "pyomq", "floor"], metavar="LIBRARY,...",
        help="whom to measure beside zerohop (default: pyzmq,pyomq,floor)",
    )  # fmt: skip
    made.add_argument(
        "--contenders", type=names, default=[], metavar="NAME,...",
        help="exactly these instead, wherever they can play; see --list",
    )  # fmt: skip
    made.add_argument(
        "--rounds", type=number_within(int, 1, 1000), default=DEFAULT.rounds, help="default: 5"
    )
    made.add_argument(
        "--seconds", type=number_within(float, 0.01, 60), default=DEFAULT.measure_s,
        help=f"measured in a round; default: {DEFAULT.measure_s:g}",
    )  # fmt: skip
    made.add_argument(
        "--transports", type=transports, default=[], metavar="NAME,...",
        help="tcp, ipc; default: tcp for cases by name, else as --list says",
    )  # fmt: skip
    made.add_argument(
        "--name", default="",
        help="a result worth keeping: bench/results/DATE-NAME.json, for git; without it the file "
        "is in bench/results/local, which git ignores",
    )  # fmt: skip
    made.add_argument("--json", type=Path, metavar="PATH", help="write it there instead")
    return made


def play_entry(entry: Entry, settings: Settings, play: Play) -> list[Round]:
    """All rounds of a case: in each, every lineup has a turn; each round begins with another."""
    case, transport, playing = entry.case, entry.transport, entry.lineups
    rounds: list[Round] = []
    failed = {lineup.name: 0 for lineup in playing}
    for turn in range(settings.rounds):
        first = turn % len(playing)
        said = []
        for lineup in [*playing[first:], *playing[:first]]:
            if failed[lineup.name] >= GIVE_UP_AFTER:
                continue
            played = play(case, lineup, transport, turn + 1, settings)
            failed[lineup.name] = 0 if played.value is not None else failed[lineup.name] + 1
            rounds.append(played)
            said.append(f"{lineup.name} {number(played.value) if not played.error else 'FAILED'}")
            if disturbed(played.busy):
                said[-1] += "*"
        where = f" {transport}" if transport else ""
        print(f"{case.name}{where} {turn + 1}/{settings.rounds}: {', '.join(said)}", flush=True)
    return rounds


def list_everything(settings: Settings) -> None:
    """Print the cases, what a run of everything takes of time, and the contenders."""
    found = {contender.name: find(contender) for contender in CONTENDERS}
    present = [contender for contender in CONTENDERS if not found[contender.name].missing]
    planned = entries(list(all_cases().values()), present)
    print("cases, and about how long each takes in a run of everything:")
    for case in all_cases().values():
        where = ", ".join(transport for transport in case.transports if transport)
        takes = [
            f"{entry.transport} {duration(entry.estimate_s(settings))}".strip()
            for entry in planned
            if entry.case is case
        ]
        print(f"  {case.name:22}{case.title}, {case.unit}{f' [{where}]' if where else ''}")
        print(f"  {'':22}{', '.join(takes) or 'nobody here can play it'}")
    total = estimate_s(planned, settings)
    print(f"together about {duration(total)}, with {settings.rounds} rounds")
    print("contenders:")
    for name, presence in found.items():
        missing = presence.missing
        print(f"  {name:26}{f'not installed: {missing}' if missing else 'installed'}")


def taken(rounds: Sequence[Round], seconds: float) -> dict[str, Any]:
    """How long the run took, and each case of it; and how many rounds were disturbed."""
    each: dict[str, float] = {}
    for played in rounds:
        where = f"{played.case} {played.transport}".strip()
        each[where] = each.get(where, 0.0) + played.took_s
    busy = sum(disturbed(played.busy) for played in rounds)
    return {"rounds": len(rounds), "seconds": seconds, "busy": busy, "entries": each}


def summary(row: Row) -> dict[str, Any]:
    """A row for the document, which has each round's figures already."""
    return {name: value for name, value in asdict(row).items() if name != "series"}


def write(
    path: Path,
    about: dict[str, Any],
    cases: Sequence[Case],
    rounds: Sequence[Round],
    drawn_by: Draw = draw,
) -> str:
    """Write the JSON, the pictures (where they can be drawn) and the page; return the page."""
    rows = rows_of(cases, rounds)
    judged = verdicts(rows)
    document = about | {
        "required": [asdict(verdict) for verdict in judged],
        "rows": [summary(row) for row in rows],
        "rounds": [asdict(played) for played in rounds],
    }
    path.write_text(as_json(document), encoding="utf-8")
    try:
        pictures = drawn_by(path.with_suffix(""), cases, rows)
    except ImportError:
        pictures = []
        print("no pictures: matplotlib is not installed", file=sys.stderr)
    text = page(about, cases, rows, judged, [picture.name for picture in pictures])
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    return text


def main(arguments: Sequence[str]) -> int:
    """Run the command line; return the exit status: 1 when a round of ours failed, else 0."""
    options = parser().parse_args(arguments)
    settings = Settings(options.rounds, DEFAULT.warm_up_s, options.seconds)
    if options.quick:
        settings = QUICK
    if options.list:
        list_everything(settings)
        return 0
    try:
        chosen = dict.fromkeys(options.cases)
        cases = [find_case(name) for name in chosen] or list(all_cases().values())
        contenders = choose(["zerohop", *options.against], options.contenders)
    except ValueError as error:
        parser().error(str(error))
    return run(cases, contenders, settings, options)


def destination(options: argparse.Namespace, date: str) -> Path | None:
    """Where the result is to be written; None: nowhere."""
    if options.json:
        return Path(options.json)
    if options.quick:
        return None
    if options.name:
        return RESULTS / f"{date}-{options.name}.json"
    return LOCAL / f"{date}-{title(options)}.json"


def title(options: argparse.Namespace) -> str:
    """What the page calls the run."""
    return options.name or "-".join(options.cases) or "everything"


def run(
    cases: Sequence[Case],
    contenders: Sequence[Contender],
    settings: Settings,
    options: argparse.Namespace,
) -> int:
    """Play every case and write the result."""
    found: dict[str, Presence] = {contender.name: find(contender) for contender in contenders}
    skipped = {name: presence.missing for name, presence in found.items() if presence.missing}
    for name, reason in skipped.items():
        print(f"skipped: {name}: {reason}", flush=True)
    present = [contender for contender in contenders if contender.name not in skipped]
    versions: dict[str, str] = {}
    for contender in present:
        versions |= found[contender.name].versions
    machine = describe()
    if machine["load_before"] > usable_cores() / 4:
        print(f"this machine is busy (load {machine['load_before']}): expect noise", flush=True)
    over = options.transports or (["tcp"] if options.cases else [])
    planned = entries(cases, present, over, by_name=bool(options.contenders))
    if not planned:
        print("none of these contenders can play any of these cases here", file=sys.stderr)
        return 2
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    path = destination(options, date)
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)  # if it cannot be, then not at the end
    took = duration(estimate_s(planned, settings))
    print(f"this takes about {took} on two idle cores", flush=True)
    began = time.monotonic()
    rounds: list[Round] = []
    for entry in planned:
        rounds += play_entry(entry, settings, play_round)
    seconds = time.monotonic() - began
    print(f"{len(rounds)} rounds in {duration(seconds)}", flush=True)
    about = {
        "name": title(options),
        "date": date,
        "machine": machine | {"load_after": load()},
        "versions": versions,
        "settings": asdict(settings),
        "skipped": skipped,
        "taken": taken(rounds, seconds),
    }
    if path:
        print(write(path, about, cases, rounds))
        print(f"written: {shown(str(path))}, and the page beside it")
    failures = [played for played in rounds if played.error]
    for played in failures:
        where = f"{played.case} {played.transport}".strip()
        print(f"failed: {where} {played.lineup}: {played.error}", file=sys.stderr)
    return int(any("zerohop" in played.lineup for played in failures))
