"""Alive, hung, gone: three states, each in its time, over a chosen clock."""

import pytest

from zerohop.serving.engine.liveness import EngineState, Liveness, Patience

PATIENCE = Patience(beat_every=1, gone_after=5, hung_after=10)


def ready_at(now):
    liveness = Liveness(PATIENCE, now)
    liveness.beat(0, now)
    liveness.ready(now)
    return liveness


def test_an_engine_is_starting_until_its_loop_has_answered():
    liveness = Liveness(PATIENCE, now=0)
    assert liveness.state is EngineState.STARTING
    liveness.ready(1)
    assert liveness.state is EngineState.ALIVE


def test_silence_for_the_time_given_is_the_end_of_it():
    liveness = ready_at(0)
    assert liveness.next_deadline() == 5
    assert liveness.handle_deadline(4.9) is EngineState.ALIVE
    assert liveness.handle_deadline(5) is EngineState.GONE


def test_an_engine_that_starts_and_falls_silent_is_gone_too():
    liveness = Liveness(PATIENCE, now=0)
    assert liveness.handle_deadline(5) is EngineState.GONE


def test_a_beat_puts_the_end_off():
    liveness = ready_at(0)
    liveness.beat(1, now=4)
    assert liveness.next_deadline() == 9
    assert liveness.handle_deadline(8.9) is EngineState.ALIVE


def test_beats_without_progress_while_there_is_work_are_those_of_a_hung_engine():
    liveness = ready_at(0)
    liveness.has_work(True, now=2)
    for now in range(3, 12):
        liveness.beat(0, now)
        assert liveness.handle_deadline(now) is EngineState.ALIVE
    liveness.beat(0, 12)
    assert liveness.handle_deadline(12) is EngineState.HUNG


def test_an_engine_without_work_is_never_hung():
    liveness = ready_at(0)
    for now in range(100):
        liveness.beat(0, now)
        assert liveness.handle_deadline(now) is EngineState.ALIVE


def test_the_time_without_progress_counts_from_when_there_is_work():
    liveness = ready_at(0)
    liveness.beat(0, 50)
    liveness.has_work(True, now=50)
    liveness.has_work(True, now=59)
    assert liveness.handle_deadline(51) is EngineState.ALIVE
    liveness.beat(0, 59)
    assert liveness.next_deadline() == 60
    assert liveness.handle_deadline(60) is EngineState.HUNG


def hung_at(now):
    liveness = ready_at(now - 10)
    liveness.has_work(True, now - 10)
    liveness.beat(0, now)
    assert liveness.handle_deadline(now) is EngineState.HUNG
    return liveness


def test_progress_ends_the_hang():
    liveness = hung_at(10)
    liveness.beat(1, 11)
    assert liveness.state is EngineState.ALIVE
    assert liveness.handle_deadline(12) is EngineState.ALIVE


def test_outputs_end_the_hang():
    liveness = hung_at(10)
    liveness.moved(11)
    assert liveness.state is EngineState.ALIVE


def test_an_engine_whose_work_was_taken_away_hangs_until_it_makes_progress():
    liveness = hung_at(10)
    liveness.has_work(False, 11)
    liveness.beat(0, 12)
    assert liveness.handle_deadline(12) is EngineState.HUNG
    liveness.beat(1, 13)
    assert liveness.handle_deadline(13) is EngineState.ALIVE


def test_work_that_comes_and_is_taken_away_does_not_hide_that_nothing_moves():
    liveness = ready_at(0)
    for now in range(0, 10, 2):
        liveness.has_work(True, now)
        liveness.beat(0, now + 1)
        liveness.has_work(False, now + 1)
        assert liveness.handle_deadline(now + 1) is EngineState.ALIVE
    assert liveness.next_deadline() == 10
    assert liveness.handle_deadline(10) is EngineState.HUNG


def test_work_that_has_been_done_leaves_nothing_to_wait_for():
    liveness = ready_at(0)
    liveness.has_work(True, 1)
    liveness.moved(2)
    liveness.has_work(False, 2)
    liveness.beat(0, 20)
    assert liveness.next_deadline() == 25
    assert liveness.handle_deadline(20) is EngineState.ALIVE


def test_a_hung_engine_that_falls_silent_is_gone():
    liveness = hung_at(10)
    assert liveness.next_deadline() == 15
    assert liveness.handle_deadline(15) is EngineState.GONE


def test_what_is_gone_stays_gone():
    liveness = ready_at(0)
    liveness.gone()
    assert liveness.state is EngineState.GONE
    assert liveness.next_deadline() is None
    liveness.beat(1, 1)
    assert liveness.handle_deadline(1) is EngineState.GONE


def test_an_engine_that_starts_slowly_is_not_hung():
    liveness = Liveness(PATIENCE, now=0)
    liveness.has_work(True, 0)
    liveness.beat(0, 20)
    assert liveness.handle_deadline(20) is EngineState.STARTING


@pytest.mark.parametrize("beat, gone", [(0, 5), (5, 5), (6, 5)])
def test_beats_must_fit_into_the_time_after_which_a_side_is_gone(beat, gone):
    with pytest.raises(ValueError, match="below gone_after=5"):
        Patience(beat_every=beat, gone_after=gone)


def test_engines_wait_six_times_as_long_for_an_api_server_unless_told_otherwise():
    assert PATIENCE.of_server == 30
    assert Patience(server_gone_after=7).of_server == 7


@pytest.mark.parametrize("times", [{"server_gone_after": 1}, {"hung_after": 0}])
def test_times_that_would_always_be_over_are_refused(times):
    with pytest.raises(ValueError, match="must be above"):
        Patience(**times)


@pytest.mark.parametrize("name", ["beat_every", "gone_after", "hung_after", "server_gone_after"])
def test_a_time_is_a_number_of_seconds(name):
    with pytest.raises(TypeError, match=f"{name} is a number of seconds, not '1'"):
        Patience(**{name: "1"})
