"""SocketDriver: moves between loops, closed loops, and how long what was left may linger."""

import asyncio
import gc
import time
import weakref
from importlib.util import find_spec

import pytest

import zerohop as zmq
import zerohop.asyncio
from tests.kit.net import free_port
from zerohop.asyncio.waiting import released


def new_uvloop():
    import uvloop

    return uvloop.new_event_loop()


LOOPS = [
    pytest.param(asyncio.new_event_loop, id="asyncio"),
    *([pytest.param(new_uvloop, id="uvloop")] if find_spec("uvloop") else []),
]
in_every_loop = pytest.mark.parametrize("new_loop", LOOPS)


def until(condition, seconds=8.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


class Keeper(zmq.asyncio.Context):
    """A context whose sockets live until the test ends, though it forgets them."""

    def __init__(self):
        super().__init__()
        self._kept = []

    def socket(self, *args, **kwargs):
        made = super().socket(*args, **kwargs)
        self._kept.append(made)
        return made


@pytest.fixture
def elsewhere():
    """A context of asyncio sockets, whose loops the test makes and closes."""
    context = Keeper()
    yield context
    for socket in context._kept:
        socket.close(0)
    context.term(timeout=8)


# -- from one loop to another


COUNT = 60_000


def count_of(pull):
    """How many messages there are, until none comes for a second."""
    pull.rcvtimeo = 1000
    count = 0
    try:
        while True:
            pull.recv()
            count += 1
    except zmq.Again:
        return count


@pytest.fixture
def with_a_flush_left(elsewhere, context):
    """A PUSH whose loop was closed in the turn before it would have gone on writing; its PULL."""
    pull = context.socket(zmq.PULL)
    pull.rcvhwm = 0
    port = pull.bind_to_random_port("tcp://127.0.0.1")
    loop = asyncio.new_event_loop()

    async def flood():
        push = elsewhere.socket(zmq.PUSH)
        push.sndhwm = 0
        push.connect(f"tcp://127.0.0.1:{port}")
        for _ in range(COUNT):
            push.send(bytes(200))
        return push

    push = loop.run_until_complete(flood())
    links = push._core.links
    deadline = time.monotonic() + 8
    while not links.room_for_others:
        assert time.monotonic() < deadline
        assert sum(len(peer.outbound) for peer in links.peers)
        loop.call_soon(loop.stop)
        loop.run_forever()
    loop.close()
    assert links.room_for_others
    return push, pull


def test_a_flush_left_for_the_next_turn_survives_the_move_to_another_loop(with_a_flush_left):
    push, pull = with_a_flush_left
    with asyncio.Runner() as runner:
        for _ in range(2):  # what was queued before is written, not only what comes now

            async def send():
                await push.send(b"last")

            runner.run(send())

        assert runner.run(asyncio.to_thread(count_of, pull)) == COUNT + 2
        push.close(0)


def test_a_flush_left_for_the_next_turn_survives_the_end_of_asyncio(with_a_flush_left, elsewhere):
    push, pull = with_a_flush_left
    push.close()
    elsewhere.term(timeout=5)
    assert count_of(pull) == COUNT


def test_what_the_kernel_does_not_take_after_its_loop_was_closed_is_written_later(
    elsewhere, context
):
    pull = context.socket(zmq.PULL)
    port = pull.bind_to_random_port("tcp://127.0.0.1")
    loop = asyncio.new_event_loop()

    async def connect():
        push = elsewhere.socket(zmq.PUSH)
        push.connect(f"tcp://127.0.0.1:{port}")
        await push.wait_connected()
        return push

    def send():
        push.send(b"written at once")
        push.send(bytes(20_000_000))
        loop.stop()

    push = loop.run_until_complete(connect())
    loop.call_soon(send)
    loop.run_forever()
    loop.close()
    push.close()
    elsewhere.term(timeout=5)
    assert [len(pull.recv()), len(pull.recv())] == [15, 20_000_000]


# -- calls after the loop was closed


def lingering(loop, context, port):
    """A PUSH in a loop that is closed now, with one message for a port where nobody listens."""

    async def send():
        push = context.socket(zmq.PUSH)
        push.linger = 300
        push.bind("tcp://127.0.0.1:*")
        push.connect(f"tcp://127.0.0.1:{port}")
        push.send(b"x")
        await asyncio.sleep(0.02)
        return push

    push = loop.run_until_complete(send())
    loop.close()
    return push


CALLS = {
    "close": lambda push, port: push.close(0),
    "close and linger": lambda push, port: push.close(100),
    "disconnect": lambda push, port: push.disconnect(f"tcp://127.0.0.1:{port}"),
    "connect": lambda push, port: push.connect(f"tcp://127.0.0.1:{port}"),
    "bind": lambda push, port: push.bind("tcp://127.0.0.1:*"),
}


@in_every_loop
@pytest.mark.parametrize("call", ["close", "close and linger", "disconnect", "connect", "bind"])
def test_a_socket_whose_loop_is_closed_can_still_be_used(elsewhere, new_loop, call):
    port = free_port()
    push = lingering(new_loop(), elsewhere, port)
    CALLS[call](push, port)
    assert push.closed is call.startswith("close")


@in_every_loop
def test_a_socket_whose_loop_is_closed_can_be_unbound(elsewhere, new_loop):
    loop = new_loop()

    async def bind():
        pull = elsewhere.socket(zmq.PULL)
        pull.bind("tcp://127.0.0.1:*")
        await asyncio.sleep(0)
        return pull

    pull = loop.run_until_complete(bind())
    loop.close()
    endpoint = pull.last_endpoint.decode()
    pull.unbind(endpoint)
    pull.bind(endpoint)


@in_every_loop
def test_what_a_socket_has_begun_after_its_loop_was_closed_goes_on_in_the_next(elsewhere, new_loop):
    port = free_port()
    push = lingering(new_loop(), elsewhere, port)
    peer = free_port()
    push.connect(f"tcp://127.0.0.1:{peer}")

    async def receive():
        pull = elsewhere.socket(zmq.PULL)
        pull.bind(f"tcp://127.0.0.1:{peer}")
        push.send(b"1")
        push.send(b"2")
        return await pull.recv()

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(asyncio.wait_for(receive(), 8)) in (b"1", b"2")
        push.close(0)


# -- LINGER holds for unbind() and disconnect(), too


def stuck(context, leave):
    """A PUSH whose peer does not read, though plenty is queued for it."""
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    pull.rcvhwm, pull.rcvbuf, push.sndtimeo = 1, 4096, 0
    binder, connector = (push, pull) if leave == "unbind" else (pull, push)
    endpoint = f"tcp://127.0.0.1:{binder.bind_to_random_port('tcp://127.0.0.1')}"
    connector.connect(endpoint)
    push.wait_connected(8)
    while push.events & zmq.POLLOUT:
        push.send(bytes(20_000))
    return push, lambda: getattr(push, leave)(endpoint)


def open_links(socket):
    return list(socket._core.links.open_links)


@pytest.mark.parametrize("leave", ["unbind", "disconnect"])
def test_without_linger_what_is_queued_for_a_peer_that_was_left_is_dropped(context, leave):
    push, leave_now = stuck(context, leave)
    push.linger = 0
    leave_now()
    until(lambda: not open_links(push), 0.5)


@pytest.mark.parametrize("leave", ["unbind", "disconnect"])
def test_with_linger_a_peer_that_was_left_has_so_long_to_read(context, leave):
    push, leave_now = stuck(context, leave)
    push.linger = 200
    started = time.monotonic()
    leave_now()
    time.sleep(0.1)
    assert open_links(push)
    until(lambda: not open_links(push))
    assert 0.19 < time.monotonic() - started < 2


def test_the_limit_of_a_disconnect_moves_with_its_socket_to_another_loop(context, elsewhere):
    pull = context.socket(zmq.PULL)
    pull.rcvhwm, pull.rcvbuf = 1, 4096
    endpoint = f"tcp://127.0.0.1:{pull.bind_to_random_port('tcp://127.0.0.1')}"

    async def leave():
        push = elsewhere.socket(zmq.PUSH)
        push.linger = 200
        push.connect(endpoint)
        await push.wait_connected()
        while push.events & zmq.POLLOUT:
            await push.send(bytes(20_000))
        push.disconnect(endpoint)
        return push

    async def wait(push):
        with pytest.raises(zmq.Again):
            await push.send(b"this call finds the new loop", timeout=0)
        await asyncio.sleep(0.4)
        assert not open_links(push)

    loop = asyncio.new_event_loop()
    push = loop.run_until_complete(leave())
    loop.close()
    assert open_links(push)
    with asyncio.Runner() as runner:
        runner.run(asyncio.wait_for(wait(push), 3))
        push.close(0)


# -- heartbeats


def test_who_does_not_read_because_his_queue_is_full_does_not_give_his_peer_up(context):
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    pull.rcvhwm, pull.heartbeat_ivl, pull.heartbeat_timeout = 2, 50, 100
    pull.rcvbuf = push.sndbuf = 4096
    push.sndhwm, push.sndtimeo = 5, 200
    monitor = pull.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    push.connect(f"tcp://127.0.0.1:{pull.bind_to_random_port('tcp://127.0.0.1')}")
    count = 0
    while push.poll(500, zmq.POLLOUT):  # the last of these half seconds is one of silence
        push.send(b"%d" % count + bytes(2000))
        count += 1
    got = [int(pull.recv().rstrip(b"\0")) for _ in range(count)]
    assert got == list(range(count))
    assert not monitor.poll(0)
    monitor.close(0)


# -- release


def test_who_waits_for_the_release_in_a_loop_that_is_closed_does_not_stop_the_others(elsewhere):
    loop = asyncio.new_event_loop()
    told = []

    async def wait():
        push = elsewhere.socket(zmq.PUSH)
        push.connect(f"tcp://127.0.0.1:{free_port()}")
        push.send(b"x")
        released(push._driver)
        push._driver.on_released.append(lambda: told.append("the other"))
        return push

    push = loop.run_until_complete(wait())
    loop.close()
    push.close(100)
    elsewhere.term(timeout=4)
    assert told == ["the other"]


# -- after the end


@pytest.mark.parametrize(
    "pair", [(zmq.PUSH, zmq.PULL), (zmq.DEALER, zmq.ROUTER), (zmq.PUB, zmq.SUB)]
)
def test_closed_sockets_go_at_once_and_not_with_the_garbage_collector(pair):
    with zmq.Context() as context:
        gc.collect()
        gc.disable()
        try:
            first, second = (context.socket(kind) for kind in pair)
            first.connect(f"tcp://127.0.0.1:{second.bind_to_random_port('tcp://127.0.0.1')}")
            second.wait_connected(8)
            first.send(b"hello")
            cores = [weakref.ref(socket._core) for socket in (first, second)]
            first.close(0)
            second.close(0)
            del first, second
            until(lambda: not any(core() for core in cores))
        finally:
            gc.enable()
