"""What the hot paths of blocking sockets may cost, in calls: the same on every machine.

Calls of Python and of C functions as a profiler sees them, in the thread of the caller. The peer is
a plain socket in the same thread: what it sends is there before the call that receives it, so that
no time is counted. A limit has one or two calls of room.
"""

import socket
import statistics
import threading
import time

import pytest

import zerohop as zmq
from tests.kit.net import free_port
from tests.kit.raw import greeting, ready
from tests.wire.kit import calls_during
from zerohop.io.lookout import VARIABLE

BODY = b"x" * 64
ENVELOPE = b"\1\0"  # MORE, and no octets
FRAME = b"\0\x40" + BODY
REQ, REP, PAIR, ROUTER = 69, 69, 75, 78
LOOKS_A_SECOND = 10


@pytest.fixture(autouse=True)
def sleeping_at_once(monkeypatch):
    """How often a wait looks before it sleeps is a matter of time; here it does not."""
    monkeypatch.setenv(VARIABLE, "0")


class Ends:
    """A socket of ours and its peer, which sends and takes octets."""

    def __init__(self, context, kind, peer_kind):
        self.ours = context.socket(kind)
        port = self.ours.bind_to_random_port("tcp://127.0.0.1")
        self.peer = socket.create_connection(("127.0.0.1", port))
        self.peer.sendall(greeting() + ready(peer_kind))
        self.ours.wait_connected(8)
        ready_size = self._take(66)[65]
        self._take(ready_size)

    def _take(self, count):
        return self.peer.recv(count, socket.MSG_WAITALL)

    def send(self, octets, *calls):
        """Make calls that write these octets; return how many calls of all kinds that was."""
        count = sum(calls_during(*call) for call in calls)
        assert self._take(len(octets)) == octets
        return count

    def receive(self, octets, call):
        """Let the peer send; return how many calls it takes to receive that."""
        self.peer.sendall(octets)
        return calls_during(call)


@pytest.fixture
def make(context):
    made = []

    def ends(kind, peer_kind):
        made.append(Ends(context, kind, peer_kind))
        return made[-1]

    yield ends
    for each in made:
        each.peer.close()


def usually(step):
    """The calls of one step. Now and then the helper thread is quicker and has read what came."""
    step()
    return statistics.median(step() for _ in range(41))


def test_a_request_and_its_reply(make):
    ends = make(zmq.REQ, b"REP")
    ours, octets = ends.ours, ENVELOPE + FRAME
    assert (
        usually(lambda: ends.send(octets, (ours.send, BODY)) + ends.receive(octets, ours.recv))
        <= REQ
    )


def test_a_reply_and_the_request_before_it(make):
    ends = make(zmq.REP, b"REQ")
    ours, octets = ends.ours, ENVELOPE + FRAME
    assert (
        usually(lambda: ends.receive(octets, ours.recv) + ends.send(octets, (ours.send, BODY)))
        <= REP
    )


def test_what_two_of_a_pair_say_to_each_other(make):
    ends = make(zmq.PAIR, b"PAIR")
    ours = ends.ours
    assert (
        usually(lambda: ends.receive(FRAME, ours.recv) + ends.send(FRAME, (ours.send, BODY)))
        <= PAIR
    )


def test_an_echo_of_a_router(make):
    ends = make(zmq.ROUTER, b"DEALER")
    ours, messages = ends.ours, []

    def step():
        count = ends.receive(FRAME, lambda: messages.append(ours.recv_multipart()))
        return count + ends.send(FRAME, (ours.send_multipart, messages.pop()))

    assert usually(step) <= ROUTER


def test_lone_messages_that_are_waited_for_do_not_wake_the_helper(make, monkeypatch):
    """It looks by itself whether the program still waits, ten times a second at most."""
    ends = make(zmq.PULL, b"PUSH")
    helper = ends.ours._reactor._helper
    rest, looks, calls = helper._rest, [], []

    def alone():
        waiting = threading.Thread(target=ends.ours.recv)
        waiting.start()
        while not ends.ours._reactor.occupied:
            time.sleep(0.001)
        ends.peer.sendall(FRAME)
        waiting.join(8)

    for _ in range(30):
        alone()
    monkeypatch.setattr(helper, "_rest", lambda seconds: (looks.append(seconds), rest(seconds)))
    monkeypatch.setattr(helper, "call", lambda: calls.append("woken"))
    begin = time.monotonic()
    for _ in range(100):
        alone()
    assert not calls
    assert len(looks) <= LOOKS_A_SECOND * (time.monotonic() - begin) + 2


def test_a_poll_that_finds_a_message_there(make):
    ends = make(zmq.PULL, b"PUSH")
    poller = zmq.Poller()
    poller.register(ends.ours, zmq.POLLIN)
    ends.peer.sendall(FRAME * 50)
    ends.ours.recv()
    # poll, zmq_poll; isinstance, append, Front.ready, append
    assert usually(lambda: calls_during(poller.poll)) <= 6
    # poll, Front.ready
    assert usually(lambda: calls_during(ends.ours.poll)) <= 3


def test_several_parts_on_the_lane(context):
    push = context.socket(zmq.PUSH)
    push.connect(f"tcp://127.0.0.1:{free_port()}")  # nobody there: messages queue
    parts = [BODY] * 5
    push.send_multipart(parts)
    # send_multipart; len, append, len
    assert usually(lambda: calls_during(push.send_multipart, parts)) <= 4


def test_several_parts_off_the_lane(make):
    ends = make(zmq.PULL, b"PUSH")
    pull = ends.ours
    ends.peer.sendall((b"\1\x40" + BODY + FRAME) * 50)
    pull.recv_multipart()
    # recv_multipart; popleft
    assert usually(lambda: calls_during(pull.recv_multipart)) <= 2
