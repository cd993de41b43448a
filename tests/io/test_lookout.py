"""Whether a wait looks before it sleeps, and for how long: all by a clock in the test's hands."""

import os
import subprocess
import sys
import threading
from itertools import pairwise

import pytest

from zerohop.io import lookout as module
from zerohop.io.lookout import MOMENT, VARIABLE, Lookout, disturb, make_lookout, moment

LOOK, YIELD = 1e-6, 0.5e-6  # seconds that each takes, undisturbed
NEVER = 1 << 30


class Ground:
    """A clock, descriptors that are ready after so many looks, and a processor to give away."""

    def __init__(self, seconds=MOMENT, *, gives_way=True):
        self.now = 100.0
        self.looks = self.yields = 0
        self.look_takes, self.yield_takes = LOOK, YIELD
        self.ready_after = NEVER
        self.meanwhile = lambda: None
        self.lookout = Lookout(seconds, lambda: self.now, self.give_way if gives_way else None)

    def ready(self, seconds):
        assert seconds == 0
        self.looks += 1
        self.now += self.look_takes
        self.meanwhile()
        return ["event"] if self.looks > self.ready_after else []

    def give_way(self):
        self.yields += 1
        self.now += self.yield_takes

    def wait(self, ready_after=NEVER):
        """One wait; return whether it has looked at all, and what it found."""
        self.looks = self.yields = 0
        self.ready_after = ready_after
        found = self.lookout.look(self.ready)
        return self.looks > 0, bool(found)

    def waits(self, count, ready_after=NEVER):
        """How many of these waits have looked."""
        return sum(self.wait(ready_after)[0] for _ in range(count))


@pytest.fixture
def ground():
    return Ground()


def test_what_is_ready_at_once_is_returned_at_once(ground):
    assert ground.wait(0) == (True, True)
    assert (ground.looks, ground.yields) == (1, 0)


def test_what_becomes_ready_soon_is_found(ground):
    assert ground.wait(20) == (True, True)
    assert ground.looks == 21


def test_nobody_looks_for_longer_than_the_moment(ground):
    began = ground.now
    assert ground.wait() == (True, False)
    assert MOMENT <= ground.now - began <= MOMENT + 3 * (LOOK + YIELD)


@pytest.mark.parametrize("seconds", [10e-6, 200e-6])
def test_how_long_the_moment_is_can_be_said(seconds):
    ground = Ground(seconds)
    began = ground.now
    ground.wait()
    assert seconds <= ground.now - began <= seconds + 3 * (LOOK + YIELD)


def test_where_it_always_finds_it_always_looks(ground):
    assert ground.waits(1000, ready_after=15) == 1000


def test_each_time_in_vain_is_followed_by_more_waits_that_sleep_at_once(ground):
    looked = [n for n in range(250) if ground.wait()[0]]
    assert [b - a - 1 for a, b in pairwise(looked)] == [1, 4, 16, 64, 64, 64]


def test_a_socket_that_waits_for_rare_messages_looks_at_one_in_65(ground):
    ground.waits(1000)
    assert 14 <= ground.waits(1000) <= 16


def test_a_peer_that_becomes_quick_is_found_out_and_all_waits_look_again(ground):
    ground.waits(1000)
    ground.waits(64, ready_after=15)  # the pause
    ground.waits(6, ready_after=15)
    assert ground.lookout._level == 0
    assert ground.waits(100, ready_after=15) == 100


def test_one_in_vain_now_and_then_costs_little(ground):
    looked = 0
    for _ in range(100):
        looked += ground.waits(9, ready_after=15) + ground.waits(1)
    assert looked >= 880


def test_where_half_of_it_is_in_vain_it_is_soon_given_up(ground):
    looked = [ground.waits(1, ready_after=15) + ground.waits(1) for _ in range(1000)]
    assert sum(looked[:20]) < 20
    assert sum(looked) < 200


def test_what_was_there_already_proves_nothing(ground):
    ground.waits(1000)
    level = ground.lookout._level
    ground.lookout._pause = 0
    assert ground.waits(100, ready_after=0) == 100
    assert ground.lookout._level == level


# -- others who want to run


def test_it_gives_way_after_each_look(ground):
    ground.wait(20)
    assert ground.yields == 19


def test_where_nobody_can_be_given_way_to_it_only_looks():
    ground = Ground(gives_way=False)
    assert ground.wait(20) == (True, True)
    assert ground.waits(1) == 1
    assert ground.yields == 0


