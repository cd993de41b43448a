"""Socket of zerohop.asyncio: lanes that end with the context, turns, and messages given back."""

import asyncio
import threading
from collections import deque

import pytest

import zerohop as zmq
from tests.patterns.world import EmptiedWhenFull

pytestmark = pytest.mark.on("asyncio", "uvloop")


@pytest.fixture
def end(net):
    """``end()`` ends the context of the test's sockets from another thread, as far as it goes."""
    ending = []

    async def end():
        thread = threading.Thread(target=net.context.term)
        thread.start()
        ending.append(thread)
        await net.eventually(lambda: net.context._io.core.terminated)

    yield end
    for thread in ending:
        thread.join(8)
        assert not thread.is_alive()


async def on_lanes(net):
    """A PUSH and a PULL that send and receive without asking anybody."""
    push, pull = net.socket(zmq.PUSH, sndtimeo=-1), net.socket(zmq.PULL, rcvtimeo=-1)
    await net.link(pull, push)
    for _ in range(3):
        await push.send(b"x")
        await pull.recv()
        await asyncio.sleep(0.005)
    await push.send(b"there")
    await net.eventually(lambda: pull.events & zmq.POLLIN)
    assert push._front.send_lane is not None
    return push, pull


# -- the end of the context


@pytest.mark.over("inproc", "tcp")
@pytest.mark.parametrize("copy", [True, False])
async def test_after_term_a_socket_on_its_lane_says_eterm(net, end, copy):
    push, pull = await on_lanes(net)
    await end()
    await net.eventually(lambda: not (push._front.send_lane or pull._front.receive_lane), 3)
    for call in (
        lambda: push.send(b"x", copy=copy),
        lambda: push.send_multipart([b"x", b"y"], copy=copy),
        lambda: pull.recv(copy=copy),
        lambda: pull.recv_multipart(copy=copy),
    ):
        with pytest.raises(zmq.ContextTerminated):
            await asyncio.wait_for(call(), 5)
    for socket in (push, pull):
        socket.close(0)


WAITS = {
    "wait_for_subscribers": lambda pub: pub.wait_for_subscribers("topic", 1),
    "wait_connected": lambda pub: pub.wait_connected(),
    "poll": lambda pub: pub.poll(flags=zmq.POLLIN),
}


@pytest.mark.over("inproc")
@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
async def test_who_waits_for_a_condition_learns_that_the_context_ends(net, end, wait):
    pub = net.socket(zmq.XPUB)
    pub.bind(net.endpoint())
    waiting = asyncio.ensure_future(wait(pub))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    await end()
    with pytest.raises(zmq.ContextTerminated):
        await asyncio.wait_for(waiting, 5)
    with pytest.raises(zmq.ContextTerminated):
        await asyncio.wait_for(wait(pub), 5)
    pub.close(0)


@pytest.mark.over("inproc")
@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
async def test_who_waits_for_a_condition_learns_that_the_socket_is_closed(net, wait):
    pub = net.socket(zmq.XPUB)
    pub.bind(net.endpoint())
    waiting = asyncio.ensure_future(wait(pub))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    pub.close(0)
    with pytest.raises(zmq.ZMQError) as closed:
        await asyncio.wait_for(waiting, 5)
    assert closed.value.errno == zmq.ENOTSOCK


@pytest.mark.over("inproc")
@pytest.mark.parametrize("wait", ["wait_for_subscribers", "wait_connected"])
async def test_a_closed_socket_waits_for_nothing(net, wait):
    pub = net.socket(zmq.XPUB)
    pub.close(0)
    with pytest.raises(zmq.ZMQError) as closed:
        await asyncio.wait_for(WAITS[wait](pub), 5)
    assert closed.value.errno == zmq.ENOTSOCK


# -- a reply or a request that nobody took


async def give_up_as_it_comes(socket, send):
    """Cancel a receive in the turn of the loop in which its message comes (over inproc)."""

    async def receive():
        return await socket.recv()

    receiving = asyncio.create_task(receive())
    await asyncio.sleep(0.01)
    send()
    receiving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await receiving


