"""What is lent with copy=False is not copied, and the caller's again when its last octet is out."""

import gc
import tracemalloc
import weakref

import numpy as np
import pytest

import zerohop as zmq
from tests.io.hand import Peer, endpoint_of, server
from tests.kit.raw import command

MIB = 1 << 20


@pytest.fixture
def peers(world, listening):
    """Accepts the next connection of a socket; its end does not read by itself."""
    made = []

    def accept(socket, kind=b"PULL"):
        made.append(Peer(world, socket, listening))
        made[-1].handshake(kind)
        return made[-1]

    yield accept
    for peer in made:
        peer.raw.close()


@pytest.fixture
def push(world, listening):
    made = world.socket(zmq.PUSH, linger=0, reconnect_ivl=1)
    made.connect(endpoint_of(listening))
    return made


def lend(push, size=16 * MIB):
    """Send an array of which only a weak reference is kept here; return it, and the tracker."""
    array = np.zeros(size, np.uint8)
    return weakref.ref(array), push.send(array, copy=False, track=True)


def drain(world, peer, size):
    """Read so many octets into a buffer that is there already."""
    buffer = memoryview(bytearray(MIB))
    left = size

    def read():
        nonlocal left
        try:
            while left > 0 and (count := peer.raw.recv_into(buffer[: min(left, MIB)])):
                left -= count
        except BlockingIOError:
            pass
        return left <= 0

    world.loop.until(read)


def test_it_is_done_when_the_system_has_the_last_octet_and_not_sooner(world, push, peers):
    peer = peers(push)
    array, tracker = lend(push)
    world.loop.settle(3)
    assert not tracker.done
    assert array() is not None
    drain(world, peer, 4 * MIB)
    world.loop.settle(3)
    assert not tracker.done
    drain(world, peer, 12 * MIB + 9)
    world.loop.settle(3)
    assert tracker.done
    assert array() is None


def test_while_it_waits_for_a_peer_it_is_lent(world, push, peers):
    array, tracker = lend(push)
    world.loop.settle(3)
    assert not tracker.done
    peer = peers(push)
    drain(world, peer, 16 * MIB)
    world.loop.settle(3)
    assert tracker.done
    assert array() is None


def test_after_a_connection_that_breaks_it_is_lent_until_it_is_out_on_the_next(world, push, peers):
    first = peers(push)
    array, tracker = lend(push)
    drain(world, first, 4 * MIB)
    first.reset()
    world.loop.until(lambda: not push._driver._streams)
    assert not tracker.done
    second = peers(push)
    drain(world, second, 4 * MIB)
    assert not tracker.done
    assert array() is not None
    drain(world, second, 12 * MIB)
    world.loop.settle(3)
    assert tracker.done
    assert array() is None


def test_what_is_dropped_is_the_callers_again(world, push, peers):
    peers(push)
    array, tracker = lend(push)
    queued, its_tracker = lend(push)
    world.loop.settle(3)
    push.close(linger=0)
    gc.collect()
    assert tracker.done
    assert its_tracker.done
    assert array() is None
    assert queued() is None


def test_a_message_of_several_parts_is_done_as_a_whole(world, push, peers):
    peer = peers(push)
    parts = [np.zeros(8 * MIB, np.uint8) for _ in range(3)]
    seen = [weakref.ref(part) for part in parts]
    tracker = push.send_multipart(parts, copy=False, track=True)
    parts.clear()
    drain(world, peer, 9 * MIB)
    world.loop.settle(3)
    assert not tracker.done
    drain(world, peer, 15 * MIB)
    world.loop.settle(3)
    assert tracker.done
    assert [each() for each in seen] == [None] * 3


def test_what_is_published_is_lent_until_the_last_subscriber_has_it(world, listening, peers):
    pub = world.socket(zmq.PUB, linger=0)
    both = []
    for _ in range(2):
        with server() as each:
            pub.connect(endpoint_of(each))
            peer = Peer(world, pub, each)
        peer.handshake(b"SUB")
        peer.raw.sendall(command(b"SUBSCRIBE", b"\0"))
        both.append(peer)
    world.loop.until(lambda: pub._core.pattern.subscribers(b"\0") == 2)
    array, tracker = lend(pub)
    drain(world, both[0], 16 * MIB)
    world.loop.settle(3)
    assert not tracker.done
    drain(world, both[1], 16 * MIB)
    world.loop.settle(3)
    assert tracker.done
    assert array() is None
    for peer in both:
        peer.raw.close()


def test_what_nobody_subscribes_to_is_the_callers_at_once(world):
    pub = world.socket(zmq.PUB)
    pub.bind("tcp://127.0.0.1:*")
    array, tracker = lend(pub, 100_000)
    assert tracker.done
    assert array() is None


def test_what_is_received_over_inproc_is_the_senders_again(world):
    push, pull = world.socket(zmq.PUSH), world.socket(zmq.PULL)
    pull.bind("inproc://x")
    push.connect("inproc://x")
    array, tracker = lend(push, MIB)
    assert not tracker.done
    assert pull.recv() == bytes(MIB)
    assert tracker.done
    assert array() is None


@pytest.mark.parametrize("copy", [False, True])
def test_sixteen_mebibytes_are_sent_without_a_copy(world, push, peers, copy):
    """With copy=True there is one, of what is not bytes."""
    peer = peers(push)
    array = np.zeros(16 * MIB, np.uint8)
    buffer = memoryview(bytearray(MIB))
    tracemalloc.start()
    push.send(array, copy=copy)
    left = 16 * MIB + 9
    while left:
        world.loop.turn(0)
        try:
            left -= peer.raw.recv_into(buffer)
        except BlockingIOError:
            continue
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (peak < MIB) == (not copy)
    assert peak < 17 * MIB


def test_sixteen_mebibytes_of_octets_are_never_copied(world, push, peers):
    peer = peers(push)
    body = bytes(16 * MIB)
    tracemalloc.start()
    push.send(body)
    drain(world, peer, 16 * MIB + 9)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * MIB  # the reader's buffer is in it


def test_a_large_message_that_comes_in_is_put_together_once(world, push, peers):
    pair = world.socket(zmq.PAIR)
    with server() as listening:
        pair.connect(endpoint_of(listening))
        peer = Peer(world, pair, listening)
    peer.handshake(b"PAIR")
    octets = memoryview(b"\x02" + (16 * MIB).to_bytes(8, "big") + bytes(16 * MIB))
    tracemalloc.start()
    while octets:
        try:
            octets = octets[peer.raw.send(octets[:MIB]) :]
        except BlockingIOError:
            world.loop.turn(0)
    world.loop.until(lambda: pair._core.ready() & zmq.POLLIN)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 34 * MIB  # what came, and the message that it becomes
    assert len(pair.recv()) == 16 * MIB
    peer.raw.close()
