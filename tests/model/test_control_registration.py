"""Registration and re-sync against a truth: whatever is lost, late or restarted, no view is wrong.

Several workers and one server, over a network that loses messages and keeps none in order between
two moves; either side restarts when it likes, and time passes as it likes.
"""

from collections import Counter
from itertools import cycle

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from zerohop.serving.codec import pack, unpack
from zerohop.serving.control.events import (
    CommandEnded,
    CommandLost,
    WorkerChanged,
    WorkerGone,
    WorkerJoined,
    WorkerSynced,
)
from zerohop.serving.control.exchange import Exchange
from zerohop.serving.control.membership import Membership, MembershipOptions
from zerohop.serving.control.messages import Registration
from zerohop.serving.control.protocol import Protocol
from zerohop.serving.control.session import WorkerSession

OPTIONS = MembershipOptions(period=1.0, timeout=4.0, spread=1.0, batch=3, max_syncs=1)
NAMES = ("a", "b", "c")
SERVER, REGISTER = b"server", pack("register")
KEYS = st.integers(0, 7)
SECONDS = st.sampled_from([0.1, 0.5, 1.0, 1.0, 3.0, 10.0])
FATES = st.sampled_from(["arrives", "arrives", "arrives twice", "is late", "is lost"])
WORKERS = st.sampled_from(NAMES)


def table_of(session):
    """What the server is to have of a worker."""
    return {key: unpack(value) for key, value in session.table.items()}


class Consumer:
    """What somebody makes of a server's events alone."""

    def __init__(self):
        self.tables, self.right, self.ended = {}, set(), []
        self.joins, self.syncs = Counter(), Counter()

    def take(self, event):
        match event:
            case WorkerJoined(worker):
                assert worker not in self.tables
                self.tables[worker] = {}
                self.joins[worker] += 1
            case WorkerChanged(worker, put, removed):
                self.tables[worker].update(put)
                for key in removed:
                    self.tables[worker].pop(key, None)
            case WorkerSynced(worker):
                self.right.add(worker)
                self.syncs[worker] += 1
            case WorkerGone(worker):
                del self.tables[worker]
                self.right.discard(worker)
            case CommandEnded(worker, number) | CommandLost(worker, number):
                self.ended.append((worker, number))


