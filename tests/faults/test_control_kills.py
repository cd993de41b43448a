"""kill -9 of control servers and of workers, at random moments.

Every table is right or known not to be; each worker registers once with each server, and sends its
table once; each command ends once.
"""

import time
from collections import Counter
from contextlib import ExitStack, suppress

from tests.faults.control_lives import OPTIONS, Truths
from tests.faults.kit import KILLS, campaign, wait_for
from zerohop.serving import (
    CommandEnded,
    CommandLost,
    NoAnswer,
    SyncControlClient,
    SyncControlServer,
    SyncControlWorker,
    WorkerChanged,
    WorkerGone,
    WorkerJoined,
    WorkerSynced,
)

SERVER = "from tests.faults.control_lives import server_life\nserver_life({!r})"
WORKER = "from tests.faults.control_lives import worker_life\nworker_life({}, {!r})"
NAMES = ("a", "b", "c")
ONCE = {name: [1, 1] for name in NAMES}  # registered, and sent its table


def place_of(chance, directory):
    return "tcp://127.0.0.1:*" if chance.random() < 0.5 else f"ipc://{directory}/control"


def ask(endpoint, operation):
    """What a server says of each worker; ``None`` where it does not answer."""
    with SyncControlClient(endpoint, timeout=2.0) as client:
        answers = {}
        for name in NAMES:
            with suppress(NoAnswer):
                answers[name] = client.call(operation, name)
        return answers


@campaign
def test_servers_that_are_killed_have_each_table_again_from_one_registration(
    program, chance, ipc_directory
):
    endpoint = place_of(chance, ipc_directory)
    wanted = {name: {} for name in NAMES}
    with ExitStack() as stack:
        workers = {}

        def change():
            for name, worker in workers.items():
                for key in chance.sample(range(500), 300):
                    wanted[name][key] = chance.random()
                    worker.put(key, wanted[name][key])

        for life in range(1, KILLS + 2):
            server = program(SERVER.format(endpoint))
            endpoint = server.line()
            if not workers:
                workers = {
                    name: stack.enter_context(SyncControlWorker(endpoint, name, patience=0.3))
                    for name in NAMES
                }
            before = {name: worker.registrations for name, worker in workers.items()}
            change()
            if life > KILLS or chance.random() < 0.5:
                wait_for(lambda at=endpoint: ask(at, "table") == wanted)
                assert ask(endpoint, "counts") == ONCE
            else:
                time.sleep(chance.random() * 0.3)
            change()  # some of it is on its way when the server dies
            if life <= KILLS:
                server.kill()
            for name, worker in workers.items():
                assert worker.registrations - before[name] <= 1
        wait_for(lambda: ask(endpoint, "table") == wanted)
        assert ask(endpoint, "counts") == ONCE
        server.tell("end")
        assert server.end() == []


class Witness:
    """What the events of a server make of its worker, held to the truth."""

    def __init__(self, server):
        self._server, self._truths = server, Truths()
        self.life, self.table, self.is_right = None, {}, False
        self.joins, self.syncs, self.commands, self.ended = Counter(), Counter(), [], []
        self.gone = []

    def look(self, seconds):
        """Take what happens within a time."""
        give_up = time.monotonic() + seconds
        while (left := give_up - time.monotonic()) > 0:
            event = self._server.receive(left)
            if event is not None:
                self._take(event)
            view = self._server.view("w")
            if view is not None and view.is_right:
                assert self._truths.has(view.offers["life"], view.table)

    def look_until(self, condition):
        def looked():
            self.look(0.01)
            return condition()

        wait_for(looked)

    def command(self):
        with suppress(KeyError):
            self.commands.append(self._server.command("w", "echo", len(self.commands)))

    def _take(self, event):
        match event:
            case WorkerJoined(offers=offers):
                assert self.life is None
                self.life, self.table, self.is_right = offers["life"], {}, False
                self.joins[self.life] += 1
            case WorkerChanged(put=put, removed=removed):
                self.table.update(put)
                for key in removed:
                    self.table.pop(key, None)
            case WorkerSynced():
                self.is_right = True
                self.syncs[self.life] += 1
            case WorkerGone(reason=reason):
                self.gone.append(reason)
                self.life = None
            case CommandEnded(result=result, error=error):
                assert (error, result[0]) == (None, self.life)
                self.ended.append(event)
            case CommandLost():
                self.ended.append(event)
        if self.life is not None and self.is_right:
            assert self._truths.has(self.life, self.table)


@campaign
def test_workers_that_are_killed_are_gone_or_another_and_never_half_of_both(
    program, chance, ipc_directory
):
    with SyncControlServer(place_of(chance, ipc_directory), options=OPTIONS) as server:
        witness = Witness(server)
        for life in range(1, KILLS + 2):
            worker = program(WORKER.format(life, server.endpoint))
            assert worker.line() == "here"
            if life > KILLS:
                break
            for _ in range(chance.randint(0, 5)):
                witness.look(chance.random() * 0.1)
                witness.command()
            worker.kill()
        witness.look_until(lambda: witness.life == life and witness.is_right)
        witness.command()
        witness.look_until(lambda: len(witness.ended) == len(witness.commands))
        assert set(witness.joins.values()) | set(witness.syncs.values()) == {1}
        assert set(witness.gone) <= {"replaced"}
        worker.tell("end")
        assert worker.end() == []
        witness.look_until(lambda: witness.life is None)
        assert (witness.gone[-1], server.workers()) == ("left", [])
