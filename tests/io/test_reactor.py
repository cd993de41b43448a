"""The reactor: callbacks, descriptors, timers; one thread in the seat, whoever it is."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from zerohop.io import readiness
from zerohop.io.reactor import Reactor
from zerohop.io.seat import REST, Waiter

SOON = 5.0  # seconds: what happens at once happens within this on a busy machine


@pytest.fixture(params=["epoll", "selectors"])
def reactor(request, monkeypatch):
    if request.param == "selectors":
        monkeypatch.delattr(readiness.select, "epoll")
        monkeypatch.delattr(readiness.os, "eventfd")
    reactor = Reactor(threading.RLock())
    yield reactor
    reactor.stop()


def wait(reactor, waiter, seconds=SOON):
    with reactor.lock:
        return reactor.wait(waiter, reactor.time() + seconds)


def call(reactor, name, *args):
    with reactor.lock:
        return getattr(reactor, name)(*args)


def in_thread(call, *args):
    """Run a call in a thread; return a function that waits for what it returns."""
    result = []
    thread = threading.Thread(target=lambda: result.append(call(*args)), daemon=True)
    thread.start()

    def join():
        thread.join(SOON)
        assert not thread.is_alive()
        return result[0]

    return join


def until(condition):
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_a_callback_runs_in_the_next_turn_with_the_lock_held(reactor):
    waiter, held = Waiter(reactor), []

    def callback(*args):
        held.append((args, reactor.lock._is_owned()))
        waiter.wake()

    call(reactor, "call_soon", callback, 1, 2)
    assert wait(reactor, waiter)
    assert held == [((1, 2), True)]


def test_the_helper_runs_callbacks_while_nobody_waits(reactor):
    ran = threading.Event()
    call(reactor, "call_soon", ran.set)
    assert ran.wait(SOON)
    ran.clear()
    call(reactor, "call_soon_threadsafe", ran.set)
    assert ran.wait(SOON)


def test_callbacks_come_in_order(reactor):
    waiter, seen = Waiter(reactor), []
    with reactor.lock:
        for n in range(10):
            reactor.call_soon(seen.append, n)
        reactor.call_soon(waiter.wake)
        assert reactor.wait(waiter, reactor.time() + SOON)
    assert seen == list(range(10))


def test_a_cancelled_callback_does_not_run(reactor):
    waiter, seen = Waiter(reactor), []
    with reactor.lock:
        reactor.call_soon(seen.append, 1).cancel()
        reactor.call_at(reactor.time(), seen.append, 2).cancel()
        reactor.call_at(reactor.time() + 0.001, waiter.wake)
        assert reactor.wait(waiter, reactor.time() + SOON)
    assert seen == []


def test_timers_run_in_order_of_time_and_not_too_soon(reactor):
    waiter, seen = Waiter(reactor), []
    with reactor.lock:
        start = reactor.time()
        reactor.call_at(start + 0.03, waiter.wake)
        reactor.call_at(start + 0.02, seen.append, 2)
        reactor.call_at(start + 0.01, seen.append, 1)
        assert reactor.wait(waiter, start + SOON)
        assert reactor.time() >= start + 0.03
    assert seen == [1, 2]


def test_a_sleeping_driver_notices_an_earlier_timer(reactor):
    waiter = Waiter(reactor)
    join = in_thread(wait, reactor, waiter)
    until(lambda: reactor._asleep)
    call(reactor, "call_at", reactor.time() + 0.01, waiter.wake)
    assert join()


@pytest.mark.parametrize("before", ["nobody came", "a caller came and left", "it drives"])
def test_the_helper_comes_by_for_what_no_caller_did_in_time(reactor, ends, before):
    done = threading.Event()
    if before == "a caller came and left":
        call(reactor, "add_reader", ends[0].fileno(), lambda: None)
        assert not wait(reactor, Waiter(reactor), 0.001)
    elif before == "it drives":
        call(reactor, "add_reader", ends[0].fileno(), lambda: None)
        until(lambda: reactor._asleep)
    call(reactor, "call_by", reactor.time() + 0.001, done.set)
    assert done.wait(SOON)


def test_for_what_a_caller_will_do_no_helper_is_woken(reactor, ends, monkeypatch):
    """As long as callers come and go it looks by itself whether they still do: soon, here."""
    call(reactor, "add_reader", ends[0].fileno(), lambda: None)
    called, done = [], threading.Event()
    with reactor.lock:
        while True:
            assert not reactor.wait(Waiter(reactor), reactor.time() + REST / 4)
            if 0 < reactor._helper.looks_at < reactor.time() + REST / 4:
                break
        with monkeypatch.context() as patched:
            patched.setattr(reactor._helper, "call", lambda: called.append("helper"))
            reactor.call_by(reactor.time() + 0.001, done.set)
    assert not called
    assert done.wait(SOON)


def test_cancelled_timers_do_not_pile_up(reactor):
    with reactor.lock:
        for n in range(10_000):
            reactor.call_at(reactor.time() + 1000 + n, print).cancel()
        assert len(reactor._timers.heap) <= 64


def test_readers_and_writers_are_told_of_their_own_events(reactor, ends):
    a, b = ends
    waiter, seen = Waiter(reactor), []
    with reactor.lock:
        reactor.add_writer(a.fileno(), lambda: (seen.append("write"), waiter.wake()))
        assert reactor.wait(waiter, reactor.time() + SOON)
        assert reactor.remove_writer(a.fileno())
        waiter = Waiter(reactor)
        reactor.add_reader(a.fileno(), lambda: (seen.append("read"), waiter.wake()))
        assert not reactor.wait(waiter, reactor.time() + 0.01)
        b.send(b"x")
        assert reactor.wait(waiter, reactor.time() + SOON)
    assert set(seen[:-1]) == {"write"}
    assert seen[-1] == "read"


def test_a_hang_up_reaches_reader_and_writer(reactor, ends):
    a, b = ends
    a.send(b"unread: closing resets the connection")
    waiter, seen = Waiter(reactor), set()
    with reactor.lock:
        reactor.add_reader(a.fileno(), seen.add, "read")
        reactor.add_writer(a.fileno(), lambda: (seen.add("write"), waiter.wake()))
        b.close()
        assert reactor.wait(waiter, reactor.time() + SOON)
        reactor.poll()
    assert seen == {"read", "write"}


def test_removing_says_whether_there_was_anything_to_remove(reactor, ends):
    fd = ends[0].fileno()
    with reactor.lock:
        assert not reactor.remove_reader(fd)
        assert not reactor.remove_writer(fd)
        reactor.add_reader(fd, print)
        assert not reactor.remove_writer(fd)
        reactor.add_writer(fd, print)
        assert reactor.remove_reader(fd)
        assert reactor.remove_writer(fd)
        assert not reactor.remove_reader(fd)


def test_a_closed_descriptor_can_still_be_removed(reactor, ends):
    fd = ends[0].fileno()
    with reactor.lock:
        reactor.add_reader(fd, print)
        ends[0].close()
        assert reactor.remove_reader(fd)


def test_an_event_of_a_closed_descriptor_is_not_taken_for_its_successors(reactor, ends):
    """Two are ready in one turn; the first one's callback replaces the second under its number."""
    a, b = ends
    c, d = socket.socketpair()
    e, f = socket.socketpair()
    other = {a: c, c: a}
    told = []

    def replace(end):
        end.setblocking(False)
        end.recv(10)
        reactor.remove_reader(end.fileno())
        gone = other[end]
        number = gone.fileno()
        reactor.remove_reader(number)
        os.dup2(e.fileno(), number)
        reactor.add_reader(number, told.append, "new")

    with contextlib.closing(d), contextlib.closing(e), contextlib.closing(f), reactor.lock:
        reactor.add_reader(a.fileno(), replace, a)
        reactor.add_reader(c.fileno(), replace, c)
        b.send(b"x")
        d.send(b"x")
        reactor.poll()
        assert told == []
        f.send(b"x")
        reactor.poll()
        assert told == ["new"]
        for end in other:
            reactor.remove_reader(end.fileno())
    c.close()


