"""The pipe against a model: any order of writes and reads, and the promises that always hold."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from zerohop.patterns.pipe import Pipe


class PipeMachine(RuleBasedStateMachine):
    """A writer that stops when the pipe is full, a reader that sleeps when it is empty."""

    @initialize(hwm=st.integers(0, 5))
    def make(self, hwm):
        self.pipe = Pipe(hwm)
        self.pipe.reader, self.pipe.writer = "reader", "writer"
        self.highest = hwm  # the limit when the last message was pushed
        self.model = []
        self.sent = 0
        self.writer_stopped = False
        self.reader_sleeps = True

    def next_message(self):
        self.sent += 1
        self.model.append(b"%d" % self.sent)
        return self.model[-1]

    @precondition(lambda self: not self.writer_stopped)
    @rule()
    def write(self):
        if self.pipe.full:
            self.writer_stopped = True
        else:
            self.pipe.push(self.next_message())
            self.highest = self.pipe.hwm

    @precondition(lambda self: not self.reader_sleeps)
    @rule(past_pop=st.booleans())
    def read(self, past_pop):
        if not self.model:
            self.reader_sleeps = self.pipe.sleep()
        elif past_pop:  # as a driver does on a lane
            assert self.pipe.messages.popleft() == self.model.pop(0)
            self.pipe.drained()
        else:
            assert self.pipe.pop() == self.model.pop(0)  # first in, first out, nothing lost

    @rule()
    def deliver_notes(self):
        if self.pipe.reader_signals:
            self.pipe.reader_signals.clear()
            self.reader_sleeps = False
        if self.pipe.writer_signals:
            self.pipe.writer_signals.clear()
            self.writer_stopped = False

    @rule(hwm=st.integers(0, 5))
    def change_the_limit(self, hwm):
        self.pipe.set_hwm(hwm)

    @invariant()
    def nothing_is_lost_or_invented(self):
        assert list(self.pipe.messages) == self.model

    @invariant()
    def never_over_the_high_water_mark(self):
        assert self.highest == 0 or len(self.pipe) <= max(self.highest, self.pipe.hwm)

    @invariant()
    def a_sleeping_reader_has_been_told_of_every_message(self):
        assert not (self.reader_sleeps and self.model) or self.pipe.reader_signals

    @invariant()
    def a_stopped_writer_has_been_told_of_room(self):
        assert not self.writer_stopped or self.pipe.full or self.pipe.writer_signals

    @invariant()
    def an_empty_pipe_is_writable(self):
        assert not self.pipe.full or self.model


TestPipe = PipeMachine.TestCase
TestPipe.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
