"""ROUTER_MANDATORY, ROUTER_HANDOVER, PROBE_ROUTER, CONNECT_ROUTING_ID (zmq_setsockopt(3))."""

import pytest

from tests.kit.traffic import drain


async def test_a_mandatory_router_says_that_nobody_has_this_name(net, zmq):
    router, dealer = net.socket(zmq.ROUTER, router_mandatory=1), net.socket(zmq.DEALER)
    dealer.routing_id = b"A"
    await net.link(router, dealer)
    with pytest.raises(zmq.ZMQError, match="Host unreachable") as nobody:
        await router.send_multipart([b"nobody", b"x"])
    assert nobody.value.errno == zmq.EHOSTUNREACH
    await router.send_multipart([b"A", b"x"])
    assert await dealer.recv_multipart() == [b"x"]


@pytest.mark.over("inproc")
async def test_a_mandatory_router_waits_for_a_peer_that_is_full(net, zmq):
    router = net.socket(zmq.ROUTER, router_mandatory=1, sndhwm=2)
    dealer = net.socket(zmq.DEALER, routing_id=b"A", rcvhwm=3)
    await net.link(router, dealer)
    for n in range(5):
        await router.send_multipart([b"A", b"%d" % n], zmq.DONTWAIT)
    with pytest.raises(zmq.Again):
        await router.send_multipart([b"A", b"one too many"], zmq.DONTWAIT)
    router.sndtimeo = 10
    with pytest.raises(zmq.Again):
        await router.send_multipart([b"A", b"one too many"])
    assert await drain(zmq, dealer) == [b"%d" % n for n in range(5)]
    await router.send_multipart([b"A", b"room again"])
    assert await dealer.recv() == b"room again"


@pytest.mark.over("inproc")
async def test_a_mandatory_router_is_writable_while_some_peer_has_room(net, zmq):
    router = net.socket(zmq.ROUTER, router_mandatory=1, sndhwm=1)
    a = net.socket(zmq.DEALER, routing_id=b"A", rcvhwm=1)
    b = net.socket(zmq.DEALER, routing_id=b"B", rcvhwm=1)
    assert not router.events & zmq.POLLOUT
    await net.link(router, a, b)
    for name in (b"A", b"A", b"B"):
        await router.send_multipart([name, b"x"], zmq.DONTWAIT)
    assert router.events & zmq.POLLOUT
    await router.send_multipart([b"B", b"x"], zmq.DONTWAIT)
    assert not router.events & zmq.POLLOUT


async def test_with_handover_the_newcomer_takes_the_name(net, zmq):
    router = net.socket(zmq.ROUTER, router_handover=1, router_mandatory=1)
    first, second = (net.socket(zmq.DEALER, routing_id=b"A") for _ in range(2))
    endpoint = await net.link(router, first)
    await first.send(b"from the first")
    assert await router.recv_multipart() == [b"A", b"from the first"]
    await net.join(endpoint, router, second)
    await second.send(b"from the second")
    assert await router.recv_multipart() == [b"A", b"from the second"]
    await router.send_multipart([b"A", b"to the second"])
    assert await second.recv() == b"to the second"
    with pytest.raises(zmq.Again):
        await first.recv(zmq.DONTWAIT)


@pytest.mark.parametrize("socket_type", ["DEALER", "ROUTER"])
async def test_a_probe_announces_the_one_who_connects(net, zmq, socket_type):
    router = net.socket(zmq.ROUTER)
    prober = net.socket(getattr(zmq, socket_type), routing_id=b"prober", probe_router=1)
    await net.link(router, prober)
    assert await router.recv_multipart() == [b"prober", b""]
    await router.send_multipart([b"prober", b"hello"])
    assert (await prober.recv_multipart())[-1] == b"hello"


@pytest.mark.over("tcp", "ipc")
async def test_a_probe_of_the_bound_side_greets_each_new_peer(net, zmq):
    bound = net.socket(zmq.ROUTER, routing_id=b"bound", probe_router=1)
    dealers = [net.socket(zmq.DEALER) for _ in range(2)]
    await net.link(bound, *dealers)
    assert [await dealer.recv_multipart() for dealer in dealers] == [[b""], [b""]]


async def test_the_one_who_connects_may_name_its_peer_itself(net, zmq):
    near = net.socket(zmq.ROUTER, router_mandatory=1, connect_routing_id=b"far")
    far = net.socket(zmq.ROUTER, routing_id=b"its own name")
    endpoint = net.endpoint()
    far.bind(endpoint)
    near.connect(endpoint)
    await net.eventually(lambda: near.events & zmq.POLLOUT)
    await near.send_multipart([b"far", b"hello"])
    name, body = await far.recv_multipart()
    assert body == b"hello"
    await far.send_multipart([name, b"back"])
    assert await near.recv_multipart() == [b"far", b"back"]


async def test_a_name_for_the_peer_counts_for_the_next_connection_alone(net, zmq):
    near = net.socket(zmq.ROUTER, router_mandatory=1, connect_routing_id=b"far")
    first = net.socket(zmq.ROUTER)
    second = net.socket(zmq.ROUTER, routing_id=b"second")
    await net.link(first, near)
    await net.link(second, near)

    async def send_to_second():
        try:
            await near.send_multipart([b"second", b"by its own name"])
        except zmq.ZMQError:
            return False
        return True

    await net.eventually(send_to_second)
    assert (await second.recv_multipart())[-1] == b"by its own name"
    await near.send_multipart([b"far", b"by the given name"])
    assert (await first.recv_multipart())[-1] == b"by the given name"


async def test_a_named_connection_can_be_sent_to_before_its_peer_is_there(net, zmq):
    near = net.socket(zmq.ROUTER, router_mandatory=1, connect_routing_id=b"far")
    endpoint = net.endpoint()
    near.connect(endpoint)
    await near.send_multipart([b"far", b"early"])
    far = net.socket(zmq.DEALER)
    far.bind(endpoint)
    assert await far.recv() == b"early"
