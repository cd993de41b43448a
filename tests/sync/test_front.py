"""The front of a blocking socket: when there is a lane, and what is done past it."""

import socket as plain
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import zerohop as zmq
from tests.kit import raw
from zerohop.sync.front import _NEVER


@pytest.fixture
def ends(context):
    """A PUSH and a PULL over inproc."""
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    pull.bind("inproc://ends")
    push.connect("inproc://ends")
    return push, pull


def until(condition):
    deadline = time.monotonic() + 8
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_one_peer_is_a_lane_and_two_are_none(context, ends):
    push, pull = ends
    assert push._front.send_lane is not None
    assert pull._front.receive_lane is not None
    other = context.socket(zmq.PUSH)
    other.connect("inproc://ends")
    assert pull._front.receive_lane is None
    other.close()
    with pytest.raises(zmq.Again):
        pull.recv(zmq.DONTWAIT)
    push.send(b"x")
    assert pull.recv() == b"x"


def test_no_lane_in_the_middle_of_a_message(ends):
    push, pull = ends
    push.send(b"a", zmq.SNDMORE)
    assert push._front.send_lane is None
    push.send(b"b")
    assert push._front.send_lane is not None
    assert pull.recv() == b"a"
    assert pull._front.receive_lane is None
    assert pull.recv() == b"b"
    assert pull._front.receive_lane is not None


def test_no_lane_while_somebody_watches_the_descriptor(ends):
    push, pull = ends
    assert pull.fileno() >= 0
    assert push.fileno() >= 0
    assert pull._front.receive_lane is None
    assert push._front.send_lane is None
    push.send(b"x")
    assert pull.recv() == b"x"


@pytest.mark.parametrize("end", ["close", "term"])
def test_no_lane_after_the_end(ends, end):
    push, pull = ends
    push.send(b"left behind")
    if end == "close":
        pull.close()
    else:
        with pytest.raises(zmq.Again):
            pull.context.term(timeout=0)
    assert pull._front.receive_lane is None
    with pytest.raises(zmq.ZMQError) as ended:
        pull.recv()
    assert ended.value.errno in (zmq.ENOTSOCK, zmq.ETERM)
    pull.close()


@pytest.mark.parametrize(("hwm", "mark"), [(3, 6), (0, _NEVER)])
def test_over_inproc_a_sender_is_called_when_the_pipe_is_full(context, hwm, mark):
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    push.sndhwm = pull.rcvhwm = hwm
    pull.bind("inproc://marks")
    push.connect("inproc://marks")
    assert push._front.send_lane[2] == mark


def test_the_high_water_mark_is_exact_on_the_lane(context):
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    push.sndhwm, pull.rcvhwm = 10, 5
    pull.bind("inproc://exact")
    push.connect("inproc://exact")
    for n in range(15):
        push.send(b"%d" % n, timeout=0)
    with pytest.raises(zmq.Again):
        push.send(b"16", timeout=0)
    assert [pull.recv() for _ in range(15)] == [b"%d" % n for n in range(15)]
    push.send(b"room again", timeout=0)


def test_a_full_pipe_has_room_when_half_of_it_was_read(context):
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    push.sndhwm = pull.rcvhwm = 5
    pull.bind("inproc://half")
    push.connect("inproc://half")
    for _ in range(10):
        push.send(b"x", timeout=0)
    for _ in range(4):
        pull.recv()
        assert push.poll(0, zmq.POLLOUT) == 0
    pull.recv()
    assert push.poll(0, zmq.POLLOUT) == zmq.POLLOUT


def test_conflated_lanes_keep_the_last(context):
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    pull.conflate = 1
    pull.bind("inproc://last")
    push.connect("inproc://last")
    for n in range(10):
        push.send(b"%d" % n)
    assert pull.recv() == b"9"
    assert pull.poll(0) == 0


@pytest.mark.parametrize("wanted", [zmq.POLLIN, zmq.POLLOUT, zmq.POLLIN | zmq.POLLOUT])
def test_what_is_ready_is_the_same_with_a_lane_and_past_it(context, wanted):
    one, other = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
    one.bind("inproc://ready")
    other.sndhwm = one.rcvhwm = 1
    other.connect("inproc://ready")
    for message in (None, b"x", b"y"):  # nothing, something, a full pipe
        if message:
            other.send(message)
        for socket in (one, other):
            lanes = socket._front.ready(wanted)
            assert lanes == socket._core.ready(wanted) & wanted


def test_a_request_lets_a_connection_go_on_that_late_replies_had_stopped(context):
    req = context.socket(zmq.REQ)
    req.rcvhwm = req.req_relaxed = req.req_correlate = 1
    with plain.create_connection(("127.0.0.1", req.bind_to_random_port("tcp://127.0.0.1"))) as rep:
        rep.sendall(raw.greeting() + raw.ready(b"REP"))
        req.wait_connected(8)
        rep.recv(66 + rep.recv(66, plain.MSG_WAITALL | plain.MSG_PEEK)[65], plain.MSG_WAITALL)
        req.send(b"1")
        first = rep.recv(11, plain.MSG_WAITALL)[2:6]
        rep.sendall(raw.message(first, b"", b"late") * 2)
        assert req.poll(8000)  # its pipe is full, and nothing is read any more
        req.send(b"2")
        second = rep.recv(11, plain.MSG_WAITALL)[2:6]
        rep.sendall(raw.message(second, b"", b"answer"))
        assert req.recv(timeout=8) == b"answer"


def test_a_reply_wakes_who_waits_for_the_next_request(context):
    rep = context.socket(zmq.REP)
    port = rep.bind_to_random_port("tcp://127.0.0.1")
    askers = [context.socket(zmq.REQ) for _ in range(2)]
    for asker in askers:
        asker.connect(f"tcp://127.0.0.1:{port}")
        asker.send(b"?")
    rep.recv()
    until(lambda: rep.stats().incoming.messages == 1)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(rep.poll, 8000)
        until(lambda: rep._front.waiters.waiting)
        rep.send(b"!")
        assert waiting.result(8)
