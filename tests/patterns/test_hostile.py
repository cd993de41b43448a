"""Whatever a peer sends or does, and in whatever order, no pattern raises for it."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.patterns.world import connect, lose, make, new_peer
from zerohop.constants import SocketType
from zerohop.errors import Again, ZMQError

TYPES = [SocketType(number).name for number in range(12)]

parts = st.one_of(
    st.sampled_from([b"", b"\x00", b"\x01", b"\x01topic", b"\x00topic", b"four", b"\x00\0\0\0\0"]),
    st.binary(max_size=8),
)
messages = st.one_of(parts, st.lists(parts, min_size=2, max_size=4))
steps = st.one_of(
    st.tuples(st.just("deliver"), st.lists(messages, max_size=4)),
    st.tuples(st.just("subscription"), st.tuples(parts, st.booleans())),
    st.tuples(st.just("connect"), parts),
    st.tuples(st.just("lose"), st.none()),
    st.tuples(st.just("detach"), st.none()),
)


def act(pattern, peer, step, value):
    match step:
        case "deliver":
            if not pattern.accepts:  # STREAM: octets have no parts
                value = [message for message in value if isinstance(message, bytes)]
            pattern.deliver(peer, value)
        case "subscription":
            pattern.subscription(peer, *value)
        case "connect":
            peer.routing_id = value
            connect(pattern, peer)
        case "lose":
            lose(pattern, peer)
        case "detach":
            pattern.detach(peer)


@pytest.mark.parametrize("socket_type", TYPES)
@settings(max_examples=40, deadline=None)
@given(script=st.lists(st.tuples(st.integers(0, 2), steps), max_size=20))
def test_no_peer_can_make_a_pattern_raise(socket_type, script):
    pattern = make(socket_type, probe_router=True, xpub_welcome_msg=b"welcome")
    peers = [new_peer(hwm=2) for _ in range(3)]
    for peer in peers:
        pattern.attach(peer)
    for number, (step, value) in script:
        act(pattern, peers[number], step, value)
        if pattern.can_receive and pattern.can_receive_now():
            pattern.receive()  # what can be received is
        elif pattern.can_receive:
            with pytest.raises((Again, ZMQError)):
                pattern.receive()
        if pattern.can_send and pattern.can_send_now():
            with suppress(ZMQError):  # STREAM: nobody has this id
                pattern.send([b"\x00\0\0\0\0", b"", b"x"])


@pytest.mark.parametrize("socket_type", TYPES)
def test_a_peer_that_floods_is_stopped_at_the_high_water_mark(socket_type):
    """Its inbound pipe is full after one batch, or holds nothing; there is no other queue."""
    pattern = make(socket_type)
    peer = new_peer(hwm=10)
    pattern.attach(peer)
    connect(pattern, peer)
    pattern.deliver(peer, [[b"", b"x"]] * 10)
    assert peer.inbound.full or not peer.inbound.messages
