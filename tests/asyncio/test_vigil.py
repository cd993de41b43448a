"""Vigil: whether a call that has to wait looks before it does, and for how long; by a clock and a
loop in the test's hands."""

from types import SimpleNamespace

import pytest

from zerohop.asyncio import vigil as module
from zerohop.asyncio.vigil import Luck, Vigil, make_vigil
from zerohop.io.lookout import MOMENT, VARIABLE

ROUND = 8e-6  # seconds that a loop takes to come round
YIELD = 0.5e-6


class Waiter:
    """Somebody who waits."""

    def __init__(self):
        self.has_it = self.gave_up = False

    def done(self):
        return self.has_it or self.gave_up

    def cancelled(self):
        return self.gave_up


class Ground:
    """A clock, a loop that comes round, a connection to read from, a processor to give away."""

    def __init__(self, seconds=2 * MOMENT, *, gives_way=True, links=1):
        self.now = 100.0
        self.soon = []
        self.round_takes, self.yield_takes = ROUND, YIELD
        self.reads = self.yields = self.rounds = 0
        self.there = []  # what each read finds, then nothing
        self.context = SimpleNamespace(reactor=None)
        self.core = SimpleNamespace(links=SimpleNamespace(open_links=dict.fromkeys(range(links))))
        self.vigil = Vigil(self, seconds, lambda: self.now, self.give_way if gives_way else None)

    def read_now(self):
        """The driver's."""
        self.reads += 1
        self.now += 1e-6
        return self.there.pop(0) if self.there else False

    def call_soon(self, callback, *args):
        """The loop's."""
        self.soon.append((callback, args))

    def give_way(self):
        self.yields += 1
        self.now += self.yield_takes

    def turn(self):
        self.now += self.round_takes
        soon, self.soon = self.soon, []
        for callback, args in soon:
            self.rounds += 1
            callback(*args)

    def wait(self, served_after=1000):
        """One wait, served after so many rounds; return in how many the loop was kept awake."""
        waiter = Waiter()
        self.rounds = 0
        self.vigil.keep(self, waiter)
        for number in range(1000):
            waiter.has_it = number >= served_after
            if not self.soon:
                break
            self.turn()
        return self.rounds

    def look(self, *there):
        """One look; return how often was read."""
        self.there = list(there)
        self.reads = 0
        assert self.vigil.look() is any(there)
        return self.reads


@pytest.fixture
def ground():
    return Ground()


# -- luck


def test_what_is_always_found_is_always_tried():
    luck = Luck()
    for _ in range(100):
        assert not luck.pause
        luck.found()


def test_each_time_in_vain_is_paid_for_with_more_times_that_are_let_go():
    luck, pauses = Luck(), []
    for _ in range(6):
        luck.missed()
        pauses.append(luck.pause)
    assert pauses == [1, 4, 16, 64, 64, 64]


def test_what_is_found_makes_up_for_half_of_one_in_vain():
    luck = Luck()
    luck.missed()
    luck.found()
    luck.missed()
    assert luck.pause == 2


def test_how_much_has_to_be_paid_at_most_can_be_said():
    luck = Luck()
    for _ in range(10):
        luck.missed(3)
    assert luck.pause == 8


# -- keeping the loop awake


def test_the_loop_is_kept_awake_until_the_waiter_is_served(ground):
    assert ground.wait(served_after=5) == 6
    assert ground.soon == []


def test_it_is_kept_awake_for_a_moment_and_no_longer(ground):
    began = ground.now
    assert ground.wait() > 5
    assert 2 * MOMENT < ground.now - began < 2 * MOMENT + 2 * (ROUND + YIELD)


def test_where_answers_come_soon_every_wait_keeps_the_loop_awake(ground):
    assert all(ground.wait(served_after=3) for _ in range(100))


def test_where_they_never_do_one_in_65_does(ground):
    for _ in range(200):
        ground.wait()
    assert sum(ground.wait() > 0 for _ in range(65 * 4)) == 4


def test_a_loop_that_has_other_things_to_do_is_left_alone_at_once_and_for_long(ground):
    ground.round_takes = 1e-3
    assert ground.wait() == 1
    for _ in range(5000):
        ground.wait()
    assert sum(ground.wait() > 0 for _ in range(1025 * 2)) == 2


