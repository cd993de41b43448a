"""ROUTER: the first frame says who (RFC 28; libzmq's test_spec_router, test_router_mandatory)."""

import pytest

from tests.kit.traffic import drain


async def test_a_message_arrives_with_the_id_of_its_sender_in_front(net, zmq):
    router, dealers = net.socket(zmq.ROUTER), [net.socket(zmq.DEALER) for _ in range(3)]
    for dealer, name in zip(dealers, (b"A", b"B", b"\xff" * 255)):
        dealer.routing_id = name
    await net.link(router, *dealers)
    for dealer in dealers:
        await dealer.send_multipart([b"a", b"", b"b"])
    assert sorted([await router.recv_multipart() for _ in dealers]) == [
        [b"A", b"a", b"", b"b"],
        [b"B", b"a", b"", b"b"],
        [b"\xff" * 255, b"a", b"", b"b"],
    ]


async def test_a_message_goes_to_the_peer_that_its_first_frame_names(net, zmq):
    router = net.socket(zmq.ROUTER)
    dealers = {name: net.socket(zmq.DEALER, routing_id=name) for name in (b"A", b"B", b"C")}
    await net.link(router, *dealers.values())
    for name in (b"C", b"A", b"B"):
        await router.send_multipart([name, b"for", name])
    for name, dealer in dealers.items():
        assert await dealer.recv_multipart() == [b"for", name]


async def test_a_peer_without_a_name_is_given_five_octets_that_begin_with_zero(net, zmq):
    router, dealers = net.socket(zmq.ROUTER), [net.socket(zmq.DEALER) for _ in range(2)]
    await net.link(router, *dealers)
    for n, dealer in enumerate(dealers):
        await dealer.send(b"%d" % n)
    ids = {body: name for name, body in [await router.recv_multipart() for _ in dealers]}
    assert len(set(ids.values())) == 2
    assert all(len(name) == 5 and name[0] == 0 for name in ids.values())
    for n, dealer in enumerate(dealers):
        await router.send_multipart([ids[b"%d" % n], b"back to %d" % n])
        assert await dealer.recv() == b"back to %d" % n


async def test_the_id_is_a_frame_of_its_own(net, zmq):
    router, dealer = net.socket(zmq.ROUTER), net.socket(zmq.DEALER, routing_id=b"A")
    await net.link(router, dealer)
    await dealer.send(b"body")
    assert (await router.recv(), bool(router.rcvmore)) == (b"A", True)
    assert (await router.recv(), bool(router.rcvmore)) == (b"body", False)
    await router.send(b"A", zmq.SNDMORE)
    await router.send(b"part by part")
    assert await dealer.recv() == b"part by part"


@pytest.mark.over("inproc")
async def test_router_takes_one_message_from_each_peer_in_turn(net, zmq):
    router = net.socket(zmq.ROUTER)
    names = [b"A", b"B", b"C"]
    dealers = [net.socket(zmq.DEALER, routing_id=name) for name in names]
    await net.link(router, *dealers)
    for dealer in dealers:
        for n in range(3):
            await dealer.send(b"%d" % n)
    assert await drain(zmq, router) == names * 3


async def test_a_message_for_nobody_is_dropped(net, zmq):
    router, dealer = net.socket(zmq.ROUTER), net.socket(zmq.DEALER, routing_id=b"A")
    assert router.events & zmq.POLLOUT
    await router.send_multipart([b"nobody", b"x"])
    await net.link(router, dealer)
    await router.send_multipart([b"nobody", b"x", b"y"])
    await router.send_multipart([b"A", b"for A"])
    assert await dealer.recv_multipart() == [b"for A"]


async def test_a_message_that_is_only_an_id_is_ignored(net, zmq):
    router, dealer = net.socket(zmq.ROUTER), net.socket(zmq.DEALER, routing_id=b"A")
    await net.link(router, dealer)
    await router.send(b"A")
    await router.send_multipart([b"A", b""])
    assert await dealer.recv_multipart() == [b""]
    with pytest.raises(zmq.Again):
        await dealer.recv(zmq.DONTWAIT)


@pytest.mark.over("inproc")
async def test_what_goes_over_the_mark_of_a_peer_is_dropped_for_that_peer(net, zmq):
    router = net.socket(zmq.ROUTER, sndhwm=2)
    slow = net.socket(zmq.DEALER, routing_id=b"slow", rcvhwm=3)
    quick = net.socket(zmq.DEALER, routing_id=b"quick", rcvhwm=0)
    await net.link(router, slow, quick)
    for n in range(20):
        await router.send_multipart([b"slow", b"%d" % n])
        await router.send_multipart([b"quick", b"%d" % n])
    assert await drain(zmq, slow) == [b"%d" % n for n in range(5)]
    assert await drain(zmq, quick) == [b"%d" % n for n in range(20)]


async def test_routers_that_know_their_names_can_talk(net, zmq):
    a, b = net.socket(zmq.ROUTER, routing_id=b"A"), net.socket(zmq.ROUTER, routing_id=b"B")
    a.router_mandatory = b.router_mandatory = 1
    await net.link(a, b)
    await a.send_multipart([b"B", b"to b"])
    assert await b.recv_multipart() == [b"A", b"to b"]
    await b.send_multipart([b"A", b"to a"])
    assert await a.recv_multipart() == [b"B", b"to a"]


async def test_a_second_peer_with_the_same_name_is_not_served(net, zmq):
    router = net.socket(zmq.ROUTER)
    first, second = (net.socket(zmq.DEALER, routing_id=b"A") for _ in range(2))
    endpoint = await net.link(router, first)
    second.connect(endpoint)
    await second.send(b"from the second", zmq.DONTWAIT)
    await first.send(b"from the first")
    assert await router.recv_multipart() == [b"A", b"from the first"]
    await router.send_multipart([b"A", b"to the first"])
    assert await first.recv() == b"to the first"
    with pytest.raises(zmq.Again):
        await router.recv(zmq.DONTWAIT)


async def test_a_name_is_free_again_when_its_owner_has_left(net, zmq):
    router, first = net.socket(zmq.ROUTER, router_mandatory=1), net.socket(zmq.DEALER)
    first.routing_id = b"A"
    endpoint = await net.link(router, first)
    await router.send_multipart([b"A", b"to the first"])
    assert await first.recv() == b"to the first"
    first.close(linger=0)
    await net.eventually(lambda: not router.events & zmq.POLLOUT)
    second = net.socket(zmq.DEALER, routing_id=b"A")
    await net.join(endpoint, router, second)
    await router.send_multipart([b"A", b"to the second"])
    assert await second.recv() == b"to the second"
