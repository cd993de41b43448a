"""What the hot paths of asyncio sockets may cost, in calls: the same on every machine.

Calls of Python and of C functions as a profiler sees them, asyncio's own included. A limit that is
reached is no accident: raise it with the measurement that shows why it is worth it.
"""

import asyncio
import sys

import pytest

import zerohop as zmq
from tests.asyncio.keeper import Keeper
from tests.kit.net import free_port
from zerohop.asyncio import turns

SECONDS = 8.0


@pytest.fixture(autouse=True)
def unhurried(monkeypatch, complaints):
    """Without asyncio's debug mode, which makes calls of its own, and without a clock.

    How often a socket yields depends on how fast the machine is; here it never has to.
    """
    monkeypatch.delenv("PYTHONASYNCIODEBUG")
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


def test_a_send_on_the_lane():
    """Of Python: send; of C: append and len. The rest is its share of writing and of yielding."""

    async def body(context):
        push, _ = await linked(context, zmq.PUSH, zmq.PULL)
        await push.send(b"x")
        with Calls() as calls:
            for _ in range(5000):
                await push.send(b"x")
        return calls.count / 5000

    assert on_a_loop(body) < 5.5


def test_a_receive_from_the_lane():
    """Of Python: recv, __await__, result, __del__; of C: popleft and len, twice."""

    async def body(context):
        push, pull = await linked(context, zmq.PUSH, zmq.PULL)
        for _ in range(5000):
            push.send(b"x")
        await all_there(pull, 5000)
        with Calls() as calls:
            for _ in range(5000):
                await pull.recv()
        return calls.count / 5000

    assert on_a_loop(body) < 8


def test_a_receive_by_iteration():
    """It makes no awaitable: of Python __anext__, of C popleft."""

    async def body(context):
        push, pull = await linked(context, zmq.PUSH, zmq.PULL)
        for _ in range(5000):
            push.send(b"x")
        await all_there(pull, 5000)
        count = 0
        with Calls() as calls:
            async for _ in pull:
                count += 1
                if count == 5000:
                    break
        return calls.count / 5000

    assert on_a_loop(body) < 3


@pytest.mark.parametrize(("transport", "limit"), [("tcp", 215), ("inproc", 125)])
def test_a_round_trip(transport, limit):
    """REQ and REP on one loop: the limit is for both sides, and a good half of it is asyncio's."""

    async def body(context):
        req, rep = await linked(context, zmq.REQ, zmq.REP, transport)

        async def serve(count):
            for _ in range(count):
                await rep.send(await rep.recv())

        async def ask(count):
            for _ in range(count):
                await req.send(b"x")
                await req.recv()

        await asyncio.gather(serve(20), ask(20))
        with Calls() as calls:
            await asyncio.gather(serve(500), ask(500))
        return calls.count / 500

    assert on_a_loop(body) < 2 * limit


def test_a_stream_of_messages_from_one_task_to_another():
    """Both sides on one loop, with reading and writing, turns and all."""

    async def body(context):
        push, pull = await linked(context, zmq.PUSH, zmq.PULL)

        async def send():
            for _ in range(5000):
                await push.send(b"x")

        async def receive():
            for _ in range(5000):
                await pull.recv()

        with Calls() as calls:
            await asyncio.gather(send(), receive())
        return calls.count / 5000

    assert on_a_loop(body) < 14
