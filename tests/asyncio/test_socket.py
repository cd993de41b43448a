"""The asyncio Socket: its calls, where they differ from those of a blocking one."""

import asyncio
import time

import numpy as np
import pytest

import zerohop as zmq
from zerohop.api.tracker import DONE
from zerohop.asyncio.futures import SENT, Received
from zerohop.io.stream import Stream

pytestmark = [pytest.mark.on("asyncio", "uvloop"), pytest.mark.over("tcp")]


async def linked(net, **options):
    push, pull = net.socket(zmq.PUSH), net.socket(zmq.PULL, rcvtimeo=-1, **options)
    await net.link(pull, push)
    await push.wait_connected()
    return push, pull


# -- lanes


async def test_a_send_and_a_receive_on_their_lanes_are_light_objects(net):
    push, pull = await linked(net)
    assert push.send(b"1") is SENT
    assert push.send_multipart([b"2", b"3"]) is SENT
    await net.eventually(lambda: pull.stats().incoming.messages == 2)
    assert type(pull.recv()) is Received
    assert await pull.recv() == b"1"
    assert await pull.recv_multipart() == [b"2", b"3"]


@pytest.mark.parametrize(
    "send",
    [
        lambda push: push.send(bytearray(b"x")),
        lambda push: push.send(memoryview(b"x")),
        lambda push: push.send(zmq.Frame(b"x")),
        lambda push: push.send(np.frombuffer(b"x", np.uint8)),
        lambda push: push.send(b"x", copy=False),
        lambda push: push.send_multipart([b"x"]),
        lambda push: push.send_multipart((b"x",)),
        lambda push: push.send_multipart(iter([b"x"])),
        lambda push: push.send_string("x"),
        lambda push: push.send_serialized(b"x", lambda value: [value]),
    ],
)
async def test_whatever_is_sent_keeps_its_place_among_the_others(net, send):
    push, pull = await linked(net)
    push.send(b"before")
    assert await send(push) in (None, DONE)
    await push.send(b"after")
    assert [await pull.recv() for _ in range(3)] == [b"before", b"x", b"after"]


async def test_a_message_of_several_parts_that_is_alone_on_the_lane_is_received_part_by_part(net):
    push, pull = await linked(net)
    push.send_multipart([b"1", b"2"])
    await net.eventually(lambda: pull.stats().incoming.messages == 1)
    assert pull._receiving.lane is not None
    assert [await pull.recv(), await pull.recv()] == [b"1", b"2"]


async def test_a_connection_is_closed_right_behind_what_was_sent_on_it(net, monkeypatch):
    monkeypatch.setattr("zerohop.asyncio.turns._MOMENT", 1.0)  # what is sent next is gathered
    stream, endpoint = net.socket(zmq.STREAM), net.endpoint()
    stream.bind(endpoint)
    host, port = endpoint.removeprefix("tcp://").split(":")
    reader, writer = await asyncio.open_connection(host, port)
    name, _ = await stream.recv_multipart()
    for octets in (b"goes alone, ", b"waits for company", b""):
        stream.send_multipart([name, octets])
    assert await reader.read() == b"goes alone, waits for company"
    writer.close()
    await writer.wait_closed()


async def test_the_parts_of_a_message_are_the_callers_list_no_more(net):
    push, pull = await linked(net)
    parts = [b"1", b"2"]
    push.send_multipart(parts)
    parts.append(b"3")
    assert await pull.recv_multipart() == [b"1", b"2"]


async def test_a_message_sent_part_by_part_is_one_message(net):
    push, pull = await linked(net)
    assert await push.send(b"1", zmq.SNDMORE) is None
    assert await push.send(b"2", zmq.SNDMORE) is None
    assert not await pull.poll(5)
    await push.send(b"3")
    assert await pull.recv_multipart() == [b"1", b"2", b"3"]
    await push.send_multipart([b"4", b"5"], zmq.SNDMORE)
    await push.send(b"6")
    assert await pull.recv_multipart() == [b"4", b"5", b"6"]


async def test_parts_received_one_by_one(net):
    push, pull = await linked(net)
    await push.send_multipart([b"1", b"2", b"3"])
    await push.send(b"4")
    seen = [(await pull.recv(), pull.rcvmore) for _ in range(4)]
    assert seen == [(b"1", 1), (b"2", 1), (b"3", 0), (b"4", 0)]


async def test_a_full_lane_waits_and_goes_on(net):
    push, pull = await linked(net, rcvhwm=2)
    push.sndhwm = 2
    sends = [push.send(bytes(100_000)) for _ in range(200)]
    assert not sends[-1].done()
    for _ in sends:
        assert len(await pull.recv()) == 100_000
    await asyncio.gather(*sends)


