"""A thread that keeps the interpreter to itself for long slices: others are slow, and none stops.

Nobody can run while it is held. But each time it is let go of, whoever has to go on must be among
those that get it, and no time limit, heartbeat or queue may suffer from the interruptions.
"""

import re
import sys
import threading
import time
from random import Random

import pytest
import zmq as libzmq

import zerohop as zmq
from tests.stress.kit import SOAK, TRANSPORTS, compute, limited, switching, until
from tests.stress.traffic import END, everything, receive_until_end, send_all

pytestmark = limited

SLICE = 0.03  # seconds, about
NUMBERS = Random(1).choices(range(100_000), k=100_000)
EVIL = re.compile(r"(a+)+b")


def in_python(seconds=SLICE):
    """Bytecode, with so long a switch interval that nobody gets a turn before it is over."""
    compute(seconds)


def sort():
    sorted(NUMBERS)


def match():
    EVIL.match("a" * 19)


def add():
    sum(range(1_500_000))


HOGS = [in_python, sort, match, add]


@pytest.fixture
def hog(request, team):
    """A thread that does this again and again while the test goes on."""
    over = threading.Event()

    def run():
        while not over.is_set():
            request.param()
            time.sleep(0)

    slow = switching(10 * SLICE if request.param is in_python else sys.getswitchinterval())
    with slow:
        member = team.start(run)
        yield
        over.set()
        member.join()


@pytest.mark.parametrize("hog", HOGS, indirect=True)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_conversation_of_two_threads_goes_on_beside_it(context, bind, team, hog, transport):
    req, rep = context.socket(zmq.REQ), context.socket(zmq.REP)
    req.connect(bind(rep, transport))
    count = 3 + int(SOAK)

    def serve():
        for _ in range(count):
            rep.send(b"re " + rep.recv())

    team.start(serve)
    for n in range(count):
        req.send(b"%d" % n)
        assert req.recv() == b"re %d" % n


@pytest.mark.parametrize("hog", HOGS, indirect=True)
def test_floods_lose_nothing_beside_it(context, bind, team, hog):
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    push.sndhwm = pull.rcvhwm = 50
    push.connect(bind(pull, "tcp"))
    receiving = team.start(receive_until_end, pull, 1)
    send_all(push, 1, 0, 100)
    push.send(END)
    assert receiving.join() == everything(1, 100)


@pytest.mark.interop
@pytest.mark.parametrize("hog", HOGS, indirect=True)
def test_heartbeats_with_a_peer_that_needs_no_interpreter_survive_it(context, bind, hog):
    """libzmq's threads go on all the time, and would hang up if we did not answer."""
    rep = context.socket(zmq.REP)
    rep.heartbeat_ivl, rep.heartbeat_timeout = 50, 3000
    with libzmq.Context() as other, other.socket(libzmq.REQ) as req:
        req.linger = 0
        req.heartbeat_ivl, req.heartbeat_timeout = 50, 3000
        ends = req.get_monitor_socket(libzmq.EVENT_DISCONNECTED)
        req.connect(bind(rep, "tcp"))
        until(rep.peers)
        time.sleep(0.3 + SOAK)
        assert not ends.poll(0)
        req.send(b"x")
        assert rep.recv() == b"x"
        ends.close(linger=0)
