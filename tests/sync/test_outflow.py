"""When what was sent is written: at once, together, or when somebody waits."""

from types import SimpleNamespace

import pytest

from zerohop.patterns.pipe import Pipe
from zerohop.sync import outflow as module
from zerohop.sync.outflow import Outflow


class Ground:
    """An outflow among fakes: a clock, a reactor that only notes, a driver that empties a pipe."""

    def __init__(self, *, at_once=False, hwm=1000):
        self.now = 100.0
        self.written = []  # how many messages went with each write
        self.calls = []  # what the reactor was asked to call, and when
        self.visited = []  # likewise, when it happens to come by
        self.kernel_full = False
        self.writing = 0.0  # seconds that each write takes
        self.pipe = Pipe(hwm)
        self.visits = 0
        self.unwritten = {}
        self.readable = []
        self.to_flush = []  # stands for core.links too
        core = SimpleNamespace(context=self, links=self)
        self.waiting = []
        self.outflow = Outflow(
            core, self.pump, self.write_alone, self.waiting, self, at_once=at_once
        )

    def call_soon(self, callback):
        self.calls.append((0.0, callback))

    def call_at(self, when, callback):
        self.calls.append((when, callback))

    def call_by(self, when, callback):
        self.visited.append((when, callback))

    def run(self):
        """Let the helper come: whatever it was asked to call, in order of time."""
        calls = sorted(self.calls + self.visited, key=lambda call: call[0])
        self.calls, self.visited = [], []
        for when, callback in calls:
            self.now = max(self.now, when)
            callback()

    def pump(self):
        self.to_flush.clear()
        self.now += self.writing
        if self.pipe.reader_signals and not self.kernel_full:
            self.pipe.reader_signals.clear()
            self.written.append(len(self.pipe))
            self.pipe.messages.clear()
            self.pipe.drained()
            self.pipe.sleep()

    def write_alone(self):
        """As a driver that has one peer."""
        if len(self.pipe) != 1:
            return False
        self.pump()
        return True

    def send(self, count=1, size=10, gap=1e-6):
        """Send on the lane, as Socket.send and Front.sent do."""
        pipe = self.pipe
        for _ in range(count):
            self.now += gap
            assert not pipe.full
            pipe.messages.append(bytes(size))
            if pipe.asleep or len(pipe) >= min(self.outflow.mark, pipe.hwm or self.outflow.mark):
                if 0 < pipe.hwm <= len(pipe):
                    pipe.mark_full()
                self.outflow.sent(pipe, bytes(size))


@pytest.fixture
def ground(monkeypatch):
    ground = Ground()
    monkeypatch.setattr(module, "monotonic", lambda: ground.now)
    return ground


def test_the_first_messages_are_written_one_by_one(ground):
    ground.send(4)
    assert ground.written == [1] * 4
    assert ground.calls == []


def test_those_that_follow_wait_for_the_helper_who_is_called_once(ground):
    ground.send(100)
    assert ground.written == [1] * 4
    assert len(ground.calls) == 1
    ground.run()
    assert ground.written == [1, 1, 1, 1, 96]
    assert not ground.unwritten


def test_messages_that_come_slowly_are_all_written_at_once(ground):
    ground.send(50, gap=100e-6)
    assert ground.written == [1] * 50


def test_a_program_that_waits_in_between_never_leaves_anything(ground):
    for _ in range(20):
        ground.send(3)
        ground.visits += 1
    assert ground.written == [1] * 60


def test_waiting_writes_what_was_left(ground):
    ground.send(10)
    assert list(ground.unwritten) == [ground.outflow]
    ground.outflow.write_out()
    assert ground.written == [1, 1, 1, 1, 6]
    ground.outflow.write_out()
    assert len(ground.written) == 5


def burst_and_wait(ground, count):
    """What a server does: answer all that has come, then wait for more."""
    ground.send(count)
    ground.visits += 1
    ground.outflow.write_out()


def wait_often(ground):
    """Have it learned that the program comes to wait soon after each burst."""
    burst_and_wait(ground, 20)
    assert len(ground.calls) == 1
    burst_and_wait(ground, 20)
    ground.run()
    ground.written.clear()


def test_who_comes_to_wait_after_each_burst_writes_it_in_two_and_calls_no_helper(ground):
    wait_often(ground)
    for _ in range(10):
        burst_and_wait(ground, 20)
    assert ground.written == [1, 19] * 10
    assert not ground.calls
    assert len(ground.visited) == 1