@pytest.mark.over("inproc")
@pytest.mark.parametrize("kinds", [(zmq.PUSH, zmq.PULL), (zmq.DEALER, zmq.ROUTER)])
async def test_what_is_received_is_octets_also_where_it_was_lent(net, kinds):
    sender, receiver = (net.socket(kind) for kind in kinds)
    await net.link(receiver, sender)
    lent = np.frombuffer(b"lent", np.uint8)
    sender.copy_threshold = 0
    await sender.send(lent, copy=False)
    await sender.send_multipart([b"1", lent], copy=False)
    await sender.send_multipart([b"1", b"2"])
    got = [await receiver.recv_multipart() for _ in range(3)]
    assert [parts[-2:] for parts in got][1:] == [[b"1", b"lent"], [b"1", b"2"]]
    assert got[0][-1] == b"lent"
    assert {type(part) for parts in got for part in parts} == {bytes}


@pytest.mark.over("inproc")
@pytest.mark.parametrize("receive", ["recv", "recv_multipart", "iteration"])
async def test_a_sender_over_a_full_lane_goes_on_when_it_is_half_empty(net, receive):
    push, pull = await linked(net)
    pull.rcvhwm, push.sndhwm = 5, 5

    async def flood():
        for n in range(100):
            await push.send(b"%d" % n)

    sending = asyncio.create_task(flood())
    method = pull.__anext__ if receive == "iteration" else getattr(pull, receive)
    got = [await method() for _ in range(100)]
    await sending
    assert [int(m[0] if isinstance(m, list) else m) for m in got] == list(range(100))


async def test_parts_that_have_to_wait_are_sent_with_the_last_of_their_message(net):
    push, pull = net.socket(zmq.PUSH, sndtimeo=-1), net.socket(zmq.PULL)
    first, last = push.send(b"1", zmq.SNDMORE), push.send(b"2")
    assert not first.done()
    await net.link(pull, push)
    await asyncio.gather(first, last)
    assert await pull.recv_multipart() == [b"1", b"2"]


# -- what is wrong is said at once, or through the awaitable


@pytest.mark.parametrize("data", ["text", 1, None, [b"x"]])
async def test_what_cannot_be_sent_is_refused_at_once(net, data):
    push, _ = await linked(net)
    with pytest.raises(TypeError):
        push.send(data)
    with pytest.raises(TypeError):
        push.send_multipart([b"x", data])
    with pytest.raises(IndexError):
        push.send_multipart([])


@pytest.mark.parametrize("argument", [{"routing_id": 1}, {"group": "x"}])
async def test_arguments_of_draft_sockets_are_refused(net, argument):
    push, _ = await linked(net)
    with pytest.raises(RuntimeError, match="draft"):
        push.send(b"x", **argument)
    with pytest.raises(RuntimeError, match="draft"):
        push.send_multipart([b"x", b"y"], **argument)


@pytest.mark.parametrize(
    "call",
    [
        lambda socket: socket.send(b"x"),
        lambda socket: socket.send_multipart([b"x", b"y"]),
        lambda socket: socket.recv(),
        lambda socket: socket.recv_multipart(),
        lambda socket: socket.recv_string(),
        lambda socket: socket.wait_connected(),
        lambda socket: socket.wait_for_subscribers(),
    ],
)
async def test_a_closed_socket_answers_through_the_awaitable(net, call):
    pub = net.socket(zmq.XPUB)
    pub.close()
    answer = call(pub)
    with pytest.raises(zmq.ZMQError) as closed:
        await answer
    assert closed.value.errno == zmq.ENOTSOCK


async def test_polling_a_closed_socket_is_refused_at_once(net):
    pull = net.socket(zmq.PULL)
    pull.close()
    with pytest.raises(zmq.ZMQError) as closed:
        pull.poll()
    assert closed.value.errno == zmq.ENOTSUP


@pytest.mark.parametrize("timeout", [0, -1, -0.5])
async def test_no_time_at_all_is_a_look(net, timeout):
    push, pull = await linked(net)
    with pytest.raises(zmq.Again):
        await pull.recv(timeout=timeout)
    push.send(b"x")
    await pull.poll()
    assert await pull.recv(timeout=timeout) == b"x"


# -- waiting for more than messages


async def test_waiting_for_a_peer_says_what_is_missing(net):
    push, endpoint = net.socket(zmq.PUSH, reconnect_ivl=1), net.endpoint()
    push.connect(endpoint)
    with pytest.raises(zmq.Again) as late:
        await push.wait_connected(0.02)
    assert endpoint in late.value.__notes__[0]
    waiting = push.wait_connected(8)
    pull = net.socket(zmq.PULL)
    pull.bind(endpoint)
    await waiting
    await push.wait_connected(0)


