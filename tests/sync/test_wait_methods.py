"""Waiting for peers, subscribers and readiness."""

import errno
import threading
import time

import pytest

import zerohop as zmq
from tests.kit.net import free_port
from zerohop.patterns.routing import FairQueue


@pytest.fixture
def endpoint():
    return f"tcp://127.0.0.1:{free_port()}"


def later(call, *args):
    timer = threading.Timer(0.05, call, args)
    timer.start()
    return timer


def test_connected_means_every_endpoint_has_a_peer(context, endpoint):
    push, first, second = map(context.socket, (zmq.PUSH, zmq.PULL, zmq.PULL))
    push.reconnect_ivl = 10
    first.bind("inproc://first")
    push.connect("inproc://first")
    push.wait_connected(0)
    push.connect(endpoint)
    with pytest.raises(zmq.Again) as late:
        push.wait_connected(0.05)
    assert endpoint in late.value.__notes__[0]
    binding = later(second.bind, endpoint)
    push.wait_connected(8)
    binding.join()


def test_who_only_binds_waits_for_the_first_peer(context, endpoint):
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    pull.bind(endpoint)
    with pytest.raises(zmq.Again):
        pull.wait_connected(timeout=0)
    connecting = later(push.connect, endpoint)
    pull.wait_connected(8)
    connecting.join()


def test_subscribers_are_counted_by_what_they_would_get(context, endpoint):
    pub, sub, other = map(context.socket, (zmq.PUB, zmq.SUB, zmq.SUB))
    pub.bind(endpoint)
    sub.connect(endpoint)
    other.connect(endpoint)
    sub.subscribe("news/")
    subscribing = later(other.subscribe, "")
    pub.wait_for_subscribers("news/sport", 2, timeout=8)
    pub.wait_for_subscribers(b"else", timeout=8)
    with pytest.raises(zmq.Again) as few:
        pub.wait_for_subscribers(b"else", 2, timeout=0.02)
    assert few.value.__notes__ == ["1 of 2 subscribers to b'else'"]
    subscribing.join()


def test_who_has_no_subscribers_does_not_wait_for_any(context):
    with pytest.raises(zmq.ZMQError) as refused:
        context.socket(zmq.SUB).wait_for_subscribers("news", timeout=0)
    assert refused.value.errno == zmq.ENOTSUP
    assert "only PUB and XPUB" in refused.value.__notes__[0]


def polled(sub):
    return sub.poll(20)


def polled_with_others(sub):
    poller = zmq.Poller()
    poller.register(sub)
    return poller.poll(20)


@pytest.mark.parametrize("poll", [polled, polled_with_others])
def test_a_poll_that_waits_without_a_subscription_says_so_once(context, caplog, poll):
    pub, sub = context.socket(zmq.PUB), context.socket(zmq.SUB)
    pub.bind("inproc://unheard")
    sub.connect("inproc://unheard")
    assert sub.poll(0) == 0
    assert zmq.zmq_poll([(sub, zmq.POLLIN)], 0) == []
    assert caplog.records == []
    for _ in range(2):
        assert not poll(sub)
    (record,) = caplog.records
    assert "has not subscribed to any" in record.getMessage()


@pytest.mark.parametrize("call", ["wait_connected", "wait_for_subscribers", "poll"])
def test_a_socket_that_ends_ends_the_wait(context, call):
    pub = context.socket(zmq.XPUB)
    pub.bind("inproc://ending")
    closing = later(pub.close)
    with pytest.raises(zmq.ZMQError) as ended:
        getattr(pub, call)()
    assert ended.value.errno == errno.ENOTSOCK
    closing.join()
    with pytest.raises(zmq.ZMQError) as closed:
        getattr(pub, call)()
    assert closed.value.errno == (errno.ENOTSUP if call == "poll" else errno.ENOTSOCK)


@pytest.mark.parametrize("timeout", [0, 30, 30.5])
def test_a_poll_ends_in_time(context, timeout):
    pull = context.socket(zmq.PULL)
    pull.bind("inproc://quiet")
    start = time.monotonic()
    assert pull.poll(timeout) == 0
    assert time.monotonic() - start >= timeout / 1000


@pytest.mark.parametrize("timeout", [None, -1, 8000])
def test_a_poll_tells_what_is_there_of_what_was_asked(context, timeout):
    a, b = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
    a.bind("inproc://pair")
    b.connect("inproc://pair")
    assert a.poll(timeout, zmq.POLLOUT) == zmq.POLLOUT
    sending = later(b.send, b"x")
    assert a.poll(timeout) == zmq.POLLIN
    assert a.poll(timeout, zmq.POLLIN | zmq.POLLOUT) == zmq.POLLIN | zmq.POLLOUT
    sending.join()


def test_asking_for_events_does_the_io_that_can_be_done(context, endpoint):
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    pull.bind(endpoint)
    push.connect(endpoint)
    push.wait_connected(8)
    push.send(b"x")
    deadline = time.monotonic() + 8
    while not pull.events & zmq.POLLIN:
        assert time.monotonic() < deadline
    assert pull.get(zmq.EVENTS) == zmq.POLLIN
    assert pull.recv(zmq.DONTWAIT) == b"x"


def test_a_handler_that_raises_where_poll_looks_leaves_no_peer_out(context, monkeypatch):
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    pull.bind("inproc://looked")
    push.connect("inproc://looked")
    push.send(b"before")
    assert pull.recv() == b"before"

    def set_aside_half(queue, peer):
        if peer.inbound.sleep():
            queue._ready.popleft()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(FairQueue, "_set_aside", set_aside_half)
        with pytest.raises(KeyboardInterrupt):
            pull.poll(0)
    for number in range(4):  # not from its lane alone
        with pytest.raises(zmq.Again):
            pull.recv(timeout=0.01)
        push.send(b"%d" % number)
        assert pull.recv(timeout=5) == b"%d" % number
