"""After an exception has broken into the I/O: what the next turn finds amiss, and puts right."""

import errno
import os
import threading

import pytest

import zerohop as zmq
from tests.io.hand import Peer
from tests.kit.net import free_port
from tests.kit.raw import message
from zerohop.io.mending import mend, mend_soon
from zerohop.io.reactor import Reactor
from zerohop.io.readiness import Doorbell, EpollReadiness, SelectorReadiness
from zerohop.io.seat import FOREVER, Waiter
from zerohop.io.signal import Signal

SOON = 5.0


class Interrupted(BaseException):
    pass


def interrupt(*_args, **_kwargs):
    raise Interrupted


def streams(socket):
    return list(socket._driver._streams.values())


# -- who asks for it


def test_an_exception_in_a_pump_has_every_socket_of_the_context_looked_at(world, monkeypatch):
    sockets = [world.socket(zmq.PUSH) for _ in range(2)]
    with monkeypatch.context() as patch:
        patch.setattr(sockets[0]._driver.front, "activity", interrupt)
        with pytest.raises(Interrupted):
            sockets[0]._driver.pump()
    seen = []
    for each in sockets:
        monkeypatch.setattr(each._core.links, "mend", lambda each=each: seen.append(each))
    world.loop.turn()
    assert set(seen) == set(sockets)


@pytest.mark.parametrize("error", [Interrupted, KeyboardInterrupt, TimeoutError])
def test_an_exception_that_is_not_ours_asks_for_it(world, monkeypatch, error):
    asked = []
    monkeypatch.setattr(world.context._io, "interrupted", lambda: asked.append(1))
    with pytest.raises(error), world.context._io:
        raise error
    assert asked
    with pytest.raises(zmq.ZMQError), world.context._io:
        raise zmq.ZMQError(errno.EAGAIN)
    with world.context._io:
        pass
    assert asked == [1]


def test_a_socket_without_a_loop_or_on_one_that_is_closed_is_left_alone(world, monkeypatch):
    push = world.socket(zmq.PUSH)

    def closed(*_args):
        raise RuntimeError("Event loop is closed")

    with monkeypatch.context() as patch:
        patch.setattr(world.loop, "call_soon_threadsafe", closed)
        mend_soon(world.context._io)
    push._driver.detach()
    mend_soon(world.context._io)
    mend(push._driver)
    push._driver.attach(world.loop)


# -- connections


def test_a_connection_that_is_not_watched_is_watched_again(world, join):
    push, _ = join(reconnect_ivl=1)
    (stream,) = streams(push)
    world.loop.readers.clear()
    mend(push._driver)
    assert stream._fd in world.loop.readers
    assert stream._fd not in world.loop.writers


def test_what_is_to_be_written_is_written(world, join):
    push, peer = join(reconnect_ivl=1)
    push._core.send(b"x")
    push._core.links.to_flush.clear()
    push._driver.pump()
    mend(push._driver)
    peer.sees(message(b"x"))


def test_a_connection_that_was_closed_halfway_is_made_anew(world, join, listening):
    """Closed, or lost for the core already; it is dialled once more."""
    push, peer = join(reconnect_ivl=1)
    (stream,) = streams(push)
    stream.close()
    (link,) = push._core.links.open_links
    link.lost = True
    mend(push._driver)
    assert streams(push) == []
    peer.raw.close()
    Peer(world, push, listening).raw.close()


def test_a_link_that_never_got_its_connection_is_lost(world, join):
    push, peer = join(reconnect_ivl=1)
    (stream,) = streams(push)
    stream.close()
    push._driver._streams.clear()
    mend(push._driver)
    (dialer,) = push._core.links.dialers
    assert dialer.link is None
    assert dialer.last_error.errno == errno.EINTR
    peer.raw.close()


def test_an_attempt_is_begun_anew(world):
    push = world.socket(zmq.PUSH)
    push.connect(f"tcp://localhost:{free_port()}")
    (dialing,) = push._driver._dialings.values()
    mend(push._driver)
    (again,) = push._driver._dialings.values()
    assert again is not dialing
    world.loop.settle()


def test_a_listener_accepts_again(world):
    pull = world.socket(zmq.PULL)
    pull.bind("tcp://127.0.0.1:*")
    world.loop.readers.clear()
    mend(pull._driver)
    assert len(world.loop.readers) == 1


