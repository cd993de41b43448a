"""What libzmq cannot show: peers, queues, drops, errors, and waiting for a peer."""

import logging

import pytest

from tests.kit.traffic import fill

pytestmark = pytest.mark.zerohop


async def connected_peer(net, socket):
    """Return what a socket says of its one peer, once that is connected."""
    return await net.eventually(
        lambda: next((peer for peer in socket.peers() if peer.state == "connected"), None)
    )


async def test_a_socket_shows_its_peers(net, zmq):
    router, dealer = net.socket(zmq.ROUTER), net.socket(zmq.DEALER, routing_id=b"name")
    endpoint = await net.link(router, dealer)
    seen_by_router = await connected_peer(net, router)
    seen_by_dealer = await connected_peer(net, dealer)
    assert (seen_by_router.socket_type, seen_by_router.routing_id) == ("DEALER", b"name")
    assert (seen_by_dealer.socket_type, seen_by_dealer.endpoint) == ("ROUTER", endpoint)
    assert (router.stats().peers, dealer.stats().peers) == (1, 1)
    dealer.close(linger=0)
    await net.eventually(lambda: router.stats().peers == 0)
    assert router.peers() == []


async def test_an_endpoint_without_a_peer_is_shown_too(net, zmq):
    push, endpoint = net.socket(zmq.PUSH), net.endpoint()
    push.connect(endpoint)
    (absent,) = push.peers()
    assert absent.endpoint == endpoint
    assert absent.state in ("connecting", "waiting")
    assert push.stats().peers == 0


async def test_queues_show_their_length(net, zmq):
    push = net.socket(zmq.PUSH)
    push.connect(net.endpoint())
    await fill(zmq, push, 10, b"x" * 99)
    (absent,) = push.peers()
    assert (absent.outgoing.messages, absent.outgoing.octets) == (10, 1000)
    assert push.stats().outgoing == absent.outgoing


async def test_messages_that_wait_for_the_application_are_counted(net, zmq):
    push, pull = net.socket(zmq.PUSH), net.socket(zmq.PULL)
    await net.link(pull, push)
    await fill(zmq, push, 10)
    await net.eventually(lambda: pull.stats().incoming.messages == 10)
    await pull.recv()
    assert pull.stats().incoming.messages == 9


@pytest.mark.over("tcp", "ipc")
async def test_traffic_is_counted(net, zmq):
    push, pull = net.socket(zmq.PUSH), net.socket(zmq.PULL)
    await net.link(pull, push)
    for n in range(5):
        await push.send(b"%d" % n)
    assert [await pull.recv() for _ in range(5)] == [b"%d" % n for n in range(5)]
    await net.eventually(lambda: push.stats().messages_sent == 5)
    assert pull.stats().messages_received == 5
    assert pull.stats().octets_received >= 5 * 3


@pytest.mark.over("inproc")
async def test_drops_are_counted_for_each_peer(net, zmq):
    pub = net.socket(zmq.PUB, sndhwm=2)
    slow, quick = net.socket(zmq.SUB, rcvhwm=3), net.socket(zmq.SUB, rcvhwm=0)
    for sub in (slow, quick):
        sub.subscribe(b"")
    await net.link(pub, slow, quick)
    await fill(zmq, pub, 20)
    assert sum(pub.stats().dropped.values()) == 15
    assert sorted(sum(peer.dropped.values()) for peer in pub.peers()) == [0, 15]


async def test_what_a_router_cannot_deliver_is_counted(net, zmq):
    router = net.socket(zmq.ROUTER)
    router.bind(net.endpoint())
    for _ in range(3):
        await router.send_multipart([b"nobody", b"x"])
    assert sum(router.stats().dropped.values()) == 3


@pytest.mark.over("tcp", "ipc")
async def test_the_last_error_of_an_endpoint_says_why_there_is_no_peer(net, zmq):
    push, endpoint = net.socket(zmq.PUSH, reconnect_ivl=10), net.endpoint()
    push.connect(endpoint)
    error = await net.eventually(lambda: push.last_error(endpoint))
    assert "refused" in str(error) or "No such file" in str(error)
    pull = net.socket(zmq.PULL)
    pull.bind(endpoint)
    await push.wait_connected()
    assert push.last_error(endpoint) is None


@pytest.mark.over("tcp", "ipc")
async def test_a_wrong_socket_type_is_said_at_both_ends_and_tried_again(net, zmq, caplog):
    push, sub, endpoint = (
        net.socket(zmq.PUSH, reconnect_ivl=10),
        net.socket(zmq.SUB),
        net.endpoint(),
    )
    sub.bind(endpoint)
    with net.watch(push, zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL) as failures:
        push.connect(endpoint)
        await failures.next()
        await failures.next()
    assert "SUB" in str(await net.eventually(lambda: push.last_error(endpoint)))
    said = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert any("SUB" in record.getMessage() for record in said)
    sub.close()
    pull = net.socket(zmq.PULL)
    pull.bind(endpoint)
    await push.send(b"the right one at last")
    assert await pull.recv() == b"the right one at last"