def test_what_its_wait_has_written_is_not_written_again_by_the_helper(ground):
    burst_and_wait(ground, 20)
    ground.run()
    assert not ground.unwritten
    assert ground.written == [1, 1, 1, 1, 16]


def test_who_seldom_comes_to_wait_is_not_counted_upon(ground):
    """So few bursts need no helper that looks for them all the time."""
    for _ in range(5):
        ground.written.clear()
        burst_and_wait(ground, 20)
        ground.run()
        assert ground.written == [1, 1, 1, 1, 16]
        assert not ground.visited
        ground.now += 2 * module._OFTEN


def test_if_it_does_not_come_the_helper_does_and_is_called_at_once_the_next_time(ground):
    wait_often(ground)
    ground.send(20, gap=1e-6)
    assert ground.written == [1]
    assert not ground.calls
    ground.run()
    assert ground.written == [1, 19]
    ground.now += 1
    ground.written.clear()
    ground.send(20)
    assert ground.written == [1] * 4
    assert len(ground.calls) == 1


def test_a_lone_message_is_written_at_once_though_the_helper_may_come_by(ground):
    wait_often(ground)
    burst_and_wait(ground, 20)
    assert ground.visited
    ground.written.clear()
    ground.send(gap=1)
    ground.visits += 1
    ground.send()
    assert ground.written == [1, 1]


def test_the_helper_comes_at_most_once_a_tick(ground):
    ground.send(10)
    ground.run()
    ground.send(10)
    (when, _), *others = ground.calls
    assert others == []
    assert when == pytest.approx(ground.now + module._TICK, abs=1e-4)


def test_what_goes_on_when_the_helper_has_been_there_is_no_new_batch(ground):
    ground.send(10)
    ground.run()
    assert ground.written == [1, 1, 1, 1, 6]
    ground.send(10)
    assert ground.written == [1, 1, 1, 1, 6]


def test_subscriptions_may_pause_for_a_moment_and_are_still_a_batch(ground):
    for _ in range(100):
        ground.now += 200e-6
        ground.pipe.push(b"topic")
        ground.outflow.flush(b"topic", patient=True)
    assert ground.written == [1] * 4


def test_for_subscriptions_the_helper_comes_later(ground):
    for _ in range(100):
        ground.now += 1e-6
        ground.outflow.flush(b"topic", patient=True)
    ((when, _),) = ground.calls
    assert when == pytest.approx(ground.now + module._PATIENCE, abs=1e-3)


@pytest.mark.parametrize("size", [0, 10, 64, 1000, 30_000])
def test_a_full_batch_is_written_by_the_sender(ground, size):
    ground.send(5000, size)
    assert sum(ground.written) + len(ground.pipe) == 5000
    batches = ground.written[5:]
    assert batches
    assert max(batches) * (size + 8) <= 2 * module._BATCH_SIZE
    assert max(batches) <= 1000


def test_a_large_message_is_a_batch_of_its_own(ground):
    ground.send(20, size=100_000)
    assert ground.written == [1] * 20


def test_a_stream_is_not_put_to_sleep_and_its_end_is_written_within_a_tick(ground):
    ground.send(3500)
    assert ground.written[4:]
    calls = len(ground.calls)
    writes = len(ground.written)
    ground.send(10)
    assert (len(ground.calls), len(ground.written)) == (calls, writes)
    ground.run()
    assert sum(ground.written) == 3510
    while ground.calls:
        ground.run()
    assert ground.pipe.asleep
    assert not ground.unwritten
    ground.send(1, gap=1)
    assert ground.written[-1] == 1


def test_a_stream_whose_peer_takes_nothing_any_more_is_not_looked_at_for_ever(ground):
    """What is left goes when there is room, or somebody again: the driver watches for that."""
    ground.send(3500)
    ground.kernel_full = True
    ground.send(5)
    for _ in range(3):
        ground.run()
    assert not ground.calls
    assert not ground.unwritten
    ground.kernel_full = False
    ground.pump()
    assert sum(ground.written) == 3505
    assert ground.pipe.asleep


def test_waiting_writes_the_end_of_a_stream(ground):
    ground.send(3500)
    ground.send(7)
    ground.outflow.write_out()
    assert sum(ground.written) == 3507
    ground.send(3)
    ground.outflow.write_out()
    assert sum(ground.written) == 3510


