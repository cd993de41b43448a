"""PUSH and PULL: round robin out, fair queue in (RFC 30; libzmq's test_spec_pushpull)."""

import itertools

import pytest

from tests.kit.net import free_port
from tests.kit.traffic import drain


async def test_push_sends_to_its_peers_in_turn(net, zmq):
    push, pulls = net.socket(zmq.PUSH), [net.socket(zmq.PULL) for _ in range(3)]
    for pull in pulls:
        await net.link(pull, push)
    for n in range(9):
        await push.send(b"%d" % n)
    for first, pull in enumerate(pulls):
        assert [await pull.recv() for _ in range(3)] == [b"%d" % n for n in range(first, 9, 3)]


async def test_a_bound_push_shares_between_those_who_connect(net, zmq):
    push, pulls = net.socket(zmq.PUSH), [net.socket(zmq.PULL) for _ in range(3)]
    await net.link(push, *pulls)
    for n in range(9):
        await push.send(b"%d" % n)
    got = [[int(await pull.recv()) for _ in range(3)] for pull in pulls]
    assert sorted(itertools.chain(*got)) == list(range(9))
    assert all(numbers[1] - numbers[0] == numbers[2] - numbers[1] == 3 for numbers in got)


async def test_a_full_peer_is_passed_over(net, zmq):
    push, pull = net.socket(zmq.PUSH, sndhwm=5), net.socket(zmq.PULL)
    absent = net.endpoint()  # nobody is bound there: its pipe takes SNDHWM messages, and is full
    push.connect(absent)
    await net.link(pull, push)
    got = []
    for n in range(20):
        await push.send(b"%d" % n)
        if n >= 10 or n % 2:
            got.append(int(await pull.recv()))
    assert got == [1, 3, 5, 7, 9, *range(10, 20)]
    late = net.socket(zmq.PULL)
    late.bind(absent)
    assert [int(await late.recv()) for _ in range(5)] == [0, 2, 4, 6, 8]


@pytest.mark.over("inproc")
async def test_pull_takes_one_message_from_each_peer_in_turn(net, zmq):
    pull, pushes = net.socket(zmq.PULL), [net.socket(zmq.PUSH) for _ in range(3)]
    await net.link(pull, *pushes)
    for push in pushes:
        for n in range(3):
            await push.send(b"%d" % n)
    assert [await pull.recv() for _ in range(9)] == [b"0"] * 3 + [b"1"] * 3 + [b"2"] * 3


async def test_a_peer_that_floods_does_not_starve_another(net, zmq):
    pull, loud, quiet = net.socket(zmq.PULL), net.socket(zmq.PUSH), net.socket(zmq.PUSH)
    await net.link(pull, loud, quiet)
    heard = []

    async def flood():
        while not heard:
            await loud.send(b"loud")

    flooding = net.start(flood())
    assert await pull.recv() == b"loud"
    await quiet.send(b"quiet")
    while await pull.recv() != b"quiet":
        pass
    heard.append(b"quiet")
    while not flooding.done():
        await drain(zmq, pull)
        await net.tick()
    await flooding


async def test_parts_of_one_message_go_to_one_peer(net, zmq):
    push, pulls = net.socket(zmq.PUSH), [net.socket(zmq.PULL) for _ in range(2)]
    for pull in pulls:
        await net.link(pull, push)
    for n in range(4):
        await push.send(b"%d" % n, zmq.SNDMORE)
        await push.send(b"", zmq.SNDMORE)
        await push.send(b"end")
    for first, pull in enumerate(pulls):
        for n in (first, first + 2):
            assert await pull.recv_multipart() == [b"%d" % n, b"", b"end"]


async def test_messages_of_several_parts_are_never_interleaved(net, zmq):
    pull, pushes = net.socket(zmq.PULL), [net.socket(zmq.PUSH) for _ in range(3)]
    await net.link(pull, *pushes)
    for n in range(20):
        for who, push in enumerate(pushes):
            await push.send_multipart([b"%d" % who, b"%d" % n, b"x" * 300, b""])
    expected = {0: 0, 1: 0, 2: 0}
    for _ in range(60):
        who, n, body, end = await pull.recv_multipart()
        assert (int(n), body, end) == (expected[int(who)], b"x" * 300, b"")
        expected[int(who)] += 1
    assert expected == {0: 20, 1: 20, 2: 20}


