"""How callers and the helper thread sleep; an exception in between leaves no lock askew."""

import threading
import time

import pytest

from zerohop.io import seat
from zerohop.io.reactor import Reactor
from zerohop.io.seat import FOREVER, LONGEST_REST, REST, Helper, Waiter, take_back

SOON = 8.0


class Interrupted(Exception):
    """What a signal handler raises."""


class Lock:
    """An RLock whose acquire raises, before or after it has done its work, as a signal would."""

    def __init__(self, *raises):
        self._lock = threading.RLock()
        self._raises = list(raises)

    def acquire(self):
        when = self._raises.pop(0) if self._raises else None
        if when == "before":
            raise Interrupted
        self._lock.acquire()
        if when == "after":
            raise Interrupted

    def release(self):
        self._lock.release()

    def _is_owned(self):
        return self._lock._is_owned()

    def __enter__(self):
        self._lock.acquire()

    def __exit__(self, *_):
        self._lock.release()


@pytest.mark.parametrize(
    "raises",
    [
        ["before"],
        ["after"],
        ["before", "before"],
        ["before", "after"],
        ["before", "before", "after"],
    ],
)
def test_a_lock_is_taken_back_whatever_is_raised_meanwhile(raises):
    lock = Lock(*raises)
    with pytest.raises(Interrupted):
        lock.acquire()
    take_back(lock)
    assert lock._is_owned()
    lock.release()
    assert not lock._is_owned()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_parked_call_holds_the_lock_when_its_sleep_is_interrupted(when):
    lock = Lock(None, when)
    reactor = Reactor(lock)
    lock.acquire()
    with pytest.raises(Interrupted):
        Waiter(reactor).park(lock, 0.001)
    assert lock._is_owned()
    lock.release()
    assert not lock._is_owned()
    reactor.stop()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_driving_call_holds_the_lock_when_its_sleep_is_interrupted(when):
    lock = Lock(None, when)
    reactor = Reactor(lock)
    lock.acquire()
    with pytest.raises(Interrupted):
        reactor.wait(Waiter(reactor), reactor.time() + 0.001)
    assert lock._is_owned()
    assert not reactor.occupied
    lock.release()
    reactor.stop()


def test_a_call_that_is_not_parked_is_not_offered_the_seat():
    reactor = Reactor(threading.RLock())
    waiter = Waiter(reactor)
    assert not waiter.offer()
    waiter.wake()
    assert waiter.done
    reactor.stop()


def test_where_no_thread_can_be_had_callers_drive_and_the_next_call_tries_again(monkeypatch):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    reactor = Reactor(threading.RLock())
    with monkeypatch.context() as patch, reactor.lock:
        patch.setattr(threading.Thread, "start", refuse)
        waiter = Waiter(reactor)
        reactor.call_soon(waiter.wake)
        assert not reactor._helper.started
        assert reactor.wait(waiter, reactor.time() + SOON)
    ran = threading.Event()
    with reactor.lock:
        reactor.call_soon(ran.set)
    assert ran.wait(SOON)
    reactor.stop()


def test_after_a_long_wait_the_helper_first_looks_whether_the_caller_comes_back():
    """A caller that waits again and again, for long each time, shall find the seat free."""
    reactor = Reactor(threading.RLock())
    with reactor.lock:
        reactor.call_at(reactor.time() + 1000, print)  # so that the helper has a reason to be
        for _ in range(3):
            assert not reactor.wait(Waiter(reactor), reactor.time() + 5 * REST)
            assert not reactor._helper.drives
    deadline = time.monotonic() + SOON
    while not reactor._helper.drives:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    reactor.stop()


def test_while_connection_after_connection_is_made_the_helper_rests_after_each_turn(
    ends, monkeypatch
):
    """It would take the interpreter from the program for each answer that comes."""
    reactor, rests = Reactor(threading.RLock()), []
    helper, here, there = reactor._helper, *ends
    rest = Helper._rest

    def recorded(helper, seconds):
        rests.append((seconds, helper.drives))
        rest(helper, seconds)

    monkeypatch.setattr(Helper, "_rest", recorded)
    with reactor.lock:
        reactor.add_reader(here.fileno(), lambda: here.recv(100))
    until(lambda: helper.drives)
    with reactor.lock:
        rests.clear()
        reactor.connects += 1
        there.send(b"answered")
    until(lambda: rests)
    assert rests[0] == (REST, False)
    until(lambda: helper.drives)  # no more have come
    reactor.stop()


@pytest.fixture
def resting():
    """A reactor whose helper has a reason to be, and has seen callers come and go for a while."""
    made = Reactor(threading.RLock())
    with made.lock:
        made.call_at(made.time() + 1000, print)
        while made._helper._pause < LONGEST_REST:
            made.wait(Waiter(made), made.time() + REST / 10)
    yield made
    made.stop()


def until(condition):
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_the_helper_sleeps_for_good_while_one_call_waits_for_long_and_is_told_of_its_end(resting):
    waiter = Waiter(resting)

    def wait():
        with resting.lock:
            resting.wait(waiter, FOREVER)

    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: resting._helper.looks_at == FOREVER)
    resting.call_soon_threadsafe(waiter.wake)
    thread.join(SOON)
    until(lambda: resting._helper.drives)


def test_a_timer_that_no_caller_has_come_for_brings_the_helper_before_its_rest_is_over(resting):
    """It looks a little after the first one is due, and drives if that is still to be done."""

    def is_run_by_the_helper():
        ran = []
        with resting.lock:
            when = resting.time() + 0.01
            resting.call_at(when, lambda: ran.append(resting._helper.drives))
            resting.wait(Waiter(resting), resting.time() + 0.001)  # a caller was here only just now
        until(lambda: ran)
        return ran[0]

    # On a busy machine the caller may come back so late that it runs the timer itself.
    assert any(is_run_by_the_helper() for _ in range(100))


def test_after_a_long_time_without_callers_the_helper_rests_shortly_again(resting, monkeypatch):
    until(lambda: resting._helper.drives)
    monkeypatch.setattr(seat, "_LONG", 0.0)
    with resting.lock:
        resting.wait(Waiter(resting), resting.time() + 0.001)
    until(lambda: resting._helper._pause < LONGEST_REST)
