import copy
import gc
import logging
import pickle
import socket as system
import threading
import warnings

import pytest

from tests.api.plain import PlainContext, PlainSocket, drop_what_lingers
from zerohop import constants as zmq
from zerohop.constants import PollEvent
from zerohop.errors import ZMQBindError, ZMQError


def connects(port):
    with system.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_bind_ends_with_its_block(context):
    s = context.socket(zmq.REP)
    with s.bind("tcp://127.0.0.1:*") as bound:
        assert bound is s
        port = int(s.last_endpoint.rpartition(b":")[2])
        assert connects(port)
    assert not connects(port)
    with pytest.raises(ZMQError) as raised:
        s.unbind(f"tcp://127.0.0.1:{port}")
    assert raised.value.errno == 2  # ENOENT


def test_connect_ends_with_its_block(context):
    a, b = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
    a.bind("inproc://block")
    with b.connect("inproc://block"):
        assert len(b.peers()) == 1
    assert b.peers() == []


def test_the_end_of_a_block_forgives_a_closed_socket(context):
    s = context.socket(zmq.REP)
    with s.bind("inproc://block"):
        s.close()
    assert s.closed


def test_what_bind_returns_says_what_it_is(context):
    s = context.socket(zmq.REP)
    bound = s.bind("tcp://127.0.0.1:*")
    assert repr(bound) == f"<Attachment(bind={s.last_endpoint.decode()!r})>"


def test_a_random_port_is_not_looked_for_where_there_is_none(context):
    with pytest.raises(ZMQError) as raised:
        context.socket(zmq.REP).bind_to_random_port("tcp://nosuchif", max_port=60_000)
    assert raised.value.errno == 19  # ENODEV


def test_a_port_is_free_when_unbind_and_close_return(context):
    first, second = context.socket(zmq.REP), context.socket(zmq.REP)
    port = first.bind_to_random_port("tcp://127.0.0.1")
    first.unbind(f"tcp://127.0.0.1:{port}")
    second.bind(f"tcp://127.0.0.1:{port}")
    second.close()
    first.bind(f"tcp://127.0.0.1:{port}")


def test_a_random_port_is_in_the_range_that_was_asked_for(context):
    s, taken = context.socket(zmq.REP), context.socket(zmq.REP)
    port = taken.bind_to_random_port("tcp://127.0.0.1", min_port=20_000, max_port=30_000)
    assert 20_000 <= port < 30_000
    with pytest.raises(ZMQBindError, match=r"^Could not bind socket to random port\.$"):
        s.bind_to_random_port("tcp://127.0.0.1", min_port=port, max_port=port + 1, max_tries=3)


def test_the_type_has_an_older_name(context):
    s = context.socket(zmq.PUB)
    assert s.type is zmq.SocketType.PUB
    with pytest.warns(DeprecationWarning, match=r"use Socket\.type"):
        assert s.socket_type is zmq.SocketType.PUB


def test_repr_says_kind_type_and_whether_it_is_closed(context):
    s = context.socket(zmq.PUB)
    assert repr(s) == f"<tests.api.plain.PlainSocket(zmq.PUB) at {id(s):#x}>"
    s.close()
    assert repr(s) == f"<tests.api.plain.PlainSocket(zmq.PUB) at {id(s):#x} closed>"


def test_what_is_no_context_makes_no_socket():
    with pytest.raises(TypeError, match="Cannot convert int to Context"):
        PlainSocket(5, zmq.PUB)


def test_draft_types_are_refused_with_a_list_of_what_there_is(context):
    with pytest.raises(ZMQError) as raised:
        context.socket(zmq.RADIO)
    assert raised.value.errno == zmq.EINVAL
    assert "PUB" in raised.value.__notes__[0]


# Closing


def test_a_constructor_that_fails_leaves_nothing_to_complain_of(context):
    with pytest.raises(ZMQError):
        PlainSocket(context, 99)
    gc.collect()


def test_closing_tells_the_front_once(context):
    s = context.socket(zmq.PUB)
    assert not s._ended
    s.close()
    assert s._ended
    s._ended = False
    s.close(linger=0)
    assert not s._ended


def test_closing_takes_a_linger_of_its_own(context):
    s = context.socket(zmq.PUSH)
    s.connect("tcp://127.0.0.1:9")
    s.send(b"never sent")
    s.close(linger=-1)
    assert context._io.drivers  # it waits, until somebody gives up
    drop_what_lingers(context)
    assert not context._io.drivers


def test_a_socket_closes_with_its_block(context):
    with context.socket(zmq.PUB) as s:
        assert not s.closed
    assert s.closed


def test_a_dropped_socket_is_closed_and_complained_of():
    context = PlainContext()
    s = context.socket(zmq.REP)
    port = s.bind_to_random_port("tcp://127.0.0.1")
    with pytest.warns(ResourceWarning, match=r"^Unclosed socket <.*zmq\.REP.*>$"):
        del s
    assert not connects(port)
    assert not context._io.drivers
    context.term()


class Recorder:
    """A loop as far as an idle socket needs one; remembers what it was asked to call."""

    def __init__(self):
        self.calls = []

    def time(self):
        return 0.0

    def call_soon_threadsafe(self, callback, *args):
        self.calls.append((callback, args))

    def is_closed(self):
        return False


