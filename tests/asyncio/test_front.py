"""Front: lanes, turns of the loop, credit, who waits and for how long."""

import asyncio
import gc
import time
import weakref

import numpy as np
import pytest

import zerohop as zmq

pytestmark = [pytest.mark.on("asyncio", "uvloop"), pytest.mark.over("tcp")]


async def linked(net, **options):
    """A sender, and a receiver without a time limit."""
    push = net.socket(zmq.PUSH, sndtimeo=-1, **options)
    pull = net.socket(zmq.PULL, rcvtimeo=-1, **options)
    await net.link(pull, push)
    return push, pull


def waiting(socket):
    """How many calls the socket's front keeps."""
    front = socket._front
    return len(front._receivers) + len(front._senders) + len(front._conditions)


# -- who waits is forgotten when it waits no more


async def test_a_receive_whose_time_is_over_is_forgotten(net):
    _, pull = await linked(net)
    for _ in range(3):
        with pytest.raises(zmq.Again):
            await pull.recv(timeout=0.001)
        assert waiting(pull) == 0


async def test_receives_that_are_cancelled_do_not_pile_up(net):
    _, pull = await linked(net)
    for _ in range(200):
        pull.recv().cancel()
        assert waiting(pull) <= 1


async def test_receives_that_are_cancelled_behind_one_that_waits_do_not_pile_up(net):
    push, pull = await linked(net)
    first = pull.recv()
    for _ in range(1000):
        pull.recv().cancel()
    assert waiting(pull) < 200
    await push.send(b"1")
    assert await first == b"1"


async def test_sends_that_are_given_up_do_not_pile_up(net):
    push = net.socket(zmq.PUSH)
    first = push.send(b"first", timeout=8)
    for n in range(1000):
        push.send(b"%d" % n).cancel()
        with pytest.raises(zmq.Again):
            await push.send(b"x", timeout=0)
    assert waiting(push) < 200
    pull = net.socket(zmq.PULL)
    await net.link(pull, push)
    assert await pull.recv() == b"first"
    assert await first is None


async def test_polls_that_are_given_up_do_not_pile_up(net):
    _, pull = await linked(net)
    for _ in range(100):
        pull.poll().cancel()
        assert waiting(pull) <= 1


async def give_up_in_time(send):
    with pytest.raises(zmq.Again):
        await send(timeout=0.001)


async def cancel(send):
    send().cancel()


async def cancel_the_task(send):
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(send(), 0.001)


@pytest.mark.parametrize("give_up", [give_up_in_time, cancel, cancel_the_task])
async def test_what_was_lent_to_a_send_that_is_given_up_is_the_callers_again(net, give_up):
    push = net.socket(zmq.PUSH, sndtimeo=-1)
    push.connect(net.endpoint())
    push.sndhwm = 1
    await push.send(b"full")
    lent = Lent()
    await give_up(lambda **limit: push.send(lent.buffer(), copy=False, **limit))
    gc.collect()
    assert lent.free


async def test_what_was_lent_to_a_send_that_waited_is_free_when_it_is_out(net):
    push, pull = net.socket(zmq.PUSH, sndtimeo=-1), net.socket(zmq.PULL)
    lent = Lent()
    sending = push.send(lent.buffer(), copy=False)
    await net.link(pull, push)
    await sending
    assert len(await pull.recv()) == lent.size
    assert sending.done()
    await net.eventually(lambda: lent.free)


class Lent:
    """A buffer that is lent with ``copy=False`` and not held here."""

    size = 100_000

    def __init__(self):
        self._seen = lambda: None

    def buffer(self):
        array = np.zeros(self.size, np.uint8)
        self._seen = weakref.ref(array)
        return array

    @property
    def free(self):
        return self._seen() is None


async def test_a_receive_that_does_not_wait_is_not_held_up_by_one_that_was_cancelled(net):
    push, pull = await linked(net)
    for n in range(10):
        await push.send(b"%d" % n)
    await net.eventually(lambda: pull.stats().incoming.messages == 10)
    front = pull._front
    front.credit = 0  # as after many receives: the next one yields
    front._begin_turn(asyncio.get_running_loop(), time.monotonic() - 1)
    yielding = pull.recv()
    assert not yielding.done()
    yielding.cancel()
    assert await pull.recv(zmq.DONTWAIT) == b"0"


# -- turns of the loop


async def ticks_beside(work, seconds=0.3):
    """How often a ticker of 1 ms runs a second while ``work()`` does so much in other tasks."""
    stop = asyncio.Event()
    tasks = [asyncio.create_task(each(stop)) for each in work]
    await asyncio.sleep(0.05)
    count, started = 0, time.monotonic()
    while time.monotonic() - started < seconds:
        await asyncio.sleep(0.001)
        count += 1
    stop.set()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return count / seconds


def busy(seconds):
    """Keep the processor, as a program does that works on what it has received."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


async def idle(stop):
    await stop.wait()


def sending(socket, *parts, pause=0.0):
    async def flood(stop):
        end = time.monotonic() + 2
        while not stop.is_set() and time.monotonic() < end:
            await socket.send_multipart(parts)
            busy(pause)

    return flood


def receiving(socket, pause=0.0):
    async def read(stop):
        while not stop.is_set():
            await socket.recv_multipart()
            busy(pause)

    return read


async def compared(*work):
    """The rate of a ticker beside the work, against that beside nothing."""
    alone = await ticks_beside([idle], 0.1)
    return await ticks_beside(work) / alone


async def test_a_flood_leaves_others_their_turns(net):
    push, pull = await linked(net)
    assert await compared(sending(push, b"x"), receiving(pull)) > 0.2


@pytest.mark.parametrize("size", [1, 1000, 1_000_000])
async def test_a_slow_flood_leaves_others_their_turns(net, size):
    """Each message is the first one after a pause, and written at once."""
    push, pull = await linked(net)
    assert await compared(sending(push, bytes(size), pause=0.0001), receiving(pull)) > 0.2


async def test_a_receiver_that_works_on_each_message_leaves_others_their_turns(net):
    push, pull = await linked(net)
    for _ in range(3000):
        push.send(b"x")
    assert await compared(receiving(pull, pause=0.0001)) > 0.2


async def test_a_flood_for_nobody_leaves_others_their_turns(net):
    pub = net.socket(zmq.PUB)
    pub.bind(net.endpoint())
    assert await compared(sending(pub, b"x")) > 0.2


async def test_a_flood_for_a_subscriber_that_does_not_read_leaves_others_their_turns(net):
    pub, sub = net.socket(zmq.PUB), net.socket(zmq.SUB)
    sub.subscribe(b"")
    await net.link(pub, sub)
    await pub.wait_for_subscribers()
    assert await compared(sending(pub, b"x" * 100)) > 0.2


async def test_a_flood_through_a_router_leaves_others_their_turns(net):
    router, dealer = net.socket(zmq.ROUTER), net.socket(zmq.DEALER, routing_id=b"d")
    await net.link(router, dealer)
    assert await compared(sending(router, b"d", b"x"), receiving(dealer)) > 0.2


async def test_a_loop_that_only_polls_leaves_others_their_turns(net):
    push, _ = await linked(net)

    async def polls(stop):
        while not stop.is_set():
            assert await push.poll(flags=zmq.POLLOUT) == zmq.POLLOUT

    assert await compared(polls) > 0.2


async def test_iteration_leaves_others_their_turns(net):
    push, pull = await linked(net)

    async def iterate(stop):
        async for _ in pull:
            if stop.is_set():
                break

    assert await compared(sending(push, b"x"), iterate) > 0.2