def test_a_listener_that_was_closed_halfway_is_gone(world):
    pull = world.socket(zmq.PULL)
    pull.bind("tcp://127.0.0.1:*")
    (acceptor,) = pull._driver._acceptors.values()
    acceptor.close()
    mend(pull._driver)
    assert not pull._driver._acceptors
    assert not pull._core.links.listeners


# -- time, and the end


def test_a_deadline_that_rang_for_nobody_is_kept_again(world):
    push = world.socket(zmq.PUSH, reconnect_ivl=500)
    push.connect(f"tcp://127.0.0.1:{free_port()}")
    world.loop.until(lambda: not push._driver._dialings)
    for handle in world.loop.pending:
        handle.cancel()
    mend(push._driver)
    assert world.loop.pending


@pytest.mark.parametrize("step", ["close", "links.begin_close", "inproc.close"])
def test_a_close_that_was_interrupted_is_finished(world, join, monkeypatch, step):
    push, _ = join(reconnect_ivl=1)
    owner = push._core
    *path, name = step.split(".")
    for part in path:
        owner = getattr(owner, part)
    before = getattr(owner, name)

    def halfway(*args):
        before(*args)
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, halfway)
        with pytest.raises(Interrupted):
            push.close()
    world.loop.settle(3)
    assert push._driver.released
    assert push._driver not in world.context._io.drivers


def test_a_release_that_was_interrupted_is_finished(world):
    push = world.socket(zmq.PUSH)
    told = [interrupt, lambda: None]
    push._driver.on_released += told
    push._driver.on_released.reverse()
    with pytest.raises(Interrupted):
        push.close()
    push._driver.on_released.remove(interrupt)
    world.loop.settle(2)
    assert push._driver.on_released == []
    assert push._driver not in world.context._io.drivers