def test_who_was_kept_waiting_for_a_slice_of_time_gives_way_no_more_for_seconds(ground):
    ground.yield_takes = 4e-3
    ground.wait(20)
    assert ground.yields == 1
    ground.yield_takes = YIELD
    ground.lookout._pause = 0
    ground.wait(20)
    assert (ground.looks, ground.yields) == (21, 0)
    ground.now += 10
    ground.wait(20)
    assert ground.yields == 19


def test_a_peer_that_runs_where_we_gave_way_is_no_reason_to_stop(ground):
    ground.yield_takes = 60e-6  # longer than the moment: it is looked once more all the same
    assert ground.wait(2) == (True, True)
    assert ground.waits(100, ready_after=2) == 100


@pytest.mark.parametrize("ready_after", [5, NEVER])
def test_a_look_that_takes_long_ends_it_and_counts_as_in_vain_whatever_it_found(
    ground, ready_after
):
    """Somebody had the interpreter, or the processor, meanwhile."""

    def stall():
        if ground.looks == 6:
            ground.now += 100e-6

    ground.meanwhile = stall
    assert ground.wait(ready_after) == (True, ready_after == 5)
    assert ground.looks == 6
    assert ground.wait() == (False, False)


def test_where_it_is_always_disturbed_one_in_1025_looks(ground):
    ground.look_takes = 100e-6
    ground.waits(10_000)
    assert 9 <= ground.waits(10_250) <= 11


def test_another_call_that_comes_to_wait_ends_it(ground):
    ground.meanwhile = lambda: disturb() if ground.looks == 7 else None
    assert ground.wait() == (True, False)
    assert ground.looks == 7
    assert ground.waits(1) == 0


def test_two_threads_do_not_look_at_the_same_time_and_neither_does_so_again_soon(ground):
    other = Ground()
    seen = []

    def wait_meanwhile():
        if ground.looks == 3:
            seen.append(other.wait())

    ground.meanwhile = wait_meanwhile
    assert ground.wait() == (True, False)
    assert seen == [(False, False)]
    assert ground.looks == 3
    assert (ground.waits(1), other.waits(1)) == (0, 0)


def test_an_exception_from_a_signal_handler_lets_others_look(ground):
    def interrupt():
        raise KeyboardInterrupt

    ground.meanwhile = interrupt
    with pytest.raises(KeyboardInterrupt):
        ground.wait()
    assert Ground().wait(20) == (True, True)


# -- whether at all


@pytest.mark.parametrize(
    ("said", "seconds"), [(None, MOMENT), ("", MOMENT), ("0", 0), ("120", 120e-6), ("1.5", 1.5e-6)]
)
def test_the_environment_says_how_long(monkeypatch, said, seconds):
    monkeypatch.setattr(module, "_processors", lambda: 2)
    monkeypatch.delenv(VARIABLE, raising=False)
    if said is not None:
        monkeypatch.setenv(VARIABLE, said)
    assert moment() == pytest.approx(seconds)


@pytest.mark.parametrize("said", ["never", "-1", "1e9", "nan"])
def test_what_is_no_time_is_refused_with_the_limits(monkeypatch, said):
    monkeypatch.setenv(VARIABLE, said)
    with pytest.raises(ValueError, match=rf"{VARIABLE} is a number .* 0 to 10000, not '{said}'"):
        moment()


def test_where_there_is_one_processor_nobody_looks(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3}, raising=False)
    assert moment() == 0
    assert make_lookout(moment()) is None


def test_where_affinity_is_unknown_the_processors_are_counted(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert moment() == MOMENT
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert moment() == 0


def test_a_child_process_may_look_though_a_thread_of_its_parent_did():
    program = """
        import os, threading
        from zerohop.io import lookout
        from zerohop.io.lookout import Lookout

        forked = []

        def ready(_):
            if not forked:
                forked.append(os.fork())
                if not forked[0]:
                    os._exit(0 if not lookout._looking else 1)
            return ["event"]

        Lookout(1.0, lambda: 0.0, None).look(ready)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(forked[0], 0)[1]))
    """
    import textwrap

    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], timeout=20)
    assert done.returncode == 0


def test_the_real_one_finds_what_another_thread_does():
    made = make_lookout(0.01)
    done = threading.Event()
    thread = threading.Thread(target=done.set)
    thread.start()
    thread.join()
    assert made.look(lambda _: ["event"] if done.is_set() else []) == ["event"]
