"""Loops come and go, and there are threads beside them: what a socket makes of it."""

import asyncio
import errno
import gc
import socket as plain
import threading
import time

import pytest

import zerohop as zmq
import zerohop.asyncio as zmqa
from tests.asyncio.keeper import Keeper
from tests.kit.drivers import _loop_factory
from tests.kit.net import free_port
from tests.kit.raw import greeting, ready
from zerohop.asyncio.futures import ReceivedLast
from zerohop.io import parting

SOON = 8.0  # seconds: what happens at once happens within this on a busy machine
LOOPS = [name for name in ("asyncio", "uvloop") if name == "asyncio" or pytest.importorskip(name)]


class Loops:
    """Runs coroutines, each on a fresh loop of one kind."""

    def __init__(self, name):
        self._factory = _loop_factory(name)

    def run(self, body):
        with asyncio.Runner(loop_factory=self._factory) as runner:
            return runner.run(asyncio.wait_for(body, SOON))

    def new(self):
        return self._factory()


@pytest.fixture(params=LOOPS)
def loops(request):
    return Loops(request.param)


@pytest.fixture
def context():
    made = Keeper()
    yield made
    made.destroy(linger=0)


def endpoint():
    return f"tcp://127.0.0.1:{free_port()}"


async def eventually(condition):
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.001)


# -- from one loop to the next


def silent():
    """A TCP server that lets others connect, greets and never reads."""
    made = plain.create_server(("127.0.0.1", 0))
    return made, f"tcp://127.0.0.1:{made.getsockname()[1]}"


async def greeted(server, dealer):
    """Wait until the socket has its peer, which is nobody's."""
    loop = asyncio.get_running_loop()
    server.setblocking(False)
    raw, _ = await loop.sock_accept(server)
    raw.setblocking(False)
    await loop.sock_sendall(raw, greeting() + ready(b"ROUTER"))
    await dealer.wait_connected()
    return raw


def test_a_connection_that_parts_when_its_loop_ends_goes_on_in_the_next(loops, context):
    server, where = silent()
    raws = []

    async def leave():
        dealer = context.socket(zmq.DEALER)
        dealer.connect(where)
        raws.append(await greeted(server, dealer))
        await dealer.send(bytes(1_000_000))
        dealer.close()

    async def come():
        push = context.socket(zmq.PUSH)
        push.connect(where)
        raws[0].close()
        await eventually(lambda: len(context._io.drivers) == 1)
        push.close(linger=0)

    with server:
        loops.run(leave())
        assert len(context._io.drivers) == 1
        loops.run(come())


@pytest.mark.parametrize("whose", ["socket", "context"])
def test_who_awaits_the_end_waits_for_a_moment_for_a_peer_that_takes_nothing(
    loops, whose, monkeypatch
):
    monkeypatch.setattr(parting, "_PATIENCE", 0.2)
    server, where = silent()

    async def leave():
        async with zmqa.Context() as context:
            dealer = context.socket(zmq.DEALER)
            dealer.connect(where)
            raw = await greeted(server, dealer)
            await dealer.send(bytes(1_000_000))
            await (dealer if whose == "socket" else context).aclose()
            raw.close()

    with server:
        loops.run(leave())


def test_a_socket_goes_on_in_the_next_loop(loops, context):
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)

    async def begin():
        pull.bind(endpoint())
        push.connect(pull.last_endpoint.decode())
        await push.send(b"1")
        assert await pull.recv() == b"1"
        await push.send(b"2")

    async def go_on(n):
        assert await pull.recv() == b"%d" % n
        await push.send(b"%d" % (n + 1))

    loops.run(begin())
    for n in range(2, 5):
        loops.run(go_on(n))


def test_a_turn_that_was_over_when_its_loop_ended_is_no_concern_of_the_next(loops, context):
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)

    async def begin():
        pull.bind(endpoint())
        push.connect(pull.last_endpoint.decode())
        for n in range(200):
            await push.send(b"%d" % n)
        assert await pull.recv() == b"0"
        await eventually(lambda: pull.stats().incoming.messages == 199)
        pull._receiving.limit = pull._receiving.number
        pull._front._turns._begin(asyncio.get_running_loop(), time.monotonic() - 1)
        assert type(pull.recv()) is ReceivedLast  # and it returns

    async def go_on():
        calls = [pull.recv() for _ in range(3)]
        assert ReceivedLast not in map(type, calls)
        assert [await call for call in calls] == [b"1", b"2", b"3"]
        for n in range(4, 200):
            assert await pull.recv() == b"%d" % n

    loops.run(begin())
    loops.run(go_on())