async def test_rcvmore_tells_whether_the_message_goes_on(net, zmq):
    pull, push = net.socket(zmq.PULL), net.socket(zmq.PUSH)
    await net.link(pull, push)
    await push.send_multipart([b"a", b"b", b"c"])
    seen = [(await pull.recv(), bool(pull.rcvmore)) for _ in range(3)]
    assert seen == [(b"a", True), (b"b", True), (b"c", False)]


async def test_an_unfinished_message_is_not_delivered(net, zmq):
    pull, push, other = net.socket(zmq.PULL), net.socket(zmq.PUSH), net.socket(zmq.PUSH)
    await net.link(pull, push, other)
    await push.send(b"a part", zmq.SNDMORE)
    push.close(linger=1000)
    await other.send(b"a whole message")
    assert await pull.recv() == b"a whole message"
    with pytest.raises(zmq.Again):
        await pull.recv(zmq.DONTWAIT)


@pytest.mark.zerohop  # libzmq drops the rest in silence and says it was sent
@pytest.mark.over("inproc")
async def test_a_message_begun_for_a_peer_that_left_goes_whole_to_another(net, zmq):
    push, first, second = net.socket(zmq.PUSH), net.socket(zmq.PULL), net.socket(zmq.PULL)
    for pull in (first, second):
        await net.link(pull, push)
    await push.send(b"to the first", zmq.SNDMORE)
    first.close()
    await net.eventually(lambda: push.events & zmq.POLLOUT)
    await push.send(b"more", zmq.SNDMORE)
    await push.send(b"end")
    assert await second.recv_multipart() == [b"to the first", b"more", b"end"]


async def test_without_a_peer_push_waits_for_one(net, zmq):
    push, pull, endpoint = net.socket(zmq.PUSH), net.socket(zmq.PULL), net.endpoint()
    push.bind(endpoint)
    with pytest.raises(zmq.Again):
        await push.send(b"refused", zmq.DONTWAIT)
    sending = net.start(push.send(b"waited"))
    pull.connect(endpoint)
    assert await pull.recv() == b"waited"
    await sending


async def test_messages_queued_before_the_peer_binds_arrive(net, zmq):
    push, pull, endpoint = net.socket(zmq.PUSH), net.socket(zmq.PULL), net.endpoint()
    push.connect(endpoint)
    for n in range(10):
        await push.send(b"%d" % n)
    pull.bind(endpoint)
    assert [await pull.recv() for _ in range(10)] == [b"%d" % n for n in range(10)]


async def test_a_socket_may_bind_and_connect_at_once(net, zmq):
    near, middle, far = net.socket(zmq.PUSH), net.socket(zmq.PULL), net.socket(zmq.PUSH)
    await net.link(middle, near)
    await net.link(far, middle)
    await near.send(b"to the bound end")
    await far.send(b"to the connected end")
    assert {await middle.recv(), await middle.recv()} == {
        b"to the bound end",
        b"to the connected end",
    }


@pytest.mark.parametrize("size", [0, 1, 255, 256, 8192, 8193, 65536, 1 << 20])
async def test_bodies_of_any_size_arrive_as_they_were_sent(net, zmq, size):
    push, pull = net.socket(zmq.PUSH), net.socket(zmq.PULL)
    await net.link(pull, push)
    body = bytes(n % 251 for n in range(997)) * (size // 997 + 1)
    for _ in range(3):
        await push.send_multipart([body[:size], b"", body[:size]])
    for _ in range(3):
        assert await pull.recv_multipart() == [body[:size], b"", body[:size]]


@pytest.mark.over("tcp")
async def test_ipv6_carries_messages_too(net, zmq):
    push, pull = net.socket(zmq.PUSH, ipv6=1), net.socket(zmq.PULL, ipv6=1)
    endpoint = f"tcp://[::1]:{free_port()}"
    await net.link(pull, push, endpoint=endpoint)
    await push.send(b"six")
    assert await pull.recv() == b"six"
    assert pull.last_endpoint == endpoint.encode()
