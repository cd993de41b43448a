"""Subscriptions are never lost: what libzmq drops at a high-water mark arrives here."""

import pytest

pytestmark = [
    pytest.mark.zerohop,  # libzmq: 1,000 of 5,000; 900, 600, 900, 600 (issues 2258, 4064)
    pytest.mark.over("tcp", "ipc"),
]


async def subscribed_topics(xpub):
    """Receive subscriptions up to the one called "end"; return their topics."""
    topics = []
    while (notification := await xpub.recv()) != b"\x01end":
        assert notification[:1] == b"\x01"
        topics.append(notification[1:])
    return topics


async def test_900_subscriptions_survive_three_reconnections(net, zmq):
    sub, endpoint = net.socket(zmq.SUB, reconnect_ivl=10), net.endpoint()
    wanted = {b"topic %d" % n for n in range(900)}
    for topic in wanted:
        sub.subscribe(topic)
    sub.connect(endpoint)
    counts = []
    for _ in range(4):
        with net.watch(sub, zmq.EVENT_DISCONNECTED) as events:
            xpub = net.socket(zmq.XPUB)
            xpub.bind(endpoint)
            await xpub.wait_for_subscribers(b"topic 0", 1)
            sub.subscribe(b"end")
            topics = await subscribed_topics(xpub)
            counts.append(len(topics))
            assert set(topics) == wanted
            sub.unsubscribe(b"end")
            xpub.close(linger=0)
            await events.next()
    assert counts == [900, 900, 900, 900]


@pytest.mark.parametrize("when", ["before the connection", "after it", "half and half"])
async def test_5000_subscribe_calls_reach_the_publisher(net, zmq, when):
    xpub, sub, endpoint = net.socket(zmq.XPUB), net.socket(zmq.SUB), net.endpoint()
    topics = [b"topic %d" % n for n in range(5000)]
    early = {"before the connection": 5000, "after it": 0, "half and half": 2500}[when]
    xpub.bind(endpoint)
    for topic in topics[:early]:
        sub.subscribe(topic)
    await net.join(endpoint, xpub, sub)
    for topic in topics[early:]:
        sub.subscribe(topic)
    sub.subscribe(b"end")
    assert sorted(await subscribed_topics(xpub)) == sorted(topics)


async def test_subscriptions_do_not_count_against_the_smallest_of_marks(net, zmq):
    xpub, sub = net.socket(zmq.XPUB, rcvhwm=1, sndhwm=1), net.socket(zmq.SUB, sndhwm=1, rcvhwm=1)
    with net.watch(sub, zmq.EVENT_HANDSHAKE_SUCCEEDED) as handshakes:
        await net.link(xpub, sub)
        await handshakes.next()  # before it, what is subscribed and taken back is never said
    for n in range(200):
        sub.subscribe(b"%d" % n)
    for n in range(200):
        sub.unsubscribe(b"%d" % n)
    sub.subscribe(b"end")
    notifications = [await xpub.recv() for _ in range(401)]
    assert notifications[:200] == [b"\x01%d" % n for n in range(200)]
    assert sorted(notifications[200:]) == sorted([*(b"\x00%d" % n for n in range(200)), b"\x01end"])


async def test_an_idle_subscriber_subscribes_again_without_being_touched(net, zmq):
    """In libzmq the application's next call does it; here the side that does the I/O."""
    sub, endpoint = net.socket(zmq.SUB, reconnect_ivl=10), net.endpoint()
    sub.subscribe(b"a")
    sub.connect(endpoint)
    for _ in range(3):
        xpub = net.socket(zmq.XPUB)
        xpub.bind(endpoint)
        assert await xpub.recv() == b"\x01a"
        xpub.close(linger=0)