def test_registering_wakes_no_thread_but_is_seen_by_the_one_that_sleeps(reactor, ends):
    a, b = ends
    waiter = Waiter(reactor)
    join = in_thread(wait, reactor, waiter)
    until(lambda: reactor._asleep)
    b.send(b"x")
    call(reactor, "add_reader", a.fileno(), waiter.wake)
    assert join()


def test_what_a_signal_handler_raises_in_a_callback_reaches_the_caller_and_the_others_run(reactor):
    waiter = Waiter(reactor)
    with reactor.lock:
        reactor.call_soon(lambda: 1 / 0)
        reactor.call_soon(waiter.wake)
        with pytest.raises(ZeroDivisionError):
            reactor.wait(waiter, reactor.time() + SOON)
        assert waiter.done or reactor.wait(waiter, reactor.time() + SOON)


def test_waiting_ends_at_the_deadline(reactor):
    start = time.monotonic()
    assert not wait(reactor, Waiter(reactor), 0.02)
    assert 0.02 <= time.monotonic() - start < SOON


def test_a_waiter_that_was_woken_does_not_wait(reactor):
    waiter = Waiter(reactor)
    with reactor.lock:
        waiter.wake()
        waiter.wake()
        assert reactor.wait(waiter, reactor.time() - 1)