def test_one_that_waits_behind_another_keeps_nothing_awake(ground):
    first, second = Waiter(), Waiter()
    ground.vigil.keep(ground, first)
    ground.vigil.keep(ground, second)
    first.has_it = True
    ground.turn()
    assert ground.soon == []


def test_one_that_waits_after_another_was_served_is_kept_awake_for_its_own_moment(ground):
    first, second = Waiter(), Waiter()
    ground.vigil.keep(ground, first)
    for _ in range(10):
        ground.turn()
    first.has_it = True
    ground.vigil.keep(ground, second)
    began = ground.now
    while ground.soon:
        assert len(ground.soon) == 1
        ground.turn()
    assert ground.now - began > 2 * MOMENT


def test_a_waiter_that_gives_up_proves_nothing(ground):
    for _ in range(3):
        ground.wait()
    level = ground.vigil._waits._level
    ground.vigil._waits.pause = 0
    waiter = Waiter()
    ground.vigil.keep(ground, waiter)
    waiter.gave_up = True
    ground.turn()
    assert (ground.soon, ground.vigil._waits._level) == ([], level)


def test_nor_does_one_that_gives_up_just_before_another_waits(ground):
    for _ in range(3):
        ground.wait()
    level = ground.vigil._waits._level
    ground.vigil._waits.pause = 0
    first, second = Waiter(), Waiter()
    ground.vigil.keep(ground, first)
    first.gave_up = True
    ground.vigil.keep(ground, second)
    assert ground.vigil._waits._level == level


def test_what_is_forgotten_ends_with_the_next_round(ground):
    ground.vigil.keep(ground, Waiter())
    ground.vigil.forget()
    ground.turn()
    assert ground.soon == []


@pytest.mark.parametrize("ground", [Ground(links=0), Ground(seconds=0.0)], ids=["alone", "off"])
def test_where_nobody_could_answer_or_nobody_may_look_the_loop_sleeps(ground):
    assert ground.wait() == 0


# -- giving way


def test_others_may_run_in_each_round(ground):
    rounds = ground.wait(served_after=4)
    assert ground.yields == rounds - 1


def test_where_nobody_can_be_given_way_to_the_loop_is_kept_awake_all_the_same():
    ground = Ground(gives_way=False)
    assert ground.wait(served_after=4) == 5


def test_who_was_kept_waiting_for_a_slice_of_time_gives_way_no_more_for_seconds(ground):
    ground.yield_takes = 4e-3
    ground.wait()
    for _ in range(100):
        ground.vigil._waits.pause = ground.vigil._ways.pause = 0
        ground.wait()
        ground.look()
    assert ground.yields == 1
    ground.now += 11
    ground.vigil._waits.pause = 0
    ground.wait()
    assert ground.yields == 2


# -- looking


def test_a_look_finds_what_is_there(ground):
    assert ground.look(True) == 1
    assert ground.yields == 0


def test_a_look_lets_a_peer_on_our_processor_answer(ground):
    assert ground.look(False, True) == 2
    assert ground.yields == 1


def test_in_a_stream_every_call_looks_and_nobody_is_given_way_to(ground):
    assert [ground.look(True) for _ in range(100)] == [1] * 100
    assert ground.yields == 0


def test_where_nothing_ever_comes_few_calls_look(ground):
    for _ in range(200):
        ground.look()
    assert sum(ground.look() for _ in range(65 * 4)) == 2 * 4


def test_threads_that_use_the_same_context_are_not_kept_from_its_lock(ground):
    ground.context.reactor = object()
    assert ground.look() == 1
    assert ground.yields == 0


@pytest.mark.parametrize(
    "ground",
    [Ground(links=0), Ground(seconds=0.0), Ground(gives_way=False)],
    ids=["alone", "off", "no way"],
)
def test_where_nobody_is_given_way_to_only_what_is_there_is_read(ground):
    assert ground.look() == 1
    assert ground.yields == 0


# -- of the system


def test_the_environment_says_how_long(monkeypatch, ground):
    monkeypatch.setattr("zerohop.io.lookout._processors", lambda: 2)
    monkeypatch.setenv(VARIABLE, "30")
    assert make_vigil(ground)._seconds == pytest.approx(60e-6)
    monkeypatch.setattr(module.os, "sched_yield", None, raising=False)
    monkeypatch.setenv(VARIABLE, "0")
    assert make_vigil(ground)._seconds == 0
