"""Lives of control servers and of workers whose truth is known."""

import sys
import time
from collections import Counter

from tests.faults.lives import told
from zerohop.serving import (
    MembershipOptions,
    Operation,
    Protocol,
    SyncControlServer,
    SyncControlWorker,
    WorkerJoined,
    WorkerSynced,
)

OPTIONS = MembershipOptions(period=0.1, timeout=30.0, spread=0.1, batch=60)
STANDING, CHANGING = 200, 50  # keys of a worker
PROTOCOL = Protocol("faults", (Operation("table", (str,)), Operation("counts", (str,))))


def server_life(endpoint):
    """Be a control server until killed or told by a line of standard input."""
    joins, syncs = Counter(), Counter()

    def take_events():
        while (event := server.receive(0)) is not None:
            match event:
                case WorkerJoined(worker):
                    joins[worker] += 1
                case WorkerSynced(worker):
                    syncs[worker] += 1

    def table(worker):
        view = server.view(worker)
        return view.table if view is not None and view.is_right else None

    def counts(worker):
        take_events()
        return joins[worker], syncs[worker]

    handlers = {"table": table, "counts": counts}
    with SyncControlServer(
        endpoint, protocol=PROTOCOL, handlers=handlers, options=OPTIONS
    ) as server:
        print(server.endpoint)
        sys.stdin.readline()


def change(life, number):
    """What a worker does as its ``number``-th change: a key, and its value or ``None``."""
    return number % CHANGING, [life, number] if number % 7 else None


def standing(life):
    return {f"key {n}": life for n in range(STANDING)}


class Truths:
    """A worker's table after each of its changes, by life."""

    def __init__(self):
        self._known = {}

    def has(self, life, table):
        """Whether the worker had this table at some time."""
        numbers = [value[1] for key, value in table.items() if isinstance(key, int)]
        if not numbers and len(table) < STANDING:
            return table == dict([*standing(life).items()][: len(table)])
        last = max(numbers, default=0)
        return any(table == self._after(life, number) for number in (last, last + 1))

    def _after(self, life, number):
        tables = self._known.setdefault(life, [standing(life)])
        while len(tables) <= number:
            key, value = change(life, len(tables))
            table = dict(tables[-1])
            if value is None:
                table.pop(key, None)
            else:
                table[key] = value
            tables.append(table)
        return tables[number]


def worker_life(life, endpoint):
    """Be a worker that changes all the time, until killed or told."""
    end = told()
    offers, commands = {"life": life}, {"echo": lambda value: [life, value]}
    with SyncControlWorker(endpoint, "w", offers=offers, commands=commands) as worker:
        for key, value in standing(life).items():
            worker.put(key, value)
        print("here")
        while not worker.wait_settled(0.1):  # its changes fit into one batch, from here on
            pass
        for number in range(1, 1_000_000):
            key, value = change(life, number)
            if value is None:
                worker.remove(key)
            else:
                worker.put(key, value)
            time.sleep(0.002)
            if end.is_set():
                break