def test_a_socket_dropped_while_its_lock_is_taken_is_closed_by_its_loop():
    context, loop = PlainContext(), Recorder()
    s = context.socket(zmq.PAIR)
    s.bind("inproc://dropped")
    with context._io.lock:  # in the middle of anything
        s._driver.attach(loop)
        with pytest.warns(ResourceWarning):
            del s
        (call,) = loop.calls
        assert context._io.drivers
    call[0]()
    assert not context._io.drivers
    context.term()


def test_a_socket_dropped_by_another_thread_is_closed_by_its_loop():
    context, loop = PlainContext(), Recorder()
    held = [context.socket(zmq.PAIR)]
    with context._io.lock:
        held[0]._driver.attach(loop, thread=threading.get_ident())

    def drop():
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            held.clear()
            gc.collect()

    dropping = threading.Thread(target=drop)
    dropping.start()
    dropping.join(10)
    (call,) = loop.calls
    call[0]()
    assert not context._io.drivers
    context.term()


# One socket, several Sockets


def test_a_shadow_is_the_same_socket(context, pair):
    a, b = pair
    for shadow in (
        PlainSocket.shadow(a), PlainSocket.shadow(a.underlying), PlainSocket(a),
        PlainSocket(shadow=a), copy.copy(a), copy.deepcopy(a), PlainSocket.shadow(copy.copy(a)),
    ):  # fmt: skip
        shadow.send(b"through the shadow")
        assert b.recv() == b"through the shadow"
        assert (shadow.context, shadow.type, shadow.underlying) == (context, a.type, a.underlying)


def test_a_dropped_shadow_leaves_its_socket_open(pair):
    shadow = PlainSocket.shadow(pair[0])
    del shadow
    gc.collect()
    assert not pair[0].closed
    pair[0].send(b"still there")
    assert pair[1].recv() == b"still there"


def test_closing_a_shadow_closes_the_socket_and_tells_everybody(context):
    s = context.socket(zmq.PUB)
    shadow, other = PlainSocket.shadow(s), PlainSocket.shadow(s)
    shadow.close()
    assert s.closed
    assert other.closed
    assert all(each._ended for each in (s, shadow, other))
    assert "0 sockets" not in repr(context)
    assert len(context._sockets) == 0


def test_every_front_of_a_socket_hears_of_what_happens(pair):
    a, b = pair
    shadow = PlainSocket.shadow(b)
    before = b._front.calls, shadow._front.calls
    a.send(b"news")
    assert b._front.calls > before[0]
    assert shadow._front.calls > before[1]


def test_shadows_that_come_and_go_leave_nothing_behind(pair):
    for _ in range(3):
        PlainSocket.shadow(pair[0]).send(b"x")
    kept = PlainSocket.shadow(pair[0])
    assert len(kept._driver.front) == 2
    assert [pair[1].recv() for _ in range(3)] == [b"x"] * 3


def test_a_closed_socket_has_no_shadow(context):
    s = context.socket(zmq.PUB)
    handle = s.underlying
    s.close()
    assert s.underlying == 0
    with pytest.raises(ZMQError) as raised:
        PlainSocket.shadow(handle + 1)
    assert raised.value.errno == zmq.ENOTSOCK


def test_a_socket_cannot_be_pickled(context):
    with pytest.raises(TypeError, match="cannot pickle PlainSocket"):
        pickle.dumps(context.socket(zmq.PUB))


def test_annotations_of_pyzmq_may_be_evaluated():
    assert PlainSocket[bytes] is PlainSocket
    assert PlainContext[PlainSocket] is PlainContext


# Mistakes


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.WARNING, logger="zerohop")
    return caplog


def test_waiting_without_a_subscription_is_said_once(context, log):
    pub, sub = context.socket(zmq.PUB), context.socket(zmq.SUB)
    pub.bind("inproc://mistake")
    sub.connect("inproc://mistake")
    sub._warn_before_waiting(PollEvent.POLLIN)
    sub._warn_before_waiting(PollEvent.POLLIN)
    assert [record.getMessage() for record in log.records] == [
        "SUB socket waits for messages and has not subscribed to any; "
        'subscribe("") receives everything'
    ]


def test_waiting_without_an_endpoint_is_said_once(context, log):
    s = context.socket(zmq.PUSH)
    s._warn_before_waiting(PollEvent.POLLOUT)
    s._warn_before_waiting(PollEvent.POLLOUT)
    assert [record.getMessage() for record in log.records] == [
        "PUSH socket waits, and is neither bound nor connected to anything"
    ]


def test_waiting_as_one_should_is_not_remarked_upon(context, log):
    sub, push, rep = context.socket(zmq.SUB), context.socket(zmq.PUSH), context.socket(zmq.REP)
    sub.subscribe("")
    sub.connect("inproc://somewhere")
    sub._warn_before_waiting(PollEvent.POLLIN)
    push.connect("tcp://127.0.0.1:9")
    push._warn_before_waiting(PollEvent.POLLOUT)
    rep.bind("tcp://127.0.0.1:*")
    rep._warn_before_waiting(PollEvent.POLLIN)
    assert log.records == []