def test_waiting_writes_what_was_handed_out_of_a_publishers_stream(ground):
    ground.send(3500)
    ground.send(7)
    ground.pipe.messages.clear()
    ground.to_flush += ["a peer that was given the seven", "another"]
    ground.outflow.write_out()
    assert not ground.to_flush
    assert not ground.pipe.asleep


def test_what_follows_on_another_pipe_is_written_while_the_first_has_something_left(ground):
    """``disconnect()`` from a peer that does not read, and ``connect()`` to one that does."""
    ground.send(3500)
    ground.kernel_full = True
    ground.send(5)
    ground.kernel_full, ground.pipe = False, Pipe(1000)
    ground.send(3500)
    ground.send(1)
    for _ in range(5):
        ground.run()
    assert not ground.pipe.messages


@pytest.mark.parametrize("hwm", [1, 3])
def test_a_pipe_that_is_full_is_written_at_once(hwm, monkeypatch):
    """Its next message would have to wait, or be dropped."""
    ground = Ground(hwm=hwm)
    monkeypatch.setattr(module, "monotonic", lambda: ground.now)
    ground.send(100)
    assert sum(ground.written) + len(ground.pipe) == 100
    assert max(ground.written) <= hwm


def test_what_follows_a_long_write_is_gathered_too(ground):
    """To write to many peers takes longer than the pause that ends a batch."""
    ground.writing = 500e-6
    ground.send(50, gap=300e-6)
    assert ground.written[:4] == [1] * 4
    assert len(ground.written) <= 5
    ground.run()
    assert sum(ground.written) == 50


def test_a_write_that_took_long_once_does_not_make_others_wait_for_ever(ground):
    ground.writing = 10e-3
    ground.send()
    ground.writing = 0.0
    for _ in range(20):
        ground.send(gap=500e-6)
        if ground.calls:
            ground.run()
    assert ground.written[-8:] == [1] * 8
    assert not ground.calls


def test_while_the_kernel_is_full_the_sender_is_left_alone(ground):
    ground.pipe.set_hwm(0)
    ground.send(4)
    ground.kernel_full = True
    ground.send(1000)
    mark = ground.outflow.mark
    assert mark >= len(ground.pipe) + 900
    ground.kernel_full = False
    ground.send(mark - len(ground.pipe))
    assert len(ground.pipe) == 0


def test_a_message_past_the_lane_finds_a_stream_s_pipe_awake_and_is_written(ground):
    ground.send(3500)
    while ground.pipe.messages:
        ground.outflow.write_out()
    ground.pipe.messages.append(b"by core.send: no signal, it looks awake")
    ground.outflow.flush(b"by core.send: no signal, it looks awake")
    ground.run()
    assert not ground.pipe.messages


def test_parts_count_together(ground):
    for _ in range(4):
        ground.pipe.push([b"x"])
        ground.outflow.flush([b"x"])
    ground.pipe.push([bytes(40_000), bytes(40_000)])
    ground.outflow.flush([bytes(40_000), bytes(40_000)])
    assert ground.written == [1] * 5


def test_an_inproc_reader_never_waits(ground):
    ground.send(4)
    ground.readable.append("a note")
    ground.pipe.push(b"x")
    ground.outflow.flush(b"x")
    assert ground.written == [1] * 5


def test_on_a_loop_that_is_not_ours_nothing_is_left(monkeypatch):
    ground = Ground(at_once=True)
    monkeypatch.setattr(module, "monotonic", lambda: ground.now)
    ground.send(100)
    assert ground.written == [1] * 100


def test_the_first_message_after_a_wait_goes_alone_and_is_the_first_of_a_batch(ground):
    ground.send(4)
    ground.visits += 1
    ground.send(4)
    assert ground.written == [1] * 8
    ground.send(2)
    assert ground.written == [1] * 8
    ground.run()
    assert ground.written == [1] * 8 + [2]


def test_where_somebody_waits_the_driver_does_all_it_has_to_do(ground):
    ground.waiting.append("somebody")
    ground.outflow._write_alone = None  # would fail if it were called
    ground.visits += 1
    ground.send()
    assert ground.written == [1]


def test_on_a_loop_that_is_not_ours_the_driver_is_only_woken(ground):
    ground.outflow._at_once = True
    ground.outflow._write_alone = None  # would fail if it were called
    ground.visits += 1
    ground.send()
    assert ground.written == [1]
