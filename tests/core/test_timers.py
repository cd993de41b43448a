"""What is due when, whatever has changed meanwhile."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.wire.kit import calls_during
from zerohop.core.timers import Timers


class Thing:
    """A link or a dialler, as far as timers care."""

    due_at = None


def due(timers, now):
    """All that is due by now, in order."""
    things = []
    while (thing := timers.pop(now)) is not None:
        things.append(thing)
    return things


def test_nothing_is_due_at_first():
    timers = Timers()
    assert timers.next() is None
    assert timers.pop(1e9) is None


def test_what_is_due_comes_the_most_overdue_first():
    timers = Timers()
    first, second, later = Thing(), Thing(), Thing()
    for thing, when in ((later, 3.0), (second, 2.0), (first, 1.0)):
        timers.arm(thing, when)
    assert timers.next() == 1.0
    assert due(timers, 2.5) == [first, second]
    assert timers.next() == 3.0


def test_things_due_at_the_same_moment_come_in_the_order_they_were_armed():
    timers = Timers()
    things = [Thing() for _ in range(5)]
    for thing in things:
        timers.arm(thing, 1.0)
    assert due(timers, 1.0) == things


def test_a_thing_that_was_taken_is_not_due_again():
    timers, thing = Timers(), Thing()
    timers.arm(thing, 1.0)
    assert due(timers, 1.0) == [thing]
    assert thing.due_at is None
    assert due(timers, 9.0) == []


def test_an_earlier_moment_takes_the_place_of_a_later_one():
    timers, thing = Timers(), Thing()
    timers.arm(thing, 5.0)
    timers.arm(thing, 1.0)
    assert timers.next() == 1.0
    assert due(timers, 9.0) == [thing]  # once


def test_a_later_moment_does_not_take_the_place_of_an_earlier_one():
    timers, thing = Timers(), Thing()
    timers.arm(thing, 1.0)
    timers.arm(thing, 5.0)
    assert timers.next() == 1.0
    assert due(timers, 9.0) == [thing]


def test_who_needs_no_timer_any_more_says_so_by_due_at():
    timers, gone, stays = Timers(), Thing(), Thing()
    timers.arm(gone, 1.0)
    timers.arm(stays, 2.0)
    gone.due_at = None
    assert timers.next() == 2.0
    assert due(timers, 9.0) == [stays]


def test_whoever_keeps_time_is_told_when_to_look_again():
    timers, thing = Timers(), Thing()
    timers.arm(thing, 1.0)
    assert timers.stale
    timers.next()
    assert not timers.stale
    timers.arm(thing, 2.0)  # changes nothing
    assert not timers.stale
    timers.pop(0.5)
    assert timers.stale


def test_strangers_who_come_and_go_leave_no_entries_behind():
    timers, stays = Timers(), Thing()
    timers.arm(stays, 30.0)
    for n in range(10_000):
        stranger = Thing()
        timers.arm(stranger, 30.0 + n / 1000)
        stranger.due_at = None
    assert len(timers) < 200
    assert due(timers, 100.0) == [stays]


def test_one_that_moves_its_moment_forward_for_ever_leaves_no_entries_behind():
    timers, thing = Timers(), Thing()
    for n in range(10_000):
        timers.arm(thing, 10_000.0 - n)
    assert len(timers) < 200


def test_many_that_are_due_are_all_kept():
    timers = Timers()
    things = [Thing() for _ in range(1000)]
    for n, thing in enumerate(things):
        timers.arm(thing, float(n))
    assert due(timers, 1000.0) == things


def test_when_entries_are_swept_out_the_rest_keep_their_order():
    timers, random = Timers(), Random(1)
    things = [Thing() for _ in range(1000)]
    for thing in things:
        timers.arm(thing, random.random())
        if random.random() < 0.7:
            random.choice(things).due_at = None
    left = sorted(thing.due_at for thing in things if thing.due_at is not None)
    order = [timers.next()]
    while timers.pop(order[-1]):
        order.append(timers.next())
    assert order == [*left, None]


def test_arming_costs_the_same_however_many_are_armed():
    timers, things = Timers(), [Thing() for _ in range(10_000)]

    def arm_all():
        for n, thing in enumerate(things):
            timers.arm(thing, float(n))

    assert calls_during(arm_all) <= 3 * len(things) + 100


steps = st.lists(
    st.one_of(
        st.tuples(st.just("arm"), st.integers(0, 4), st.integers(0, 20)),
        st.tuples(st.just("disarm"), st.integers(0, 4), st.just(0)),
        st.tuples(st.just("pop"), st.just(0), st.integers(0, 20)),
    ),
    max_size=200,
)


@given(steps=steps)
def test_each_thing_is_due_once_at_the_earliest_moment_it_was_armed_for(steps):
    timers, things = Timers(), [Thing() for _ in range(5)]
    model = {}
    for what, which, when in steps:
        if what == "arm":
            timers.arm(things[which], when)
            model[which] = min(when, model.get(which, when))
        elif what == "disarm":
            things[which].due_at = None
            model.pop(which, None)
        else:
            ready = {which for which, due_at in model.items() if due_at <= when}
            assert {things.index(thing) for thing in due(timers, when)} == ready
            model = {which: due_at for which, due_at in model.items() if due_at > when}
        assert timers.next() == min(model.values(), default=None)


def test_all_can_be_forgotten():
    timers = Timers()
    timers.arm(Thing(), 1.0)
    timers.clear()
    assert (len(timers), timers.next(), timers.pop(2.0)) == (0, None, None)
