"""Peers that leave and come back (zmq_setsockopt(3), RECONNECT_IVL; libzmq's test_reconnect_*)."""

import pytest

from tests.kit.traffic import introduce, receive_numbers

pytestmark = pytest.mark.over("tcp", "ipc")  # inproc has no connection to lose


async def test_a_connection_comes_back_when_the_bound_peer_does(net, zmq):
    push, endpoint = net.socket(zmq.PUSH, reconnect_ivl=10), net.endpoint()
    push.connect(endpoint)
    for n in range(3):
        pull = net.socket(zmq.PULL)
        await net.rebind(pull, endpoint)
        with net.watch(push, zmq.EVENT_DISCONNECTED) as events:
            await push.send(b"%d" % n)
            assert await pull.recv() == b"%d" % n
            pull.close(linger=0)
            await events.next()


async def test_messages_sent_while_the_bound_peer_is_away_are_kept_for_it(net, zmq):
    push, pull = net.socket(zmq.PUSH, reconnect_ivl=10), net.socket(zmq.PULL)
    endpoint = await net.link(pull, push)
    with net.watch(push, zmq.EVENT_DISCONNECTED) as events:
        pull.close(linger=0)
        await events.next()
    for n in range(100):
        await push.send(b"%d" % n)
    back = net.socket(zmq.PULL)
    await net.rebind(back, endpoint)
    assert await receive_numbers(back, 100) == list(range(100))


async def test_a_bound_socket_takes_back_a_peer_that_comes_again(net, zmq):
    pull, endpoint = net.socket(zmq.PULL), net.endpoint()
    pull.bind(endpoint)
    for n in range(5):
        push = net.socket(zmq.PUSH)
        push.connect(endpoint)
        await push.send(b"%d" % n)
        push.close()
        assert await pull.recv() == b"%d" % n


async def test_a_router_knows_a_peer_again_by_its_name(net, zmq):
    router, endpoint = net.socket(zmq.ROUTER, router_mandatory=1), net.endpoint()
    router.bind(endpoint)
    for n in range(3):
        dealer = net.socket(zmq.DEALER, routing_id=b"name")
        await net.join(endpoint, router, dealer)
        await router.send_multipart([b"name", b"%d" % n])
        assert await dealer.recv() == b"%d" % n
        dealer.close(linger=0)
        await net.eventually(lambda: not router.events & zmq.POLLOUT)


async def test_a_dealer_is_known_again_after_the_router_restarted(net, zmq):
    dealer, endpoint = net.socket(zmq.DEALER, routing_id=b"name", reconnect_ivl=10), net.endpoint()
    dealer.connect(endpoint)
    for n in range(3):
        router = net.socket(zmq.ROUTER)
        await net.rebind(router, endpoint)
        with net.watch(dealer, zmq.EVENT_DISCONNECTED) as events:
            await dealer.send(b"%d" % n)
            assert await router.recv_multipart() == [b"name", b"%d" % n]
            await router.send_multipart([b"name", b"re %d" % n])
            assert await dealer.recv() == b"re %d" % n
            router.close(linger=0)
            await events.next()


async def test_subscriptions_are_made_again_when_the_publisher_comes_back(net, zmq):
    sub, endpoint = net.socket(zmq.SUB, reconnect_ivl=10), net.endpoint()
    sub.connect(endpoint)
    sub.subscribe(b"a")
    for _ in range(3):
        pub = net.socket(zmq.PUB)
        await net.rebind(pub, endpoint)
        with net.watch(sub, zmq.EVENT_DISCONNECTED) as events:
            await introduce(net, pub, sub, topic=b"a")
            await pub.send(b"b in vain")
            await pub.send(b"abc")
            assert await sub.recv() == b"abc"
            pub.close(linger=0)
            await events.next()


