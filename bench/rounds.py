"""One round: start the processes, pass the words between them, and always end them.

A round ends in a value or in an error, never in a hang: each process has its own limit
(``bench.worker``), this side has another a little later, and what still lives after that is killed
by its process id.
"""

import contextlib
import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.busy import Counters, disturbance
from bench.case import Case, Lineup, Settings
from bench.machine import ordinary_environment

ROOT = Path(__file__).resolve().parent.parent
EXIT_S = 5.0  # after its result a process may take this long to close its sockets and end


class RoundError(Exception):
    """A round that gives no value; the text says why."""


@dataclass(frozen=True)
class Round:
    """What one round of one lineup gave.

    Attributes:
        value: in the case's unit; None when the round failed.
        roles: what each process measured and used, by role.
        error: why there is no value.
        late: roles whose process did not end by itself after its result.
        busy: what else the machine did meanwhile (``bench.busy``).
        took_s: how long the round took, with its processes' start and end.
    """

    case: str
    transport: str
    lineup: str
    number: int
    value: float | None
    roles: dict[str, dict[str, Any]]
    error: str = ""
    late: list[str] = field(default_factory=list)
    busy: dict[str, float] = field(default_factory=dict)
    took_s: float = 0.0


def shown(text: str) -> str:
    """One line, without the paths of this machine, at most 200 characters."""
    lines = text.strip().splitlines() or ["no reason given"]
    line = lines[-1].replace(str(ROOT), ".").replace(str(Path.home()), "~")
    return line.replace(sys.prefix, "<python>")[:200]


class Process:
    """One measuring process, and the thread that reads its events."""

    def __init__(
        self, role: str, command: Sequence[str], events: "queue.Queue[tuple[str, Any]]"
    ) -> None:
        self.role = role
        self._stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed in end()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            cwd=ROOT,
            env=ordinary_environment(),
        )
        self._reader = threading.Thread(target=self._read, args=(events,), daemon=True)
        self._reader.start()
        self.pid = self._process.pid

    def _read(self, events: "queue.Queue[tuple[str, Any]]") -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            events.put((self.role, json.loads(line)))
        events.put((self.role, {"gone": True}))

    def say(self, line: str) -> None:
        """Send a line; a process that is gone already has said so, or will."""
        assert self._process.stdin
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass

    def complaint(self) -> str:
        """The last line that it wrote to stderr; for a stuck one, where its main thread was."""
        self._stderr.seek(0)
        text = self._stderr.read()
        if "Timeout (" in text:  # faulthandler's stacks: main thread last, innermost call first
            innermost = text.rpartition("most recent call first):\n")[2].strip().splitlines()[0]
            return shown(f"stuck in {innermost}")
        return shown(text)

    def ends_within(self, seconds: float) -> bool:
        """Wait for it to end by itself."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self) -> None:
        """Kill it if it lives, and release everything it held."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdin
        assert self._process.stdout
        with contextlib.suppress(BrokenPipeError):  # words it never read
            self._process.stdin.close()
        self._process.stdout.close()
        self._stderr.close()


def conduct(
    processes: dict[str, Process], events: "queue.Queue[tuple[str, Any]]", limit_s: float
) -> dict[str, dict[str, Any]]:
    """Pass the words between the roles until every one has told its result.

    Raises:
        RoundError: a role failed or ended without a result, or the limit is over.
    """
    results: dict[str, dict[str, Any]] = {}
    until = time.monotonic() + limit_s

    def say(word: str, teller: str) -> None:
        for role, process in processes.items():
            if role != teller:
                process.say(word)

    while len(results) < len(processes):
        try:
            role, event = events.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            silent = ", ".join(role for role in processes if role not in results)
            raise RoundError(f"no result from the {silent} within {limit_s:.0f} s") from None
        match event:
            case {"endpoint": endpoint}:
                say(f"endpoint {endpoint}", role)
            case {"ready": _}:
                say("go", role)
            case {"result": result}:
                results[role] = result
                say("stop", role)
            case {"error": error}:
                raise RoundError(f"{role}: {shown(error)}")
            case {"gone": _} if role not in results:
                raise RoundError(f"{role} ended without a result: {processes[role].complaint()}")
    return results


def endpoint_for(transport: str, folder: str) -> str:
    """Where the binding role binds: a port or path of this round alone."""
    return {
        "tcp": "tcp://127.0.0.1:*",
        "ipc": f"ipc://{folder}/s",  # short: a path has at most 107 octets
        "inproc": "inproc://bench",
    }[transport]


def play_round(
    case: Case, lineup: Lineup, transport: str, number: int, settings: Settings
) -> Round:
    """Play one round in fresh processes, and note what else the machine did."""
    before = Counters.now()
    played = play_unwatched(case, lineup, transport, number, settings)
    after = Counters.now()
    return replace(played, busy=disturbance(before, after), took_s=after.at - before.at)


def play_unwatched(
    case: Case, lineup: Lineup, transport: str, number: int, settings: Settings
) -> Round:
    """Play one round in fresh processes."""
    if case.probe:
        try:
            result = case.probe(lineup.receiver)
        except (subprocess.SubprocessError, OSError) as error:
            return Round(case.name, transport, lineup.name, number, None, {}, shown(str(error)))
        return Round(case.name, transport, lineup.name, number, result["value"], {"probe": result})
    command = [sys.executable, "-m", "bench.worker"]
    events: queue.Queue[tuple[str, Any]] = queue.Queue()
    processes: dict[str, Process] = {}
    with tempfile.TemporaryDirectory(prefix="zb") as folder:
        orders = {
            "case": case.name,
            "endpoint": endpoint_for(transport, folder),
            "settings": asdict(settings),
        }
        try:
            for role in case.parts:
                processes[role] = Process(role, command, events)
                given = {"role": role, "contender": lineup.contender(role).name}
                processes[role].say(json.dumps(orders | given))
            # Later than the processes' own limit, so that their stacks are on stderr by then.
            results = conduct(processes, events, settings.limit_s + 1)
            late = [role for role, p in processes.items() if not p.ends_within(EXIT_S)]
        except RoundError as error:
            return Round(case.name, transport, lineup.name, number, None, {}, str(error))
        finally:
            for process in processes.values():
                process.end()
    value = next(result["value"] for result in results.values() if "value" in result)
    return Round(case.name, transport, lineup.name, number, value, results, late=late)
