"""PAIR: one peer, both ways (zmq_socket(3), "Exclusive pair pattern")."""

import pytest


async def test_messages_travel_both_ways_in_order(net, zmq):
    a, b = net.socket(zmq.PAIR), net.socket(zmq.PAIR)
    await net.link(a, b)
    for n in range(100):
        await a.send(b"to b %d" % n)
        await b.send_multipart([b"to a", b"%d" % n])
    assert [await b.recv() for _ in range(100)] == [b"to b %d" % n for n in range(100)]
    assert [await a.recv_multipart() for _ in range(100)] == [
        [b"to a", b"%d" % n] for n in range(100)
    ]


async def test_without_a_peer_a_pair_has_nowhere_to_send(net, zmq):
    a = net.socket(zmq.PAIR)
    a.bind(net.endpoint())
    with pytest.raises(zmq.Again):
        await a.send(b"x", zmq.DONTWAIT)
    assert not a.events & zmq.POLLOUT


async def test_a_second_peer_is_not_served(net, zmq):
    a, first, second = (net.socket(zmq.PAIR) for _ in range(3))
    endpoint = await net.link(a, first)
    second.connect(endpoint)
    await second.send(b"from the second", zmq.DONTWAIT)
    await first.send(b"from the first")
    assert await a.recv() == b"from the first"
    await a.send(b"to the first")
    assert await first.recv() == b"to the first"
    with pytest.raises(zmq.Again):
        await a.recv(zmq.DONTWAIT)


async def test_when_the_peer_leaves_another_may_take_its_place(net, zmq):
    a, first = net.socket(zmq.PAIR), net.socket(zmq.PAIR)
    endpoint = await net.link(a, first)
    first.close()
    await net.eventually(lambda: not a.events & zmq.POLLOUT)
    second = net.socket(zmq.PAIR)
    await net.join(endpoint, a, second)
    await a.send(b"to the second")
    assert await second.recv() == b"to the second"
