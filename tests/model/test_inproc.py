"""Sockets that come, go, bind, connect and send within one Context: every message has one fate.

Each connection is a queue. A message goes into one of its sender's queues and comes out at the
socket that has the name, first in, first out; what was queued for a name nobody has bound waits.
"""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.core.kit import inproc, make_core
from zerohop.core.context import ContextCore
from zerohop.core.inproc import NEVER_BOUND
from zerohop.errors import Again, EndpointError, ZMQError

which = st.integers(0, 2)
names = st.sampled_from(["a", "b"])


class Connection:
    """A queue from a PUSH to whoever has, or will have, the name."""

    def __init__(self, push, peer, name, pull):
        self.push, self.pipe, self.name, self.pull = push, peer.outbound, name, pull
        self.queue = []
        self.open = True  # the PUSH still has this end


class InprocMachine(RuleBasedStateMachine):
    @initialize(
        sndhwm=st.integers(0, 2), rcvhwm=st.integers(0, 2), linger=st.sampled_from([0, None])
    )
    def begin(self, sndhwm, rcvhwm, linger):
        self.context = ContextCore()
        self.options = {"sndhwm": sndhwm, "rcvhwm": rcvhwm, "linger": linger}
        self.limit = sndhwm + rcvhwm if sndhwm and rcvhwm else 0
        self.pushes = [self.new("PUSH") for _ in range(3)]
        self.pulls = [self.new("PULL") for _ in range(3)]
        self.bound = {}  # name: who has it
        self.connections = []
        self.never_bound = dict.fromkeys(self.pushes, 0)
        self.sent = 0

    def new(self, socket_type):
        return make_core(socket_type, self.context, **self.options)

    def settle(self):
        """What drivers do after each call, whoever was touched."""
        for core in [*self.pushes, *self.pulls]:
            core.settle()
        while self.context.hand_over():
            pass

    def of(self, push):
        return [each for each in self.connections if each.push is push and each.open]

    def to(self, pull):
        return [each for each in self.connections if each.pull is pull]

    def give_up(self, connection):
        """The PUSH lets go of its end; what waits for a bind is lost unless it lingers."""
        connection.open = False
        if connection.pull is None:
            self.connections.remove(connection)
            self.never_bound[connection.push] += len(connection.queue)

    # Rules

    @rule(n=which, name=names)
    def bind(self, n, name):
        pull = self.pulls[n]
        if name in self.bound:
            with pytest.raises(EndpointError):
                pull.inproc.bind(inproc(name))
            return
        pull.inproc.bind(inproc(name))
        self.bound[name] = pull
        for connection in self.connections:
            if connection.pull is None and connection.name == name:
                connection.pull = pull
        self.settle()

    @rule(n=which, name=names)
    def unbind(self, n, name):
        pull = self.pulls[n]
        if self.bound.get(name) is not pull:
            with pytest.raises(ZMQError):
                pull.inproc.unbind(inproc(name))
            return
        pull.inproc.unbind(inproc(name))
        del self.bound[name]
        self.settle()

    @rule(n=which, name=names)
    def connect(self, n, name):
        push = self.pushes[n]
        before = set(push.links.peers)
        push.inproc.connect(inproc(name))
        (peer,) = set(push.links.peers) - before
        self.connections.append(Connection(push, peer, name, self.bound.get(name)))
        self.settle()

    @rule(n=which, name=names)
    def disconnect(self, n, name):
        push = self.pushes[n]
        connections = [each for each in self.of(push) if each.name == name]
        if not connections:
            with pytest.raises(ZMQError):
                push.inproc.disconnect(inproc(name))
            return
        push.inproc.disconnect(inproc(name))
        for connection in connections:
            self.give_up(connection)
        self.settle()

    @rule(n=which)
    def a_sender_closes_and_another_takes_its_place(self, n):
        push = self.pushes[n]
        push.close()
        for connection in self.of(push):
            if connection.pull is None and connection.queue and self.options["linger"] is None:
                connection.open = False  # it waits for the bind without its socket
            else:
                self.give_up(connection)
        self.never_bound.pop(push)
        self.pushes[n] = self.new("PUSH")
        self.never_bound[self.pushes[n]] = 0
        self.settle()

    @rule(n=which)
    def a_receiver_closes_and_another_takes_its_place(self, n):
        pull = self.pulls[n]
        pull.close()
        self.connections = [each for each in self.connections if each.pull is not pull]
        self.bound = {name: owner for name, owner in self.bound.items() if owner is not pull}
        self.pulls[n] = self.new("PULL")
        self.settle()

    @rule(n=which, count=st.integers(1, 4))
    def send(self, n, count):
        push = self.pushes[n]
        for _ in range(count):
            message = b"%d" % self.sent
            could = any(not each.pipe.full for each in self.of(push))
            try:
                push.send(message)
            except Again:
                assert not could
                break
            assert could
            self.sent += 1
            (taker,) = [
                each
                for each in self.of(push)
                if each.pipe.messages and each.pipe.messages[-1] is message
            ]
            taker.queue.append(message)
        self.settle()

    @rule(n=which, count=st.integers(1, 4))
    def receive(self, n, count):
        pull = self.pulls[n]
        for _ in range(count):
            waiting = {each.queue[0]: each for each in self.to(pull) if each.queue}
            try:
                message = pull.receive()
            except Again:
                assert not waiting
                break
            waiting[message].queue.pop(0)  # the oldest of one of its queues
        self.settle()

    # Promises

    @invariant()
    def every_queue_holds_what_it_should_and_no_more_than_it_may(self):
        for each in getattr(self, "connections", ()):
            assert list(each.pipe.messages) == each.queue
            limit = self.limit if each.pull is not None else self.options["sndhwm"]
            assert not limit or len(each.queue) <= max(limit, self.options["sndhwm"])

    @invariant()
    def everybody_has_the_peers_that_are_there(self):
        if not hasattr(self, "connections"):
            return
        for push in self.pushes:
            assert len(push.links.peers) == len(self.of(push))
            assert push.connected() == (
                bool(self.of(push)) and all(each.pull is not None for each in self.of(push))
            )
        for pull in self.pulls:
            assert len(pull.links.peers) == sum(each.open for each in self.to(pull))

    @invariant()
    def an_empty_queue_stops_nobody(self):
        for each in getattr(self, "connections", ()):
            assert each.queue or not each.open or not each.pipe.full

    @invariant()
    def what_was_never_received_by_anybody_is_counted(self):
        for push, count in getattr(self, "never_bound", {}).items():
            assert push.pattern.dropped[NEVER_BOUND] == count


TestInproc = InprocMachine.TestCase
TestInproc.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)
