"""Poller: sockets, descriptors and objects with one, in one wait."""

import asyncio
import os
import socket as plain
import time

import pytest

import zerohop as zmq
import zerohop.asyncio as zmqa

pytestmark = [pytest.mark.on("asyncio", "uvloop"), pytest.mark.over("tcp")]


async def linked(net):
    push, pull = net.socket(zmq.PUSH), net.socket(zmq.PULL, rcvtimeo=-1)
    await net.link(pull, push)
    await push.wait_connected()
    return push, pull


@pytest.fixture
def pair():
    """Two plain sockets that are connected and do not block."""
    ends = plain.socketpair()
    for end in ends:
        end.setblocking(False)
    yield ends
    for end in ends:
        end.close()


def fill(end):
    try:
        while True:
            end.send(bytes(10_000))
    except BlockingIOError:
        return


# -- what is registered


def test_a_poller_knows_what_is_registered():
    poller = zmqa.Poller()
    poller.register(0, zmq.POLLIN)
    poller.register(1)
    assert 0 in poller
    assert 2 not in poller
    assert poller.sockets == [(0, zmq.POLLIN), (1, zmq.POLLIN | zmq.POLLOUT)]
    poller.modify(1, zmq.POLLOUT)
    assert poller.sockets == [(0, zmq.POLLIN), (1, zmq.POLLOUT)]
    poller.register(0, 0)
    assert 0 not in poller
    poller.unregister(1)
    assert poller.sockets == []
    with pytest.raises(KeyError):
        poller.unregister(1)
    with pytest.raises(TypeError, match="fileno"):
        poller.register(object())


def test_a_number_is_the_same_though_it_is_another_object():
    poller = zmqa.Poller()
    poller.register(int("1000"), zmq.POLLIN)
    poller.register(int("1000"), zmq.POLLOUT)
    assert poller.sockets == [(1000, zmq.POLLOUT)]
    poller.unregister(int("1000"))
    assert poller.sockets == []


@pytest.fixture
def file(tmp_path):
    with open(tmp_path / "x", "w") as opened:
        yield opened


async def test_what_cannot_be_watched_is_an_error_of_the_poll(net, pair, file):
    """A file is always ready, and the system refuses to watch it; the others are let go."""
    poller = zmqa.Poller()
    poller.register(pair[0], zmq.POLLIN)
    poller.register(file, zmq.POLLIN)
    with pytest.raises(OSError, match="not permitted"):
        await poller.poll(1000)
    poller.unregister(file)
    pair[1].send(b"x")
    assert await poller.poll(1000) == [(pair[0].fileno(), zmq.POLLIN)]


async def test_a_poller_without_anything_is_done_at_once(net):
    assert await zmqa.Poller().poll(10_000) == []


# -- waiting


async def test_sockets_and_descriptors_are_ready_together(net, pair):
    push, pull = await linked(net)
    poller = zmqa.Poller()
    poller.register(pull, zmq.POLLIN)
    poller.register(pair[0], zmq.POLLIN)
    poller.register(pair[1].fileno(), zmq.POLLIN)
    assert await poller.poll(0) == []
    pair[0].send(b"x")
    assert await poller.poll(8000) == [(pair[1].fileno(), zmq.POLLIN)]
    pair[1].send(b"x")
    await push.send(b"x")
    await net.eventually(lambda: pull.events & zmq.POLLIN)
    assert dict(await poller.poll(8000)) == {
        pull: zmq.POLLIN, pair[0].fileno(): zmq.POLLIN, pair[1].fileno(): zmq.POLLIN,
    }  # fmt: skip


async def test_what_becomes_ready_while_it_waits_wakes_it(net, pair):
    push, pull = await linked(net)
    poller = zmqa.Poller()
    poller.register(pull, zmq.POLLIN)
    poller.register(pair[0], zmq.POLLIN)
    number = pair[0].fileno()
    for act, ready in ((lambda: push.send(b"x"), pull), (lambda: pair[1].send(b"x"), number)):
        waiting = poller.poll()
        await asyncio.sleep(0.001)
        assert not waiting.done()
        act()
        assert await waiting == [(ready, zmq.POLLIN)]
        await pull.recv(zmq.DONTWAIT) if ready is pull else pair[0].recv(1)


async def test_a_descriptor_is_writable_when_it_is(net, pair):
    poller = zmqa.Poller()
    poller.register(pair[0])
    assert await poller.poll(8000) == [(pair[0].fileno(), zmq.POLLOUT)]
    pair[1].send(b"x")
    await asyncio.sleep(0)
    assert await poller.poll(8000) == [(pair[0].fileno(), zmq.POLLIN | zmq.POLLOUT)]
    pair[0].recv(1)
    fill(pair[0])
    assert await poller.poll(1) == []


async def test_an_end_that_was_closed_is_readable(net, pair):
    poller = zmqa.Poller()
    poller.register(pair[0], zmq.POLLIN)
    pair[1].close()
    assert await poller.poll(8000) == [(pair[0].fileno(), zmq.POLLIN)]


