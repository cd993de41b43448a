"""Fault at every step: a peer that is cut off or falls silent after n octets, for every n.

The script is a whole conversation: greeting, READY, a message of one frame and one of two. Whatever
n is, only that connection may suffer: what was complete is delivered, nothing else is, and a peer
that comes after it (real libzmq) is served. The messages wait for the other end's READY, as RFC 37
asks: libzmq ends a connection whose traffic comes before it has sent its own.
"""

import pytest

from tests.kit.raw import RawListener, RawPeer, greeting, message, ready

pytestmark = [pytest.mark.interop, pytest.mark.over("tcp", "ipc")]

OPENING = greeting() + ready(b"PUSH", (b"Identity", b""))
FIRST, SECOND = message(b"one frame"), message(b"two", b"x" * 300)
SCRIPT = OPENING + FIRST + SECOND
EVERY_STEP = [*range(len(OPENING) + 40), len(SCRIPT) - 1, len(SCRIPT)]

MESSAGES = {
    len(OPENING + FIRST): [b"one frame"],
    len(SCRIPT): [b"two", b"x" * 300],
}


def delivered_by(size):
    """Return the messages that are complete after so many octets."""
    return [parts for end, parts in MESSAGES.items() if size >= end]


async def play(peer, size, cut=1000):
    """Send so many octets of the script, in pieces of ``cut``."""
    opening, traffic = SCRIPT[: min(size, len(OPENING))], SCRIPT[len(OPENING) : size]
    for start in range(0, len(opening), cut):
        await peer.send(opening[start : start + cut])
    if traffic:
        await peer.read(64)
        await peer.read_frame()
    for start in range(0, len(traffic), cut):
        await peer.send(traffic[start : start + cut])


EVERYTHING = [parts for size in EVERY_STEP for parts in delivered_by(size)]


async def receive_until(pull, last):
    """Receive messages up to ``last``; return those before it."""
    got = []
    while (parts := await pull.recv_multipart()) != last:
        got.append(parts)
    return got


async def test_a_bound_socket_outlives_a_peer_that_ends_after_any_octet(net, theirs, zmq, libzmq):
    pull, endpoint = net.socket(zmq.PULL), net.endpoint()
    pull.bind(endpoint)
    got = []
    for size in EVERY_STEP:
        with await RawPeer.dial(net, endpoint) as peer:
            await play(peer, size)
            peer.end()
            await peer.closed()
            got += [await pull.recv_multipart() for _ in delivered_by(size)]
    assert got == EVERYTHING
    await serves_a_good_peer(theirs, libzmq, pull, endpoint)


async def test_a_bound_socket_outlives_a_peer_that_is_reset_after_any_octet(
    net, theirs, zmq, libzmq
):
    pull, endpoint = net.socket(zmq.PULL), net.endpoint()
    pull.bind(endpoint)
    for size in EVERY_STEP:
        peer = await RawPeer.dial(net, endpoint)
        await play(peer, size)
        peer.reset()
    good = theirs.socket(libzmq.PUSH)
    good.connect(endpoint)
    await good.send(b"a good peer")
    assert all(parts in EVERYTHING for parts in await receive_until(pull, [b"a good peer"]))


async def test_a_bound_socket_outlives_peers_that_fall_silent_after_any_octet(
    net, theirs, zmq, libzmq
):
    pull, endpoint = net.socket(zmq.PULL, handshake_ivl=300), net.endpoint()
    pull.bind(endpoint)
    peers = []
    for size in EVERY_STEP:
        peer = await RawPeer.dial(net, endpoint)
        await play(peer, size)
        peers.append(peer)
    good = theirs.socket(libzmq.PUSH)
    good.connect(endpoint)
    await good.send(b"a good peer")
    got = await receive_until(pull, [b"a good peer"])
    got += [await pull.recv_multipart() for _ in range(len(EVERYTHING) - len(got))]
    assert sorted(got) == sorted(EVERYTHING)
    for size, peer in zip(EVERY_STEP, peers):
        with peer:
            if size < len(OPENING):  # the handshake has a time limit; a quiet peer after it has not
                await peer.closed()


async def test_a_connecting_socket_outlives_a_peer_that_ends_after_any_octet(
    net, theirs, zmq, libzmq
):
    pull = net.socket(zmq.PULL, reconnect_ivl=1)
    with RawListener(net) as listener:
        pull.connect(listener.endpoint)
        got = []
        for size in EVERY_STEP:
            with await listener.accept() as peer:
                await play(peer, size)
                peer.end()
                await peer.closed()
                got += [await pull.recv_multipart() for _ in delivered_by(size)]
        assert got == EVERYTHING
        pull.disconnect(listener.endpoint)
    await serves_a_good_peer(theirs, libzmq, pull)


