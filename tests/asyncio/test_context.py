"""The Context of asyncio sockets: its end, in a loop and without one."""

import asyncio
import threading

import pytest

import zerohop as zmq
import zerohop.asyncio as zmqa
from tests.kit.net import free_port
from tests.kit.traffic import receive_numbers

pytestmark = [pytest.mark.on("asyncio", "uvloop"), pytest.mark.over("tcp")]
BIG = bytes(1_000_000)


def endpoint():
    return f"tcp://127.0.0.1:{free_port()}"


async def receiver(net):
    """A PULL in a context of its own, and where it is bound."""
    pull = net.socket(zmq.PULL, context=net.new_context(), rcvtimeo=8000)
    where = net.endpoint()
    pull.bind(where)
    return pull, where


async def test_at_the_end_of_async_with_all_is_out_that_was_sent(net):
    pull, where = await receiver(net)
    async with zmqa.Context() as context:
        push = context.socket(zmq.PUSH)
        push.connect(where)
        sending = asyncio.create_task(receive_numbers(pull, 50))
        for n in range(50):
            await push.send_multipart([b"%d" % n, bytes(50_000)])
    assert context.closed
    assert push.closed
    assert not context._io.drivers
    assert await sending == list(range(50))


async def test_an_error_inside_comes_out_and_the_sockets_are_closed(net):
    made = []

    async def fail():
        async with zmqa.Context() as context:
            made.extend([context, context.socket(zmq.PUSH)])
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        await fail()
    assert all(each.closed for each in made)


async def test_aclose_says_who_keeps_it_when_the_time_is_over(net):
    context = zmqa.Context()
    push, where = context.socket(zmq.PUSH), endpoint()
    push.connect(where)
    push.send(b"nobody there")
    with pytest.raises(zmq.Again) as late:
        await context.aclose(timeout=0.01)
    assert where in late.value.__notes__[0]
    assert not context.closed
    assert push.closed
    pull = net.socket(zmq.PULL)
    pull.bind(where)
    await context.aclose(timeout=8)
    assert context.closed
    assert await pull.recv() == b"nobody there"


async def test_aclose_without_linger_waits_for_nothing(net):
    context = zmqa.Context()
    push = context.socket(zmq.PUSH)
    push.connect(endpoint())
    push.send(b"nobody there")
    await context.aclose(linger=0)
    assert context.closed


async def test_aclose_may_be_called_twice_and_cancelled(net):
    context = zmqa.Context()
    push = context.socket(zmq.PUSH)
    push.connect(endpoint())
    push.send(b"nobody there")
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(context.aclose(), 0.01)
    push = None
    with pytest.raises(zmq.Again):
        await context.aclose(timeout=0.01)
    for driver in list(context._io.drivers):
        driver.core.links.end_close()
        driver.pump()
    await context.aclose()
    await context.aclose()


def test_aclose_sends_what_lingers_from_a_loop_that_has_ended():
    context = zmqa.Context()
    where = endpoint()

    async def send():
        push = context.socket(zmq.PUSH)
        push.connect(where)
        push.send(b"the last words")
        push.close(linger=-1)

    async def end():
        async with zmqa.Context() as other:
            pull = other.socket(zmq.PULL)
            pull.bind(where)
            await asyncio.wait_for(context.aclose(), 8)
            assert await pull.recv(timeout=8) == b"the last words"

    asyncio.run(send())
    asyncio.run(end())
    assert context.closed


async def test_term_in_the_loop_of_its_open_sockets_says_that_it_would_wait_for_ever(net):
    context = zmqa.Context()
    pull = context.socket(zmq.PULL)
    with pytest.raises(zmq.ZMQError) as deadlock:
        context.term()
    assert deadlock.value.errno == 35
    assert "PULL" in deadlock.value.__notes__[0]
    assert not pull.closed
    pull.close()
    context.term()
    assert context.closed


async def test_term_with_a_time_limit_lets_open_sockets_know(net):
    context = zmqa.Context()
    pull = context.socket(zmq.PULL)
    waiting = pull.recv()
    with pytest.raises(zmq.Again):
        context.term(timeout=0.01)
    for call in (waiting, pull.recv(), pull.poll(1)):
        with pytest.raises(zmq.ContextTerminated):
            await asyncio.wait_for(call, 8)
    pull.close()
    context.term()


async def test_term_sends_what_lingers_on_the_loop_that_it_blocks(net):
    pull, where = await receiver(net)
    context = zmqa.Context()
    push = context.socket(zmq.PUSH)
    push.connect(where)
    await push.wait_connected()
    for n in range(3):
        push.send_multipart([b"%d" % n, bytes(10_000)])
    push.close(linger=-1)
    context.term(timeout=8)
    assert await receive_numbers(pull, 3) == [0, 1, 2]


async def test_term_in_another_thread_ends_what_waits_and_returns_when_all_is_closed(net):
    context = zmqa.Context()
    pull = context.socket(zmq.PULL)
    pull.bind(endpoint())

    async def read():
        try:
            await pull.recv()
        finally:
            pull.close()

    reading = asyncio.create_task(read())
    await asyncio.sleep(0)
    ended = threading.Event()

    def end():
        context.term(8)
        ended.set()

    await asyncio.to_thread(end)
    assert ended.is_set()
    with pytest.raises(zmq.ContextTerminated):
        await reading


async def test_destroy_closes_what_is_open_in_a_running_loop(net):
    context = zmqa.Context()
    pull = context.socket(zmq.PULL)
    waiting = asyncio.ensure_future(pull.recv())
    await asyncio.sleep(0)
    context.destroy(linger=0)
    assert context.closed
    with pytest.raises(zmq.ZMQError) as closed:
        await waiting
    assert closed.value.errno in (zmq.ENOTSOCK, zmq.ETERM)


async def test_a_blocking_and_an_asyncio_context_can_be_one(net):
    blocking = zmq.Context()
    shadow = zmqa.Context.shadow(blocking)
    with blocking.socket(zmq.PUSH) as push:
        async with shadow.socket(zmq.PULL) as pull:
            push.bind("inproc://x")
            pull.connect("inproc://x")
            push.send(b"x")
            assert await pull.recv() == b"x"
    blocking.term()


async def test_the_shared_context_of_asyncio_is_another_than_the_blocking_one(net):
    shared = zmqa.Context.instance()
    assert shared is zmqa.Context.instance()
    assert shared is not zmq.Context.instance()
    await shared.aclose()
    assert zmqa.Context.instance() is not shared
    zmqa.Context.instance().term()
    zmq.Context.instance().term()


async def test_a_context_refuses_sockets_once_it_is_closed(net):
    context = zmqa.Context()
    await context.aclose()
    with pytest.raises(zmq.ZMQError) as closed:
        context.socket(zmq.PULL)
    assert closed.value.errno == zmq.ENOTSUP


@pytest.mark.parametrize("said", ["x", "-1", "nan", "10001"])
def test_a_busy_poll_that_is_no_time_is_refused(monkeypatch, said):
    monkeypatch.setenv("ZEROHOP_BUSY_POLL_US", said)
    with pytest.raises(ValueError, match="ZEROHOP_BUSY_POLL_US is a number of microseconds"):
        zmqa.Context()
    monkeypatch.delenv("ZEROHOP_BUSY_POLL_US")
    zmqa.Context().term()


def test_a_busy_poll_that_is_a_time_is_taken(monkeypatch):
    monkeypatch.setenv("ZEROHOP_BUSY_POLL_US", "0")
    zmqa.Context().term()