class Registrations(RuleBasedStateMachine):
    @initialize(is_settled=st.booleans())
    def begin(self, is_settled):
        self.now, self.boots = 100.0, 0
        self.sessions, self.done = {}, {}
        self.wire = []  # (sender, receiver, frames)
        self.truths = {}  # of each life: the table after each change
        self.start_server()
        for name in NAMES:
            self.start_worker(name)
        for _ in range(4 * is_settled):
            self.run(1.0, [])

    def start_server(self):
        self.boots += 1
        self.server = Membership(b"server %d" % self.boots, OPTIONS)
        self.exchange = Exchange(Protocol("model"), {}, self.server)
        self.consumer = Consumer()
        self.wire.clear()  # its connections are gone
        self.reasons = dict.fromkeys(NAMES, 1)  # why this server may need a worker's table
        self.commanded, self.excuses = [], 0

    def start_worker(self, name):
        self.boots += 1
        boot = b"%s %d" % (name.encode(), self.boots)
        session = WorkerSession(Registration(name, boot), cycle([0.3, 0.9, 0.1]), 1.0)
        self.sessions[name] = session
        self.truths[boot] = [{}]
        self.done[boot] = []

    def boot(self, name):
        return self.sessions[name].registration.boot

    @rule(name=WORKERS, key=KEYS, value=st.integers(0, 3))
    def put(self, name, key, value):
        self.sessions[name].put(key, value)
        self.truths[self.boot(name)].append(table_of(self.sessions[name]))

    @rule(name=WORKERS, key=KEYS)
    def remove(self, name, key):
        self.sessions[name].remove(key)
        self.truths[self.boot(name)].append(table_of(self.sessions[name]))

    @rule(seconds=SECONDS, fates=st.lists(FATES, max_size=10))
    def run(self, seconds, fates):
        """Time passes, and what is under way arrives: once, twice, later, or never."""
        self.now += seconds
        fates = iter(fates)
        before = set(self.server.workers())
        self.server.handle_deadline(self.now)
        for name in before - set(self.server.workers()):
            self.reasons[name] += 1
        late = []
        for _ in range(12):
            for name, session in self.sessions.items():
                session.handle_deadline(self.now)
                self.collect(name)
            wire, self.wire = self.wire, []
            for message in wire:
                match next(fates, "arrives"):
                    case "arrives":
                        self.deliver(*message)
                    case "arrives twice":
                        self.deliver(*message)
                        self.deliver(*message)
                    case "is late":
                        late.append(message)
                        self.excuses += message[2][1] == REGISTER
        self.wire = late + self.wire

    @rule(name=WORKERS, seconds=SECONDS)
    def command_and_run(self, name, seconds):
        self.command(name)
        self.run(seconds, [])

    @rule(dice=st.integers(1, 6))
    def restart_server(self, dice):
        if dice == 6:
            self.start_server()

    @rule(name=WORKERS, dice=st.integers(1, 6))
    def restart_worker(self, name, dice):
        if dice < 5:
            return
        if dice == 5:
            self.sessions[name].leave()
            self.collect(name)
        self.start_worker(name)
        self.reasons[name] += 1

    def command(self, name):
        if self.server.view(name) is not None:
            self.commanded.append((name, self.server.command(name, "do", [])))
            self.flush_server()

    @rule(name=WORKERS)
    def carry_out(self, name):
        session = self.sessions[name]
        for command in session.commands():
            server = session._welcome.server  # streams are counted anew by each
            self.done[self.boot(name)].append((server, command.stream, command.id))
            session.end(command, result=command.id)

    def collect(self, name):
        self.wire += [(self.boot(name), SERVER, f) for f in self.sessions[name].data_to_send()]

    def deliver(self, sender, receiver, frames):
        if receiver == SERVER:
            assert self.exchange.receive([sender, *frames], self.now) is None
            self.flush_server()
            return
        for name, session in self.sessions.items():
            if session.registration.boot == receiver:
                session.receive(frames, self.now)
                session.handle_deadline(self.now)
                self.collect(name)

    def flush_server(self):
        for route, *frames in self.exchange.data_to_send():
            self.wire.append((SERVER, route, frames))

    @invariant()
    def every_view_is_right_or_not_whole_or_gone(self):
        while (event := self.server.next_event()) is not None:
            self.consumer.take(event)
        assert set(self.consumer.tables) == set(self.server.workers())
        for name in self.server.workers():
            view = self.server.view(name)
            assert self.consumer.tables[name] == view.table
            assert (name in self.consumer.right) == view.is_right
            if view.is_right:  # it is what the worker had at some time of this life
                assert view.table in self.truths[view.boot]

    @invariant()
    def a_worker_that_has_settled_is_right_in_the_servers_eyes(self):
        for name, session in self.sessions.items():
            view = self.server.view(name)
            is_of_this_life = view and view.boot == session.registration.boot
            if session.is_settled and is_of_this_life and view.is_right:
                assert view.table == table_of(session)

    @invariant()
    def a_worker_registers_and_is_synced_once_for_each_reason(self):
        """A registration that comes when it is no longer of interest is one too many, at most."""
        for name in NAMES:
            assert self.consumer.syncs[name] <= self.reasons[name]
            assert self.consumer.joins[name] <= self.reasons[name] + 2 * self.excuses

    @invariant()
    def a_command_is_done_once_and_ends_once(self):
        for done in self.done.values():
            assert len(set(done)) == len(done)
        ended = Counter(self.consumer.ended)
        assert ended <= Counter(self.commanded)

    def teardown(self):
        """Once nothing is lost any longer, everybody is known and right, and stays it."""
        if not hasattr(self, "server"):
            return
        self.wire.clear()
        for _ in range(70):
            self.run(2.5, [])
            self.carry_all_out()
            self.every_view_is_right_or_not_whole_or_gone()
        for name, session in self.sessions.items():
            view = self.server.view(name)
            assert session.is_settled
            assert view is not None
            assert view.is_right
            assert view.table == table_of(session)
        registrations, syncs = self.server.registrations, self.server.syncs
        for _ in range(5):
            self.run(2.5, [])
        assert (self.server.registrations, self.server.syncs) == (registrations, syncs)
        assert sorted(self.consumer.ended) == sorted(self.commanded)

    def carry_all_out(self):
        for name in NAMES:
            self.carry_out(name)


Registrations.TestCase.settings = settings(
    max_examples=60, stateful_step_count=50, suppress_health_check=list(HealthCheck), deadline=None
)
test_registration_and_resync = Registrations.TestCase
