"""Hostile octets hurt their own connection alone: the checklist, with libzmq's own oracle.

After every row a second, well-behaved peer (real libzmq) must get its message through. Rows that
break the protocol must also end the connection that sent them.
"""

import resource
import struct

import pytest

from tests.kit.raw import (
    COMMAND,
    LONG,
    MORE,
    RawListener,
    RawPeer,
    command,
    frame,
    greeting,
    message,
    metadata,
    ready,
)

pytestmark = [pytest.mark.interop, pytest.mark.over("tcp")]


def row(name, octets, *marks):
    """One row of a checklist; ``zerohop`` marks what libzmq does not refuse."""
    return pytest.param(octets, id=name, marks=marks)


# Before the handshake is complete: the first octets of a connection.
REFUSED_AT_ONCE = [
    row("an HTTP request", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" + b"x" * 100),
    row("64 zeros", bytes(64)),
    row("64 times FF", b"\xff" * 64),
    row("a wrong signature", b"\xff" + bytes(8) + b"\x7e" + greeting()[10:] + ready(b"PUSH")),
    row("version 1.0", b"\x01\x00" + message(b"hello") + bytes(64)),
    row("version 2.0", b"\xff" + bytes(8) + b"\x7f\x01\x08\x00\x00" + bytes(64)),
    row("major version 0", greeting(major=0) + ready(b"PUSH")),
    row("major version 2", greeting(major=2) + ready(b"PUSH")),
    row("an unknown mechanism", greeting(mechanism=b"NONSENSE") + ready(b"PUSH")),
    row("a mechanism in lower case", greeting(mechanism=b"null") + ready(b"PUSH")),
    row("a mechanism of 20 letters", greeting(mechanism=b"N" * 20) + ready(b"PUSH")),
    row("PLAIN offered to NULL", greeting(mechanism=b"PLAIN") + ready(b"PUSH")),
    row("CURVE offered to NULL", greeting(mechanism=b"CURVE") + ready(b"PUSH")),
    row("a message before READY", greeting() + message(b"too early") + ready(b"PUSH")),
    row("HELLO instead of READY", greeting() + command(b"HELLO", b"\0\0")),
    row("an empty command", greeting() + frame(b"", COMMAND) + message(b"too early")),
    row("a name beyond its frame", greeting() + frame(b"\xffREADY", COMMAND)),
    row("a value beyond its frame", greeting() + command(b"READY", b"\x01a\0\0\xff\xff" + b"b")),
    row("a name of 255 beyond its frame", greeting() + command(b"READY", b"\xff" + b"n" * 9)),
    row("half a value size", greeting() + command(b"READY", b"\x01a\0\0")),
    row("a wrong socket type", greeting() + ready(b"SUB")),
    row("an unknown socket type", greeting() + ready(b"NOSUCH")),
    row("an empty socket type", greeting() + ready(b"")),
    row("ERROR", greeting() + command(b"ERROR", b"\x03no!")),
    row("ERROR with a reason beyond its frame", greeting() + command(b"ERROR", b"\xffno")),
    row("a READY of 2^62 octets", greeting() + bytes([COMMAND | LONG]) + struct.pack(">Q", 2**62)),
]

# After a good handshake: what breaks the protocol ...
REFUSED_IN_TRAFFIC = [
    row("a size with the top bit set", bytes([LONG]) + struct.pack(">Q", 2**63)),
    row("a size of 2^64 - 1", bytes([LONG]) + b"\xff" * 8),
    row("a size of 2^62", bytes([LONG]) + struct.pack(">Q", 2**62) + b"x" * 100),
    row("a message over MAXMSGSIZE", message(b"x" * 2_000_000)),
    row("a size over MAXMSGSIZE", bytes([LONG]) + struct.pack(">Q", 1_000_001) + b"x"),
    row("a name beyond its command", frame(b"\xffPING", COMMAND), pytest.mark.zerohop),
    row("a PING without a time to live", command(b"PING", b"\0")),
    row("an ERROR", command(b"ERROR", b"\x03no!"), pytest.mark.zerohop),
]

# ... and what is strange and legal, or harmless: the connection lives.
ENDURED_IN_TRAFFIC = [
    row("an unknown command", command(b"NOSUCH", b"x" * 1000)),
    row("an empty message in the long form", bytes([LONG]) + bytes(8)),
    row("a short message in the long form", frame(b"x", LONG)),
    row("ten thousand empty messages", message(b"") * 10_000),
    row("a PING with the longest context", command(b"PING", b"\0\0" + b"c" * 16)),
    row("a PING that would live for ever", command(b"PING", b"\xff\xff")),
    row("ten thousand PINGs", command(b"PING", b"\0\0") * 10_000),
    row("ten thousand PONGs", command(b"PONG") * 10_000),
    row("a PONG nobody asked for", command(b"PONG", b"x" * 16)),
    row("a SUBSCRIBE to a PULL", command(b"SUBSCRIBE", b"topic")),
    row("a command between two frames", frame(b"a", MORE) + command(b"NOSUCH") + frame(b"b")),
]


async def a_good_peer_is_served(theirs, libzmq, pull):
    """Demand that a message of a second, well-behaved peer arrives."""
    good = theirs.socket(libzmq.PUSH, linger=0)
    good.connect(pull.last_endpoint.decode())
    await good.send(b"a good peer")
    while (await pull.recv_multipart()) != [b"a good peer"]:
        pass


@pytest.mark.parametrize("octets", REFUSED_AT_ONCE)
async def test_a_bound_socket_endures_a_bad_beginning(net, theirs, zmq, libzmq, octets):
    pull = bound_pull(net, zmq)
    with await RawPeer.dial(net, pull.last_endpoint.decode()) as peer:
        await peer.send(octets)
        await a_good_peer_is_served(theirs, libzmq, pull)


@pytest.mark.zerohop  # libzmq waits for more of some: for a ZMTP 1.0 frame of any length
@pytest.mark.parametrize("octets", REFUSED_AT_ONCE)
async def test_a_bad_beginning_is_the_end_of_the_connection(net, zmq, octets):
    pull = bound_pull(net, zmq)
    with await RawPeer.dial(net, pull.last_endpoint.decode()) as peer:
        await peer.send(octets)
        await peer.closed()


@pytest.mark.parametrize("octets", REFUSED_AT_ONCE)
async def test_a_connecting_socket_endures_a_bad_beginning(net, theirs, zmq, libzmq, octets):
    pull = net.socket(zmq.PULL, maxmsgsize=1_000_000, reconnect_ivl=20)
    good = theirs.socket(libzmq.PUSH)
    with RawListener(net) as listener:
        pull.connect(listener.endpoint)
        with await listener.accept() as peer:
            await peer.send(octets)
            await theirs.link(good, pull)
            await good.send(b"a good peer")
            while await pull.recv() != b"a good peer":  # libzmq speaks ZMTP 2.0, too
                pass
        pull.close()


@pytest.mark.parametrize("octets", REFUSED_IN_TRAFFIC)
async def test_what_breaks_the_protocol_ends_its_own_connection_alone(
    net, theirs, zmq, libzmq, octets
):
    pull = bound_pull(net, zmq)
    with await RawPeer.dial(net, pull.last_endpoint.decode()) as peer:
        await peer.handshake(b"PUSH")
        await peer.send(message(b"before") + octets)
        assert await pull.recv() == b"before"
        await peer.closed()
    await a_good_peer_is_served(theirs, libzmq, pull)


@pytest.mark.parametrize("octets", ENDURED_IN_TRAFFIC)
async def test_what_is_merely_strange_is_endured(net, theirs, zmq, libzmq, octets):
    pull = bound_pull(net, zmq)
    with await RawPeer.dial(net, pull.last_endpoint.decode()) as peer:
        await peer.handshake(b"PUSH")
        await peer.send(octets + message(b"and goes on"))
        while (await pull.recv_multipart()) != [b"and goes on"]:
            pass
        await a_good_peer_is_served(theirs, libzmq, pull)


def bound_pull(net, zmq):
    made = net.socket(zmq.PULL, maxmsgsize=1_000_000, rcvhwm=0)
    made.bind(net.endpoint())
    return made


# -- rows that need a target of their own


@pytest.mark.parametrize(
    "identity",
    [b"", b"x", b"x" * 255, b"\0abcd", b"\0"],
    ids=lambda name: f"{len(name)} {name[:2]!r}",
)
async def test_a_router_takes_any_identity_that_fits(net, theirs, zmq, libzmq, identity):
    router = net.socket(zmq.ROUTER)
    endpoint = net.endpoint()
    router.bind(endpoint)
    with await RawPeer.dial(net, endpoint) as peer:
        await peer.handshake(b"DEALER", (b"Identity", identity))
        await peer.send(message(b"hello"))
        name, text = await router.recv_multipart()
        assert text == b"hello"
        await router.send_multipart([name, b"back"])
        assert await peer.read_frame() == (0, b"back")


async def test_an_identity_that_is_too_long_is_the_end_of_its_connection(net, theirs, zmq, libzmq):
    router, good = net.socket(zmq.ROUTER), theirs.socket(libzmq.DEALER, routing_id=b"good")
    endpoint = net.endpoint()
    router.bind(endpoint)
    with await RawPeer.dial(net, endpoint) as peer:
        await peer.send(
            greeting() + ready(b"DEALER", (b"Identity", b"x" * 300)) + message(b"hello")
        )
        await net.join(endpoint, router, good)
        await good.send(b"hello")
        got = await router.recv_multipart()
        while got != [b"good", b"hello"]:  # libzmq takes the long one, too
            got = await router.recv_multipart()


async def test_a_ready_with_a_great_many_properties_is_read_or_refused(net, theirs, zmq, libzmq):
    pull = bound_pull(net, zmq)
    socket_type = metadata((b"Socket-Type", b"PUSH"))
    properties = metadata(*((b"X-%d" % n, b"v") for n in range(30_000)))
    with await RawPeer.dial(net, pull.last_endpoint.decode()) as peer:
        await peer.send(greeting() + command(b"READY", socket_type + properties))
        await a_good_peer_is_served(theirs, libzmq, pull)


async def test_cancelling_what_was_never_subscribed_changes_nothing(net, theirs, zmq, libzmq):
    xpub, good = net.socket(zmq.XPUB), theirs.socket(libzmq.SUB)
    endpoint = net.endpoint()
    xpub.bind(endpoint)
    with await RawPeer.dial(net, endpoint) as peer:
        await peer.handshake(b"SUB")
        await peer.send(command(b"CANCEL", b"never") * 100 + message(b"\x00never either"))
        await peer.send(command(b"SUBSCRIBE", b"a"))
        while await xpub.recv() != b"\x01a":  # libzmq reports even such a CANCEL
            pass
        good.subscribe(b"b")
        await net.join(endpoint, xpub, good)
        assert await xpub.recv() == b"\x01b"
        await xpub.send(b"abc")
        await xpub.send(b"bcd")
        assert await peer.read_frame() == (0, b"abc")
        assert await good.recv() == b"bcd"


async def test_a_topic_of_ten_megabytes_hurts_nobody_else(net, theirs, zmq, libzmq):
    xpub, good = net.socket(zmq.XPUB), theirs.socket(libzmq.SUB)
    endpoint = net.endpoint()
    xpub.bind(endpoint)
    topic = b"t" * 10_000_000
    with await RawPeer.dial(net, endpoint) as peer:
        await peer.handshake(b"SUB")
        await peer.send(command(b"SUBSCRIBE", topic) + command(b"CANCEL", topic))
        good.subscribe(b"good")
        good.connect(endpoint)
        while await xpub.recv() != b"\x01good":
            pass
        await xpub.send(b"good news")
        assert await good.recv() == b"good news"


async def test_twenty_thousand_topics_are_taken_and_given_up(net, zmq):
    xpub, endpoint = net.socket(zmq.XPUB), net.endpoint()
    xpub.bind(endpoint)
    with await RawPeer.dial(net, endpoint) as peer:
        await peer.handshake(b"SUB")
        await peer.send(b"".join(command(b"SUBSCRIBE", b"%d" % n) for n in range(20_000)))
        assert [await xpub.recv() for _ in range(20_000)][-1] == b"\x0119999"
    sub = net.socket(zmq.SUB)
    sub.subscribe(b"after")
    sub.connect(endpoint)
    while await xpub.recv() != b"\x01after":
        pass
    await xpub.send(b"after all")
    assert await sub.recv() == b"after all"


async def test_an_envelope_of_ten_thousand_hops_is_answered_or_refused(net, theirs, zmq, libzmq):
    rep, good, endpoint = net.socket(zmq.REP), theirs.socket(libzmq.REQ), net.endpoint()
    rep.bind(endpoint)
    with await RawPeer.dial(net, endpoint) as peer:
        await peer.handshake(b"REQ")
        await peer.send(message(*[b"hop"] * 10_000, b"", b"question"))
        good.connect(endpoint)
        await good.send(b"a good question")
        while await rep.recv() != b"a good question":
            await rep.send(b"answer")
        await rep.send(b"a good answer")
        assert await good.recv() == b"a good answer"


async def test_an_envelope_without_end_is_passed_over(net, theirs, zmq, libzmq):
    rep, good, endpoint = net.socket(zmq.REP), theirs.socket(libzmq.REQ), net.endpoint()
    rep.bind(endpoint)
    with await RawPeer.dial(net, endpoint) as peer:
        await peer.handshake(b"REQ")
        await peer.send(frame(b"unfinished", MORE) * 1000)
        good.connect(endpoint)
        await good.send(b"a good question")
        assert await rep.recv() == b"a good question"
        await rep.send(b"a good answer")
        assert await good.recv() == b"a good answer"


@pytest.mark.zerohop  # libzmq never asks that peer again, nor that endpoint
async def test_a_malformed_reply_does_not_end_a_req_for_good(net, zmq):
    req = net.socket(zmq.REQ, reconnect_ivl=10, req_relaxed=1)
    with RawListener(net) as listener:
        req.connect(listener.endpoint)
        with await listener.accept() as peer:
            await peer.handshake(b"ROUTER")
            await req.send(b"1")
            assert await peer.read_frame() == (MORE, b"")
            assert await peer.read_frame() == (0, b"1")
            await peer.send(message(b"no delimiter"))
            await peer.closed()
        with await listener.accept() as peer:
            await peer.handshake(b"ROUTER")
            await req.send(b"2")
            while await peer.read_frame() != (0, b"2"):
                pass
            await peer.send(message(b"", b"well formed"))
            assert await req.recv() == b"well formed"


@pytest.mark.zerohop  # libzmq allocates what a header of nine octets announces
async def test_an_announced_size_costs_no_memory_before_it_arrives(net, zmq):
    pull, endpoint = net.socket(zmq.PULL), net.endpoint()
    pull.bind(endpoint)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peers = [await RawPeer.dial(net, endpoint) for _ in range(10)]
    for peer in peers:
        await peer.handshake(b"PUSH")
        await peer.send(bytes([LONG]) + struct.pack(">Q", 1 << 30) + b"x" * 1000)
    with await RawPeer.dial(net, endpoint) as good:
        await good.handshake(b"PUSH")
        await good.send(message(b"a good peer"))
        assert await pull.recv() == b"a good peer"
    for peer in peers:
        peer.reset()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024  # in KiB


@pytest.mark.parametrize("minor", [0, 1])
async def test_subscriptions_are_understood_as_command_and_as_message(net, zmq, minor):
    xpub, endpoint = net.socket(zmq.XPUB), net.endpoint()
    xpub.bind(endpoint)
    with await RawPeer.dial(net, endpoint) as peer:
        await peer.handshake(b"SUB", minor=minor)
        await peer.send(command(b"SUBSCRIBE", b"a") + message(b"\x01b"))
        assert [await xpub.recv(), await xpub.recv()] == [b"\x01a", b"\x01b"]
        await xpub.send(b"abc")
        assert await peer.read_frame() == (0, b"abc")
        await peer.send(command(b"CANCEL", b"a") + message(b"\x00b"))
        assert [await xpub.recv(), await xpub.recv()] == [b"\x00a", b"\x00b"]


@pytest.mark.parametrize(
    ("minor", "expected"),
    [(0, (0, b"\x01topic")), (1, (COMMAND, b"\x09SUBSCRIBEtopic"))],
    ids=["3.0: a message", "3.1: a command"],
)
async def test_a_subscription_is_sent_as_the_version_of_the_peer_asks(net, zmq, minor, expected):
    sub = net.socket(zmq.SUB)
    sub.subscribe(b"topic")
    with RawListener(net) as listener:
        sub.connect(listener.endpoint)
        with await listener.accept() as peer:
            await peer.handshake(b"PUB", minor=minor)
            assert await peer.read_frame() == expected
            sub.unsubscribe(b"topic")
            cancel = (0, b"\x00topic") if minor == 0 else (COMMAND, b"\x06CANCELtopic")
            assert await peer.read_frame() == cancel
