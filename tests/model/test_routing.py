"""PUSH to PULL over shared pipes: nothing lost, nothing twice, order kept, nobody left waiting."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.patterns.world import World, make
from zerohop.errors import Again

SOCKETS = 3


class PipelineMachine(RuleBasedStateMachine):
    """Three PUSH, three PULL; any pair may be joined once and part again."""

    @initialize(hwm=st.integers(0, 3))
    def make(self, hwm):
        self.world = World()
        self.hwm = hwm
        self.push = [make("PUSH") for _ in range(SOCKETS)]
        self.pull = [make("PULL") for _ in range(SOCKETS)]
        self.joined = {}
        self.queues = {}  # (pusher, puller, connection): what was pushed and not yet pulled
        self.connections = 0
        self.sent = 0

    def carried(self, i, j):
        return [queue for (a, b, _), queue in self.queues.items() if (a, b) == (i, j)]

    @rule(i=st.integers(0, SOCKETS - 1), j=st.integers(0, SOCKETS - 1))
    def join_or_part(self, i, j):
        if (i, j) in self.joined:
            self.world.part(self.joined.pop((i, j))[0])
        else:
            self.connections += 1
            at_push, at_pull = self.world.join(self.push[i], self.pull[j], hwm=self.hwm)
            self.joined[i, j] = at_push, self.connections
            self.queues[i, j, self.connections] = at_pull.inbound.messages, []

    @rule(i=st.integers(0, SOCKETS - 1))
    def send(self, i):
        self.sent += 1
        message = b"%d" % self.sent
        open_peers = [peer for (a, _), (peer, _) in self.joined.items() if a == i]
        room = any(not peer.outbound.full for peer in open_peers)
        assert self.push[i].can_send_now() == room
        try:
            self.push[i].send(message)
        except Again:
            assert not room
            return
        assert room
        [(_, expected)] = [
            entry for entry in self.queues.values() if entry[0] and entry[0][-1] == message
        ]
        expected.append(message)
        self.world.settle()

    @rule(j=st.integers(0, SOCKETS - 1))
    def receive(self, j):
        waiting = [e for (_, b, _), (_, e) in self.queues.items() if b == j and e]
        assert self.pull[j].can_receive_now() == bool(waiting)
        try:
            message = self.pull[j].receive()
        except Again:
            assert not waiting
            return
        [source] = [expected for expected in waiting if expected[0] == message]
        source.pop(0)
        self.world.settle()

    @precondition(lambda self: self.sent)
    @rule(j=st.integers(0, SOCKETS - 1))
    def a_round_serves_everybody_once(self, j):
        waiting = [e for (_, b, _), (_, e) in self.queues.items() if b == j and e]
        heads = {expected[0] for expected in waiting}
        assert {self.pull[j].receive() for _ in waiting} == heads
        for expected in waiting:
            expected.pop(0)
        self.world.settle()

    @invariant()
    def pipes_hold_what_the_model_says(self):
        assert all(list(messages) == expected for messages, expected in self.queues.values())

    @invariant()
    def never_over_the_high_water_mark(self):
        assert not self.hwm or all(len(e) <= self.hwm for _, e in self.queues.values())

    @invariant()
    def a_lane_is_what_the_socket_would_do_anyway(self):
        for i, push in enumerate(self.push):
            open_pipes = [p.outbound for (a, _), (p, _) in self.joined.items() if a == i]
            assert push.send_lane is (open_pipes[0] if len(open_pipes) == 1 else None)
        for j, pull in enumerate(self.pull):
            open_pipes = [p.outbound for (_, b), (p, _) in self.joined.items() if b == j]
            if pull.receive_lane is not None:
                assert [pull.receive_lane] == open_pipes
                others = [q for (_, b, _), (q, _) in self.queues.items() if b == j]
                assert not any(q for q in others if q is not pull.receive_lane.messages)


TestPipeline = PipelineMachine.TestCase
TestPipeline.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
