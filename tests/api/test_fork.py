"""A child process sees closed sockets, and begins anew."""

import os
import sys
import threading

import pytest

from tests.api.plain import PlainContext
from zerohop import constants as zmq
from zerohop.errors import ZMQError

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12


def in_child(work):
    """Return what ``work()`` returns, as text, in a forked child."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, str(work()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as told:
        text = told.read()
    os.waitpid(child, 0)
    return text


def test_the_child_has_closed_sockets_and_a_fresh_instance():
    context = PlainContext.instance()
    s = context.socket(zmq.REP)
    port = s.bind_to_random_port("tcp://127.0.0.1")

    def in_the_child():
        fresh = PlainContext.instance()
        with fresh.socket(zmq.PAIR) as a, fresh.socket(zmq.PAIR) as b:
            a.bind("inproc://child")
            b.connect("inproc://child")
            a.send(b"works")
            return s.closed, context.closed, fresh is context, fresh.closed, b.recv()

    assert in_child(in_the_child) == str((True, True, False, False, b"works"))
    assert not s.closed
    with context.socket(zmq.REP) as second, pytest.raises(ZMQError):
        second.bind(f"tcp://127.0.0.1:{port}")  # it is still the parent's
    context.destroy()


def test_the_child_of_a_busy_process_finds_no_lock_held():
    context = PlainContext()
    held, leave = threading.Event(), threading.Event()

    def work():
        with context._io.lock:
            held.set()
            leave.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    held.wait(10)
    timer = threading.Timer(0.05, leave.set)
    timer.start()
    assert in_child(lambda: context._io.lock.acquire(timeout=1)) == "True"
    thread.join(10)
    timer.join(10)
    context.term()


@pytest.mark.parametrize("made_by", ["the original", "a shadow"])
def test_every_socket_in_the_child_is_told_that_it_was_closed(made_by):
    original = PlainContext()
    context = original if made_by == "the original" else PlainContext.shadow(original)
    s = context.socket(zmq.REP)
    second = type(s).shadow(s)
    told = in_child(lambda: (s._ended, second._ended, context.closed, original.closed))
    assert told == str((True, True, True, True))
    assert (s._ended, context.closed) == (False, False)
    s.close()
    original.term()


def test_threads_may_fork_at_the_same_time():
    """Each gives back the locks that it has taken, and no others."""
    context = PlainContext()
    children, failures = [], []

    def fork_again_and_again():
        for _ in range(5):
            child = os.fork()
            if not child:
                os._exit(0 if context.closed else 1)
            children.append(os.waitpid(child, 0)[1])

    hook, sys.unraisablehook = sys.unraisablehook, failures.append
    try:
        threads = [threading.Thread(target=fork_again_and_again) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.unraisablehook = hook
    assert children == [0] * 20
    assert failures == []
    context.term()


def test_a_child_can_ask_for_the_shared_context_though_another_thread_was_just_asking():
    inside, go_on = threading.Event(), threading.Event()

    class Slow(PlainContext):
        def _start(self):
            inside.set()
            go_on.wait(0.2)  # for ever, in the child: the thread is not there

    making = threading.Thread(target=Slow.instance)
    making.start()
    inside.wait()
    assert in_child(lambda: PlainContext.instance().closed) == "False"
    go_on.set()
    making.join()
    Slow.instance().term()
