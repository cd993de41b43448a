"""A context that lets no socket drop, though a test forgets it."""

import socket

import pytest

import zerohop as zmq
from tests.io.hand import Peer, World, endpoint_of, server
from tests.kit.keeper import keeper


@pytest.fixture
def context():
    with keeper() as context:
        yield context


@pytest.fixture
def world():
    """Sockets on a loop that the test turns by hand."""
    made = World()
    yield made
    made.close()


@pytest.fixture
def listening():
    """A plain listening socket."""
    with server() as made:
        yield made


@pytest.fixture
def join(world, listening):
    """Makes a PUSH that is connected to a peer of octets, which does not read."""
    peers = []

    def make(**options):
        push = world.socket(zmq.PUSH, **options)
        push.connect(endpoint_of(listening))
        peers.append(Peer(world, push, listening))
        peers[-1].handshake(b"PULL")
        return push, peers[-1]

    yield make
    for peer in peers:
        peer.raw.close()


@pytest.fixture
def ends():
    """Two sockets that are connected, non-blocking."""
    pair = socket.socketpair()
    for end in pair:
        end.setblocking(False)
    yield pair
    for end in pair:
        end.close()
