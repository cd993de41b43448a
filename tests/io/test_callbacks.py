"""Handles, timers and descriptors: what is called, when, and what is not."""

import logging
import os
import threading
import weakref
from functools import partial

import pytest

from zerohop.io.callbacks import Descriptors, Handle, Timers
from zerohop.io.readiness import READ, WRITE


def handle(callback, *args, when=0.0):
    return Handle(callback, args, when)


def test_a_handle_calls_unless_it_was_cancelled(caplog):
    seen = []
    handle(seen.append, 1).run()
    cancelled = handle(seen.append, 2)
    cancelled.cancel()
    cancelled.run()
    assert seen == [1]


def test_a_cancelled_handle_holds_nothing():
    """It may wait among the timers for half a minute, and a closed socket should not."""

    class Socket:
        def call(self):
            raise AssertionError

    socket = Socket()
    gone = weakref.ref(socket)
    handle = Handle(socket.call, (socket,), 30.0)
    handle.cancel()
    del socket
    assert gone() is None
    handle.run()


def test_what_a_callback_raises_on_a_thread_of_ours_is_logged(caplog):
    failing = handle(lambda: {}["missing"])
    with caplog.at_level(logging.ERROR, "zerohop"):
        thread = threading.Thread(target=failing.run)
        thread.start()
        thread.join()
    assert "KeyError" in caplog.text


def test_what_it_raises_on_the_main_thread_is_a_signal_handlers_and_the_callers():
    with pytest.raises(TimeoutError):
        handle(_raise_timeout).run()


def _raise_timeout():
    raise TimeoutError


def test_timers_know_the_first_that_is_due_and_say_when_it_changes():
    timers = Timers()
    assert timers.add(handle(print, when=5.0))
    assert not timers.add(handle(print, when=6.0))
    assert timers.add(handle(print, when=4.0))
    assert timers.heap[0][0] == 4.0


def test_timers_run_what_is_due_in_order():
    timers, seen = Timers(), []
    for when in (3, 1, 2, 4):
        timers.add(handle(seen.append, when, when=when))
    timers.run(3)
    assert seen == [1, 2, 3]
    timers.run(3.9)
    timers.run(4)
    assert seen == [1, 2, 3, 4]


def test_cancelled_timers_are_weeded_out_and_live_ones_kept():
    timers = Timers()
    live = [handle(print, when=n) for n in range(100)]
    for n, timer in enumerate(live):
        timers.add(timer)
        for _ in range(10):
            gone = handle(print, when=1000 + n)
            timers.add(gone)
            gone.cancel()
    assert len(timers.heap) <= 2 * len(live)
    assert set(live) <= {timer for _, _, timer in timers.heap}


@pytest.fixture
def descriptors():
    descriptors = Descriptors()
    yield descriptors
    descriptors.close()


@pytest.fixture
def pipe():
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def turn(descriptors):
    serial = descriptors.serial
    descriptors.dispatch(descriptors.wait(0), serial)


def test_watching_again_replaces_the_callback_and_keeps_the_other_one(descriptors, pipe):
    writer = pipe[1]
    seen = []
    descriptors.watch(writer, writer=partial(seen.append, "old"))
    descriptors.watch(writer, writer=partial(seen.append, "new"))
    descriptors.watch(writer, reader=partial(seen.append, "reader"))
    turn(descriptors)
    assert seen == ["new"]
    assert descriptors
    assert descriptors.unwatch(writer, WRITE)
    assert descriptors.unwatch(writer, READ)
    assert not descriptors.unwatch(writer, READ)
    assert not descriptors


def test_a_callback_may_take_away_the_next_one(descriptors, pipe):
    _, writer = pipe
    seen = []
    os.close(pipe[0])  # the other end: the writer is broken, and ready for everything
    try:
        descriptors.watch(writer, reader=lambda: descriptors.unwatch(writer, WRITE))
        descriptors.watch(writer, writer=partial(seen.append, "writer"))
        turn(descriptors)
    finally:
        reopened, spare = os.pipe()
        os.close(spare)
        assert reopened == pipe[0]  # for the fixture
    assert seen == []


def test_what_a_callback_for_a_descriptor_raises_is_its_callers(descriptors, pipe):
    reader, writer = pipe
    os.write(writer, b"x")
    descriptors.watch(reader, reader=_raise_timeout)
    with pytest.raises(TimeoutError):
        turn(descriptors)
    descriptors.unwatch(reader, READ)
    descriptors.watch(writer, writer=_raise_timeout)
    with pytest.raises(TimeoutError):
        turn(descriptors)


def test_an_event_counts_only_for_what_was_watched_before(descriptors, pipe):
    writer = pipe[1]
    seen = []
    descriptors.watch(writer, writer=partial(seen.append, 1))
    events, serial = descriptors.wait(0), descriptors.serial
    descriptors.unwatch(writer, WRITE)
    descriptors.watch(writer, writer=partial(seen.append, 2))
    descriptors.dispatch(events, serial)
    assert seen == []
    turn(descriptors)
    assert seen == [2]


def test_the_doorbell_ends_a_wait_once(descriptors):
    descriptors.ring()
    descriptors.ring()
    events = descriptors.wait(-1)
    assert events
    descriptors.dispatch(events, descriptors.serial)
    assert descriptors.wait(0) == []