def test_sockets_made_bound_and_connected_outside_a_loop_work_in_the_next(loops, context):
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    pull.bind(endpoint())
    push.connect(pull.last_endpoint.decode())

    async def talk():
        await push.send(b"1")
        return await pull.recv()

    assert loops.run(talk()) == b"1"


def test_whoever_calls_while_no_loop_runs_is_served_by_the_next(loops, context):
    """The system accepts for us; nobody is refused."""
    pull = context.socket(zmq.PULL)
    pull.bind(endpoint())
    host, port = pull.last_endpoint.decode().removeprefix("tcp://").split(":")
    with plain.create_connection((host, int(port))) as caller:
        caller.setblocking(False)

        async def greet():
            pull.poll()
            loop = asyncio.get_running_loop()
            return await loop.sock_recv(caller, 10)

        assert loops.run(greet()) == b"\xff" + bytes(8) + b"\x7f"


def test_a_loop_that_ended_before_its_turn_was_over_keeps_nothing_from_being_sent_on_the_next(
    loops, context
):
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    loop = loops.new()

    async def begin():
        pull.bind(endpoint())
        push.connect(pull.last_endpoint.decode())
        await push.send(b"1")
        assert await pull.recv() == b"1"

    def stop():
        loop.stop()
        for message in (b"2", b"3", b"4"):
            push.send(message)

    loop.run_until_complete(asyncio.wait_for(begin(), SOON))
    loop.call_soon(stop)
    loop.run_forever()
    loop.close()

    async def go_on():
        assert [await pull.recv() for _ in range(3)] == [b"2", b"3", b"4"]
        for _ in range(3):
            await push.send(b"5")
            assert await pull.recv() == b"5"

    loops.run(go_on())


def test_a_connection_with_full_buffers_moves_to_the_next_loop(loops, context):
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    push.sndhwm = pull.rcvhwm = 10
    messages = [bytes([n]) * 1_000_000 for n in range(30)]

    async def fill():
        pull.bind(endpoint())
        push.connect(pull.last_endpoint.decode())
        await push.wait_connected()
        for n, message in enumerate(messages):
            try:
                await push.send(message, zmq.DONTWAIT)
            except zmq.Again:
                return n
        return len(messages)

    async def empty(count):
        return [await pull.recv() for _ in range(count)]

    sent = loops.run(fill())
    assert 10 <= sent < 30
    assert loops.run(empty(sent)) == messages[:sent]


def test_a_receive_left_by_a_loop_that_has_ended_gives_its_message_back(loops, context):
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    left = []

    async def leave():
        pull.bind(endpoint())
        push.connect(pull.last_endpoint.decode())
        waiting = pull.recv()
        for n in range(3):
            await push.send(b"%d" % n)
        await eventually(lambda: waiting.done() and pull.stats().incoming.messages == 2)
        left.extend([waiting, pull.recv()])

    async def receive():
        return [await pull.recv() for _ in range(3)]

    loops.run(leave())
    assert all(receiving.done() for receiving in left)
    left.clear()
    assert loops.run(receive()) == [b"0", b"1", b"2"]


def test_waits_of_a_loop_that_has_ended_are_forgotten(loops, context):
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    pull.bind(endpoint())
    waits = []

    async def leave():
        waits.extend([pull.recv(), pull.poll(), push.send(b"never sent"), push.wait_connected()])
        await asyncio.sleep(0)

    async def talk():
        push.connect(pull.last_endpoint.decode())
        await push.send(b"1")
        return await pull.recv()

    loops.run(leave())
    assert loops.run(talk()) == b"1"
    assert not any(wait.done() for wait in waits)


