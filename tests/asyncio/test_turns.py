"""Turns: what is written at once, when the clock is looked at, when it is time to yield."""

import threading
from types import SimpleNamespace

import pytest

from zerohop.asyncio import turns as module
from zerohop.asyncio.turns import CREDIT, LAST, MORE, TURN, Turns
from zerohop.core.output import FLUSH_SIZE

WRITE = 10e-6  # seconds that writing takes


class Ground:
    """A clock, a loop and a driver."""

    def __init__(self):
        self.now = 100.0
        self.soon = []
        self.writes = []  # when
        self.write_takes = WRITE
        self.alone = []  # when a lone message went the short way
        self.is_alone = False
        self.lock = threading.RLock()
        self.turns = Turns(self)
        self.turns.front, self.turns.answers = self, True
        self.answer = 0
        self.is_waited_for = False
        self.works = False

    def answers(self):
        """The front's."""
        return self.answer

    def waited_for(self):
        """The front's."""
        return self.is_waited_for

    def has_work(self):
        """The driver's."""
        return self.works

    def pump(self):
        """The driver's."""
        self.writes.append(self.now)
        self.now += self.write_takes

    def write_alone(self):
        """The driver's."""
        if self.is_alone:
            self.alone.append(self.now)
        return self.is_alone

    def call_soon(self, callback):
        """The loop's."""
        self.soon.append(callback)
        return callback

    def come_round(self):
        soon, self.soon = self.soon, []
        for callback in soon:
            callback()

    def send(self, octets=64, after=0.0):
        """A message is sent; return whether it was written at once."""
        self.now += after
        if self.turns.write_at_once(self):
            return True
        self.turns.sent(octets)
        return False

    def spend(self, after=0.0):
        self.now += after
        return self.turns.spend(self)


@pytest.fixture
def ground(monkeypatch):
    made = Ground()
    monkeypatch.setattr(module, "monotonic", lambda: made.now)
    return made


# -- what is written when


def test_the_first_message_goes_at_once_and_the_rest_together_at_the_end_of_the_turn(ground):
    assert ground.send()
    assert not any(ground.send(after=1e-6) for _ in range(50))
    assert len(ground.writes) == 1
    ground.come_round()
    assert len(ground.writes) == 2
    assert ground.soon == []


def test_a_lone_message_goes_the_short_way(ground):
    ground.is_alone = True
    assert ground.send()
    assert ground.alone == [100.0]
    assert not ground.writes


def test_where_somebody_waits_a_lone_message_goes_as_any_other(ground):
    ground.is_alone = True
    ground.is_waited_for = True
    assert ground.send()
    assert ground.writes == [100.0]
    assert not ground.alone


def test_messages_with_pauses_between_them_go_at_once_each(ground):
    for _ in range(20):
        assert ground.send(after=1e-3)
        ground.come_round()


