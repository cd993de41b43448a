"""PUB and SUB: fan-out filtered by prefix, never waiting (RFC 29)."""

import pytest

from tests.kit.traffic import drain, fill, introduce


async def test_a_subscriber_gets_what_begins_with_one_of_its_topics(net, zmq):
    pub, sub = net.socket(zmq.PUB), net.socket(zmq.SUB)
    sub.subscribe(b"a/")
    sub.subscribe("b")
    sub.setsockopt(zmq.SUBSCRIBE, b"end")
    await net.link(pub, sub)
    await introduce(net, pub, sub, topic=b"end")
    for topic in (b"a", b"a/", b"a/1", b"b", b"B", b"", b"c", b"bc", b"a/" * 1000, b"ab", b"end"):
        await pub.send(topic)
    got = [await sub.recv() for _ in range(6)]
    assert got == [b"a/", b"a/1", b"b", b"bc", b"a/" * 1000, b"end"]


async def test_the_empty_topic_is_everything(net, zmq):
    pub, sub = net.socket(zmq.PUB), net.socket(zmq.SUB)
    sub.subscribe(b"")
    await net.link(pub, sub)
    await introduce(net, pub, sub)
    for message in ([b""], [b"x"], [b"", b""], [b"\x00\xff", b"y", b""]):
        await pub.send_multipart(message)
        assert await sub.recv_multipart() == message


async def test_without_a_subscription_nothing_arrives(net, zmq):
    pub, deaf, sub = net.socket(zmq.PUB), net.socket(zmq.SUB), net.socket(zmq.SUB)
    sub.subscribe(b"")
    await net.link(pub, deaf, sub)
    await introduce(net, pub, sub)
    await pub.send(b"x")
    assert await sub.recv() == b"x"
    assert deaf.events == 0


async def test_only_the_first_part_is_compared(net, zmq):
    pub, sub = net.socket(zmq.PUB), net.socket(zmq.SUB)
    sub.subscribe(b"a")
    await net.link(pub, sub)
    await introduce(net, pub, sub, topic=b"a")
    await pub.send_multipart([b"b", b"a"])
    await pub.send_multipart([b"", b"a"])
    await pub.send_multipart([b"a", b"b", b"c"])
    assert await sub.recv_multipart() == [b"a", b"b", b"c"]


async def test_a_message_under_two_topics_arrives_once(net, zmq):
    pub, sub = net.socket(zmq.PUB), net.socket(zmq.SUB)
    for topic in (b"", b"a", b"ab"):
        sub.subscribe(topic)
    await net.link(pub, sub)
    await introduce(net, pub, sub)
    await pub.send(b"abc")
    await pub.send(b"end")
    assert [await sub.recv(), await sub.recv()] == [b"abc", b"end"]


async def test_what_was_subscribed_twice_must_be_unsubscribed_twice(net, zmq):
    xpub, sub = net.socket(zmq.XPUB), net.socket(zmq.SUB)
    await net.link(xpub, sub)
    for _ in range(2):
        sub.subscribe(b"a")
    sub.subscribe(b"end")
    assert [await xpub.recv(), await xpub.recv()] == [b"\x01a", b"\x01end"]
    sub.unsubscribe(b"a")
    sub.subscribe(b"marker 1")
    assert await xpub.recv() == b"\x01marker 1"
    await xpub.send(b"a once more")
    assert await sub.recv() == b"a once more"
    sub.unsubscribe(b"a")
    assert await xpub.recv() == b"\x00a"
    await xpub.send(b"a in vain")
    await xpub.send(b"end")
    assert await sub.recv() == b"end"


async def test_after_unsubscribing_the_topic_is_filtered_at_once(net, zmq):
    """The SUB filters too: what the PUB had sent by then does not reach the application."""
    pub, sub = net.socket(zmq.PUB), net.socket(zmq.SUB)
    for topic in (b"a", b"b"):
        sub.subscribe(topic)
    await net.link(pub, sub)
    await introduce(net, pub, sub, topic=b"a")
    sub.unsubscribe(b"a")
    await pub.send(b"a in vain")
    await introduce(net, pub, sub, topic=b"b")
    assert await drain(zmq, sub) == []


async def test_to_unsubscribe_what_was_never_subscribed_changes_nothing(net, zmq):
    pub, sub = net.socket(zmq.PUB), net.socket(zmq.SUB)
    sub.subscribe(b"a")
    await net.link(pub, sub)
    for topic in (b"never", b"", b"ab"):
        sub.unsubscribe(topic)
    await introduce(net, pub, sub, topic=b"a")
    await pub.send(b"abc")
    assert await sub.recv() == b"abc"


async def test_who_joins_late_has_missed_what_was_said_before(net, zmq):
    pub, early, late = net.socket(zmq.PUB), net.socket(zmq.SUB), net.socket(zmq.SUB)
    early.subscribe(b"")
    late.subscribe(b"")
    endpoint = await net.link(pub, early)
    await introduce(net, pub, early)
    await pub.send(b"early")
    assert await early.recv() == b"early"
    await net.join(endpoint, pub, late)
    await introduce(net, pub, early, late)
    await pub.send(b"late")
    assert await early.recv() == b"late"
    assert await late.recv() == b"late"


