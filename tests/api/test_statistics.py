import typing

import pytest

from zerohop import constants as zmq
from zerohop.api.statistics import PeerInfo, Queued, SocketStats
from zerohop.errors import Again, ZMQError


def test_queues_are_counted_in_messages_and_octets(pair):
    a, b = pair
    a.send(b"12345")
    a.send_multipart([b"12", b"345"])
    assert a.stats().outgoing == b.stats().incoming == Queued(2, 10)
    assert a.peers()[0].outgoing == b.peers()[0].incoming == Queued(2, 10)
    b.recv()
    assert b.stats().incoming == Queued(1, 5)


def test_an_inproc_peer_is_known_by_the_name_on_both_sides(context):
    dealer, router = context.socket(zmq.DEALER), context.socket(zmq.ROUTER)
    dealer.identity = b"me"
    router.bind("inproc://router")
    dealer.connect("inproc://router")
    (at_router,), (at_dealer,) = router.peers(), dealer.peers()
    assert at_router.endpoint == at_dealer.endpoint == "inproc://router"
    assert (at_router.socket_type, at_router.routing_id) == ("DEALER", b"me")
    assert (at_dealer.socket_type, at_dealer.state) == ("ROUTER", "connected")
    assert router.stats().peers == dealer.stats().peers == 1


def test_a_name_that_nobody_has_bound_is_being_connected(context):
    s = context.socket(zmq.PUSH)
    s.connect("inproc://nobody")
    s.send(b"kept")
    (peer,) = s.peers()
    assert (peer.endpoint, peer.state, peer.outgoing) == (
        "inproc://nobody", "connecting", Queued(1, 4),
    )  # fmt: skip
    assert s.stats().peers == 0


@pytest.mark.parametrize("immediate", [0, 1])
def test_an_endpoint_is_listed_before_it_is_connected(context, immediate):
    s = context.socket(zmq.PUSH)
    s.immediate = immediate
    s.connect("tcp://127.0.0.1:9")
    (peer,) = s.peers()
    assert (peer.endpoint, peer.address, peer.socket_type) == ("tcp://127.0.0.1:9", "", "")
    assert (peer.state, peer.reconnects, peer.last_error) == ("connecting", 0, None)


def test_an_endpoint_that_failed_says_why_and_that_it_is_tried_again(context):
    s = context.socket(zmq.PUSH)
    s.connect("tcp://127.0.0.1:9")
    links = s._core.links
    (dialer,) = links.dialers
    error = ConnectionRefusedError(111, "Connection refused")
    links.dialers.failed(dialer, error, 0.0)
    (peer,) = s.peers()
    assert (peer.state, peer.last_error) == ("waiting", error)
    assert s.last_error("tcp://127.0.0.1:9") is error


def test_an_endpoint_that_is_not_tried_again_has_stopped(context):
    s = context.socket(zmq.PUSH)
    s.reconnect_ivl = -1
    s.connect("tcp://127.0.0.1:9")
    links = s._core.links
    links.dialers.failed(next(iter(links.dialers)), ConnectionRefusedError(111, "refused"), 0.0)
    assert s.peers()[0].state == "stopped"


def test_the_last_error_of_a_good_endpoint_is_none(context):
    s = context.socket(zmq.REP)
    s.bind("tcp://127.0.0.1:*")
    assert s.last_error(s.last_endpoint.decode()) is None


def test_the_last_error_of_an_unknown_endpoint_is_enoent(context):
    s = context.socket(zmq.REP)
    with pytest.raises(ZMQError) as raised:
        s.last_error("tcp://127.0.0.1:9")
    assert raised.value.errno == 2


def test_drops_are_counted_by_reason(context):
    pub, sub = context.socket(zmq.PUB), context.socket(zmq.SUB)
    pub.sndhwm = sub.rcvhwm = 1
    sub.subscribe("")
    pub.bind("inproc://drops")
    sub.connect("inproc://drops")
    for _ in range(5):
        pub.send(b"x")
    assert sum(pub.stats().dropped.values()) == 3
    assert sum(pub.peers()[0].dropped.values()) == 3
    assert [sub.recv(), sub.recv()] == [b"x", b"x"]
    with pytest.raises(Again):
        sub.recv()


def test_statistics_do_not_change_when_the_socket_does(pair):
    a, b = pair
    before = a.stats(), a.peers()
    a.send(b"x")
    b.recv()
    b.close()
    assert before[0].outgoing == Queued(0, 0)
    assert before[1][0].state == "connected"
    with pytest.raises(TypeError):
        before[0].dropped["x"] = 1


@pytest.mark.parametrize("kind", [PeerInfo, SocketStats, Queued])
def test_every_field_has_a_type_that_can_be_looked_up(kind):
    hints = typing.get_type_hints(kind)
    assert set(kind.__slots__) == set(hints)
