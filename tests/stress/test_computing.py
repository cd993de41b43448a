"""An application that computes without calling us: meanwhile everything that needs no call goes on.

The peers are in another process, and say when they saw what; both processes have one clock.
"""

import time

import pytest
import zmq as libzmq

import zerohop as zmq
from tests.kit.net import free_port
from tests.stress.kit import SOAK, compute, limited, until

pytestmark = limited

SECONDS = max(1.5, SOAK)
HEARTBEAT = {"heartbeat_ivl": 100, "heartbeat_timeout": 1500, "heartbeat_ttl": 1500}

PEERS = """
    context = zmq.Context()
    context.linger = 0
    context.rcvtimeo = context.sndtimeo = 8000

    def socket(kind, **options):
        made = context.socket(getattr(zmq, kind))
        for name, value in options.items():
            setattr(made, name, value)
        return made

    flushed, returning, late = socket("PULL"), socket("PUB"), socket("PULL")
    flushed.bind("tcp://127.0.0.1:*"), returning.bind("tcp://127.0.0.1:*")
    heart = socket("DEALER", {heartbeat})
    beats = heart.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    print(flushed.last_endpoint.decode(), returning.last_endpoint.decode())
    router, pull, pub, late_place = input().split()
    heart.connect(router)
    heart.send(b"here")
    print("ready")

    input()  # from now on the other process computes
    while flushed.recv() != b"999":
        pass
    print("flushed", time.monotonic())
    sub, push = socket("SUB"), socket("PUSH")
    sub.subscribe(b"news")
    sub.connect(pub), push.connect(pull)
    for peer in (sub, push):
        peer.wait_connected(8)
    print("handshakes", time.monotonic())
    for n in range(100):
        push.send(b"%d" % n)
    late.bind(late_place)
    assert [late.recv() for _ in range(3)] == [b"0", b"1", b"2"]
    place = returning.last_endpoint.decode()
    returning.close()
    time.sleep(0.1)
    returning = socket("PUB")
    returning.bind(place)
    returning.wait_for_subscribers(b"back", timeout=8)
    print("reconnected", time.monotonic())

    input()  # it computes no more
    print("disconnected" if beats.poll(0) else "heartbeats answered")
    assert sub.recv() == b"news"
    context.destroy(linger=0)
"""


@pytest.fixture
def peers(program):
    options = ", ".join(f"{name}={value}" for name, value in HEARTBEAT.items())
    return program(PEERS.replace("{heartbeat}", options))


@pytest.mark.parametrize("working", [compute, time.sleep], ids=["computing", "asleep"])
def test_connections_live_without_being_called(context, bind, peers, working):
    """New peers are greeted, subscriptions taken, heartbeats sent and answered, queues written,
    connections made anew; and what comes is there when the application asks at last."""
    to_flush, to_late, of_returning = map(context.socket, (zmq.PUSH, zmq.PUSH, zmq.SUB))
    there, returns = peers.line().split()
    to_late.reconnect_ivl = of_returning.reconnect_ivl = 20
    late = f"tcp://127.0.0.1:{free_port()}"
    of_returning.subscribe(b"back")
    to_flush.connect(there), of_returning.connect(returns), to_late.connect(late)
    router, pull, pub = map(context.socket, (zmq.ROUTER, zmq.PULL, zmq.PUB))
    for name, value in HEARTBEAT.items():
        setattr(router, name, value)
    peers.tell(" ".join([*(bind(socket, "tcp") for socket in (router, pull, pub)), late]))
    assert peers.line() == "ready"
    assert router.recv_multipart()[1] == b"here"
    of_returning.wait_connected(8)
    beats = router.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    for n in range(3):
        to_late.send(b"%d" % n)
    for n in range(1000):
        to_flush.send(b"%d" % n)
    peers.tell("computing")
    working(SECONDS)
    over = time.monotonic()
    peers.tell("asking")
    for what in ("flushed", "handshakes", "reconnected"):
        said, when = peers.line().split()
        assert said == what
        assert float(when) < over, what
    assert peers.line() == "heartbeats answered"
    assert not beats.poll(0)
    assert pull.stats().incoming.messages == 100
    pub.wait_for_subscribers(b"news", timeout=0)
    pub.send(b"news")
    peers.end()
    assert [pull.recv(zmq.DONTWAIT) for _ in range(100)] == [b"%d" % n for n in range(100)]


@pytest.mark.interop
def test_a_libzmq_peer_that_pings_is_answered(context, bind):
    rep = context.socket(zmq.REP)
    with libzmq.Context() as other, other.socket(libzmq.REQ) as req:
        req.linger = 0
        req.heartbeat_ivl, req.heartbeat_timeout = 50, 1000
        watch = req.get_monitor_socket(libzmq.EVENT_DISCONNECTED)
        req.connect(bind(rep, "tcp"))
        until(lambda: rep.peers())
        compute(SECONDS / 2)
        assert not watch.poll(0)
        req.send(b"are you there?")
        assert rep.recv() == b"are you there?"
        watch.close(linger=0)
