"""When a lost endpoint is tried again, and when not."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerohop.constants import ReconnectStop
from zerohop.core.reconnect import Failure, ReconnectOptions, delay, next_delay, slow_delay

DEFAULT = ReconnectOptions()
jitters = st.floats(0, 1, exclude_max=True)
attempts = st.integers(0, 10**6)


def test_without_a_maximum_each_pause_is_the_interval_and_up_to_as_much_again():
    assert delay(0, DEFAULT, 0.0) == pytest.approx(0.1)
    assert delay(0, DEFAULT, 0.5) == pytest.approx(0.15)
    assert delay(1000, DEFAULT, 0.999) == pytest.approx(0.1999)


def test_with_a_maximum_the_pause_doubles_up_to_it():
    options = ReconnectOptions(ivl=0.1, ivl_max=1.0)
    longest = [delay(attempt, options, 1.0) for attempt in range(6)]
    assert longest == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])


def test_with_a_maximum_chance_takes_away_up_to_half():
    options = ReconnectOptions(ivl=0.1, ivl_max=1.0)
    assert delay(1, options, 0.0) == pytest.approx(0.1)
    assert delay(1, options, 0.5) == pytest.approx(0.15)


def test_a_maximum_below_the_interval_is_the_pause():
    assert delay(3, ReconnectOptions(ivl=1.0, ivl_max=0.2), 1.0) == pytest.approx(0.2)


@pytest.mark.parametrize("never", [None, 0.0])
@pytest.mark.parametrize("failure", Failure)
def test_an_interval_of_minus_one_or_zero_means_never(never, failure):
    options = ReconnectOptions(ivl=never, ivl_max=5.0)
    assert delay(0, options, 0.5) is None
    assert next_delay(failure, 0, options, 0.5) is None


def test_after_a_mismatch_it_goes_on_slowly():
    longest = [next_delay(Failure.MISMATCH, attempt, DEFAULT, 1.0) for attempt in range(7)]
    assert longest == pytest.approx([1, 2, 4, 8, 16, 30, 30])


def test_the_options_can_only_slow_the_slow_pace_down():
    assert slow_delay(0, ReconnectOptions(ivl=5.0), 1.0) == pytest.approx(5)
    assert slow_delay(9, ReconnectOptions(ivl=0.1, ivl_max=1.0), 1.0) == pytest.approx(30)
    assert slow_delay(99, ReconnectOptions(ivl=0.1, ivl_max=60.0), 1.0) == pytest.approx(60)
    assert slow_delay(9, ReconnectOptions(ivl=40.0), 1.0) == pytest.approx(40)


@pytest.mark.parametrize(
    "failure", [Failure.REFUSED, Failure.UNREACHABLE, Failure.HANDSHAKE, Failure.LOST]
)
def test_other_failures_are_tried_again_at_the_usual_pace(failure):
    assert next_delay(failure, 3, DEFAULT, 0.25) == delay(3, DEFAULT, 0.25)


STOPPED_BY = {
    Failure.REFUSED: {ReconnectStop.CONN_REFUSED},
    Failure.UNREACHABLE: set(),
    Failure.HANDSHAKE: {ReconnectStop.HANDSHAKE_FAILED},
    Failure.LOST: set(),
    Failure.MISMATCH: {ReconnectStop.HANDSHAKE_FAILED},
}


@pytest.mark.parametrize(("failure", "bit"), list(itertools.product(Failure, ReconnectStop)))
def test_reconnect_stop_ends_what_its_bit_names(failure, bit):
    gives_up = next_delay(failure, 0, ReconnectOptions(stop=bit), 0.0) is None
    assert gives_up == (bit in STOPPED_BY[failure])


@given(
    attempt=attempts,
    jitter=jitters,
    ivl=st.floats(0.001, 2**31),
    ivl_max=st.none() | st.floats(0.001, 2**31),
    failure=st.sampled_from(Failure),
)
def test_a_pause_is_positive_and_bounded_at_any_attempt(attempt, jitter, ivl, ivl_max, failure):
    pause = next_delay(failure, attempt, ReconnectOptions(ivl, ivl_max), jitter)
    assert 0 < pause <= max(2 * ivl, ivl_max or 0, 30)