async def test_a_connecting_socket_outlives_peers_that_fall_silent_after_any_octet(
    net, theirs, zmq, libzmq
):
    pull = net.socket(zmq.PULL, handshake_ivl=300, reconnect_ivl=10_000)
    with RawListener(net) as listener:
        peers = []
        for size in EVERY_STEP:
            pull.connect(listener.endpoint)
            peer = await listener.accept()
            await play(peer, size)
            peers.append(peer)
        got = [await pull.recv_multipart() for _ in EVERYTHING]
        assert sorted(got) == sorted(EVERYTHING)
        for size, peer in zip(EVERY_STEP, peers):
            with peer:
                if size < len(OPENING):
                    await peer.closed()
        await serves_a_good_peer(theirs, libzmq, pull)


async def serves_a_good_peer(theirs, libzmq, pull, endpoint=None):
    """Demand that a message of a well-behaved libzmq peer arrives."""
    good = theirs.socket(libzmq.PUSH)
    if endpoint is None:
        endpoint = theirs.endpoint()
        good.bind(endpoint)
        pull.connect(endpoint)
    else:
        good.connect(endpoint)
    await good.send(b"a good peer")
    assert await pull.recv() == b"a good peer"


@pytest.mark.parametrize("cut", [1, 2, 3, 7, 64])
async def test_a_peer_that_sends_in_small_pieces_is_understood(net, zmq, cut):
    pull, endpoint = net.socket(zmq.PULL), net.endpoint()
    pull.bind(endpoint)
    with await RawPeer.dial(net, endpoint) as peer:
        await play(peer, len(SCRIPT), cut)
        assert await pull.recv_multipart() == [b"one frame"]
        assert await pull.recv_multipart() == [b"two", b"x" * 300]


@pytest.mark.zerohop  # libzmq ends the connection: "unexpected command"
async def test_messages_that_come_together_with_ready_are_taken(net, zmq):
    pull, endpoint = net.socket(zmq.PULL), net.endpoint()
    pull.bind(endpoint)
    with await RawPeer.dial(net, endpoint) as peer:
        await peer.send(SCRIPT)
        assert await pull.recv_multipart() == [b"one frame"]
        assert await pull.recv_multipart() == [b"two", b"x" * 300]


async def test_nothing_but_greeting_and_ready_is_sent_before_the_peer_is_ready(net, zmq):
    push = net.socket(zmq.PUSH)
    with RawListener(net) as listener:
        push.connect(listener.endpoint)
        await push.send(b"patient")
        with await listener.accept() as peer:
            await peer.send(greeting())
            await peer.read(64)
            flags, body = await peer.read_frame()
            assert (flags, body[:6]) == (4, b"\x05READY")
            await net.tick(0.05)
            assert peer.come() == b""
            await peer.send(ready(b"PULL"))
            assert await peer.read_frame() == (0, b"patient")


async def test_a_peer_that_is_silent_after_its_handshake_misses_its_heartbeats(net, zmq):
    pull, endpoint = net.socket(zmq.PULL, heartbeat_ivl=20, heartbeat_timeout=60), net.endpoint()
    pull.bind(endpoint)
    with await RawPeer.dial(net, endpoint) as peer:
        await peer.handshake(b"PUSH")
        assert b"\x04PING" in await peer.closed()


async def test_a_time_to_live_that_the_peer_announced_is_kept(net, zmq):
    """The peer's own PING says after how many tenths of a second of silence it may be given up."""
    pull, endpoint = net.socket(zmq.PULL), net.endpoint()
    pull.bind(endpoint)
    with await RawPeer.dial(net, endpoint) as peer:
        await peer.handshake(b"PUSH")
        await peer.send(bytes.fromhex("04 07 04 50494e47 0001"))  # PING, 1/10 s
        assert await peer.read_frame() == (4, b"\x04PONG")
        await peer.closed()


async def test_a_peer_that_answers_every_ping_stays(net, zmq):
    pull, endpoint = net.socket(zmq.PULL, heartbeat_ivl=10, heartbeat_timeout=300), net.endpoint()
    pull.bind(endpoint)
    with await RawPeer.dial(net, endpoint) as peer:
        await peer.handshake(b"PUSH")
        for _ in range(10):
            flags, body = await peer.read_frame()
            assert (flags, body[:5]) == (4, b"\x04PING")
            await peer.send(bytes([4, 5 + len(body[7:])]) + b"\x04PONG" + body[7:])
        await peer.send(message(b"still here"))
        assert await pull.recv() == b"still here"


@pytest.mark.zerohop  # libzmq counts frames, and ends this connection: issue 2709
async def test_a_long_message_is_a_sign_of_life_while_it_arrives(net, zmq):
    pull, endpoint = net.socket(zmq.PULL, heartbeat_ivl=20, heartbeat_timeout=150), net.endpoint()
    pull.bind(endpoint)
    with await RawPeer.dial(net, endpoint) as peer:
        await peer.handshake(b"PUSH")
        wire = message(b"x" * 10_000)
        for start in range(0, len(wire), 500):
            await peer.send(wire[start : start + 500])
            await net.tick(0.02)  # 20 pieces: 0.4 s for a time limit of 0.15
        assert await pull.recv() == b"x" * 10_000
