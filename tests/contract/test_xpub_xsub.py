"""XPUB and XSUB: subscriptions as messages (RFC 29; libzmq's test_xpub_*, test_sub_forward)."""

import pytest

from tests.kit.traffic import drain, fill, introduce


async def test_subscriptions_arrive_as_messages(net, zmq):
    xpub, sub = net.socket(zmq.XPUB), net.socket(zmq.SUB)
    await net.link(xpub, sub)
    sub.subscribe(b"topic")
    assert await xpub.recv() == b"\x01topic"
    sub.subscribe(b"")
    assert await xpub.recv() == b"\x01"
    sub.unsubscribe(b"topic")
    assert await xpub.recv() == b"\x00topic"


async def test_only_the_first_subscription_to_a_topic_is_reported(net, zmq):
    xpub, subs = net.socket(zmq.XPUB), [net.socket(zmq.SUB) for _ in range(2)]
    await net.link(xpub, *subs)
    for n, sub in enumerate(subs):
        sub.subscribe(b"shared")
        sub.subscribe(b"own %d" % n)
        assert [await xpub.recv() for _ in range(2 - n)][-1] == b"\x01own %d" % n
    for n, sub in enumerate(subs):
        sub.unsubscribe(b"shared")
        sub.unsubscribe(b"own %d" % n)
    assert sorted([await xpub.recv() for _ in range(3)]) == [
        b"\x00own 0",
        b"\x00own 1",
        b"\x00shared",
    ]


async def test_when_a_subscriber_leaves_its_subscriptions_are_withdrawn(net, zmq):
    xpub, leaves, stays = net.socket(zmq.XPUB), net.socket(zmq.SUB), net.socket(zmq.SUB)
    await net.link(xpub, leaves, stays)
    for sub in (stays, leaves):
        sub.subscribe(b"shared")
    leaves.subscribe(b"own")
    assert {await xpub.recv(), await xpub.recv()} == {b"\x01shared", b"\x01own"}
    leaves.close()
    assert await xpub.recv() == b"\x00own"
    stays.close()
    assert await xpub.recv() == b"\x00shared"


async def test_verbose_reports_every_subscription(net, zmq):
    xpub, subs = net.socket(zmq.XPUB, xpub_verbose=1), [net.socket(zmq.SUB) for _ in range(2)]
    await net.link(xpub, *subs)
    for sub in subs:
        sub.subscribe(b"a")
        assert await xpub.recv() == b"\x01a"
    subs[0].subscribe(b"a")
    assert await xpub.recv() == b"\x01a"
    subs[1].unsubscribe(b"a")
    subs[0].subscribe(b"b")
    assert await xpub.recv() == b"\x01b"


async def test_verboser_reports_every_unsubscription_too(net, zmq):
    xpub, subs = net.socket(zmq.XPUB, xpub_verboser=1), [net.socket(zmq.SUB) for _ in range(2)]
    await net.link(xpub, *subs)
    for expected in (b"\x01a", b"\x00a"):
        for sub in subs:
            (sub.subscribe if expected[0] else sub.unsubscribe)(b"a")
            assert await xpub.recv() == expected


async def test_an_xsub_subscribes_by_sending(net, zmq):
    xpub, xsub = net.socket(zmq.XPUB), net.socket(zmq.XSUB)
    await net.link(xpub, xsub)
    await xsub.send(b"\x01a")
    assert await xpub.recv() == b"\x01a"
    await xpub.send(b"b in vain")
    await xpub.send_multipart([b"abc", b"more"])
    assert await xsub.recv_multipart() == [b"abc", b"more"]
    await xsub.send(b"\x00a")
    assert await xpub.recv() == b"\x00a"


async def test_a_subscription_right_behind_a_message_goes_out_with_it(net, zmq):
    xpub, xsub = net.socket(zmq.XPUB), net.socket(zmq.XSUB)
    await net.link(xpub, xsub)
    for topic in (b"a", b"b", b"c"):
        for message in (b"goes alone", b"waits for company", b"\x01" + topic):
            await xsub.send(message)
        got = {await xpub.recv() for _ in range(3)}
        assert got == {b"goes alone", b"waits for company", b"\x01" + topic}


async def test_xsub_and_sub_have_the_same_effect_on_a_pub(net, zmq):
    pub, xsub = net.socket(zmq.PUB), net.socket(zmq.XSUB)
    await net.link(pub, xsub)
    await xsub.send(b"\x01a")
    await introduce(net, pub, xsub, topic=b"a")
    await pub.send(b"b in vain")
    await pub.send(b"abc")
    assert await xsub.recv() == b"abc"


async def test_an_xsub_sends_user_messages_upstream(net, zmq):
    xpub, xsub = net.socket(zmq.XPUB), net.socket(zmq.XSUB)
    await net.link(xpub, xsub)
    await xsub.send(b"hello")
    await xsub.send_multipart([b"\x02two", b"parts"])
    assert await xpub.recv_multipart() == [b"hello"]
    assert await xpub.recv_multipart() == [b"\x02two", b"parts"]


async def test_an_xsub_can_always_be_written(net, zmq):
    xsub = net.socket(zmq.XSUB, sndhwm=1)
    assert xsub.events == zmq.POLLOUT
    assert await fill(zmq, xsub, 50) == 50


async def test_a_user_message_goes_to_every_publisher(net, zmq):
    xsub, xpubs = net.socket(zmq.XSUB), [net.socket(zmq.XPUB) for _ in range(3)]
    for xpub in xpubs:
        await net.link(xpub, xsub)
    await xsub.send(b"all of you")
    assert [await xpub.recv() for xpub in xpubs] == [b"all of you"] * 3


