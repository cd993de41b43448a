"""What is queued when a socket is closed, and that nothing at all is left in the end."""

import os
import socket as plain

import pytest

import zerohop as zmq
from tests.io.hand import Peer, endpoint_of, server
from tests.kit.raw import greeting, message, ready


def fill(push, count=30):
    """More than the system takes."""
    for n in range(count):
        push.send_multipart([b"%d" % n, bytes(1_000_000)])


def released(socket):
    """A list that gets an entry when the socket is released."""
    told = []
    socket._driver.on_released.append(lambda: told.append("released"))
    return told


def test_without_anything_queued_a_socket_is_released_at_once(world, join):
    push, peer = join()
    told = released(push)
    push.close(linger=-1)
    assert told == ["released"]
    assert world.loop.idle
    assert not peer.pull()


def test_without_linger_what_is_queued_is_dropped_at_once(world, join):
    push, peer = join()
    fill(push)
    told = released(push)
    push.close(linger=0)
    assert told == ["released"]
    assert world.loop.idle
    world.loop.until(lambda: not peer.pull())


def test_with_linger_a_peer_that_reads_gets_everything(world, join):
    push, peer = join()
    fill(push)
    told = released(push)
    push.close(linger=-1)
    assert not told
    size = sum(len(message(b"%d" % n, bytes(1_000_000))) for n in range(30))
    world.loop.until(lambda: not peer.pull())
    assert len(peer.came) == size
    world.loop.until(lambda: told == ["released"])
    assert world.loop.idle


def test_with_linger_a_peer_that_does_not_read_is_given_so_long(world, join):
    push, _ = join()
    fill(push)
    told = released(push)
    push.close(linger=30_000)
    world.loop.skip(29)
    assert not told
    world.loop.skip(2)
    assert told == ["released"]
    assert world.loop.idle


def test_the_option_decides_if_close_is_told_nothing(world, join):
    push, _ = join(linger=30_000)
    fill(push)
    push.close()
    world.loop.skip(29)
    assert not push._driver.released
    world.loop.skip(2)
    assert push._driver.released


def test_what_waits_for_a_peer_that_never_comes_is_given_so_long(world):
    push = world.socket(zmq.PUSH)
    with server() as nobody:
        endpoint = endpoint_of(nobody)
    push.connect(endpoint)
    push.send(b"x")
    push.close(linger=30_000)
    world.loop.skip(29)
    assert not push._driver.released
    world.loop.skip(2)
    assert push._driver.released
    assert world.loop.idle


def test_a_peer_that_comes_while_the_socket_lingers_gets_everything(world):
    push = world.socket(zmq.PUSH, reconnect_ivl=1)
    with server() as nobody:
        endpoint = endpoint_of(nobody)
    push.connect(endpoint)
    for n in range(100):
        push.send(b"%d" % n)
    push.close(linger=-1)
    world.loop.settle(3)
    pull = world.socket(zmq.PULL)
    pull.bind(endpoint)
    world.loop.until(lambda: push._driver.released)
    world.loop.until(lambda: pull.stats().incoming.messages == 100)
    assert [int(pull.recv()) for _ in range(100)] == list(range(100))


def test_a_connection_that_breaks_while_its_socket_lingers_is_made_again(world, join, listening):
    push, peer = join(reconnect_ivl=1)
    fill(push, 10)
    push.close(linger=-1)
    world.loop.settle(3)
    peer.reset()
    second = Peer(world, push, listening)
    second.raw.sendall(greeting() + ready(b"PULL"))
    world.loop.until(lambda: not second.pull())
    assert second.came.endswith(bytes(1_000_000))
    world.loop.until(lambda: push._driver.released)
    second.raw.close()