@pytest.mark.parametrize(("size", "writes"), [(FLUSH_SIZE, 9), (FLUSH_SIZE // 4, 2)])
def test_what_comes_together_in_a_turn_is_written_when_it_is_enough(ground, size, writes):
    for _ in range(10):
        ground.send(size)
    assert len(ground.writes) == 1 + writes


def test_the_first_message_of_a_streams_next_turn_does_not_go_alone(ground):
    for _ in range(3):
        for _ in range(100):
            ground.send(100, after=1e-6)
        ground.come_round()
    assert len(ground.writes) == 1 + 3


def test_nor_does_it_where_all_of_the_turn_before_was_written_already(ground):
    at_once = []
    for _ in range(3):
        at_once += [ground.send(FLUSH_SIZE // 4, after=20e-6) for _ in range(4)]
        ground.come_round()
    assert at_once == [True] + [False] * 11


def test_it_does_again_when_a_turn_was_quiet(ground):
    for _ in range(2):
        ground.send(FLUSH_SIZE)
    ground.come_round()
    assert not ground.send()
    ground.come_round()
    assert ground.send(after=60e-6)
    assert ground.send(after=60e-6)


@pytest.mark.parametrize(("waits", "works"), [(False, False), (True, False), (False, True)])
def test_a_turn_in_which_nothing_was_sent_ends_without_a_write_unless_there_is_something(
    ground, waits, works
):
    ground.spend()
    ground.is_waited_for, ground.works = waits, works
    ground.come_round()
    assert len(ground.writes) == (waits or works)


def test_what_a_loop_left_unwritten_when_it_ended_does_not_hold_back_what_is_sent_on_the_next(
    ground,
):
    ground.send()
    ground.send()
    ground.turns.forget()
    ground.soon.clear()
    assert ground.send(after=1e-3)


def test_nor_is_what_was_written_on_it_taken_for_a_stream_on_the_next(ground):
    for _ in range(2):
        ground.send(FLUSH_SIZE)
    ground.turns.forget()
    ground.soon.clear()
    assert ground.send(after=1e-3)
    ground.now += 40e-6
    ground.come_round()
    assert ground.send(after=20e-6)


# -- answers


def test_the_answer_to_the_last_question_goes_at_once_whatever_was_written_before(ground):
    ground.answer = LAST
    for _ in range(10):
        assert ground.send(after=1e-6)


def test_answers_to_questions_before_the_last_go_with_it(ground):
    ground.answer = MORE
    assert not any(ground.send(after=1e-6) for _ in range(7))
    ground.answer = LAST
    assert ground.send(after=1e-6)
    assert len(ground.writes) == 1


def test_a_slow_program_does_not_keep_an_answer_back_for_the_next(ground):
    ground.spend()
    ground.spend(after=100 * TURN)  # it works for long on each message
    ground.come_round()
    ground.answer = MORE
    assert ground.send(after=1e-3)


def test_who_answers_without_ever_waiting_is_told_when_it_is_time_to_yield(ground):
    ground.answer = LAST
    ground.send()
    assert not ground.turns.late
    ground.send(after=2 * TURN)
    ground.send(after=2 * TURN)
    assert ground.turns.late
    ground.come_round()
    ground.send()
    assert not ground.turns.late


def test_a_receive_that_had_to_wait_shows_that_the_loop_comes_round(ground):
    for _ in range(20):
        ground.turns.resumed = True
        assert ground.send(after=1e-3)
        assert ground.soon == []


# -- credit


def test_a_quick_program_is_given_more_credit_and_a_slow_one_less(ground):
    given = []
    for _ in range(8):
        ground.spend(after=1e-6)
        given.append(ground.turns.credit)
    assert given == sorted(given)
    assert given[-1] == CREDIT
    ground.come_round()
    ground.spend()
    assert ground.spend(after=CREDIT * TURN)
    ground.come_round()
    ground.spend()
    assert ground.turns.credit == 1


def test_it_is_time_to_yield_when_the_turn_has_lasted_long_enough(ground):
    assert not ground.spend()
    assert not ground.spend(after=0.7 * TURN)
    assert ground.spend(after=0.7 * TURN)
    ground.come_round()
    assert not ground.spend()


def test_who_does_not_yield_gets_a_little_on_account(ground):
    ground.spend()
    for _ in range(10):
        assert ground.spend(after=2 * TURN)
        assert ground.turns.credit > 1


def test_who_does_not_yield_has_what_gathers_written_now_and_then(ground):
    ground.spend()
    for _ in range(10):
        ground.send()
        assert ground.spend(after=2 * TURN)
    assert len(ground.writes) >= 10


def test_what_writing_takes_is_no_work_of_the_programs(ground):
    ground.write_takes = 50 * TURN
    ground.send()
    ground.spend()
    ground.turns.sent(FLUSH_SIZE)
    assert ground.spend()
    ground.come_round()
    ground.spend()
    assert ground.turns.credit > 1


def test_credit_that_is_left_at_the_end_of_a_turn_is_no_more_than_the_next_turn_gives(ground):
    left = []
    ground.turns.directions = (SimpleNamespace(new_turn=left.append),)
    ground.spend()
    ground.come_round()
    ground.spend()
    ground.spend(after=100 * TURN)
    ground.come_round()
    ground.turns.forget()
    assert left == [8, 1, 1]
