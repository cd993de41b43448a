"""What connections and sockets may cost, in calls: the same on every machine.

Calls of Python and of C functions as a profiler sees them, a loop's own left out as far as may be
(:class:`tests.io.hand.HandLoop`). A server meets its clients at this price, and a client that
makes a socket for each request pays it each time.
"""

import gc
import socket as plain

import pytest

import zerohop as zmq
from tests.io.hand import endpoint_of, server
from tests.kit.raw import frame, greeting, ready
from tests.wire.kit import calls_during

MANY = 40


@pytest.fixture(autouse=True)
def quiet():
    """No garbage collection while calls are counted: what it finalizes makes calls, too."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def clients():
    """Connects so many plain sockets to an endpoint, each of which has said ``first`` already."""
    made = []

    def connect(endpoint, count, first=b""):
        host, port = endpoint.decode().removeprefix("tcp://").split(":")
        for _ in range(count):
            made.append(plain.create_connection((host, int(port))))
            made[-1].sendall(first)
        return made[-count:]

    yield connect
    for each in made:
        each.close()


def used(world):
    """A first connection each way: what is imported or made once is made."""
    pull, push = world.socket(zmq.PULL), world.socket(zmq.PUSH)
    pull.bind("tcp://127.0.0.1:*")
    push.connect(pull.last_endpoint.decode())
    push.send(b"x")
    world.loop.until(pull._core.pattern.can_receive_now)
    pull.close(0)
    push.close(0)
    world.loop.settle(2)


@pytest.mark.parametrize("kind, budget", [(zmq.PUSH, 40), (zmq.ROUTER, 43), (zmq.SUB, 44)])
def test_a_socket(world, kind, budget):
    used(world)
    world.socket(kind).close(0)
    made = []
    assert calls_during(lambda: made.append(world.context.socket(kind))) <= budget
    assert calls_during(made[0].close, 0) <= 57


def test_a_connection_that_is_dialled_until_its_greeting_is_out(world):
    used(world)
    push, listening = world.socket(zmq.PUSH), server(backlog=MANY)
    push.connect(endpoint_of(listening))
    calls = [calls_during(push.connect, endpoint_of(listening)) for _ in range(MANY)]
    assert max(calls) <= 95, "the last costs what the first does"
    listening.close()


def test_a_connection_that_is_accepted_until_its_greeting_is_out(world, clients):
    used(world)
    pull = world.socket(zmq.PULL)
    pull.bind("tcp://127.0.0.1:*")
    clients(pull.last_endpoint, MANY)
    [acceptor] = pull._driver._acceptors.values()
    assert calls_during(acceptor._on_readable) <= 44 * MANY
    assert len(pull._core.links.open_links) == MANY


@pytest.mark.parametrize(
    "kind, peer, budget",
    [(zmq.PULL, b"PUSH", 73), (zmq.ROUTER, b"DEALER", 80), (zmq.PUB, b"SUB", 75)],
)
def test_a_handshake_and_a_message(world, clients, kind, peer, budget):
    used(world)
    bound = world.socket(kind)
    bound.bind("tcp://127.0.0.1:*")
    clients(bound.last_endpoint, MANY, greeting() + ready(peer) + frame(b"hello"))
    [acceptor] = bound._driver._acceptors.values()
    acceptor._on_readable()
    first, *others = bound._driver._streams.values()
    first._on_readable()  # what it says is decoded once for all that say the same
    for stream in others:
        assert calls_during(stream._on_readable) <= budget
    assert len(bound._core.links.peers) == MANY


def test_what_the_garbage_collector_looks_at_of_a_thousand_connections(world, clients):
    """It was a quarter of the time that they took, before most of their lists were left out."""
    used(world)
    pull, listening = world.socket(zmq.PULL), server(backlog=MANY)
    pull.bind("tcp://127.0.0.1:*")
    clients(pull.last_endpoint, MANY, greeting() + ready(b"PUSH") + frame(b"hello"))
    before = len(gc.get_objects())
    [acceptor] = pull._driver._acceptors.values()
    acceptor._on_readable()
    for stream in pull._driver._streams.values():
        stream._on_readable()
    accepted = len(gc.get_objects())
    assert accepted - before <= 18 * MANY
    dealers = [world.socket(zmq.DEALER) for _ in range(MANY)]
    for dealer in dealers:
        dealer.connect(endpoint_of(listening))
    assert len(gc.get_objects()) - accepted <= 57 * MANY
    listening.close()


def test_an_attempt_that_is_refused(world):
    """A thousand clients whose server is away make some 7,000 of them a second."""
    used(world)
    push = world.socket(zmq.PUSH, reconnect_ivl=60_000)
    with plain.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        push.connect(endpoint_of(nobody))
        [dialer] = push._core.links.dialers
        for attempt in range(1, 4):
            assert dialer.attempt == attempt
            assert calls_during(world.loop.skip, 121.0) <= 90