async def test_many_subscriptions_go_together_and_all_arrive(net, monkeypatch):
    """The first at once, the rest when there are enough, or at the end of the turn."""
    writes = []
    write = Stream.write
    xpub, sub = net.socket(zmq.XPUB), net.socket(zmq.SUB)
    await net.link(xpub, sub)
    await sub.wait_connected()
    await xpub.wait_connected()
    monkeypatch.setattr(Stream, "write", lambda stream: (writes.append(1), write(stream))[1])
    topics = [b"%05d" % number for number in range(2000)]
    for topic in topics:
        sub.subscribe(topic)
    assert [await xpub.recv() for _ in topics] == [b"\x01" + topic for topic in topics]
    for topic in topics:
        sub.unsubscribe(topic)
    assert [await xpub.recv() for _ in topics] == [b"\x00" + topic for topic in topics]
    assert len(writes) < 20


async def test_who_asks_for_events_again_and_again_without_waiting_sees_what_comes(net):
    pull = net.socket(zmq.PULL)
    pull.bind(net.endpoint())
    with zmq.Context() as context, context.socket(zmq.PUSH) as push:
        push.connect(pull.last_endpoint)
        await pull.wait_connected(timeout=8)
        assert not pull.events & zmq.POLLIN
        push.send(b"now")
        until = time.monotonic() + 8
        while not pull.events & zmq.POLLIN:
            assert time.monotonic() < until
    assert await pull.recv() == b"now"


async def test_who_asks_for_events_of_a_closed_socket_is_told(net):
    pull = net.socket(zmq.PULL)
    pull.close()
    with pytest.raises(zmq.ZMQError) as caught:
        pull.get(zmq.EVENTS)
    assert caught.value.errno == zmq.Errno.ENOTSOCK


async def test_waiting_for_subscribers_counts_them(net):
    pub = net.socket(zmq.PUB)
    subs = [net.socket(zmq.SUB) for _ in range(2)]
    await net.link(pub, *subs)
    subs[0].subscribe("news")
    await pub.wait_for_subscribers("news.sport", timeout=8)
    with pytest.raises(zmq.Again) as late:
        await pub.wait_for_subscribers(b"news.sport", 2, timeout=0.01)
    assert "1 of 2" in late.value.__notes__[0]
    waiting = pub.wait_for_subscribers("news", n=2)
    subs[1].subscribe("ne")
    await waiting


async def test_a_poll_for_both_says_what_is_there(net):
    ends = [net.socket(zmq.PAIR) for _ in range(2)]
    await net.link(*ends)
    both = zmq.POLLIN | zmq.POLLOUT
    assert await ends[0].poll(8000, both) == zmq.POLLOUT
    await ends[1].send(b"x")
    assert await ends[0].poll(8000) == zmq.POLLIN
    assert await ends[0].poll(8000, both) == both


# -- iteration, and the end


async def test_iteration_has_the_sockets_time_limit(net):
    push, pull = await linked(net)
    pull.rcvtimeo = 20
    await push.send(b"1")
    await push.send_multipart([b"2", b"3"])
    got = []
    with pytest.raises(zmq.Again):
        await read_into(got, pull)
    assert got == [b"1", [b"2", b"3"]]


async def read_into(got, pull):
    async for message in pull:
        got.append(message)


@pytest.mark.parametrize("when", ["before", "meanwhile"])
async def test_iteration_ends_with_the_socket(net, when):
    _, pull = await linked(net)

    async def read():
        return [message async for message in pull]

    if when == "before":
        pull.close()
    reading = asyncio.create_task(read())
    await asyncio.sleep(0.001)
    pull.close()
    assert await asyncio.wait_for(reading, 8) == []


async def test_an_iteration_that_is_cancelled_loses_nothing(net):
    push, pull = await linked(net)
    got = []
    for n in range(100):
        reading = asyncio.create_task(read_into(got, pull))
        push.send(b"%d" % n)
        for _ in range(n % 5):
            await asyncio.sleep(0)
        reading.cancel()
        await asyncio.wait([reading])
    while len(got) < 100:
        got.append(await pull.recv())
    assert [int(message) for message in got] == list(range(100))


async def test_aclose_returns_when_what_was_sent_is_out(net):
    push, pull = await linked(net)
    received = asyncio.create_task(take(pull, 100))
    for _ in range(100):
        await push.send(bytes(100_000))
    await push.aclose(linger=-1)
    assert push._driver.released
    assert await received == 100
    await push.aclose()


async def take(pull, count):
    return len([await pull.recv() for _ in range(count)])


async def test_a_socket_is_closed_at_the_end_of_async_with(net):
    async with net.socket(zmq.PULL) as pull:
        assert not pull.closed
    assert pull.closed


# -- hints for the classic mistakes


async def test_waiting_for_what_can_never_come_is_told_once(net, caplog):
    sub = net.socket(zmq.SUB)
    sub.connect(net.endpoint())
    for _ in range(3):
        with pytest.raises(zmq.Again):
            await sub.recv(timeout=0.001)
    hints = [record.getMessage() for record in caplog.records if record.name == "zerohop"]
    assert len([hint for hint in hints if "subscrib" in hint]) == 1
