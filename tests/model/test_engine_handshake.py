"""An engine and an API server over connections that break: when all is quiet, they are joined.

Either may restart, fall silent for any time, and lose what is on its way. At every step a slot that
the API server uses is one that this life of the engine has given it; in the end it is the one that
the engine still has, or requests would go to nobody.
"""

import itertools

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from zerohop.serving.engine.handshake import Identity, Joined, Left, ServerLink
from zerohop.serving.engine.liveness import EngineState, Patience
from zerohop.serving.engine.messages import PROTOCOL, Beat, Hello, Ready, Start
from zerohop.serving.engine.roster import Roster

PATIENCE = Patience(beat_every=1, gone_after=5, hung_after=10)
QUEUES = ["to_server", "to_pulse", "to_loop", "outputs"]


class HandshakeMachine(RuleBasedStateMachine):
    """One of each, and what is on its way between them."""

    def __init__(self):
        super().__init__()
        self.now = 0.0
        self.boots, self.slots = itertools.count(1), itertools.count()
        self.to_server, self.to_pulse, self.to_loop, self.outputs = [], [], [], []
        self.given = set()  # (engine's boot, API server's boot, slot, life)
        self.departed = []
        self.start_engine()
        self.start_server()

    def start_engine(self):
        self.engine = Identity("e0", next(self.boots))
        self.link = ServerLink(Hello(PROTOCOL, "e0", self.engine.boot), self.now)
        self.joined = {}  # slots and lives, by the API server's boot token

    def start_server(self):
        self.boot = next(self.boots)
        self.roster = Roster("api", self.boot, "ipc:///outputs", PATIENCE)

    # The engine

    def heard(self, events):
        for event in events:
            match event:
                case Joined():
                    assert event.boot not in self.joined
                    self.joined[event.boot] = next(self.slots), event.welcome.life
                case Left():
                    del self.joined[event.boot]

    @rule()
    def the_pulse_has_its_turn(self):
        if self.now >= self.link.next_deadline():
            self.heard(self.link.handle_deadline(self.now, progress=0, work=0))
        self.to_server += [(self.engine, message) for message in self.link.to_send]
        self.link.to_send.clear()

    @rule()
    def the_pulse_hears(self):
        if self.to_pulse:
            self.heard(self.link.receive(self.to_pulse.pop(0), self.now))

    @rule()
    def the_loop_hears(self):
        if self.to_loop:
            start = self.to_loop.pop(0)
            if start.server in self.joined:
                slot, life = self.joined[start.server]
                self.given.add((self.engine.boot, start.server, slot, life))
                self.outputs.append(Ready(start.server, self.engine.boot, slot, life))

    # The API server

    @rule()
    def the_server_hears(self):
        if not self.to_server:
            return
        identity, message = self.to_server.pop(0)
        match message:
            case Hello():
                answer, departure = self.roster.hello(identity, message, self.now)
                self.departed += [departure] if departure else []
            case Beat():
                answer, to_start = self.roster.beat(identity, message, self.now)
                if to_start is not None and identity == self.engine:
                    self.to_loop.append(Start(self.boot))
        if identity == self.engine:  # another is not there any more
            self.to_pulse.append(answer)

    @rule()
    def the_server_hears_outputs(self):
        if self.outputs:
            self.roster.ready(self.outputs.pop(0), self.now)

    # What may happen

    @rule(queue=st.sampled_from(QUEUES))
    def what_is_on_its_way_is_lost(self, queue):
        getattr(self, queue).clear()

    @rule()
    def the_engine_restarts(self):
        self.to_pulse.clear()
        self.to_loop.clear()
        self.start_engine()

    @rule()
    def the_server_restarts(self):
        self.to_server.clear()
        self.outputs.clear()
        self.start_server()

    @rule(is_noticed=st.booleans())
    def the_connection_breaks(self, is_noticed):
        """The engine notices; the API server may have been cut off, and keeps the old one."""
        self.to_pulse.clear()
        self.to_server.clear()
        self.heard(self.link.broke(self.now))
        if is_noticed and (departure := self.roster.leave(self.engine, "its connection broke")):
            self.departed.append(departure)

    @rule(seconds=st.sampled_from([0.05, 1, 6, 31]))
    def time_passes(self, seconds):
        self.now += seconds
        self.departed += self.roster.handle_deadline(self.now)

    @invariant()
    def a_slot_in_use_was_given_by_this_life_to_this_server(self):
        for member in self.roster.members():
            if member.slot is not None:
                assert (member.identity.boot, self.boot, member.slot, member.life) in self.given

    @invariant()
    def an_engine_is_joined_to_one_server_at_a_time(self):
        assert len(self.joined) <= 1

    @invariant()
    def a_life_ends_once_unless_it_has_joined_anew(self):
        restarts = [each.identity for each in self.departed if each.reason == "it has restarted"]
        assert len(set(restarts)) == len(restarts)

    def teardown(self):
        """All is quiet from here on: nothing is lost, and nobody restarts."""
        for _ in range(400):
            self.the_pulse_has_its_turn()
            for hears in (
                self.the_server_hears,
                self.the_pulse_hears,
                self.the_loop_hears,
                self.the_server_hears_outputs,
            ):
                hears()
            self.time_passes(0.05)
        member = self.roster.member("e0")
        assert member.identity == self.engine
        assert member.liveness.state is EngineState.ALIVE
        assert self.joined == {self.boot: (member.slot, member.life)}


TestHandshake = HandshakeMachine.TestCase