async def test_manual_lets_the_application_decide_what_is_subscribed(net, zmq):
    xpub, sub = net.socket(zmq.XPUB, xpub_manual=1), net.socket(zmq.XSUB)
    await net.link(xpub, sub)
    await sub.send(b"\x01asked")
    assert await xpub.recv() == b"\x01asked"
    await xpub.send(b"asked in vain")
    xpub.setsockopt(zmq.SUBSCRIBE, b"granted")
    await xpub.send(b"asked in vain")
    await xpub.send(b"granted")
    assert await sub.recv() == b"granted"
    await sub.send(b"\x00asked")
    assert await xpub.recv() == b"\x00asked"
    await xpub.send(b"granted still")
    assert await sub.recv() == b"granted still"
    xpub.setsockopt(zmq.UNSUBSCRIBE, b"granted")
    xpub.setsockopt(zmq.SUBSCRIBE, b"end")
    await xpub.send(b"granted no more")
    await xpub.send(b"end")
    assert await sub.recv() == b"end"


async def test_a_manual_subscription_is_for_the_one_who_asked_last(net, zmq):
    xpub, subs = net.socket(zmq.XPUB, xpub_manual=1), [net.socket(zmq.XSUB) for _ in range(2)]
    await net.link(xpub, *subs)
    for n, sub in enumerate(subs):
        await sub.send(b"\x01%d" % n)
        assert await xpub.recv() == b"\x01%d" % n
        xpub.setsockopt(zmq.SUBSCRIBE, b"for %d" % n)
    await xpub.send(b"for 0")
    await xpub.send(b"for 1")
    assert [await sub.recv() for sub in subs] == [b"for 0", b"for 1"]


async def test_a_sub_filters_what_it_did_not_ask_for_and_an_xsub_does_not(net, zmq):
    xpub = net.socket(zmq.XPUB, xpub_manual=1)
    sub, xsub = net.socket(zmq.SUB), net.socket(zmq.XSUB)
    await net.link(xpub, sub, xsub)
    sub.subscribe(b"a")
    assert await xpub.recv() == b"\x01a"
    xpub.setsockopt(zmq.SUBSCRIBE, b"")
    await xsub.send(b"\x01a")
    assert await xpub.recv() == b"\x01a"
    xpub.setsockopt(zmq.SUBSCRIBE, b"")
    for message in ([b"b", b"more"], [b"a", b"more"]):
        await xpub.send_multipart(message)
    assert await sub.recv_multipart() == [b"a", b"more"]
    assert await xsub.recv_multipart() == [b"b", b"more"]


@pytest.mark.over("inproc")
@pytest.mark.parametrize("socket_type", ["XPUB", "PUB"])
async def test_nodrop_waits_for_a_subscriber_that_is_full(net, zmq, socket_type):
    pub = net.socket(getattr(zmq, socket_type), xpub_nodrop=1, sndhwm=2)
    slow, other = net.socket(zmq.SUB, rcvhwm=3), net.socket(zmq.SUB)
    slow.subscribe(b"")
    other.subscribe(b"other")
    await net.link(pub, slow, other)
    assert await fill(zmq, pub, 100, b"x") == 5
    pub.sndtimeo = 10
    with pytest.raises(zmq.Again):
        await pub.send(b"one too many")
    assert await drain(zmq, slow) == [b"%d" % n for n in range(5)]
    await pub.send(b"room again")
    assert await slow.recv() == b"room again"


async def test_a_welcome_message_greets_who_has_subscribed_to_it(net, zmq):
    xpub, sub = net.socket(zmq.XPUB), net.socket(zmq.SUB)
    xpub.setsockopt(zmq.XPUB_WELCOME_MSG, b"welcome")
    sub.subscribe(b"welcome")
    await net.link(xpub, sub)
    assert await sub.recv() == b"welcome"
    assert await xpub.recv() == b"\x01welcome"


async def test_inverted_matching_sends_what_was_not_subscribed(net, zmq):
    pub, xpub = net.socket(zmq.PUB, invert_matching=1), net.socket(zmq.XPUB, invert_matching=1)
    sub = net.socket(zmq.SUB, invert_matching=1)
    sub.subscribe(b"a")
    for publisher in (pub, xpub):
        endpoint = await net.link(publisher, sub)
        await introduce(net, publisher, sub, topic=b"b")
        await publisher.send(b"abc")
        await publisher.send(b"bcd")
        assert await sub.recv() == b"bcd"
        sub.disconnect(endpoint)


async def test_a_device_forwards_subscriptions_up_and_messages_down(net, zmq):
    """PUB - XSUB XPUB - SUB, the body of the device being two lines."""
    pub, xsub = net.socket(zmq.PUB), net.socket(zmq.XSUB)
    xpub, sub = net.socket(zmq.XPUB), net.socket(zmq.SUB)
    await net.link(pub, xsub)
    await net.link(xpub, sub)
    sub.subscribe(b"a")
    await xsub.send(await xpub.recv())
    await introduce(net, pub, xsub, topic=b"a")
    await pub.send(b"b in vain")
    await pub.send_multipart([b"abc", b"more"])
    await xpub.send_multipart(await xsub.recv_multipart())
    assert await sub.recv_multipart() == [b"abc", b"more"]


async def test_a_message_of_a_subscriber_that_begins_with_one_is_a_subscription(net, zmq):
    """A user message cannot begin with 0 or 1: it is taken as what it looks like."""
    xpub, xsub = net.socket(zmq.XPUB), net.socket(zmq.XSUB)
    await net.link(xpub, xsub)
    await xsub.send(b"\x01")
    assert await xpub.recv() == b"\x01"
    await xpub.send(b"anything")
    assert await xsub.recv() == b"anything"