def test_a_caller_drives_and_the_others_park_until_they_are_woken(reactor, ends):
    a, b = ends
    waiters = [Waiter(reactor) for _ in range(4)]
    woken = iter(waiters)

    def read():
        a.recv(1)
        next(woken).wake()

    joins = [in_thread(wait, reactor, waiter) for waiter in waiters]
    until(lambda: reactor._inside == 4 and reactor._asleep)
    call(reactor, "add_reader", a.fileno(), read)
    for _ in waiters:
        b.send(b"x")
    assert all(join() for join in joins)
    call(reactor, "remove_reader", a.fileno())


def test_when_the_driving_caller_leaves_a_parked_one_drives(reactor, ends):
    a, b = ends
    first, second = Waiter(reactor), Waiter(reactor)
    driving = in_thread(wait, reactor, first)
    until(lambda: reactor._asleep)
    parked = in_thread(wait, reactor, second)
    until(lambda: reactor._parked)
    call(reactor, "call_soon", first.wake)
    assert driving()
    call(reactor, "add_reader", a.fileno(), second.wake)
    b.send(b"x")
    assert parked()


def test_a_parked_caller_gives_up_at_its_deadline(reactor):
    driver = Waiter(reactor)
    join = in_thread(wait, reactor, driver)
    until(lambda: reactor._asleep)
    assert not wait(reactor, Waiter(reactor), 0.02)
    assert not reactor._parked
    call(reactor, "call_soon", driver.wake)
    assert join()


def test_the_helper_leaves_the_seat_to_a_caller(reactor, ends):
    a, b = ends
    waiter, drove = Waiter(reactor), []

    def read():
        drove.append(threading.current_thread())
        a.recv(1)
        waiter.wake()

    call(reactor, "add_reader", a.fileno(), read)
    until(lambda: reactor._helper.drives and reactor._asleep)
    join = in_thread(wait, reactor, waiter)
    until(lambda: reactor._inside and not reactor._helper.drives and reactor._asleep)
    b.send(b"x")
    assert join()
    assert drove[0].name != "zerohop"


def test_the_helper_takes_the_seat_back_when_no_caller_comes(reactor, ends):
    a, b = ends
    read = threading.Event()
    call(reactor, "add_reader", a.fileno(), lambda: (a.recv(1), read.set()))
    for _ in range(3):
        with reactor.lock:
            assert not reactor.wait(Waiter(reactor), reactor.time() + 3 * REST)
        read.clear()
        b.send(b"x")
        assert read.wait(SOON)


def test_a_program_that_only_polls_gets_its_io_done_by_its_polls(reactor, ends):
    a, b = ends
    drove = []

    def read():
        drove.append((a.recv(1), threading.current_thread()))

    call(reactor, "add_reader", a.fileno(), read)

    def polled():
        b.send(b"x")
        until(lambda: call(reactor, "poll") or drove)
        return drove.pop() == (b"x", threading.main_thread())

    until(polled)  # the helper may have been quicker while this thread was not polling


def test_a_poll_makes_a_sleeping_helper_leave_the_seat(reactor, ends):
    call(reactor, "add_reader", ends[0].fileno(), print)
    until(lambda: reactor._helper.drives and reactor._asleep)
    # Again and again: it takes the seat back after REST, which a busy machine may let us miss.
    until(lambda: call(reactor, "poll") or not reactor._driver)


def test_callbacks_from_many_threads_without_the_lock_all_run(reactor):
    waiter, seen = Waiter(reactor), []

    def arrive(n):
        seen.append(n)
        if len(seen) == 8 * 200:
            waiter.wake()

    def work(base):
        for n in range(200):
            reactor.call_soon_threadsafe(arrive, base + n)

    joins = [in_thread(work, 1000 * t) for t in range(8)]
    assert wait(reactor, waiter)
    for join in joins:
        join()
    assert len(set(seen)) == 1600


