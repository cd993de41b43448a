"""Front: lanes, turns of the loop, credit, who waits and for how long."""

import asyncio
import gc
import math
import select
import statistics
import time
import weakref

import numpy as np
import pytest

import zerohop as zmq
from zerohop.asyncio import turns
from zerohop.asyncio.futures import SENT_LAST, ReceivedLast, _FailedLater
from zerohop.asyncio.turns import CREDIT
from zerohop.io.stream import Stream

pytestmark = [pytest.mark.on("asyncio", "uvloop"), pytest.mark.over("tcp")]


async def linked(net, **options):
    """A sender, and a receiver without a time limit."""
    push = net.socket(zmq.PUSH, sndtimeo=-1, **options)
    pull = net.socket(zmq.PULL, rcvtimeo=-1, **options)
    await net.link(pull, push)
    await push.wait_connected()
    return push, pull


def waiting(socket):
    """How many calls the socket's front keeps."""
    front = socket._front
    conditions = 0 if front._conditions is None else len(front._conditions.waits)
    return len(front.receiving.line) + len(front.sending.line) + conditions


def end_of_turn(socket):
    """As after many operations in one turn: the next one is its last."""
    front = socket._front
    front.receiving.limit = front.receiving.number
    front.sending.credit = 0
    front._turns._begin(asyncio.get_running_loop(), time.monotonic() - 1)


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
    push = net.socket(zmq.PUSH, sndtimeo=-1)
    first = push.send(b"first")
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
    end_of_turn(pull)
    yielding = pull.recv()
    assert type(yielding) is ReceivedLast
    yielding.cancel()
    assert await pull.recv(zmq.DONTWAIT) == b"0"


# -- turns of the loop


class Rounds:
    """Counts what is done between two rounds of the loop, which no slow machine changes.

    Attributes:
        counts: of the rounds with anything done.
    """

    TOO_MANY = 5000  # a loop that others wait for in vain

    def __init__(self):
        self.counts = []
        self._done = 0

    def did(self):
        """One operation is done, by anyone."""
        self._done += 1
        assert self._done < self.TOO_MANY, "the loop does not come round"

    def end(self):
        """The loop has come round."""
        if self._done:
            self.counts.append(self._done)
            self._done = 0


async def done_in_a_round(*work):
    """How much the work does, all together, in each of 100 rounds of the loop."""
    rounds = Rounds()
    tasks = [asyncio.create_task(each(rounds)) for each in work]
    while len(rounds.counts) < 100 and not any(task.done() for task in tasks):
        await asyncio.sleep(0)
        rounds.end()
    for task in tasks:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes), outcomes
    return rounds.counts