async def test_a_descriptor_may_be_registered_as_a_number_and_as_an_object(net, pair):
    poller = zmqa.Poller()
    number = pair[0].fileno()
    poller.register(pair[0], zmq.POLLIN)
    poller.register(number, zmq.POLLOUT)
    assert await poller.poll(8000) == [(number, zmq.POLLOUT)]
    pair[1].send(b"x")
    assert await poller.poll(8000) == [(number, zmq.POLLIN), (number, zmq.POLLOUT)]


@pytest.mark.parametrize("timeout", [50, 50.5])
async def test_the_time_limit_is_in_milliseconds(net, timeout):
    push, pull = await linked(net)
    poller = zmqa.Poller()
    poller.register(pull, zmq.POLLIN)
    started = time.monotonic()
    assert await poller.poll(timeout) == []
    assert 0.048 < time.monotonic() - started < 2
    del push


async def test_several_polls_of_one_descriptor_do_not_disturb_each_other(net, pair):
    loop = asyncio.get_running_loop()
    mine = asyncio.Event()
    loop.add_reader(pair[0], mine.set)
    first, second = zmqa.Poller(), zmqa.Poller()
    for poller in (first, second):
        poller.register(pair[0], zmq.POLLIN)
    waits = [first.poll(), second.poll()]
    await asyncio.sleep(0.001)
    pair[1].send(b"x")
    for wait in waits:
        assert await asyncio.wait_for(wait, 8) == [(pair[0].fileno(), zmq.POLLIN)]
    await asyncio.wait_for(mine.wait(), 8)
    mine.clear()
    await asyncio.wait_for(mine.wait(), 8)
    loop.remove_reader(pair[0])


async def test_a_poll_that_is_cancelled_watches_nothing_any_more(net, pair):
    push, pull = await linked(net)
    poller = zmqa.Poller()
    poller.register(pull, zmq.POLLIN)
    poller.register(pair[0], zmq.POLLIN)
    for _ in range(3):
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(poller.poll(), 0.002)
    assert all(waiting.done() for waiting in pull._front._conditions.waiting())
    await push.send(b"x")
    assert await poller.poll() == [(pull, zmq.POLLIN)]


async def test_a_socket_that_is_closed_while_it_is_polled_is_an_error_of_the_poll(net, pair):
    push, pull = await linked(net)
    poller = zmqa.Poller()
    poller.register(pull, zmq.POLLIN)
    poller.register(pair[0], zmq.POLLIN)
    waiting = poller.poll()
    await asyncio.sleep(0.001)
    pull.close()
    with pytest.raises(zmq.ZMQError) as closed:
        await asyncio.wait_for(waiting, 8)
    assert closed.value.errno in (zmq.ENOTSOCK, zmq.ENOTSUP)
    del push


async def test_a_descriptor_that_is_not_open_is_an_error_of_the_poll(net):
    poller = zmqa.Poller()
    read, write = os.pipe()
    os.close(read)
    os.close(write)
    poller.register(read, zmq.POLLIN)
    with pytest.raises(OSError, match="Bad file descriptor"):
        await poller.poll(1000)


# -- blocking sockets


async def test_blocking_sockets_can_be_polled_too(net):
    with zmq.Context() as context:
        push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
        with push, pull:
            pull.bind("inproc://x")
            poller = zmqa.Poller()
            poller.register(pull, zmq.POLLIN)
            poller.register(push, zmq.POLLOUT)
            assert await poller.poll(1) == []
            push.connect("inproc://x")
            assert await poller.poll(8000) == [(push, zmq.POLLOUT)]
            push.send(b"x")
            ready = await poller.poll(8000)
            assert (pull, zmq.POLLIN) in ready
            assert pull.recv() == b"x"


async def test_a_blocking_socket_that_becomes_ready_wakes_the_poll(net):
    with zmq.Context() as context:
        push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
        with push, pull:
            pull.bind("tcp://127.0.0.1:*")
            push.connect(pull.last_endpoint.decode())
            poller = zmqa.Poller()
            poller.register(pull, zmq.POLLIN)
            for _ in range(3):
                waiting = poller.poll()
                await asyncio.sleep(0.005)
                assert not waiting.done()
                push.send(b"x")
                assert await asyncio.wait_for(waiting, 8) == [(pull, zmq.POLLIN)]
                assert pull.recv() == b"x"


async def test_a_blocking_socket_that_has_a_message_is_not_thereby_writable(net):
    with zmq.Context() as context:
        ends = [context.socket(zmq.PAIR) for _ in range(2)]
        with ends[0], ends[1]:
            ends[0].bind("inproc://x")
            for end in ends:
                end.sndhwm = end.rcvhwm = 1
            ends[1].connect("inproc://x")
            for end in ends:
                while end.events & zmq.POLLOUT:
                    end.send(b"x", zmq.DONTWAIT)
            poller = zmqa.Poller()
            poller.register(ends[0], zmq.POLLOUT)
            used, started = time.process_time(), time.monotonic()
            assert await poller.poll(100) == []
            assert time.process_time() - used < 0.08
            assert time.monotonic() - started > 0.09
            waiting = poller.poll(8000)
            await asyncio.sleep(0.001)
            while ends[1].events & zmq.POLLIN:
                ends[1].recv()
            assert await waiting == [(ends[0], zmq.POLLOUT)]