@pytest.mark.over("tcp", "ipc")
async def test_a_second_peer_of_the_same_name_is_adopted_when_the_first_leaves(net, zmq):
    router = net.socket(zmq.ROUTER, router_mandatory=1)
    first, second = (net.socket(zmq.DEALER, routing_id=b"name", reconnect_ivl=10) for _ in range(2))
    endpoint = await net.link(router, first)
    second.connect(endpoint)
    await second.send(b"from the second")
    await first.send(b"from the first")
    assert await router.recv_multipart() == [b"name", b"from the first"]
    first.close(linger=0)
    assert await router.recv_multipart() == [b"name", b"from the second"]
    await router.send_multipart([b"name", b"to the second"])
    assert await second.recv() == b"to the second"


@pytest.mark.over("tcp", "ipc")
async def test_a_live_endpoint_of_another_socket_is_not_taken_over(net, zmq):
    first, second, push = net.socket(zmq.PULL), net.socket(zmq.PULL), net.socket(zmq.PUSH)
    endpoint = await net.link(first, push)
    with pytest.raises(zmq.ZMQError) as taken:
        second.bind(endpoint)
    assert taken.value.errno == zmq.EADDRINUSE
    await push.send(b"to the first")
    assert await first.recv() == b"to the first"


# -- waiting for peers instead of sleeping


async def test_one_can_wait_until_a_socket_is_connected(net, zmq):
    push, pull, endpoint = (
        net.socket(zmq.PUSH, reconnect_ivl=10),
        net.socket(zmq.PULL),
        net.endpoint(),
    )
    push.connect(endpoint)
    with pytest.raises(zmq.Again):
        await push.wait_connected(timeout=0.02)
    waiting = net.start(push.wait_connected(timeout=8))
    pull.bind(endpoint)
    await waiting
    await push.wait_connected()  # and again: at once
    await pull.wait_connected()


async def test_a_publisher_can_wait_for_its_subscribers(net, zmq):
    pub, subs, endpoint = (
        net.socket(zmq.PUB),
        [net.socket(zmq.SUB) for _ in range(3)],
        net.endpoint(),
    )
    pub.bind(endpoint)
    for sub in subs:
        sub.subscribe(b"a")
    for sub in subs[:2]:
        sub.connect(endpoint)
    await pub.wait_for_subscribers(b"a", 2)
    with pytest.raises(zmq.Again):
        await pub.wait_for_subscribers(b"a", 3, timeout=0.02)
    waiting = net.start(pub.wait_for_subscribers("a", 3, timeout=8))
    subs[2].connect(endpoint)
    await waiting
    await pub.send(b"abc")
    assert [await sub.recv() for sub in subs] == [b"abc"] * 3


# -- the classic mistakes are said, once


@pytest.mark.parametrize("how", ["recv", "poll", "poller"])
async def test_a_subscriber_without_subscriptions_is_warned_of_once(net, zmq, caplog, how):
    sub = net.socket(zmq.SUB, rcvtimeo=1)
    sub.bind(net.endpoint())
    poller = net.poller()
    poller.register(sub, zmq.POLLIN)
    assert (await sub.poll(0), await poller.poll(0)) == (0, [])
    assert caplog.records == []  # so far nothing has waited
    for _ in range(3):
        if how == "poll":
            assert await sub.poll(1) == 0
        elif how == "poller":
            assert await poller.poll(1) == []
        else:
            with pytest.raises(zmq.Again):
                await sub.recv()
    assert [record for record in caplog.records if "subscribe" in record.getMessage()][1:] == []
    assert "subscribe" in caplog.text


async def test_waiting_on_a_socket_that_goes_nowhere_is_warned_of_once(net, zmq, caplog):
    pull = net.socket(zmq.PULL, rcvtimeo=1)
    for _ in range(3):
        with pytest.raises(zmq.Again):
            await pull.recv()
    assert caplog.text.count("neither bound nor connected") == 1


# -- closing wakes whoever waits


@pytest.mark.parametrize("waits", ["recv", "send", "poll"])
async def test_close_wakes_who_waits(net, zmq, waits):
    pair = net.socket(zmq.PAIR, rcvtimeo=-1, sndtimeo=-1)
    pair.bind(net.endpoint())
    calls = {"recv": pair.recv, "send": lambda: pair.send(b"x"), "poll": pair.poll}
    waiting = net.start(calls[waits]())
    await net.tick(0.05)
    assert not waiting.done()
    pair.close()
    with pytest.raises(zmq.ZMQError) as closed:
        await waiting
    assert closed.value.errno in (zmq.ENOTSOCK, zmq.ENOTSUP)