@pytest.mark.parametrize("how", ["close", "destroy", "term"])
def test_a_socket_can_be_closed_when_its_loop_has_ended(loops, context, how):
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    waits = []

    async def begin():
        pull.bind(endpoint())
        push.connect(pull.last_endpoint.decode())
        push.connect(endpoint())
        await push.send(b"1")
        assert await pull.recv() == b"1"
        waits.extend([pull.recv(), pull.poll()])

    loops.run(begin())
    if how == "close":
        push.close()
        pull.close()
    elif how == "destroy":
        context.destroy()
    else:
        push.close()
        pull.close()
        context.term(SOON)
    assert push.closed
    assert pull.closed


def test_a_socket_whose_connection_is_full_can_be_closed_when_its_loop_has_ended(loops, context):
    push = context.socket(zmq.PUSH)
    push.sndhwm = 0
    with plain.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)

        async def fill():
            push.connect(f"tcp://127.0.0.1:{server.getsockname()[1]}")
            loop = asyncio.get_running_loop()
            peer, _ = await loop.sock_accept(server)
            await loop.sock_sendall(peer, GREETING + READY_PULL)
            await push.wait_connected()
            for _ in range(10):
                await push.send(bytes(1_000_000))
            return peer

        with loops.run(fill()):
            push.close(linger=0)


GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(16) + bytes(32)
READY_PULL = b"\x04\x1a\x05READY\x0bSocket-Type\x00\x00\x00\x04PULL"


def test_what_lingers_when_its_loop_has_ended_is_sent_by_term(loops, context):
    push = context.socket(zmq.PUSH)
    with plain.create_server(("127.0.0.1", 0)) as server:

        async def send():
            push.connect(f"tcp://127.0.0.1:{server.getsockname()[1]}")
            push.send(b"the last words")

        loops.run(send())
        push.close(linger=-1)
        heard = []

        def listen():
            peer, _ = server.accept()
            with peer:
                peer.sendall(GREETING + READY_PULL)
                while data := peer.recv(1000):
                    heard.append(data)

        thread = threading.Thread(target=listen)
        thread.start()
        context.term(SOON)
        thread.join()
    assert b"".join(heard).endswith(b"the last words")


def test_a_loop_that_cannot_watch_descriptors_is_refused_with_advice(context):
    """Windows' default loop, ProactorEventLoop, has no add_reader."""

    class Proactor(asyncio.SelectorEventLoop):
        add_reader = asyncio.AbstractEventLoop.add_reader

    early = context.socket(zmq.PULL)

    async def use():
        with pytest.raises(zmq.ZMQError) as made:
            context.socket(zmq.PULL)
        with pytest.raises(zmq.ZMQError) as used:
            early.recv()
        return made.value, used.value

    with asyncio.Runner(loop_factory=Proactor) as runner:
        for error in runner.run(use()):
            assert error.errno == errno.ENOTSUP
            assert "SelectorEventLoop" in " ".join(error.__notes__)
    early.close()
    gc.collect()


# -- the end


@pytest.mark.filterwarnings("ignore:Unclosed:ResourceWarning")
def test_a_context_and_its_sockets_may_go_in_one_garbage_collection(loops, monkeypatch):
    complaints = []
    monkeypatch.setattr("sys.unraisablehook", complaints.append)

    async def use():
        context = zmqa.Context()
        pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        pull.bind("inproc://gone")
        push.connect("inproc://gone")
        await push.send(b"not received")
        pull.bind("tcp://127.0.0.1:*")
        circle = [context, pull, push]
        circle.append(circle)

    loops.run(use())
    gc.collect()
    assert not complaints


# -- threads


def test_a_call_from_a_thread_without_a_loop_says_so(loops, context):
    async def use():
        pull = context.socket(zmq.PULL)
        pull.bind(endpoint())
        with pytest.raises(RuntimeError, match="no running event loop"):
            await asyncio.to_thread(pull.recv)
        pull.close()

    loops.run(use())


def test_a_socket_that_nothing_happens_to_yet_may_be_handed_to_another_thread(loops, context):
    async def hand_over():
        pull = context.socket(zmq.PULL)

        async def work():
            pull.bind(endpoint())
            with pytest.raises(zmq.Again):
                await pull.recv(timeout=0.01)
            return "done"

        assert await asyncio.to_thread(loops.run, work()) == "done"

    loops.run(hand_over())


