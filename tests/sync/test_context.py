"""The blocking Context: how it ends, what holds it, and what is left then."""

import gc
import os
import threading
import time

import pytest

import zerohop as zmq
from tests.kit.net import free_port
from zerohop.io.ending import _flush, _may_wait
from zerohop.io.reactor import Reactor, reactor_of
from zerohop.sync.context import Context
from zerohop.sync.socket import Socket


def belongings():
    return [t.name for t in threading.enumerate()], sorted(os.listdir("/proc/self/fd"))


def test_a_context_makes_blocking_sockets():
    with zmq.Context() as context, context.socket(zmq.PULL) as pull:
        assert type(context) is Context
        assert type(pull) is Socket
        assert pull.context is context


def test_nothing_is_left_of_a_context_that_has_ended():
    gc.collect()
    before = belongings()
    for _ in range(3):
        context = zmq.Context()
        push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
        pull.bind("tcp://127.0.0.1:*")
        push.connect(pull.last_endpoint.decode())
        push.send(b"x")
        assert pull.recv() == b"x"
        assert any(t.name == "zerohop" for t in threading.enumerate())
        context.destroy(linger=0)
        assert belongings() == before


def test_a_context_without_sockets_of_the_network_needs_no_thread():
    with zmq.Context() as context, context.socket(zmq.PAIR) as a, context.socket(zmq.PAIR) as b:
        a.bind("inproc://x")
        b.connect("inproc://x")
        for n in range(100):
            a.send(b"%d" % n)
            assert b.recv() == b"%d" % n
        assert not any(t.name == "zerohop" for t in threading.enumerate())


def test_term_with_a_time_limit_names_who_holds_the_context_and_can_be_tried_again():
    context = zmq.Context()
    push, pub = context.socket(zmq.PUSH), context.socket(zmq.PUB)
    endpoint = f"tcp://127.0.0.1:{free_port()}"
    push.connect(endpoint)
    push.send(b"for nobody")
    push.close()
    with pytest.raises(zmq.Again) as held:
        context.term(timeout=0.05)
    assert endpoint in held.value.__notes__[0]
    assert repr(pub) in held.value.__notes__[0]
    assert not context.closed
    pub.close()
    with pytest.raises(zmq.Again):
        context.term(timeout=0)
    pull = zmq.Context.instance().socket(zmq.PULL)
    pull.bind(endpoint)
    context.term(timeout=8)
    assert context.closed
    assert pull.recv() == b"for nobody"
    pull.close()
    zmq.Context.instance().term()


def test_a_linger_that_runs_out_ends_term():
    context = zmq.Context()
    push = context.socket(zmq.PUSH)
    push.connect(f"tcp://127.0.0.1:{free_port()}")
    push.send(b"for nobody")
    push.close(linger=50)
    start = time.monotonic()
    context.term()
    assert 0.03 < time.monotonic() - start < 8


def test_several_threads_may_wait_for_the_end():
    context = zmq.Context()
    push = context.socket(zmq.PUSH)
    push.bind("tcp://127.0.0.1:*")
    threads = [threading.Thread(target=context.term) for _ in range(3)]
    for thread in threads:
        thread.start()
    while not context._io.core.terminated:
        time.sleep(0.001)
    with pytest.raises(zmq.ContextTerminated):
        push.send(b"x")
    push.close()
    for thread in threads:
        thread.join(8)
        assert not thread.is_alive()
    assert context.closed


def test_a_shadow_shares_the_reactor_and_ends_nothing():
    context = zmq.Context()
    shadow = zmq.Context.shadow(context)
    assert shadow._reactor is context._reactor is reactor_of(context._io)
    with context.socket(zmq.PAIR) as a, shadow.socket(zmq.PAIR) as b:
        a.bind("inproc://x")
        b.connect("inproc://x")
        a.send(b"x")
        assert b.recv() == b"x"
    shadow.term()
    assert not context._reactor.closed
    context.term()
    assert context._reactor.closed


def test_an_ended_context_does_not_give_its_reactor_to_a_new_one():
    context = zmq.Context()
    context.term()
    assert isinstance(reactor_of(context._io), Reactor)
    assert reactor_of(context._io) is not context._reactor
    reactor_of(context._io).stop()


@pytest.mark.parametrize(
    ("linger", "waited", "waits"),
    [(None, 100, True), (0.5, 0.4, True), (0.5, 0.5, False), (0, 0, False)],
)
def test_the_exit_waits_for_a_message_no_longer_than_its_socket_would(
    context, linger, waited, waits
):
    push = context.socket(zmq.PUSH)
    push.connect(f"tcp://127.0.0.1:{free_port()}")
    assert not _may_wait(push._driver, 0)
    push.send(b"x")
    push._options.linger = linger
    assert _may_wait(push._driver, waited) is waits


def test_flushing_before_the_exit_ends_when_all_is_written(context):
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    push.linger = -1
    endpoint = f"tcp://127.0.0.1:{free_port()}"
    push.connect(endpoint)
    for n in range(900):
        push.send(b"%d" % n)
    pull.bind(endpoint)
    start = time.monotonic()
    with context._io.lock:
        _flush(context._io, context._reactor, start + 8)
    assert time.monotonic() - start < 7
    assert not _may_wait(push._driver, 0)


def test_flushing_before_the_exit_ends_in_time(context):
    push = context.socket(zmq.PUSH)
    push.linger = -1
    push.connect(f"tcp://127.0.0.1:{free_port()}")
    push.send(b"x")
    start = time.monotonic()
    with context._io.lock:
        _flush(context._io, context._reactor, start + 0.05)
    assert 0.05 <= time.monotonic() - start < 8
