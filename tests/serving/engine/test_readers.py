"""Who reads a PULL: whoever waits, for all; a thread while nobody does."""

import os
import signal
import threading
import time
from contextlib import contextmanager

import pytest

import zerohop as zmq
from tests.stress.kit import until
from zerohop.serving.engine.readers import Gate, Readers

pytestmark = pytest.mark.timeout(20)


class Pulled:
    """A PULL whose messages open the gates that they name, and who took them."""

    def __init__(self, context):
        self.gates, self.takers, self.opened = {}, [], []
        self.pull, self.push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        self.pull.bind("inproc://outputs")
        self.push.connect("inproc://outputs")
        self.readers = Readers(context, self.pull, self.take)

    def take(self):
        message = self.pull.recv(timeout=0)
        self.takers.append(threading.get_ident())
        if message == b"raise":
            raise InterruptedError
        if message != self.readers.nudge:
            self.open(message)

    def open(self, name):
        self.opened.append(name)
        self.readers.open(self.gate(name))

    def gate(self, name):
        return self.gates.setdefault(name, Gate())

    def wait(self, name, seconds=10):
        return self.readers.wait(self.gate(name), time.monotonic() + seconds)


@pytest.fixture
def pulled():
    with zmq.Context() as context:
        context.linger = 0
        yield Pulled(context)
        context.destroy()


@contextmanager
def waiting(pulled, *names):
    """A thread for each that waits until its gate was opened; yields who has ended, and idents."""
    ended = []

    def wait(name):
        while name not in pulled.opened:
            pulled.wait(name)
        ended.append(name)

    threads = [threading.Thread(target=wait, args=[name]) for name in names]
    for at, thread in enumerate(threads, start=1):
        thread.start()
        until(lambda at=at: len(pulled.readers._waiting) == at)
    yield ended, [thread.ident for thread in threads]
    for thread in threads:
        thread.join(10)


def test_who_waits_reads_himself(pulled):
    pulled.push.send(b"a")
    assert pulled.wait(b"a")
    assert pulled.takers == [threading.get_ident()]


def test_who_has_waited_long_enough_waits_no_more(pulled):
    assert not pulled.wait(b"a", 0.01)
    assert not pulled.wait(b"a", -1)
    assert pulled.takers == []


def test_one_reads_for_all_and_the_next_one_after_him(pulled):
    with waiting(pulled, b"a", b"b", b"c") as (ended, (first, *others)):
        pulled.push.send(b"b")
        until(lambda: ended == [b"b"])
        pulled.push.send(b"a")
        until(lambda: len(ended) == 2)
        pulled.push.send(b"c")
        until(lambda: len(ended) == 3)
    assert pulled.takers[:2] == [first, first]
    assert pulled.takers[2] in others


def test_who_reads_looks_up_where_another_opens_his_gate(pulled):
    with waiting(pulled, b"a") as (ended, (reader,)):
        pulled.open(b"a")
        until(lambda: ended == [b"a"])
    assert pulled.takers == [reader]  # of the nudge


def test_a_gate_that_is_open_lets_one_pass_without_reading(pulled):
    for _ in range(2):
        pulled.open(b"a")
    assert pulled.wait(b"a")
    assert pulled.takers == []
    assert not pulled.gate(b"a").is_open


def test_who_is_interrupted_where_he_reads_is_followed_by_another(pulled):
    with waiting(pulled, b"b") as (ended, (reader,)):
        pulled.push.send(b"b")
        until(lambda: ended)
    pulled.push.send(b"raise")
    with pytest.raises(InterruptedError):
        pulled.wait(b"a")
    with waiting(pulled, b"a") as (ended, (other,)):
        pulled.push.send(b"a")
        until(lambda: ended == [b"a"])
    assert pulled.takers == [reader, threading.get_ident(), other]


def test_a_signals_handler_in_the_thread_that_reads_reads_for_itself(pulled):
    def handle(*_):
        pulled.push.send(b"b")
        while b"b" not in pulled.opened:
            assert pulled.wait(b"b", 3)
        pulled.push.send(b"a")

    def interrupt():
        until(lambda: pulled.readers._reader)
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, handle)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        while b"a" not in pulled.opened:
            assert pulled.wait(b"a")
    finally:
        thread.join(10)
        signal.signal(signal.SIGUSR1, before)
    assert pulled.opened == [b"b", b"a"]
    assert not pulled.readers._reader


def test_a_thread_reads_while_nobody_waits_and_rests_once_somebody_does(pulled):
    thread = threading.Thread(target=pulled.readers.run)
    thread.start()
    try:
        pulled.gate(b"a")
        until(lambda: pulled.readers._reader)
        pulled.push.send(b"a")
        until(lambda: pulled.takers == [thread.ident])
        with waiting(pulled, b"b"):  # he has the thread read this once
            pulled.push.send(b"b")
        until(lambda: not pulled.readers._reader)
        pulled.push.send(b"c")
        assert pulled.wait(b"c")
        assert pulled.takers == [thread.ident, thread.ident, threading.get_ident()]
        pulled.push.send(b"a")
        until(lambda: len(pulled.takers) == 4)
        assert pulled.takers[3] == thread.ident
    finally:
        pulled.readers.end()
        pulled.readers._is_wanted = True
        pulled.push.send(b"a")
        thread.join(10)
        assert not thread.is_alive()
