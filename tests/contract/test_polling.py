"""poll, EVENTS, FD, Poller, select (zmq_poll(3); pyzmq's Poller)."""

import select
import socket

import pytest

from tests.kit.drivers import unwrap


async def test_poll_tells_what_can_be_done_now(net, zmq):
    push, pull = net.socket(zmq.PUSH), net.socket(zmq.PULL)
    await net.link(pull, push)
    assert await push.poll(0, zmq.POLLOUT) == zmq.POLLOUT
    assert await push.poll(0, zmq.POLLIN) == 0
    assert await pull.poll(0) == 0
    await push.send(b"x")
    assert await pull.poll(5000) == zmq.POLLIN
    assert await pull.poll(5000, zmq.POLLIN | zmq.POLLOUT) == zmq.POLLIN
    await pull.recv()
    assert await pull.poll(0) == 0


async def test_poll_without_a_time_limit_waits_for_a_message(net, zmq):
    push, pull = net.socket(zmq.PUSH), net.socket(zmq.PULL)
    await net.link(pull, push)
    polling = net.start(pull.poll())
    await push.send(b"x")
    assert await polling == zmq.POLLIN
    assert await pull.recv() == b"x"


async def test_poll_gives_up_when_its_time_is_over(net, zmq):
    pull = net.socket(zmq.PULL)
    pull.bind(net.endpoint())
    assert await pull.poll(20) == 0


@pytest.mark.parametrize(
    ("kind", "events"),
    [(kind, 2) for kind in ("PUB", "XPUB", "XSUB", "ROUTER", "STREAM")]
    + [(kind, 0) for kind in ("PAIR", "SUB", "REQ", "REP", "DEALER", "PUSH", "PULL")],
)
@pytest.mark.over("inproc")
async def test_a_fresh_socket_is_writable_only_if_it_never_waits(net, zmq, kind, events):
    fresh = net.socket(getattr(zmq, kind))
    assert fresh.events == events
    assert fresh.getsockopt(zmq.EVENTS) == events


async def test_a_poller_watches_several_sockets(net, zmq):
    pushes = [net.socket(zmq.PUSH) for _ in range(3)]
    pulls = [net.socket(zmq.PULL) for _ in range(3)]
    poller = net.poller()
    for push, pull in zip(pushes, pulls):
        await net.link(pull, push)
        poller.register(pull, zmq.POLLIN)
    assert await poller.poll(0) == []
    for n in (0, 2):
        await pushes[n].send(b"x")
        await net.eventually(lambda n=n: pulls[n].events)
    assert dict(await poller.poll(5000)) == {pulls[0]: zmq.POLLIN, pulls[2]: zmq.POLLIN}
    poller.unregister(pulls[0])
    assert dict(await poller.poll(5000)) == {pulls[2]: zmq.POLLIN}
    poller.modify(pulls[2], zmq.POLLOUT)
    assert await poller.poll(0) == []


async def test_a_poller_watches_file_descriptors_too(net, zmq):
    push, pull = net.socket(zmq.PUSH), net.socket(zmq.PULL)
    await net.link(pull, push)
    near, far = socket.socketpair()
    with near, far:
        poller = net.poller()
        poller.register(pull, zmq.POLLIN)
        poller.register(near.fileno(), zmq.POLLIN)
        assert await poller.poll(0) == []
        far.send(b"x")
        assert await poller.poll(5000) == [(near.fileno(), zmq.POLLIN)]
        near.recv(1)
        await push.send(b"x")
        assert await poller.poll(5000) == [(pull, zmq.POLLIN)]
        poller.register(near.fileno(), zmq.POLLOUT)
        assert dict(await poller.poll(5000)) == {near.fileno(): zmq.POLLOUT, pull: zmq.POLLIN}


async def test_a_poller_waits_for_whichever_comes_first(net, zmq):
    push, pull, idle = net.socket(zmq.PUSH), net.socket(zmq.PULL), net.socket(zmq.PULL)
    idle.bind(net.endpoint())
    await net.link(pull, push)
    poller = net.poller()
    poller.register(idle, zmq.POLLIN)
    poller.register(pull, zmq.POLLIN)
    polling = net.start(poller.poll(10_000))
    await push.send(b"x")
    assert await polling == [(pull, zmq.POLLIN)]


async def test_a_poller_tells_when_a_full_socket_has_room(net, zmq):
    push, pull = net.socket(zmq.PUSH, sndhwm=1), net.socket(zmq.PULL)
    endpoint = net.endpoint()
    push.bind(endpoint)
    poller = net.poller()
    poller.register(push, zmq.POLLOUT)
    assert await poller.poll(0) == []
    polling = net.start(poller.poll(10_000))
    pull.connect(endpoint)
    assert await polling == [(push, zmq.POLLOUT)]


@pytest.mark.on("blocking")
async def test_select_sorts_by_what_can_be_done(net, zmq):
    push, pull, idle = net.socket(zmq.PUSH), net.socket(zmq.PULL), net.socket(zmq.PULL)
    await net.link(pull, push)
    await push.send(b"x")
    await pull.poll(5000)
    reads, writes = [unwrap(pull), unwrap(idle)], [unwrap(push)]
    assert zmq.select(reads, writes, [], 1.0) == ([unwrap(pull)], [unwrap(push)], [])
    await pull.recv()
    assert zmq.select(reads, [], [], 0.01) == ([], [], [])


async def test_the_descriptor_is_readable_when_there_is_something_to_look_at(net, zmq):
    push, pull = net.socket(zmq.PUSH), net.socket(zmq.PULL)
    await net.link(pull, push)
    assert pull.fileno() == pull.getsockopt(zmq.FD) == pull.FD
    for n in range(3):
        await push.send(b"%d" % n)
        await net.eventually(lambda: select.select([pull.FD], [], [], 0)[0] or pull.events)
        await net.eventually(lambda: pull.events & zmq.POLLIN)
        assert await pull.recv() == b"%d" % n
        assert pull.events == 0


@pytest.mark.zerohop  # libzmq's descriptor is edge-triggered
async def test_the_descriptor_stays_readable_while_there_are_messages(net, zmq):
    push, pull = net.socket(zmq.PUSH), net.socket(zmq.PULL)
    await net.link(pull, push)
    for n in range(3):
        await push.send(b"%d" % n)
    await net.eventually(lambda: pull.stats().incoming.messages == 3)
    for n in range(3):
        assert select.select([pull.FD], [], [], 5)[0] == [pull.FD]  # a loop does nothing meanwhile
        assert pull.events & zmq.POLLIN
        assert await pull.recv() == b"%d" % n
    await net.eventually(lambda: not select.select([pull.FD], [], [], 0)[0])