async def test_a_publisher_alone_never_waits(net, zmq):
    pub = net.socket(zmq.PUB, sndhwm=1)
    pub.bind(net.endpoint())
    assert pub.events == zmq.POLLOUT
    assert await fill(zmq, pub, 100, b"x") == 100


@pytest.mark.over("inproc")
async def test_what_goes_over_the_mark_of_a_subscriber_is_dropped_for_it_alone(net, zmq):
    pub = net.socket(zmq.PUB, sndhwm=2)
    slow, quick = net.socket(zmq.SUB, rcvhwm=3), net.socket(zmq.SUB, rcvhwm=0)
    for sub in (slow, quick):
        sub.subscribe(b"")
    await net.link(pub, slow, quick)
    assert await fill(zmq, pub, 20, b"x") == 20
    assert await drain(zmq, slow) == [b"%d" % n for n in range(5)]
    assert await drain(zmq, quick) == [b"%d" % n for n in range(20)]
    assert pub.events == zmq.POLLOUT  # and libzmq looks here whether there is room again
    await pub.send(b"goes on")
    assert await slow.recv() == b"goes on"


@pytest.mark.over("tcp", "ipc")
async def test_a_slow_subscriber_loses_whole_messages_and_keeps_the_order(net, zmq):
    pub, slow = net.socket(zmq.PUB, sndhwm=5, sndbuf=65536), net.socket(zmq.SUB, rcvhwm=5)
    slow.subscribe(b"")
    slow.rcvbuf = 65536
    await net.link(pub, slow)
    await introduce(net, pub, slow)
    for n in range(200):
        await pub.send_multipart([b"%d" % n, b"x" * 100_000, b"end"])
    got = []

    async def reached_the_end():
        await pub.send_multipart([b"end", b"", b""])  # until it finds room
        while await slow.poll(1):
            number, body, end = await slow.recv_multipart()
            if number == b"end":
                return True
            assert (len(body), end) == (100_000, b"end")
            got.append(int(number))
        return False

    await net.eventually(reached_the_end)
    assert got == sorted(set(got))
    assert 5 <= len(got) < 200


async def test_a_subscriber_hears_several_publishers(net, zmq):
    sub, pubs = net.socket(zmq.SUB), [net.socket(zmq.PUB) for _ in range(3)]
    sub.subscribe(b"")
    for pub in pubs:
        await net.link(pub, sub)
        await introduce(net, pub, sub)
    for n, pub in enumerate(pubs):
        await pub.send(b"%d" % n)
    assert sorted([await sub.recv() for _ in pubs]) == [b"0", b"1", b"2"]


async def test_the_subscriber_may_bind(net, zmq):
    sub, pubs = net.socket(zmq.SUB), [net.socket(zmq.PUB) for _ in range(2)]
    sub.subscribe(b"a")
    await net.link(sub, *pubs)
    for pub in pubs:
        await introduce(net, pub, sub, topic=b"a")
        await pub.send(b"b")
        await pub.send(b"abc")
        assert await sub.recv() == b"abc"


async def test_the_subscriber_may_come_before_the_publisher(net, zmq):
    pub, sub, endpoint = net.socket(zmq.PUB), net.socket(zmq.SUB), net.endpoint()
    sub.connect(endpoint)
    sub.subscribe(b"a")
    pub.bind(endpoint)
    await introduce(net, pub, sub, topic=b"a")
    await pub.send(b"abc")
    assert await sub.recv() == b"abc"


@pytest.mark.parametrize("size", [1, 254, 255, 256, 5000])
async def test_topics_may_be_long_and_of_any_octets(net, zmq, size):
    pub, sub = net.socket(zmq.PUB), net.socket(zmq.SUB)
    topic = (bytes(range(256)) * 20)[-size:]
    sub.subscribe(topic)
    await net.link(pub, sub)
    await introduce(net, pub, sub, topic=topic)
    await pub.send(topic[:-1])
    await pub.send(topic + b"!")
    assert await sub.recv() == topic + b"!"


@pytest.mark.over("inproc")
@pytest.mark.parametrize(("publishers", "subscribers"), [(1, 5), (3, 3)])
async def test_every_subscriber_gets_everything_in_order(net, zmq, publishers, subscribers):
    pubs = [net.socket(zmq.PUB) for _ in range(publishers)]
    subs = [net.socket(zmq.SUB) for _ in range(subscribers)]
    for sub in subs:
        sub.subscribe(b"")
    for pub in pubs:
        await net.link(pub, *subs)
    for n in range(50):
        for who, pub in enumerate(pubs):
            await pub.send_multipart([b"%d" % who, b"%d" % n])
    for sub in subs:
        got = [await sub.recv_multipart() for _ in range(50 * publishers)]
        for who in range(publishers):
            assert [int(n) for w, n in got if int(w) == who] == list(range(50))
