"""libzmq's STREAM: raw connections by routing id."""

import pytest

from tests.patterns.world import connect, lose, make, network_peer, new_peer, received, sent
from zerohop.constants import Errno
from zerohop.errors import Again, ZMQError
from zerohop.patterns.pattern import CLOSE_REQUESTED


def test_octets_come_with_the_id_of_their_connection():
    stream = make("STREAM", stream_notify=False)
    a, b = network_peer(stream), network_peer(stream)
    stream.deliver(a, [b"GET / HTTP/1.1"])
    stream.deliver(b, [b"hello"])
    assert received(stream) == [[a.routing_id, b"GET / HTTP/1.1"], [b.routing_id, b"hello"]]


def test_ids_are_a_zero_and_a_counter_that_begins_at_the_seed():
    stream = make("STREAM", seed=0x01020304)
    assert network_peer(stream).routing_id == b"\x00\x01\x02\x03\x04"


def test_an_empty_message_says_that_a_connection_has_come_and_another_that_it_has_gone():
    stream = make("STREAM")
    peer = network_peer(stream)
    stream.deliver(peer, [b"x"])
    stream.detach(peer)
    name = peer.routing_id
    assert received(stream) == [[name, b""], [name, b"x"], [name, b""]]


def test_without_stream_notify_it_says_neither():
    stream = make("STREAM", stream_notify=False)
    stream.detach(network_peer(stream))
    assert received(stream) == []


def test_a_dialled_connection_can_be_addressed_before_it_is_there():
    stream = make("STREAM")
    peer = new_peer()
    stream.attach(peer)
    stream.send([peer.routing_id, b"early"])
    assert sent(peer) == [b"early"]
    assert received(stream) == []


def test_a_dialled_connection_keeps_its_id_when_it_is_lost_and_comes_back():
    stream = make("STREAM")
    peer = network_peer(stream)
    name = peer.routing_id
    lose(stream, peer)
    lose(stream, peer)
    peer.routing_id = b""  # there is no READY command that could bring one
    connect(stream, peer)
    assert peer.routing_id == name
    assert received(stream) == [[name, b""]] * 3


def test_a_dialled_connection_may_be_named_by_connect_routing_id():
    stream = make("STREAM")
    peer = new_peer(connect_routing_id=b"ours")
    stream.attach(peer)
    assert stream.has_routing_id(b"ours")
    stream.send([b"ours", b"x"])
    assert sent(peer) == [b"x"]


def test_a_name_that_is_taken_is_not_given_twice():
    stream = make("STREAM", seed=9)
    for _ in range(2):
        stream.attach(peer := new_peer(connect_routing_id=b"ours"))
    assert peer.routing_id == b"\x00\x00\x00\x00\x09"


def test_octets_are_sent_by_id():
    stream = make("STREAM")
    a, b = network_peer(stream), network_peer(stream)
    stream.check_send(b.routing_id)
    stream.send([b.routing_id, b"x"])
    assert (sent(a), sent(b)) == ([], [b"x"])


def test_more_after_the_octets_is_ignored():
    """As if each id and its octets had been sent alone (libzmq, measured)."""
    stream = make("STREAM")
    a, b = network_peer(stream), network_peer(stream)
    stream.send([a.routing_id, b"1", b.routing_id, b"2", a.routing_id, b"3", b.routing_id])
    assert (sent(a), sent(b)) == ([b"1", b"3"], [b"2"])


def test_an_id_alone_is_ignored():
    stream = make("STREAM")
    peer = network_peer(stream)
    stream.send(peer.routing_id)
    assert sent(peer) == []
    assert stream.dropped == {"no octets after the routing id": 1}


def test_an_unknown_id_raises_ehostunreach():
    stream = make("STREAM")
    for call in (lambda: stream.send([b"nobody", b"x"]), lambda: stream.check_send(b"nobody")):
        with pytest.raises(ZMQError) as caught:
            call()
        assert caught.value.errno == Errno.EHOSTUNREACH


def test_a_full_connection_raises_again_and_nothing_is_sent():
    stream = make("STREAM")
    full, other = network_peer(stream, hwm=1), network_peer(stream)
    stream.send([full.routing_id, b"1"])
    with pytest.raises(Again):
        stream.send([other.routing_id, b"x", full.routing_id, b"2"])
    assert sent(other) == []
    assert stream.can_send_now()


def test_an_empty_message_closes_its_connection():
    stream = make("STREAM")
    peer = network_peer(stream)
    received(stream)
    stream.send([peer.routing_id, b""])
    assert stream.refused == [(peer, CLOSE_REQUESTED)]
    assert sent(peer) == []


def test_what_the_application_closed_is_not_announced_and_cannot_be_addressed():
    stream = make("STREAM")
    peer = network_peer(stream)
    received(stream)
    stream.send([peer.routing_id, b""])
    with pytest.raises(ZMQError):
        stream.send([peer.routing_id, b"x"])
    stream.detach(peer)
    assert received(stream) == []


def test_a_connection_that_comes_back_after_the_application_closed_it_gets_a_new_id():
    stream = make("STREAM", seed=1)
    peer = network_peer(stream)
    stream.send([peer.routing_id, b""])
    connect(stream, peer)
    assert peer.routing_id == b"\x00\x00\x00\x00\x02"


def test_with_nothing_to_receive_it_blocks():
    with pytest.raises(Again):
        make("STREAM").receive()
