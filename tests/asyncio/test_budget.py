"""What the hot paths of asyncio sockets may cost, in calls: the same on every machine.

Calls of Python and of C functions as a profiler sees them, asyncio's own included. A limit that is
reached is no accident: raise it with the measurement that shows why it is worth it.
"""

import asyncio
import sys
from itertools import pairwise

import pytest

import zerohop as zmq
from tests.asyncio.keeper import Keeper
from tests.kit.net import free_port
from zerohop.asyncio import turns
from zerohop.io.lookout import VARIABLE

SECONDS = 8.0
MANY = 5000
PARTS = [b"1", b"2", b"3", b"4", b"5"]


@pytest.fixture(autouse=True)
def unhurried(monkeypatch, complaints):
    """Without asyncio's debug mode, which makes calls of its own, and without a clock.

    How often a socket yields depends on how fast the machine is; here it never has to. So does how
    often the loop comes round while it is kept awake; here it sleeps at once.
    """
    monkeypatch.delenv("PYTHONASYNCIODEBUG")
    monkeypatch.setenv(VARIABLE, "0")
    monkeypatch.setattr(turns, "TURN", 1000.0)


class Calls:
    """Counts calls while a ``with`` block runs."""

    def __enter__(self):
        self.count = 0
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *exc_info):
        sys.setprofile(None)

    def _profile(self, frame, event, arg):
        self.count += event in ("call", "c_call")


def on_a_loop(body):
    """Run the body with a context, outside of asyncio's debug mode."""

    async def with_context():
        async with Keeper() as context:
            context.linger = 0
            context.sndhwm = context.rcvhwm = 0
            return await body(context)

    with asyncio.Runner(debug=False) as runner:
        return runner.run(asyncio.wait_for(with_context(), SECONDS))


async def linked(context, sender, receiver, transport="tcp"):
    ends = context.socket(sender), context.socket(receiver)
    ends[1].bind(f"tcp://127.0.0.1:{free_port()}" if transport == "tcp" else "inproc://x")
    ends[0].connect(ends[1].last_endpoint.decode())
    for end in ends:
        await end.wait_connected()
    return ends


async def all_there(pull, count):
    for _ in range(8000):
        if pull.stats().incoming.messages == count:
            return
        await asyncio.sleep(0.001)
    raise AssertionError("they never came")


async def sent_to_a_pull(context, message):
    """A PULL for which so many messages wait."""
    push, pull = await linked(context, zmq.PUSH, zmq.PULL)
    for _ in range(MANY):
        push.send_multipart(message)
    await all_there(pull, MANY)
    return pull


async def calls_each(operation, *args):
    """Calls for each of so many operations, one after the other."""
    with Calls() as calls:
        for _ in range(MANY):
            await operation(*args)
    return calls.count / MANY


def test_a_send_on_the_lane():
    """Of Python: send; of C: append. The rest is its share of writing."""

    async def body(context):
        push, _ = await linked(context, zmq.PUSH, zmq.PULL)
        await push.send(b"x")
        return await calls_each(push.send, b"x")

    assert on_a_loop(body) < 2.5


def test_a_stream_is_written_in_whole_batches():
    """The first message goes at once, then as much as a write is worth: nothing is left over."""
    batch = turns.FLUSH_SIZE // 1040 + 1

    async def body(context):
        push, _ = await linked(context, zmq.PUSH, zmq.PULL)
        written = []
        for _ in range(1 + 4 * batch):
            await push.send(bytes(1024))
            written.append(push.stats().octets_sent)
        return sorted(set(written))

    edges = on_a_loop(body)
    assert {after - before for before, after in pairwise(edges)} == {batch * 1033}
    assert len(edges) == 1 + 4


def test_a_send_to_a_peer_that_is_not_there_yet():
    """It waits for the handshake: nothing is to be written, and no turn begins."""

    async def body(context):
        dealer = context.socket(zmq.DEALER)
        dealer.connect(f"tcp://127.0.0.1:{free_port()}")
        with Calls() as calls:
            sent = dealer.send(b"x")
        await sent
        return calls.count

    assert on_a_loop(body) <= 7


def test_a_receive_from_the_lane():
    """Of Python: recv, __await__, __del__; of C: popleft."""

    async def body(context):
        pull = await sent_to_a_pull(context, [b"x"])
        return await calls_each(pull.recv)

    assert on_a_loop(body) < 4.5