def test_a_lingering_socket_frees_its_port_at_once(world):
    pull, push = world.socket(zmq.PULL), world.socket(zmq.PUSH)
    push.bind("tcp://127.0.0.1:*")
    endpoint = push.last_endpoint.decode()
    pull.connect(endpoint)
    world.loop.until(push._core.connected)
    fill(push)
    push.close(linger=-1)
    assert not push._driver.released
    other = world.socket(zmq.PULL)
    other.bind(endpoint)
    pull.close()
    world.loop.until(lambda: push._driver.released)


@pytest.mark.parametrize("leave", ["disconnect", "unbind"])
def test_what_was_sent_before_leaving_arrives_and_nothing_after(world, leave):
    push, pull = world.socket(zmq.PUSH), world.socket(zmq.PULL)
    binder, connector = (pull, push) if leave == "disconnect" else (push, pull)
    binder.bind("tcp://127.0.0.1:*")
    endpoint = binder.last_endpoint.decode()
    connector.connect(endpoint)
    world.loop.until(push._core.connected)
    world.loop.until(pull._core.connected)
    for n in range(50):
        push.send_multipart([b"%d" % n, bytes(100_000)])
    getattr(push, leave)(endpoint)
    with pytest.raises(zmq.Again):
        push.send(b"to nobody")
    got = []
    while len(got) < 50:
        world.loop.until(lambda: pull._core.ready() & zmq.POLLIN)
        got.append(int(pull.recv_multipart()[0]))
    assert got == list(range(50))
    world.loop.until(lambda: not pull._core.links.open_links)
    assert not push._core.links.open_links


@pytest.mark.parametrize("interval", [0, 100])
def test_nothing_is_left_of_many_connections_that_come_and_go(world, interval):
    """Descriptors, watches and timers (handshakes, heartbeats) are back to where they were."""
    pull = world.socket(zmq.PULL, heartbeat_ivl=interval, backlog=300)
    pull.bind("tcp://127.0.0.1:*")
    endpoint = pull.last_endpoint.decode()
    world.loop.settle(2)
    descriptors, readers = len(os.listdir("/proc/self/fd")), len(world.loop.readers)
    for _ in range(2):
        pushes = [world.socket(zmq.PUSH, heartbeat_ivl=interval) for _ in range(100)]
        for n, push in enumerate(pushes):
            push.connect(endpoint)
            push.send(b"%d" % n)
        world.loop.until(lambda: pull.stats().incoming.messages == 100)
        assert sorted(int(pull.recv()) for _ in pushes) == list(range(100))
        for n, push in enumerate(pushes):
            push.close(linger=-1 if n % 2 else 0)
        world.loop.until(lambda: not pull._core.links.open_links)
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert len(world.loop.readers) == readers
    assert not world.loop.writers
    world.loop.skip(60)
    world.loop.settle(2)
    assert len(world.loop.pending) <= 1


def test_large_messages_both_ways_through_tiny_buffers_do_not_wait_for_each_other(world):
    ends = [world.socket(zmq.PAIR, sndbuf=4096, rcvbuf=4096) for _ in range(2)]
    ends[0].bind(f"ipc://@zh-both-ways-{os.getpid()}")
    ends[1].connect(ends[0].last_endpoint.decode())
    world.loop.until(ends[0]._core.connected)
    world.loop.until(ends[1]._core.connected)
    bodies = [bytes([n]) * 1_000_000 for n in range(3)]
    for end in ends:
        for body in bodies:
            end.send(body)
    for end in ends:
        world.loop.until(lambda end=end: end.stats().incoming.messages == 3)
        assert [end.recv() for _ in bodies] == bodies


def test_a_stranger_who_says_nothing_costs_a_descriptor_until_his_time_is_over(world):
    pull = world.socket(zmq.PULL, handshake_ivl=1000)
    pull.bind("tcp://127.0.0.1:*")
    host, port = pull.last_endpoint.decode().removeprefix("tcp://").split(":")
    with plain.create_connection((host, int(port))):
        world.loop.until(lambda: pull._core.links.open_links)
        world.loop.skip(2)
        world.loop.settle(2)
        assert not pull._core.links.open_links
        assert not pull._driver._streams