def test_a_socket_in_use_on_a_running_loop_is_not_for_another_thread(loops, context):
    async def use():
        pull = context.socket(zmq.PULL)
        pull.bind(endpoint())
        waiting = pull.recv()

        async def steal():
            with pytest.raises(RuntimeError, match="another thread"):
                await pull.recv()

        await asyncio.to_thread(loops.run, steal())
        push = context.socket(zmq.PUSH)
        push.connect(pull.last_endpoint.decode())
        await push.send(b"1")
        assert await waiting == b"1"

    loops.run(use())


@pytest.mark.parametrize("how", ["close", "destroy"])
def test_a_socket_may_be_closed_from_another_thread(loops, context, how):
    async def use():
        pull = context.socket(zmq.PULL)
        pull.bind(endpoint())
        waiting = asyncio.create_task(wait(pull.recv()))
        await asyncio.sleep(0)
        await asyncio.to_thread(pull.close if how == "close" else context.destroy)
        with pytest.raises(zmq.ZMQError) as closed:
            await asyncio.wait_for(waiting, SOON)
        assert closed.value.errno in (zmq.ENOTSOCK, zmq.ETERM)
        assert pull.closed

    loops.run(use())


def test_a_receive_that_is_dropped_in_another_thread_gives_its_message_back(loops, context):
    """As a garbage collection may do, which runs on any thread."""

    async def use():
        push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
        pull.bind("inproc://x")
        push.connect("inproc://x")
        await push.send(b"1")
        dropped = [pull.recv()]
        assert dropped[0].done()
        waiting = asyncio.create_task(wait(pull.recv()))
        await asyncio.sleep(0)
        await asyncio.to_thread(dropped.clear)
        assert await asyncio.wait_for(waiting, SOON) == b"1"

    loops.run(use())


async def wait(call):
    return await call


# -- inproc between a thread with blocking sockets and the loop


@pytest.mark.parametrize("count", [1, 5000])
def test_a_thread_sends_to_the_loop_over_inproc(loops, count):
    context = zmq.Context()
    waiter = zmqa.Context.shadow(context)

    async def receive():
        pull = waiter.socket(zmq.PULL)
        pull.bind("inproc://x")

        def send():
            with context.socket(zmq.PUSH) as push:
                push.connect("inproc://x")
                push.sndtimeo = 8000
                for n in range(count):
                    push.send(b"%d" % n)

        sending = asyncio.create_task(asyncio.to_thread(send))
        got = [int(await pull.recv()) for _ in range(count)]
        await sending
        pull.close()
        return got

    assert loops.run(receive()) == list(range(count))
    context.term(SOON)


@pytest.mark.parametrize("count", [1, 5000])
def test_the_loop_sends_to_a_thread_over_inproc(loops, count):
    context = zmq.Context()
    waiter = zmqa.Context.shadow(context)

    async def send():
        push = waiter.socket(zmq.PUSH)
        push.bind("inproc://x")

        def receive():
            with context.socket(zmq.PULL) as pull:
                pull.connect("inproc://x")
                pull.rcvtimeo = 8000
                return [int(pull.recv()) for _ in range(count)]

        receiving = asyncio.create_task(asyncio.to_thread(receive))
        for n in range(count):
            await push.send(b"%d" % n)
        got = await receiving
        push.close()
        return got

    assert loops.run(send()) == list(range(count))
    context.term(SOON)


def test_a_thread_that_is_too_quick_for_the_loop_waits(loops):
    context = zmq.Context()
    waiter = zmqa.Context.shadow(context)

    async def receive():
        pull = waiter.socket(zmq.PULL)
        pull.rcvhwm = 2
        pull.bind("inproc://x")
        sent = []

        def send():
            with context.socket(zmq.PUSH) as push:
                push.sndhwm = 2
                push.connect("inproc://x")
                push.sndtimeo = 8000
                for n in range(20):
                    push.send(b"%d" % n)
                    sent.append(n)

        sending = asyncio.create_task(asyncio.to_thread(send))
        await eventually(lambda: len(sent) == 4)
        await asyncio.sleep(0.01)
        assert len(sent) == 4
        got = [int(await pull.recv()) for _ in range(20)]
        await sending
        pull.close()
        return got

    assert loops.run(receive()) == list(range(20))
    context.term(SOON)


