"""close(), term() and destroy() from another thread, while calls wait: each ends, and says why."""

import errno
import os
import threading
import time
from random import Random

import pytest

import zerohop as zmq
from tests.stress.kit import TRANSPORTS, in_rounds, limited, until
from tests.stress.traffic import RECEIVES, SENDS, identify

pytestmark = [limited, pytest.mark.usefixtures("impatient")]

# What waits for ever in a socket of which kind.
WAITS = {
    "recv": ("PULL", lambda socket: socket.recv()),
    "recv_multipart": ("DEALER", lambda socket: socket.recv_multipart(copy=False)),
    "recv_string": ("SUB", lambda socket: socket.recv_string()),
    "recv with a time limit": ("PAIR", lambda socket: socket.recv(timeout=60)),
    "reply": ("REP", lambda socket: socket.recv()),
    "send": ("PUSH", lambda socket: socket.send(b"x")),
    "send_multipart": ("DEALER", lambda socket: socket.send_multipart([b"x", b"y"])),
    "send part by part": ("PUSH", lambda socket: socket.send(b"x", zmq.SNDMORE)),
    "send with a time limit": ("PAIR", lambda socket: socket.send(b"x", timeout=60)),
    "request": ("REQ", lambda socket: socket.send(b"x")),
    "poll": ("PULL", lambda socket: socket.poll()),
    "poll for room": ("PUSH", lambda socket: socket.poll(60_000, zmq.POLLOUT)),
    "Poller": ("PULL", lambda socket: poll(socket)),
    "Poller with a descriptor": ("PULL", lambda socket: poll_with_a_pipe(socket)),
    "select": ("PUSH", lambda socket: zmq.select([], [socket], [])),
    "wait_connected": ("PULL", lambda socket: socket.wait_connected()),
    "wait_for_subscribers": ("PUB", lambda socket: socket.wait_for_subscribers()),
    "iteration": ("PULL", lambda socket: list(socket)),
    "proxy": ("PAIR", lambda socket: zmq.proxy(socket, socket)),
}


def poll(socket):
    poller = zmq.Poller()
    poller.register(socket, zmq.POLLIN)
    return poller.poll()


def poll_with_a_pipe(socket):
    reader, writer = os.pipe()
    poller = zmq.Poller()
    poller.register(reader, zmq.POLLIN)
    poller.register(socket, zmq.POLLIN)
    try:
        return poller.poll()
    finally:
        os.close(reader), os.close(writer)


def wait_for_the_end(wait, socket):
    """Wait; return the number of the error that ended it; close, as everybody has to on ETERM."""
    try:
        wait(socket)
    except zmq.ZMQError as error:
        return error.errno
    finally:
        socket.close(linger=0)
    return None


@pytest.mark.parametrize("how", ["close", "term", "destroy"])
@in_rounds(3)
def test_each_call_that_waits_ends_with_the_right_error(new_context, bind, team, how, random):
    """Two threads in each kind of call, in one socket or in two."""
    context = new_context()
    waiting = []
    for name in random.sample(sorted(WAITS), 12):
        kind, wait = WAITS[name]
        sockets = [lonely(context, bind, kind, random)]
        sockets.append(sockets[0] if random.random() < 0.5 else lonely(context, bind, kind, random))
        waiting += [(name, each, team.start(wait_for_the_end, wait, each)) for each in sockets]
    time.sleep(random.choice((0, 0.001, 0.01, 0.05)))
    match how:
        case "close":
            for _, socket, _ in random.sample(waiting, len(waiting)):
                socket.close(linger=0)
        case "term":
            context.term(timeout=8)
        case "destroy":
            context.destroy(linger=0)
    ends = {errno.ENOTSOCK, *({zmq.ETERM} if how != "close" else ())}
    for name, _, member in waiting:
        ended = member.join()
        if name == "iteration":
            assert ended is None
        elif "oll" in name and how != "term":
            assert ended in ends | {zmq.ENOTSUP}, name  # of a socket that was closed before
        else:
            assert ended in ends, name


def lonely(context, bind, kind, random):
    """A socket without a peer, bound or connected to nobody, and without a time limit."""
    socket = context.socket(getattr(zmq, kind))
    socket.rcvtimeo = socket.sndtimeo = -1
    if kind == "SUB":
        socket.subscribe(b"")
    if random.random() < 0.3:
        socket.immediate = 1
        socket.connect("tcp://127.0.0.1:9")
    else:
        bind(socket, random.choice(TRANSPORTS))
    return socket


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("how", ["sender", "receiver", "term"])
@in_rounds(2)
def test_an_end_in_the_middle_of_a_flood_ends_every_thread_that_takes_part(
    new_context, bind, team, transport, how, random
):
    context = new_context()
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    push.sndhwm = pull.rcvhwm = random.choice((1, 50, 0))
    push.connect(bind(pull, transport))
    got = []

    def send(own):
        for number in range(1_000_000):
            own.choice(SENDS)(push, [b"0 %d " % number])

    def receive(own):
        while True:
            got.append(identify(own.choice(RECEIVES)(pull)))

    def until_the_end(call, socket):
        try:
            call(Random(random.random()))
        except StopIteration:  # of an iteration
            return None
        except zmq.ZMQError as error:
            return error.errno
        finally:
            if how == "term":
                socket.close(linger=0)

    sending = [team.start(until_the_end, send, push) for _ in range(2)]
    receiving = [team.start(until_the_end, receive, pull) for _ in range(2)]
    until(lambda: len(got) > 100)
    time.sleep(random.random() * 0.02)
    if how == "term":
        context.term(timeout=8)
    else:
        first, second = (push, pull) if how == "sender" else (pull, push)
        first.close(linger=0)
        time.sleep(random.random() * 0.01)
        second.close(linger=0)
    allowed = {errno.ENOTSOCK, zmq.ENOTSUP, zmq.ETERM, None}
    ends = [member.join() for member in sending + receiving]
    assert set(ends) <= allowed, ends


@in_rounds(5)
def test_many_threads_close_and_end_the_same_things_at_once(new_context, bind, team, random):
    context = new_context()
    sockets = [context.socket(zmq.PUSH) for _ in range(6)]
    pull = context.socket(zmq.PULL)
    endpoints = [bind(pull, transport) for transport in TRANSPORTS]
    for socket in sockets:
        socket.connect(random.choice(endpoints))
        socket.send(b"x")
    gate = threading.Barrier(6)

    def close_all(order):
        gate.wait()
        for socket in order:
            socket.close()

    def end():
        gate.wait()
        context.term(timeout=8)

    for _ in range(4):
        team.start(close_all, random.sample([*sockets, pull], len(sockets) + 1))
    team.start(end), team.start(end)
    team.join()
    assert context.closed
    assert all(socket.closed for socket in sockets)


@in_rounds(3)
def test_a_context_ends_while_threads_make_sockets(new_context, bind, team, random):
    context = new_context()
    made = []

    def make():
        while True:
            try:
                with context.socket(zmq.PAIR) as socket:
                    made.append(socket)
                    socket.bind(f"inproc://{id(socket)}")
                    socket.poll(0)
            except zmq.ZMQError as error:
                return error.errno

    makers = [team.start(make) for _ in range(3)]
    until(lambda: len(made) > 20)
    time.sleep(random.random() * 0.01)
    context.term(timeout=8)
    assert {maker.join() for maker in makers} <= {zmq.ETERM, zmq.ENOTSUP}
    assert all(socket.closed for socket in made)