def test_waiters_of_many_threads_are_all_woken_one_by_one(reactor, ends):
    """Callers come and go while others drive: the seat is never left empty with somebody parked."""
    a, b = ends
    waiting, done = [], []
    call(reactor, "add_reader", a.fileno(), lambda: (a.recv(1), waiting and waiting.pop().wake()))

    def work():
        for _ in range(100):
            with reactor.lock:
                waiter = Waiter(reactor)
                waiting.append(waiter)
                b.send(b"x")
                done.append(reactor.wait(waiter, reactor.time() + SOON))
        return True

    assert all(join() for join in [in_thread(work) for _ in range(4)])
    assert done == [True] * 400


def test_a_nested_wait_in_a_signal_handler_drives_too(reactor):
    """The handler interrupts our own sleep: nobody else will run what it waits for."""
    inner = Waiter(reactor)
    outer = Waiter(reactor)

    def handler(*_):
        reactor.call_soon_threadsafe(inner.wake)
        assert wait(reactor, inner)
        reactor.call_soon_threadsafe(outer.wake)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        assert wait(reactor, outer)
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("parked", [False, True], ids=["driving", "parked"])
def test_an_exception_from_a_signal_handler_ends_the_wait_and_frees_the_seat(reactor, parked):
    def handler(*_):
        raise KeyboardInterrupt

    driver = Waiter(reactor)
    join = in_thread(wait, reactor, driver) if parked else None
    until(lambda: reactor._asleep or not parked)
    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(KeyboardInterrupt):
            wait(reactor, Waiter(reactor))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not reactor.lock._is_owned()
    if join:
        call(reactor, "call_soon", driver.wake)
        assert join()
    waiter = Waiter(reactor)
    call(reactor, "call_soon", waiter.wake)
    assert wait(reactor, waiter)


def test_stopping_ends_the_helper_and_closes_what_was_opened(ends):
    before = set(os.listdir("/proc/self/fd"))
    reactor = Reactor(threading.RLock())
    call(reactor, "add_reader", ends[0].fileno(), print)
    until(lambda: reactor._helper.drives)
    reactor.stop()
    reactor.stop()
    assert not [t for t in threading.enumerate() if t.name == "zerohop"]
    assert set(os.listdir("/proc/self/fd")) == before
    call(reactor, "add_reader", ends[0].fileno(), print)
    call(reactor, "call_soon", print)
    assert not call(reactor, "remove_reader", ends[0].fileno())


def test_stopping_from_the_helper_itself_does_not_wait_for_itself(reactor):
    stopped = threading.Event()
    call(reactor, "call_soon", lambda: (reactor.stop(), stopped.set()))
    assert stopped.wait(SOON)
    until(lambda: reactor.closed)


def test_a_reactor_that_nobody_stops_needs_no_thread_while_there_is_nothing_to_do():
    reactor = Reactor(threading.RLock())
    assert not wait(reactor, Waiter(reactor), 0)
    assert not [t for t in threading.enumerate() if t.name == "zerohop"]
    reactor.stop()


def test_a_child_process_has_a_closed_reactor_and_leaves_the_parents_alone():
    program = """
        import os, socket
        from zerohop import Context
        from zerohop.io.seat import Waiter

        a, b = socket.socketpair()
        context = Context()
        reactor = context._reactor
        waiter = Waiter(reactor)
        with reactor.lock:
            reactor.add_reader(a.fileno(), waiter.wake)
        child = os.fork()
        if not child:
            with reactor.lock:
                assert reactor.closed
                assert not reactor.remove_reader(a.fileno())
                reactor.call_soon(print)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        b.send(b"x")
        with reactor.lock:
            os._exit(0 if reactor.wait(waiter, reactor.time() + 5) else 1)
    """
    import textwrap

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], timeout=20, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("seat", ["the helper", "a caller"])
def test_a_poll_finds_what_has_come_though_somebody_sleeps_in_the_seat(reactor, ends, seat):
    a, b = ends
    came = []
    call(reactor, "add_reader", a.fileno(), lambda: came.append(a.recv(1)))
    waiter = Waiter(reactor)
    join = in_thread(wait, reactor, waiter) if seat == "a caller" else lambda: True
    until(lambda: reactor._asleep and (seat == "the helper" or reactor._inside))
    with reactor.lock:  # whoever sleeps cannot wake before we have looked
        b.send(b"x")
        reactor.poll()
        assert came == [b"x"]
        waiter.wake()
    assert join()


def test_a_poll_does_not_take_the_bell_from_whom_it_was_rung_for(reactor):
    waiter = Waiter(reactor)
    join = in_thread(wait, reactor, waiter)
    until(lambda: reactor._asleep)
    with reactor.lock:
        waiter.wake()
        reactor.poll()
    assert join()