def test_a_loop_that_is_too_quick_for_the_thread_waits_and_does_other_things(loops):
    context = zmq.Context()
    waiter = zmqa.Context.shadow(context)

    async def send():
        push = waiter.socket(zmq.PUSH)
        push.sndhwm = 2
        push.bind("inproc://x")
        go = threading.Event()

        def receive():
            with context.socket(zmq.PULL) as pull:
                pull.rcvhwm = 2
                pull.connect("inproc://x")
                pull.rcvtimeo = 8000
                go.wait(SOON)
                return [int(pull.recv()) for _ in range(20)]

        async def send_all():
            for n in range(20):
                await push.send(b"%d" % n)

        receiving = asyncio.create_task(asyncio.to_thread(receive))
        sending = asyncio.create_task(send_all())
        await asyncio.sleep(0.01)
        assert not sending.done()
        go.set()
        await sending
        got = await receiving
        push.close()
        return got

    assert loops.run(send()) == list(range(20))
    context.term(SOON)


def test_a_thread_and_the_loop_play_ping_pong_over_inproc(loops):
    context = zmq.Context()
    waiter = zmqa.Context.shadow(context)

    async def play():
        rep = waiter.socket(zmq.REP)
        rep.bind("inproc://x")

        def ask():
            with context.socket(zmq.REQ) as req:
                req.connect("inproc://x")
                req.rcvtimeo = 8000
                answers = []
                for n in range(300):
                    req.send(b"%d" % n)
                    answers.append(int(req.recv()))
                return answers

        asking = asyncio.create_task(asyncio.to_thread(ask))
        for _ in range(300):
            await rep.send(await rep.recv())
        answers = await asking
        rep.close()
        return answers

    started = time.monotonic()
    assert loops.run(play()) == list(range(300))
    assert time.monotonic() - started < 5
    context.term(SOON)


# -- shadows


def test_a_blocking_shadow_of_an_asyncio_socket_sends_what_need_not_wait(loops, context):
    async def use():
        push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
        pull.bind(endpoint())
        push.connect(pull.last_endpoint.decode())
        await push.wait_connected()
        shadow = zmq.Socket.shadow(push)
        for n in range(100):
            shadow.send(b"%d" % (2 * n), zmq.DONTWAIT)
            await push.send(b"%d" % (2 * n + 1))
        got = [int(await pull.recv()) for _ in range(200)]
        receiver = zmq.Socket.shadow(pull)
        await push.send(b"for the shadow")
        await pull.poll()
        assert receiver.recv(zmq.DONTWAIT) == b"for the shadow"
        with pytest.raises(zmq.Again):
            receiver.recv(zmq.DONTWAIT)
        return got

    assert loops.run(use()) == list(range(200))


def test_a_blocking_shadow_sends_from_another_thread(loops, context):
    async def use():
        push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
        pull.bind(endpoint())
        push.connect(pull.last_endpoint.decode())
        await push.wait_connected()
        shadow = zmq.Socket.shadow(push)

        def send():
            for n in range(2000):
                shadow.send(b"%d" % n)

        sending = asyncio.create_task(asyncio.to_thread(send))
        got = [int(await pull.recv()) for _ in range(2000)]
        await sending
        return got

    assert loops.run(use()) == list(range(2000))


def test_two_asyncio_sockets_for_one_are_one_line_each(loops, context):
    async def use():
        push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
        pull.bind(endpoint())
        push.connect(pull.last_endpoint.decode())
        other = zmqa.Socket.shadow(pull)
        calls = [asyncio.ensure_future(each.recv()) for each in (pull, other, pull, other)]
        for n in range(4):
            await push.send(b"%d" % n)
        got = sorted(await asyncio.gather(*calls))
        with pytest.raises(zmq.Again):
            await pull.recv(zmq.DONTWAIT)
        return got

    assert loops.run(use()) == [b"0", b"1", b"2", b"3"]