def busy(seconds):
    """Keep the processor, as a program does that works on what it has received."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def sending(socket, *parts, pause=0.0):
    async def flood(rounds):
        while True:
            await socket.send_multipart(parts)
            rounds.did()
            busy(pause)

    return flood


def receiving(socket, pause=0.0):
    async def read(rounds):
        while True:
            await socket.recv_multipart()
            rounds.did()
            busy(pause)

    return read


MOST = 1000  # in a round: two sockets' turns of 120 us, if an operation takes 0.25 us or more
SOME = 10  # in a round, as a rule: two sockets' turns, if an operation takes 100 us


async def test_a_flood_leaves_others_their_turns(net):
    push, pull = await linked(net)
    assert max(await done_in_a_round(sending(push, b"x"), receiving(pull))) < MOST


@pytest.mark.parametrize("size", [1, 1000, 1_000_000])
async def test_a_slow_flood_leaves_others_their_turns(net, size):
    """Each message is the first one after a pause, and written at once."""
    push, pull = await linked(net)
    flood = sending(push, bytes(size), pause=0.0001)
    assert statistics.median(await done_in_a_round(flood, receiving(pull))) < SOME


async def test_a_receiver_that_works_on_each_message_leaves_others_their_turns(net):
    push, pull = await linked(net, sndhwm=0, rcvhwm=0)
    for _ in range(3000):
        push.send(b"x")
    assert statistics.median(await done_in_a_round(receiving(pull, pause=0.0001))) < SOME


@pytest.mark.parametrize("limit", [{"flags": zmq.DONTWAIT}, {"timeout": 0}])
async def test_who_asks_again_and_again_without_waiting_gets_what_comes(net, limit):
    push, pull = await linked(net)
    await push.send(b"1")
    end = time.monotonic() + 2
    while True:
        try:
            assert await pull.recv(**limit) == b"1"
            break
        except zmq.Again:
            assert time.monotonic() < end


async def test_who_sends_again_and_again_without_waiting_lets_the_loop_come_round(net):
    push = net.socket(zmq.PUSH)
    others = []
    asyncio.get_running_loop().call_soon(others.append, "had their turn")
    end = time.monotonic() + 2
    while not others:
        with pytest.raises(zmq.Again):
            await push.send(b"1", zmq.DONTWAIT)
        assert time.monotonic() < end


async def test_what_fails_last_in_its_turn_has_a_future_s_face(net):
    pull = net.socket(zmq.PULL)
    pull.bind("tcp://127.0.0.1:*")
    end_of_turn(pull)
    failed = pull.recv(zmq.DONTWAIT)
    assert type(failed) is _FailedLater
    assert failed.done()
    assert isinstance(failed.exception(), zmq.Again)
    with pytest.raises(zmq.Again):
        failed.result()
    (outcome,) = await asyncio.gather(failed, return_exceptions=True)
    assert isinstance(outcome, zmq.Again)


async def test_a_flood_for_nobody_leaves_others_their_turns(net):
    pub = net.socket(zmq.PUB)
    pub.bind(net.endpoint())
    assert max(await done_in_a_round(sending(pub, b"x"))) < MOST


async def test_a_flood_for_a_subscriber_that_does_not_read_leaves_others_their_turns(net):
    pub, sub = net.socket(zmq.PUB), net.socket(zmq.SUB)
    sub.subscribe(b"")
    await net.link(pub, sub)
    await pub.wait_for_subscribers()
    assert max(await done_in_a_round(sending(pub, b"x" * 100))) < MOST


async def test_a_flood_through_a_router_leaves_others_their_turns(net):
    router, dealer = net.socket(zmq.ROUTER), net.socket(zmq.DEALER, routing_id=b"d")
    await net.link(router, dealer)
    assert max(await done_in_a_round(sending(router, b"d", b"x"), receiving(dealer))) < MOST


async def test_a_loop_that_only_polls_leaves_others_their_turns(net):
    push, _ = await linked(net)

    async def polls(rounds):
        while True:
            rounds.did()
            assert await push.poll(flags=zmq.POLLOUT) == zmq.POLLOUT

    assert max(await done_in_a_round(polls)) < MOST


async def test_iteration_leaves_others_their_turns(net):
    push, pull = await linked(net)

    async def iterate(rounds):
        async for _ in pull:
            rounds.did()

    assert max(await done_in_a_round(sending(push, b"x"), iterate)) < MOST


# -- what is written when


@pytest.fixture
def writes(monkeypatch):
    """One entry for each time that a stream is asked to write."""
    seen = []
    write = Stream.write
    monkeypatch.setattr(Stream, "write", lambda stream: (seen.append(stream), write(stream)))
    return seen


async def test_the_first_message_is_written_at_once_and_the_others_at_the_end_of_the_turn(
    net, writes, monkeypatch
):
    monkeypatch.setattr(turns, "TURN", 1000.0)  # however slow the machine is
    push, pull = await linked(net)
    await asyncio.sleep(0.001)  # a moment without a message
    writes.clear()
    push.send(b"1")
    assert len(writes) == 1
    for n in range(2, 50):
        push.send(b"%d" % n)
    assert len(writes) == 1
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(writes) == 2
    assert [int(await pull.recv()) for _ in range(49)] == list(range(1, 50))


async def test_many_messages_of_one_turn_are_written_before_it_ends(net, writes):
    push, _ = await linked(net, sndhwm=0)
    writes.clear()
    for _ in range(20):
        for _ in range(CREDIT):
            push.send(bytes(1000))
    assert 5 < len(writes) < 200


async def test_a_request_is_written_at_once_on_every_round(net, writes):
    req, rep = net.socket(zmq.REQ), net.socket(zmq.REP)
    await net.link(rep, req)
    for _ in range(20):
        req.send(b"question")
        await rep.recv()
        writes.clear()
        rep.send(b"answer")
        assert len(writes) == 1
        await req.recv()


async def test_a_descriptor_that_is_watched_follows_every_step(net):
    """ZMQ_FD: whoever uses a lane tells nobody, so there is none."""
    push, pull = await linked(net)
    await push.send(b"1")
    await pull.recv()
    assert pull._receiving.lane is not None
    watched = pull.fileno()
    assert pull._receiving.lane is None
    for _ in range(3):
        push.send(b"1")
        push.send(b"2")
        await net.eventually(lambda: readable(watched))
        await pull.recv()
        await net.eventually(lambda: readable(watched))
        await pull.recv()
        assert not readable(watched)


def readable(descriptor):
    return bool(select.select([descriptor], [], [], 0)[0])


# -- lines of those who wait


async def test_sends_that_wait_go_out_in_the_order_of_their_calls(net):
    push, pull = net.socket(zmq.PUSH, sndtimeo=-1), net.socket(zmq.PULL)
    sends = [push.send(b"%d" % n) for n in range(5)]
    sends.append(push.send_multipart([b"5", b"more"]))
    await net.link(pull, push)
    sends += [push.send(b"%d" % n) for n in range(6, 9)]
    await asyncio.gather(*sends)
    got = [await pull.recv_multipart() for _ in range(9)]
    assert [int(parts[0]) for parts in got] == list(range(9))


async def test_a_send_that_does_not_wait_does_not_overtake_those_that_do(net):
    push = net.socket(zmq.PUSH, sndhwm=1, sndtimeo=-1)
    push.connect(net.endpoint())
    await push.send(b"1")
    second = push.send(b"2")
    with pytest.raises(zmq.Again):
        await push.send(b"3", zmq.DONTWAIT)
    assert not second.done()


async def test_a_receive_that_does_not_wait_does_not_overtake_those_that_do(net):
    push, pull = await linked(net)
    waiting_first = pull.recv()
    with pytest.raises(zmq.Again):
        await pull.recv(zmq.DONTWAIT)
    await push.send(b"1")
    assert await waiting_first == b"1"


async def test_receives_of_different_kinds_are_served_in_turn(net):
    push, pull = await linked(net)
    calls = [pull.recv(), pull.recv_multipart(), pull.recv_string(), pull.recv_json()]
    for _ in calls:
        push.send(b"1")
    assert await asyncio.gather(*calls) == [b"1", [b"1"], "1", 1]


async def test_a_receive_that_cannot_be_leaves_the_others_waiting(net):
    """EFSM is the answer of one call, not the end of the line."""
    req, rep = net.socket(zmq.REQ), net.socket(zmq.REP, rcvtimeo=-1)
    await net.link(rep, req)
    first, second = rep.recv(), rep.recv()
    await req.send(b"question")
    assert await first == b"question"
    with pytest.raises(zmq.ZMQError) as wrong:
        await second
    assert wrong.value.errno == zmq.EFSM
    await rep.send(b"answer")
    assert await req.recv() == b"answer"


# -- time limits


LIMITS = {
    "recv": lambda socket: socket.recv(timeout=0.05),
    "recv_multipart": lambda socket: socket.recv_multipart(timeout=0.05),
    "RCVTIMEO": lambda socket: socket.recv(),
    "send": lambda socket: socket.send(b"x", timeout=0.05),
    "send_multipart": lambda socket: socket.send_multipart([b"x", b"y"], timeout=0.05),
    "SNDTIMEO": lambda socket: socket.send(b"x"),
    "wait_connected": lambda socket: socket.wait_connected(0.05),
}


@pytest.mark.parametrize("limit", LIMITS)
async def test_a_time_limit_is_kept_to_a_few_milliseconds(net, limit):
    dealer = net.socket(zmq.DEALER)
    dealer.rcvtimeo = dealer.sndtimeo = 50
    dealer.bind(net.endpoint())
    off = math.inf
    for _ in range(20):  # the machine may be busy just then
        ended = []
        started = time.monotonic()
        call = asyncio.ensure_future(LIMITS[limit](dealer))
        call.add_done_callback(lambda _, ended=ended: ended.append(time.monotonic()))
        await asyncio.sleep(0.05)
        slept = time.monotonic()
        with pytest.raises(zmq.Again):
            await call
        await net.eventually(lambda ended=ended: ended)
        assert ended[0] - started > 0.048  # uvloop counts in whole milliseconds
        off = min(off, abs(ended[0] - slept))
        if off < 0.015:
            break
    assert off < 0.015


async def test_a_poll_ends_in_time_and_says_that_nothing_is_there(net):
    pull = net.socket(zmq.PULL)
    pull.bind(net.endpoint())
    started = time.monotonic()
    assert await pull.poll(50) == 0
    assert time.monotonic() - started > 0.048
    assert await pull.poll(0) == 0


async def test_a_call_that_is_served_in_time_leaves_no_timer(net):
    push, pull = await linked(net)
    receiving = pull.recv(timeout=30)
    polling = pull.poll(30_000)
    await push.send(b"1")
    assert await receiving == b"1"
    await push.send(b"2")
    assert await polling == zmq.POLLIN
    assert receiving.timer is None
    assert polling.timer is None


@pytest.mark.parametrize("timeout", ["1", b"1", [1]])
async def test_a_time_limit_is_a_number(net, timeout):
    pair = net.socket(zmq.PAIR)
    with pytest.raises(TypeError, match="number of seconds"):
        pair.recv(timeout=timeout)
    with pytest.raises(TypeError, match="number of seconds"):
        pair.send(b"x", timeout=timeout)


# -- the end of a socket


async def test_what_a_type_cannot_do_is_said_through_the_awaitable(net):
    push, pull = await linked(net)
    for call in (push.recv(), push.recv_multipart(), pull.send(b"x")):
        with pytest.raises(zmq.ZMQError) as wrong:
            await call
        assert wrong.value.errno == zmq.ENOTSUP


async def test_the_end_of_the_context_ends_every_kind_of_wait(net):
    context = net.new_context()
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    calls = [push.send(b"x"), push.wait_connected(), pull.recv(), pull.recv_json(), pull.poll()]
    await asyncio.sleep(0)
    with pytest.raises(zmq.Again):
        context.term(timeout=0)
    for call in calls:
        with pytest.raises(zmq.ContextTerminated):
            await asyncio.wait_for(call, 1)
    push.close()
    pull.close()


async def test_closing_ends_every_kind_of_wait(net):
    push, pull = net.socket(zmq.PUSH, sndtimeo=-1), net.socket(zmq.PULL, rcvtimeo=-1)
    pub = net.socket(zmq.PUB)
    calls = [
        push.send(b"x"),
        push.wait_connected(),
        pull.recv(),
        pull.recv_json(),
        pull.poll(),
        pub.wait_for_subscribers(),
    ]
    await asyncio.sleep(0)
    for socket in (push, pull, pub):
        socket.close(0)
    for call in calls:
        with pytest.raises(zmq.ZMQError) as closed:
            await asyncio.wait_for(call, 1)
        assert closed.value.errno == zmq.ENOTSOCK


async def test_closing_a_socket_in_the_turn_of_a_yield_lets_the_sender_go_on(net):
    push, _ = await linked(net)
    end_of_turn(push)
    yielding = push.send(b"x")
    assert yielding is SENT_LAST
    push.close(0)
    assert await asyncio.wait_for(yielding, 1) is None


async def test_what_was_received_and_not_asked_for_goes_with_the_socket(net):
    push, pull = await linked(net)
    receiving = pull.recv()
    await push.send(b"1")
    await net.eventually(receiving.done)
    pull.close()
    assert await receiving == b"1"
    left = push.send(b"2")
    del left
    del receiving


async def test_a_poll_hears_of_the_next_request_when_the_last_is_answered(net):
    rep, reqs = net.socket(zmq.REP), [net.socket(zmq.REQ) for _ in range(2)]
    await net.link(rep, *reqs)
    for req in reqs:
        await req.send(b"x")
    request = await rep.recv()
    await net.eventually(lambda: rep.stats().incoming.messages == 1)
    polled = rep.poll(8000)
    assert not polled.done()
    await rep.send(request)
    assert await polled == zmq.POLLIN