def test_a_socket_whose_constructor_is_interrupted_holds_nothing_up(world, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(world.context._socket_class, "_start", interrupt)
        with pytest.raises(Interrupted):
            world.context.socket(zmq.PUSH)
    assert world.context._io.drivers == set()


# -- the seat


@pytest.fixture
def reactor():
    made = Reactor(threading.RLock())
    yield made
    made.stop()


def test_a_call_that_was_woken_and_not_let_go_goes_on(reactor):
    """It is done, but the one who woke it was interrupted before its gate was open."""
    seated, parked = Waiter(reactor), Waiter(reactor)
    over = []

    def wait(waiter):
        with reactor.lock:
            reactor.wait(waiter, FOREVER)
            over.append(waiter)

    threads = [threading.Thread(target=wait, args=(each,)) for each in (seated, parked)]
    threads[0].start()
    while not reactor._asleep:
        pass
    threads[1].start()
    while not reactor._parked:
        pass
    with reactor.lock:
        seated.done = parked.done = True
        reactor.mend()
    for thread in threads:
        thread.join(SOON)
    assert set(over) == {seated, parked}


def test_an_exception_that_only_ends_a_sleep_is_not_told(reactor, monkeypatch):
    """Nothing was being changed: no subscription need be sent again, no attempt be given up."""
    told = []
    reactor.on_interruption = lambda: told.append(1)
    monkeypatch.setattr(reactor._descriptors, "wait", interrupt)
    with reactor.lock, pytest.raises(Interrupted):
        reactor.wait(Waiter(reactor), FOREVER)
    assert not told
    assert not reactor.occupied


@pytest.mark.parametrize("verb", ["recv", "poll", "poll of several"])
def test_a_handler_that_raises_while_a_program_sleeps_has_nothing_mended(
    context, monkeypatch, verb
):
    sub = context.socket(zmq.SUB)
    sub.subscribe(b"")
    sub.bind("tcp://127.0.0.1:*")
    wait = {"recv": sub.recv, "poll": sub.poll}.get(verb, lambda: zmq.zmq_poll([(sub, zmq.POLLIN)]))
    asked, reactor = [], sub._reactor
    monkeypatch.setattr(context._io, "interrupted", lambda: asked.append(1))
    monkeypatch.setattr(reactor, "on_interruption", lambda: asked.append(1))
    sleep = reactor._descriptors.wait

    def interrupted_here(seconds):
        if threading.current_thread() is threading.main_thread():
            raise Interrupted
        return sleep(seconds)  # the helper's: it has no signal handlers

    with monkeypatch.context() as patch:
        patch.setattr(reactor._descriptors, "wait", interrupted_here)
        with pytest.raises(Interrupted):
            wait()
    assert not asked
    assert not sub._front.waiters.waiting


@pytest.mark.parametrize("verb", ["wait", "poll"])
def test_an_exception_that_leaves_a_turn_is_told(reactor, monkeypatch, verb):
    told = []
    reactor.on_interruption = lambda: told.append(1)
    with reactor.lock:
        reactor.call_soon(interrupt)
        with pytest.raises(Interrupted):
            reactor.poll() if verb == "poll" else reactor.wait(Waiter(reactor), FOREVER)
    assert told == [1]
    assert not reactor.occupied


def test_a_helper_that_was_started_by_an_interrupted_call_ends_and_another_one_comes(reactor):
    start = threading.Thread.start
    orphans = []

    def start_and_raise(thread):
        start(thread)
        orphans.append(thread)
        raise Interrupted

    with pytest.MonkeyPatch.context() as patch, reactor.lock:
        patch.setattr(threading.Thread, "start", start_and_raise)
        with pytest.raises(Interrupted):
            reactor.call_soon(print)
    orphans[0].join(SOON)
    assert not orphans[0].is_alive()
    ran = threading.Event()
    with reactor.lock:
        reactor.call_soon(ran.set)
    assert ran.wait(SOON)


def test_the_helper_may_be_called_twice_before_it_has_woken(reactor):
    ran = threading.Event()
    with reactor.lock:
        reactor.call_soon(ran.set)
    assert ran.wait(SOON)
    with reactor.lock:
        reactor.wait(Waiter(reactor), reactor.time() + 0.01)  # it rests
        reactor._helper.call()
        reactor._helper.call()

    class Quicker:
        """A gate that another thread has opened in this very moment."""

        def locked(self):
            return True

        def release(self):
            raise RuntimeError("release unlocked lock")

    with reactor.lock:
        reactor._helper._gates.append(Quicker())
        reactor._helper.call()
        reactor._helper._gates.pop()


# -- descriptors


@pytest.fixture
def pipe():
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


@pytest.mark.parametrize("kind", [EpollReadiness, SelectorReadiness])
def test_a_watch_that_was_not_written_down_can_be_begun_again(pipe, kind):
    readiness = kind()
    readiness.watch(pipe[0], 1, 0)
    readiness.watch(pipe[0], 1, 0)  # as far as we know it is not watched
    os.write(pipe[1], b"x")
    assert readiness.wait(0) == [(pipe[0], 1)]
    readiness.watch(pipe[0], 0, 1)
    readiness.watch(pipe[0], 1, 4)  # as far as we know it is
    assert readiness.wait(0) == [(pipe[0], 1)]
    readiness.watch(pipe[0], 0, 1)
    readiness.watch(pipe[0], 0, 1)
    assert readiness.wait(0) == []
    readiness.close()


@pytest.mark.parametrize("kind", [Doorbell, Signal])
def test_a_number_is_given_back_once(kind):
    one = kind()
    number = one.fd
    one.close()
    other = os.open(os.devnull, os.O_RDONLY)
    assert other == number
    one.close()
    os.fstat(other)
    os.close(other)


def test_a_signal_that_was_set_halfway_can_be_set(monkeypatch):
    signal = Signal()
    write = os.eventfd_write

    def write_and_raise(*args):
        write(*args)
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(os, "eventfd_write", write_and_raise)
        with pytest.raises(Interrupted):
            signal.set()
    signal.set()
    signal.clear()
    with pytest.raises(BlockingIOError):
        os.eventfd_read(signal.fd)
    signal.close()


# -- a poll of several


def test_a_poll_that_is_interrupted_leaves_nobody_waiting(context, monkeypatch):
    pull = context.socket(zmq.PULL)
    pull.bind(f"tcp://127.0.0.1:{free_port()}")
    poller = zmq.Poller()
    poller.register(pull, zmq.POLLIN)
    asked = []
    monkeypatch.setattr(context._io, "interrupted", lambda: asked.append(1))
    with monkeypatch.context() as patch:
        patch.setattr(pull._reactor, "wait", interrupt)
        with pytest.raises(Interrupted):
            poller.poll()
    assert asked
    assert not pull._front.waiters.waiting
    assert poller.poll(1) == []