async def test_what_was_unsubscribed_meanwhile_is_not_subscribed_again(net, zmq):
    sub, xpub = net.socket(zmq.SUB, reconnect_ivl=10), net.socket(zmq.XPUB)
    for topic in (b"a", b"b"):
        sub.subscribe(topic)
    endpoint = await net.link(xpub, sub)
    assert {await xpub.recv(), await xpub.recv()} == {b"\x01a", b"\x01b"}
    with net.watch(sub, zmq.EVENT_DISCONNECTED) as events:
        xpub.close(linger=0)
        await events.next()
    sub.unsubscribe(b"a")
    sub.subscribe(b"c")
    back = net.socket(zmq.XPUB)
    await net.rebind(back, endpoint)
    await net.eventually(lambda: sub.events == 0 and back.events & zmq.POLLIN)
    assert {await back.recv(), await back.recv()} == {b"\x01b", b"\x01c"}


async def test_a_req_goes_on_with_its_peer_after_the_peer_restarted(net, zmq):
    req, endpoint = net.socket(zmq.REQ, reconnect_ivl=10), net.endpoint()
    req.connect(endpoint)
    for n in range(3):
        rep = net.socket(zmq.REP)
        await net.rebind(rep, endpoint)
        with net.watch(req, zmq.EVENT_DISCONNECTED) as events:
            await req.send(b"%d" % n)
            assert await rep.recv() == b"%d" % n
            await rep.send(b"re %d" % n)
            assert await req.recv() == b"re %d" % n
            rep.close(linger=0)
            await events.next()


async def test_a_bound_sender_forgets_the_queue_of_a_peer_that_left(net, zmq):
    push, first = net.socket(zmq.PUSH, sndhwm=5), net.socket(zmq.PULL, rcvhwm=1)
    endpoint = await net.link(push, first)
    await push.send(b"for the first")
    assert await first.recv() == b"for the first"
    first.close(linger=0)
    await net.eventually(lambda: not push.events & zmq.POLLOUT)
    second = net.socket(zmq.PULL)
    await net.join(endpoint, push, second)
    await push.send(b"for the second")
    assert await second.recv() == b"for the second"


async def test_a_negative_interval_means_no_reconnection(net, zmq):
    push, pull = net.socket(zmq.PUSH, reconnect_ivl=-1), net.socket(zmq.PULL)
    endpoint = await net.link(pull, push)
    with net.watch(push, zmq.EVENT_DISCONNECTED | zmq.EVENT_CONNECT_RETRIED) as events:
        pull.close(linger=0)
        assert await events.next() == zmq.EVENT_DISCONNECTED
    back = net.socket(zmq.PULL)
    await net.rebind(back, endpoint)
    other = net.socket(zmq.PUSH)
    with net.watch(back, zmq.EVENT_ACCEPTED) as accepted:
        await net.tick(0.3)  # three times the default interval: nothing may come of it
        other.connect(endpoint)
        await accepted.next()
    assert not push.events & zmq.POLLOUT
    await other.send(b"the only peer")
    assert await back.recv() == b"the only peer"
    assert not back.events & zmq.POLLIN


async def test_queued_messages_survive_many_attempts(net, zmq):
    push = net.socket(zmq.PUSH, reconnect_ivl=1, reconnect_ivl_max=5)
    endpoint = net.endpoint()
    with net.watch(push, zmq.EVENT_CONNECT_RETRIED) as retries:
        push.connect(endpoint)
        await push.send(b"patient")
        for _ in range(10):
            await retries.next()
    pull = net.socket(zmq.PULL)
    pull.bind(endpoint)
    assert await pull.recv() == b"patient"


@pytest.mark.parametrize("binder", ["publisher", "subscriber"])
async def test_heartbeats_keep_an_idle_connection_alive(net, zmq, binder):
    options = {"heartbeat_ivl": 20, "heartbeat_timeout": 2000, "heartbeat_ttl": 3000}
    pub, sub = net.socket(zmq.PUB, **options), net.socket(zmq.SUB, **options)
    sub.subscribe(b"")
    await (net.link(pub, sub) if binder == "publisher" else net.link(sub, pub))
    await introduce(net, pub, sub)
    with net.watch(sub, zmq.EVENT_DISCONNECTED):
        await net.tick(0.2)  # ten intervals
        await pub.send(b"still here")
        assert await sub.recv() == b"still here"