def test_a_receive_by_iteration():
    """It makes no awaitable: of Python __anext__, of C popleft."""

    async def body(context):
        pull = await sent_to_a_pull(context, [b"x"])
        count = 0
        with Calls() as calls:
            async for _ in pull:
                count += 1
                if count == MANY:
                    break
        return calls.count / MANY

    assert on_a_loop(body) < 2.5


def test_a_send_of_several_parts_on_the_lane():
    """Of Python: send_multipart, and what looks at the parts; of C: append."""

    async def body(context):
        push, _ = await linked(context, zmq.PUSH, zmq.PULL)
        await push.send_multipart(PARTS)
        return await calls_each(push.send_multipart, PARTS)

    assert on_a_loop(body) < 4.5


def test_a_receive_of_several_parts_from_the_lane():
    """As of one."""

    async def body(context):
        pull = await sent_to_a_pull(context, PARTS)
        return await calls_each(pull.recv_multipart)

    assert on_a_loop(body) < 4.5


def test_a_message_to_each_of_many_subscribers():
    """It is put into the publisher's lane as into any other; most of the rest is writing it."""

    async def body(context):
        pub, subs = context.socket(zmq.PUB), [context.socket(zmq.SUB) for _ in range(8)]
        pub.bind(f"tcp://127.0.0.1:{free_port()}")
        for sub in subs:
            sub.subscribe(b"")
            sub.connect(pub.last_endpoint.decode())
        await pub.wait_for_subscribers(n=8)
        await pub.send(b"x")
        return await calls_each(pub.send, b"x")

    assert on_a_loop(body) < 5


def test_a_router_that_answers_many_at_a_time():
    """Past the lanes: each message takes its own way, but they are read and written together."""

    async def body(context):
        router, dealers = context.socket(zmq.ROUTER), [context.socket(zmq.DEALER) for _ in range(8)]
        router.bind(f"tcp://127.0.0.1:{free_port()}")
        for dealer in dealers:
            dealer.connect(router.last_endpoint.decode())

        async def serve():
            while True:
                await router.send_multipart(await router.recv_multipart())

        async def ask(dealer, count):
            for _ in range(8):
                dealer.send(b"x")
            for _ in range(count):
                await dealer.recv()
                dealer.send(b"x")

        serving = asyncio.create_task(serve())
        await asyncio.gather(*(ask(dealer, 20) for dealer in dealers))
        with Calls() as calls:
            await asyncio.gather(*(ask(dealer, 500) for dealer in dealers))
        serving.cancel()
        return calls.count / 8 / 500

    assert on_a_loop(body) < 75


async def round_trip(asking, answering):
    """Calls of a round trip, both sides together: a task each."""

    async def answer(count):
        for _ in range(count):
            await answering.send(await answering.recv())

    async def ask(count):
        for _ in range(count):
            await asking.send(b"x")
            await asking.recv()

    await asyncio.gather(answer(20), ask(20))
    with Calls() as calls:
        await asyncio.gather(answer(500), ask(500))
    return calls.count / 500


@pytest.mark.parametrize(("transport", "limit"), [("tcp", 130), ("inproc", 105)])
def test_a_round_trip(transport, limit):
    """REQ and REP on one loop: the limit is for both sides, and a good half of it is asyncio's."""

    async def body(context):
        return await round_trip(*await linked(context, zmq.REQ, zmq.REP, transport))

    assert on_a_loop(body) < 2 * limit


def test_a_round_trip_over_lanes():
    """DEALER and DEALER: an empty lane is seen to be empty, nothing raises it from below."""

    async def body(context):
        return await round_trip(*await linked(context, zmq.DEALER, zmq.DEALER))

    assert on_a_loop(body) < 285


def test_a_stream_of_messages_from_one_task_to_another():
    """Both sides on one loop, with reading and writing, turns and all."""

    async def body(context):
        push, pull = await linked(context, zmq.PUSH, zmq.PULL)

        async def each(operation, *args):
            for _ in range(MANY):
                await operation(*args)

        with Calls() as calls:
            await asyncio.gather(each(push.send, b"x"), each(pull.recv))
        return calls.count / MANY

    assert on_a_loop(body) < 7
