"""Every request ends exactly once, for the reason that came first; nothing of an old life comes."""

import itertools

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    rule,
)

from zerohop.serving.engine.messages import Delta, Ended
from zerohop.serving.engine.streams import StreamTable
from zerohop.serving.errors import DeadlineExceeded, EngineDead, RequestRefused, SlowConsumer

LIMIT = 3
ENGINES = st.sampled_from(["e0", "e1"])


def tokens_in(stream):
    """What is to be read."""
    return [token for delta in stream.deltas for token in delta.token_ids] + stream.tokens


class StreamMachine(RuleBasedStateMachine):
    """Engines that restart and a clock that goes on; beside it, what each request should be."""

    streams = Bundle("streams")

    def __init__(self):
        super().__init__()
        self.table = StreamTable(LIMIT)
        self.now = 0.0
        self.tokens, self.boots, self.numbers = (itertools.count(n) for n in (0, 100, 1))
        self.boot = {engine: next(self.boots) for engine in ("e0", "e1")}
        self.all = []
        self.expected = {}  # number -> tokens that are to be read
        self.reason = {}  # number -> how it ended, written once
        self.ended_twice = []

    def note(self, streams, reason):
        for stream in streams:
            if stream.number in self.reason:
                self.ended_twice.append(stream.number)
            self.reason[stream.number] = reason

    def is_open(self, stream):
        return stream.number not in self.reason

    @rule(target=streams, engine=ENGINES, seconds=st.none() | st.integers(1, 5))
    def submit(self, engine, seconds):
        number = next(self.numbers)
        stream = self.table.open(number, engine, self.boot[engine], self.now, seconds)
        self.all.append(stream)
        self.expected[number] = []
        return stream

    def make(self, chosen, steps=1):
        """The life of the engine that has the first of them makes tokens for each of its own."""
        boot = chosen[0].boot
        own = [stream for stream in chosen if stream.boot == boot]
        made = [[next(self.tokens) for _ in own] for _ in range(steps)]
        for at, stream in enumerate(own):
            if self.is_open(stream):
                self.expected[stream.number] += [tokens[at] for tokens in made]
        return boot, own, made

    def note_slow(self, streams):
        for stream in streams:
            if self.is_open(stream) and len(self.expected[stream.number]) > LIMIT:
                self.note([stream], SlowConsumer)

    @rule(
        chosen=st.lists(streams, min_size=1, max_size=4, unique_by=id),
        steps=st.integers(1, 3),
    )
    def steps(self, chosen, steps):
        boot, own, made = self.make(chosen, steps)
        self.note_slow(own)
        self.table.deliver(boot, [stream.number for stream in own], made)

    @rule(
        chosen=st.lists(streams, min_size=1, max_size=4, unique_by=id),
        finish=st.sampled_from([None, "stop"]),
    )
    def a_step_in_deltas(self, chosen, finish):
        boot, own, (tokens,) = self.make(chosen)
        if finish:
            self.note([stream for stream in own if self.is_open(stream)], "finished")
        self.note_slow(own)
        numbers = [stream.number for stream in own]
        deltas = [Delta(n, [t], finish) for n, t in zip(numbers, tokens, strict=True)]
        self.table.deliver(boot, [], [], deltas)

    @rule(stream=streams)
    def a_delta_of_another_life_bears_its_number(self, stream):
        number, token = stream.number, next(self.tokens)
        self.table.deliver(
            stream.boot + 1000, [number], [[token]], [Delta(number, [token], "stop")]
        )

    @rule(stream=streams)
    def read(self, stream):
        taken = [token for delta in iter(stream.take, None) for token in delta.token_ids]
        assert taken == self.expected[stream.number]
        self.expected[stream.number] = []

    @rule(stream=streams)
    def the_engine_refuses(self, stream):
        done = self.table.end(stream.boot, [Ended(stream.number, "refused", "no")])
        assert done == ([stream] if self.is_open(stream) else [])
        self.note(done, RequestRefused)

    @rule(stream=consumes(streams))
    def nobody_wants_it(self, stream):
        was_open = self.is_open(stream)
        assert self.table.abort(stream) == was_open
        if was_open:
            self.note([stream], "aborted")
            self.expected[stream.number] = []

    @rule(engine=ENGINES)
    def the_engine_restarts(self, engine):
        old, self.boot[engine] = self.boot[engine], next(self.boots)
        lost = [s for s in self.all if s.boot == old and self.is_open(s)]
        assert self.table.engine_gone(old, "it has restarted") == lost
        self.note(lost, EngineDead)

    @rule(seconds=st.integers(1, 3))
    def time_passes(self, seconds):
        self.now += seconds
        late = [
            s
            for s in self.all
            if self.is_open(s) and s.deadline is not None and s.deadline <= self.now
        ]
        ended = self.table.handle_deadline(self.now)
        assert sorted(s.number for s in ended) == [s.number for s in late]
        self.note(ended, DeadlineExceeded)

    @invariant()
    def a_request_ends_once_and_for_its_reason(self):
        assert self.ended_twice == []
        for stream in self.all:
            reason = self.reason.get(stream.number)
            assert stream.ended == (reason is not None)
            if isinstance(reason, type):
                assert type(stream.error) is reason
            else:
                assert stream.error is None

    @invariant()
    def nothing_is_to_be_read_but_what_its_own_life_made_for_it(self):
        for stream in self.all:
            assert tokens_in(stream) == self.expected[stream.number]

    @invariant()
    def the_loads_are_those_of_open_requests(self):
        still = [s for s in self.all if self.is_open(s)]
        assert len(self.table) == len(still)
        for boot in self.boot.values():
            assert self.table.load(boot) == sum(s.boot == boot for s in still)

    @invariant()
    def the_next_deadline_is_that_of_an_open_request(self):
        deadlines = [s.deadline for s in self.all if self.is_open(s) and s.deadline is not None]
        assert self.table.next_deadline() == min(deadlines, default=None)


TestStreams = StreamMachine.TestCase
