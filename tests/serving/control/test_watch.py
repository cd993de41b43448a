"""Silence proves something to who was awake."""

from zerohop.serving.control.watch import Watch


def test_who_looks_in_time_may_judge():
    watch = Watch(2.0)
    watch.look(0.0)
    for now in (1.0, 2.0, 4.5, 7.0):
        watch.look(now)
    assert watch.judge_from == 2.0  # of the beginning


def test_a_look_that_is_half_a_period_late_is_in_time():
    watch = Watch(2.0)
    watch.look(0.0)
    watch.look(3.0)
    assert watch.judge_from == 2.0
    watch.look(6.5)
    assert watch.judge_from == 8.5


def test_who_stood_still_listens_before_it_judges():
    watch = Watch(2.0)
    watch.look(0.0)
    watch.look(60.0)
    assert watch.judge_from == 62.0
    watch.look(61.0)
    assert watch.judge_from == 62.0


def test_it_is_looked_once_in_a_while_and_when_somebodys_time_runs_out():
    watch = Watch(2.0)
    watch.look(10.0)
    assert watch.next_look(100.0) == 12.0
    watch.look(12.0)
    assert watch.next_look(12.5) == 12.5


def test_nobodys_time_runs_out_before_it_may_be_judged():
    watch = Watch(2.0)
    watch.look(0.0)
    watch.look(60.0)
    watch.look(60.5)
    assert watch.next_look(5.0) == 62.0


def test_a_time_that_goes_back_changes_nothing():
    watch = Watch(2.0)
    watch.look(10.0)
    watch.look(9.0)
    assert watch.next_look(100.0) == 12.0
