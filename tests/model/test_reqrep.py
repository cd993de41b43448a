"""REQ and REP alternate, whoever comes and goes, and every reply answers the last request."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.patterns.world import World, make
from zerohop.errors import Again, UsageError

CLIENTS, SERVERS = 2, 2
clients, servers = st.integers(0, CLIENTS - 1), st.integers(0, SERVERS - 1)


class ReqRepMachine(RuleBasedStateMachine):
    @initialize(relaxed=st.booleans(), hwm=st.integers(0, 2))
    def make(self, relaxed, hwm):
        self.world, self.relaxed, self.hwm = World(), relaxed, hwm
        options = {"req_relaxed": relaxed, "req_correlate": relaxed}
        self.req = [make("REQ", seed=7, **options) for _ in range(CLIENTS)]
        self.rep = [make("REP") for _ in range(SERVERS)]
        self.joined = {}
        self.asked = [None] * CLIENTS  # the request each REQ waits for an answer to
        self.answering = [None] * SERVERS
        self.ever_answered = set()
        self.sent = 0

    @rule(c=clients, s=servers)
    def join_or_part(self, c, s):
        if (c, s) in self.joined:
            self.world.part(self.joined.pop((c, s)))
        else:
            self.joined[c, s], _ = self.world.join(self.req[c], self.rep[s], hwm=self.hwm)

    @rule(c=clients)
    def ask(self, c):
        self.sent += 1
        request = b"%d" % self.sent
        try:
            self.req[c].send(request)
        except UsageError:
            assert self.asked[c] is not None
            assert not self.relaxed
        except Again:
            assert not self.req[c].can_send_now()
        else:
            assert self.asked[c] is None or self.relaxed
            self.asked[c] = request
        self.world.settle()

    @rule(s=servers)
    def take_a_request(self, s):
        if self.answering[s] is not None:
            with pytest.raises(UsageError):
                self.rep[s].receive()
        elif self.rep[s].can_receive_now():
            self.answering[s] = self.rep[s].receive()
            assert self.answering[s] not in self.ever_answered  # never twice, not even by another
            self.ever_answered.add(self.answering[s])
        else:
            with pytest.raises(Again):
                self.rep[s].receive()
        self.world.settle()

    @rule(s=servers, parts=st.integers(1, 3))
    def answer(self, s, parts):
        if self.answering[s] is None:
            with pytest.raises(UsageError):
                self.rep[s].send(b"nothing was asked")
        else:
            self.rep[s].send([self.answering[s]] * parts if parts > 1 else self.answering[s])
            self.answering[s] = None
        self.world.settle()

    @rule(c=clients)
    def take_the_reply(self, c):
        if self.asked[c] is None:
            with pytest.raises(UsageError):
                self.req[c].receive()
        elif self.req[c].can_receive_now():
            reply = self.req[c].receive()
            assert set(reply if isinstance(reply, list) else [reply]) == {self.asked[c]}
            self.asked[c] = None
        else:
            with pytest.raises(Again):
                self.req[c].receive()

    @invariant()
    def a_req_that_waits_can_send_only_if_relaxed(self):
        for req, asked in zip(self.req, self.asked):
            assert not (asked and req.can_send_now()) or self.relaxed

    @invariant()
    def a_rep_either_answers_or_listens(self):
        for rep, answering in zip(self.rep, self.answering):
            assert rep.can_send_now() == (answering is not None)
            assert not (answering and rep.can_receive_now())


TestReqRep = ReqRepMachine.TestCase
TestReqRep.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
