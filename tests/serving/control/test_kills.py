"""Processes that are killed: every view is right in the end or gone, and nobody registers twice."""

import contextlib
import random
import signal
import subprocess
import sys
import time

import pytest

from zerohop.serving import (
    MembershipOptions,
    NoAnswer,
    SyncControlClient,
    SyncControlServer,
    SyncControlWorker,
    WorkerGone,
    WorkerJoined,
)

SECONDS = 30.0
ROUNDS = 5
SERVER = """
import sys
from zerohop.serving import MembershipOptions, Operation, Protocol, SyncControlServer

def table(worker):
    view = server.view(worker)
    return view.table if view is not None and view.is_right else None

options = MembershipOptions(period=0.1, timeout=20.0, spread=0.1, batch=50)
protocol = Protocol("kills", (Operation("table", (str,)),))
server = SyncControlServer(
    sys.argv[1], protocol=protocol, handlers={"table": table}, options=options
)
print(server.endpoint, flush=True)
while server.receive() is not None:
    pass
"""
WORKER = """
import sys, time
from zerohop.serving import SyncControlWorker

with SyncControlWorker(sys.argv[1], "w") as worker:
    for key in range(int(sys.argv[2])):
        worker.put(key, sys.argv[2])
    print("started", flush=True)
    time.sleep(1000)
"""


@contextlib.contextmanager
def process(program, *arguments):
    """A process, and the first line that it prints; killed when the block ends, if not before."""
    started = subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, text=True
    )
    try:
        yield started, started.stdout.readline().strip()
    finally:
        started.send_signal(signal.SIGKILL)
        started.wait()
        started.stdout.close()


@pytest.fixture(params=["tcp", "ipc"])
def endpoint(request, tmp_path):
    return "tcp://127.0.0.1:*" if request.param == "tcp" else f"ipc://{tmp_path}/control"


def table_of(client, worker):
    with contextlib.suppress(NoAnswer):
        return client.call("table", worker, timeout=1.0)
    return None


def test_a_server_that_is_killed_again_and_again_has_the_table_each_time(endpoint):
    chance = random.Random(7)
    names = ["a", "b", "c"]
    with contextlib.ExitStack() as stack:
        workers, wanted = [], {name: {} for name in names}
        for life in range(1, ROUNDS + 1):
            with process(SERVER, endpoint) as (_, endpoint):
                if not workers:
                    workers = [
                        stack.enter_context(SyncControlWorker(endpoint, name, patience=0.3))
                        for name in names
                    ]
                for name, worker in zip(names, workers, strict=True):
                    for key in range(200):
                        wanted[name][key] = chance.random()
                        worker.put(key, wanted[name][key])
                with SyncControlClient(endpoint) as client:
                    give_up = time.monotonic() + SECONDS
                    while {name: table_of(client, name) for name in names} != wanted:
                        assert time.monotonic() < give_up
                        time.sleep(0.02)
                assert [worker.registrations for worker in workers] == [life] * 3
                for name, worker in zip(names, workers, strict=True):
                    wanted[name]["late"] = life  # it is on its way when the server dies
                    worker.put("late", life)


def test_a_worker_that_is_killed_is_gone_or_another_and_never_half_of_both(endpoint):
    options = MembershipOptions(period=0.1, timeout=1.0, spread=0.1, batch=50)
    with SyncControlServer(endpoint, options=options) as server:
        for count in range(100, 100 + ROUNDS):
            with process(WORKER, server.endpoint, str(count)) as (killed, line):
                assert line == "started"
                wanted = dict.fromkeys(range(count), str(count))
                give_up = time.monotonic() + SECONDS
                while (view := server.view("w")) is None or view.table != wanted:
                    assert time.monotonic() < give_up
                    time.sleep(0.005)
                killed.kill()
        events = []
        while sum(isinstance(each, WorkerGone) for each in events) < ROUNDS:
            events.append(server.receive(SECONDS))
            assert events[-1] is not None
        assert events[-1] == WorkerGone("w", "silent")  # those before may have been replaced
        assert sum(isinstance(each, WorkerJoined) for each in events) == ROUNDS
        assert server.view("w") is None
