"""Front: lanes, turns of the loop, credit, who waits and for how long."""

import asyncio
import gc
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
    front._begin_turn(asyncio.get_running_loop())
    front._turn_started -= 1
    yielding = pull.recv()
    assert not yielding.done()
    yielding.cancel()
    assert await pull.recv(zmq.DONTWAIT) == b"0"
