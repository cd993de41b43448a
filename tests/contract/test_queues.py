"""CONFLATE, IMMEDIATE, LINGER: what becomes of messages that wait (zmq_setsockopt(3))."""

import pytest

from tests.kit.traffic import drain, fill, introduce

# -- CONFLATE: only the last message is kept


async def test_a_conflating_receiver_keeps_the_last_message(net, zmq):
    push, pull = net.socket(zmq.PUSH), net.socket(zmq.PULL, conflate=1)
    await net.link(pull, push)
    for n in range(100):
        await push.send(b"%d" % n)

    got = []

    async def got_the_last():
        got.extend(await drain(zmq, pull))
        return got and got[-1] == b"99"

    await net.eventually(got_the_last)
    assert [int(n) for n in got] == sorted(int(n) for n in set(got))


@pytest.mark.over("inproc")
async def test_over_inproc_a_conflating_receiver_has_one_message_exactly(net, zmq):
    push, pull = net.socket(zmq.PUSH, conflate=1), net.socket(zmq.PULL, conflate=1)
    await net.link(pull, push)
    for n in range(100):
        await push.send(b"%d" % n)
    assert await drain(zmq, pull) == [b"99"]


@pytest.mark.over("tcp", "ipc")  # inproc of libzmq wants the option on both ends
async def test_a_conflating_sender_keeps_the_last_message_while_nobody_is_there(net, zmq):
    push, pull, endpoint = net.socket(zmq.PUSH, conflate=1), net.socket(zmq.PULL), net.endpoint()
    push.connect(endpoint)
    assert await fill(zmq, push, 50) == 50
    pull.bind(endpoint)
    assert await pull.recv() == b"49"
    await push.send(b"next")
    assert await pull.recv() == b"next"


async def test_a_conflating_subscriber_has_the_latest_state(net, zmq):
    pub, sub = net.socket(zmq.PUB), net.socket(zmq.SUB, conflate=1)
    sub.subscribe(b"")
    await net.link(pub, sub)

    async def heard():
        await pub.send(b"are you there?")
        return await sub.poll(1)

    await net.eventually(heard)
    for n in range(50):
        await pub.send(b"state %d" % n)

    async def latest():
        return (await drain(zmq, sub))[-1:] == [b"state 49"]

    await net.eventually(latest)
    assert await drain(zmq, sub) == []


@pytest.mark.zerohop  # libzmq keeps the last frame and breaks the message apart: libzmq #4399
async def test_conflate_keeps_whole_messages(net, zmq):
    push, pull = net.socket(zmq.PUSH), net.socket(zmq.PULL, conflate=1)
    await net.link(pull, push)
    for n in range(50):
        await push.send_multipart([b"%d" % n, b"more", b"end"])

    async def last():
        message = await pull.recv_multipart()
        assert message[1:] == [b"more", b"end"]
        return message[0] == b"49"

    await net.eventually(last)


# -- IMMEDIATE: queue for connected peers alone


async def test_by_default_messages_queue_for_a_peer_that_is_not_there(net, zmq):
    push, pull = net.socket(zmq.PUSH), net.socket(zmq.PULL)
    absent = net.endpoint()
    push.connect(absent)
    await net.link(pull, push)
    for n in range(10):
        await push.send(b"%d" % n)
    assert [await pull.recv() for _ in range(5)] == [b"1", b"3", b"5", b"7", b"9"]


@pytest.mark.over("tcp", "ipc")
async def test_with_immediate_messages_go_to_connected_peers_alone(net, zmq):
    push, pull = net.socket(zmq.PUSH, immediate=1), net.socket(zmq.PULL)
    push.connect(net.endpoint())
    with pytest.raises(zmq.Again):
        await push.send(b"nobody is there", zmq.DONTWAIT)
    await net.link(pull, push)
    for n in range(10):
        await push.send(b"%d" % n)
    assert [await pull.recv() for _ in range(10)] == [b"%d" % n for n in range(10)]


@pytest.mark.over("tcp", "ipc")
async def test_with_immediate_a_peer_that_leaves_takes_its_queue_with_it(net, zmq):
    push, pull = net.socket(zmq.PUSH, immediate=1, reconnect_ivl=10), net.socket(zmq.PULL)
    endpoint = await net.link(pull, push)
    await push.send(b"1")
    assert await pull.recv() == b"1"
    pull.close()
    await net.eventually(lambda: not push.events & zmq.POLLOUT)
    with pytest.raises(zmq.Again):
        await push.send(b"nobody is there", zmq.DONTWAIT)
    back = net.socket(zmq.PULL)
    back.bind(endpoint)
    await push.send(b"2")
    assert await back.recv() == b"2"


# -- LINGER: what a close does with messages not yet sent


async def test_messages_outlive_the_socket_while_it_lingers(net, zmq):
    context = net.new_context() if net.transport != "inproc" else net.context
    push, pull = net.socket(zmq.PUSH, context=context, linger=-1), net.socket(zmq.PULL)
    endpoint = net.endpoint()
    push.connect(endpoint)
    for n in range(100):
        await push.send(b"%d" % n)
    push.close()
    pull.bind(endpoint)
    assert [await pull.recv() for _ in range(100)] == [b"%d" % n for n in range(100)]


@pytest.mark.over("tcp", "ipc")  # over inproc a message is with the receiver once it is sent
@pytest.mark.parametrize("linger", ["option", "argument"])
async def test_without_linger_messages_end_with_the_socket(net, zmq, linger):
    context = net.new_context()
    push = net.socket(zmq.PUSH, context=context)
    pull, other, endpoint = net.socket(zmq.PULL), net.socket(zmq.PUSH), net.endpoint()
    push.connect(endpoint)
    await push.send(b"in vain")
    if linger == "option":
        push.linger = 0
        push.close()
    else:
        push.close(linger=0)
    context.term()
    pull.bind(endpoint)
    await net.join(endpoint, pull, other)
    await other.send(b"the first to arrive")
    assert await pull.recv() == b"the first to arrive"


async def test_default_lingers_are_for_ever_and_not_at_all_for_subscribers(net, zmq):
    endless = [zmq.PAIR, zmq.PUB, zmq.REQ, zmq.REP, zmq.DEALER, zmq.ROUTER, zmq.PUSH, zmq.PULL]
    assert {net.socket(kind).linger for kind in [*endless, zmq.XPUB, zmq.STREAM]} == {-1}
    assert {net.socket(kind).linger for kind in (zmq.SUB, zmq.XSUB)} == {0}


@pytest.mark.over("tcp", "ipc")
async def test_a_publisher_that_closes_still_sends_what_it_has(net, zmq):
    pub, sub = net.socket(zmq.PUB), net.socket(zmq.SUB)
    sub.subscribe(b"")
    await net.link(pub, sub)
    await introduce(net, pub, sub)
    for n in range(200):
        await pub.send_multipart([b"%d" % n, b"x" * 1000])
    pub.close(linger=5000)
    assert [(await sub.recv_multipart())[0] for _ in range(200)] == [b"%d" % n for n in range(200)]