async def exchange(net, **options):
    """A REQ that waits for a reply, and its REP that has read the request."""
    req, rep = net.socket(zmq.REQ, **options), net.socket(zmq.REP)
    await net.link(rep, req)
    await req.send(b"request 1")
    await rep.recv()
    return req, rep


@pytest.mark.over("inproc")
async def test_a_reply_that_nobody_took_is_received_before_the_next_request(net):
    req, rep = await exchange(net)
    await give_up_as_it_comes(req, lambda: rep.send(b"reply 1"))
    assert req.events == zmq.POLLIN
    for send in (req.send, lambda part: req.send(part, zmq.SNDMORE)):
        with pytest.raises(zmq.ZMQError) as early:
            await send(b"too early")
        assert early.value.errno == zmq.EFSM
    assert await req.recv() == b"reply 1"
    await req.send(b"request 2")
    assert await rep.recv() == b"request 2"


@pytest.mark.over("inproc")
async def test_a_relaxed_req_forgets_the_reply_that_nobody_took(net):
    req, rep = await exchange(net, req_relaxed=1, req_correlate=1)
    await give_up_as_it_comes(req, lambda: rep.send(b"reply 1"))
    assert req.events == zmq.POLLIN | zmq.POLLOUT
    await req.send(b"request 2")
    assert await rep.recv() == b"request 2"
    await rep.send(b"reply 2")
    assert await req.recv() == b"reply 2"


@pytest.mark.over("inproc")
async def test_a_request_that_nobody_took_is_received_before_the_next_reply(net):
    req, rep = net.socket(zmq.REQ), net.socket(zmq.REP)
    await net.link(rep, req)
    await give_up_as_it_comes(rep, lambda: req.send(b"request"))
    assert rep.events == zmq.POLLIN
    with pytest.raises(zmq.ZMQError) as early:
        await rep.send(b"too early")
    assert early.value.errno == zmq.EFSM
    assert await rep.recv() == b"request"
    await rep.send(b"reply")
    assert await req.recv() == b"reply"


# -- what lanes share with others


class OvertakenQueue(deque):
    """A pipe's queue into which another thread writes right after the first message was taken."""

    to_come = (b"newer",)

    def popleft(self):
        message = super().popleft()
        self.extend(self.to_come)
        self.to_come = ()
        return message


@pytest.mark.over("inproc")
@pytest.mark.parametrize("parts", [[b"two", b"parts"], [memoryview(b"lent")]])
async def test_a_message_that_the_lane_cannot_give_is_not_lost_to_a_newer_one(net, parts):
    """CONFLATE keeps one message: what is put back into the pipe would throw out the newer one."""
    push, pull = net.socket(zmq.PUSH, conflate=1), net.socket(zmq.PULL, conflate=1)
    await net.link(pull, push)
    await push.send(b"first")
    assert await pull.recv() == b"first"
    await asyncio.sleep(0.005)
    lane = pull._front.receive_lane
    assert lane is not None
    message = parts if len(parts) > 1 else parts[0]
    lane.messages = OvertakenQueue([message], lane.messages.maxlen)
    got = [await pull.recv()]
    while pull.rcvmore:
        got.append(await pull.recv())
    assert got == [bytes(part) for part in parts]
    assert await pull.recv() == b"newer"


@pytest.mark.over("inproc")
@pytest.mark.parametrize("multipart", [False, True])
async def test_a_lane_that_was_emptied_before_it_was_marked_full_is_not_full(net, multipart):
    """A receiver in another thread reads an inproc pipe whenever it likes."""
    push, _ = await on_lanes(net)
    lane = push._front.send_lane
    lane.set_hwm(2)
    lane.messages = EmptiedWhenFull(hwm=2)
    for _ in range(2):
        push.send_multipart([b"x", b"y"]) if multipart else push.send(b"x")
    assert not lane.full
