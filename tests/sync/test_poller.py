"""Poller, select and zmq_poll: sockets of one Context and of several, and descriptors."""

import errno
import os
import select
import socket
import threading
import time

import pytest

import zerohop as zmq
from zerohop.sync import system_items as module

SOON = 8000  # milliseconds


@pytest.fixture
def pipe():
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


@pytest.fixture
def joined(context):
    """A PUSH and a PULL over inproc."""
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    pull.bind("inproc://joined")
    push.connect("inproc://joined")
    return push, pull


def later(call, *args):
    timer = threading.Timer(0.05, call, args)
    timer.start()
    return timer


# -- what is registered


def test_registering_again_changes_the_flags_and_keeps_the_place(joined):
    push, pull = joined
    poller = zmq.Poller()
    poller.register(push)
    poller.register(pull, zmq.POLLIN)
    poller.register(push, zmq.POLLOUT)
    assert poller.sockets == [(push, zmq.POLLOUT), (pull, zmq.POLLIN)]
    poller.modify(pull, zmq.POLLOUT)
    assert poller.sockets[1] == (pull, zmq.POLLOUT)


def test_no_flags_means_not_registered(joined):
    push, pull = joined
    poller = zmq.Poller()
    poller.register(push)
    poller.register(pull)
    poller.register(push, 0)
    assert push not in poller
    assert pull in poller
    poller.register(push, 0)
    poller.unregister(pull)
    assert poller.sockets == []
    with pytest.raises(KeyError):
        poller.unregister(pull)


def test_nothing_to_wait_for_is_no_wait():
    assert zmq.Poller().poll() == []
    assert zmq.zmq_poll([]) == []


@pytest.mark.parametrize("item", ["abc", None, 1.5])
def test_what_cannot_be_waited_for(item):
    poller = zmq.Poller()
    poller.register(item)
    with pytest.raises(TypeError, match=r"Socket must be a 0MQ socket, an integer fd or have a"):
        poller.poll(0)


# -- sockets


def test_polling_is_level_triggered(joined):
    push, pull = joined
    poller = zmq.Poller()
    poller.register(pull, zmq.POLLIN)
    assert poller.poll(0) == []
    push.send(b"a")
    push.send(b"b")
    for _ in range(2):
        assert poller.poll(SOON) == [(pull, zmq.POLLIN)]
        assert poller.poll(0) == [(pull, zmq.POLLIN)]
        pull.recv()
    assert poller.poll(0) == []


def test_a_poll_ends_in_time(joined):
    poller = zmq.Poller()
    poller.register(joined[1], zmq.POLLIN)
    start = time.monotonic()
    assert poller.poll(30) == []
    assert time.monotonic() - start >= 0.03
    assert poller.poll(30.5) == []


def test_all_that_are_ready_are_returned(context, joined):
    push, pull = joined
    alone = context.socket(zmq.PULL)
    push.send(b"x")
    assert dict(zmq.zmq_poll([(alone, zmq.POLLIN), (push, zmq.POLLOUT), (pull, zmq.POLLIN)])) == {
        push: zmq.POLLOUT,
        pull: zmq.POLLIN,
    }


@pytest.mark.parametrize("timeout", [None, -1, SOON])
def test_a_message_that_comes_later_ends_the_wait(joined, timeout):
    push, pull = joined
    poller = zmq.Poller()
    poller.register(pull, zmq.POLLIN)
    sending = later(push.send, b"x")
    assert poller.poll(timeout) == [(pull, zmq.POLLIN)]
    sending.join()


def test_room_that_comes_later_ends_the_wait(context):
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    push.sndhwm = pull.rcvhwm = 1
    push.bind("inproc://narrow")
    pull.connect("inproc://narrow")
    push.send(b"a")
    push.send(b"b")
    assert push.poll(0, zmq.POLLOUT) == 0

    def receive():
        pull.recv()
        pull.recv()

    receiving = later(receive)
    assert push.poll(SOON, zmq.POLLOUT) == zmq.POLLOUT
    receiving.join()


def test_several_pollers_of_one_socket_all_see_a_message(joined):
    push, pull = joined
    seen = []
    threads = [
        threading.Thread(target=lambda: seen.append(pull.poll(SOON))),
        threading.Thread(target=lambda: seen.append(len(zmq.zmq_poll([(pull, zmq.POLLIN)], SOON)))),
    ]
    for thread in threads:
        thread.start()
    sending = later(push.send, b"x")
    for thread in [*threads, sending]:
        thread.join()
    assert seen == [1, 1]


def test_sockets_of_several_contexts(context, joined):
    push, pull = joined
    other = zmq.Context()
    far_push, far_pull = other.socket(zmq.PUSH), other.socket(zmq.PULL)
    far_pull.bind("tcp://127.0.0.1:*")
    far_push.connect(far_pull.last_endpoint.decode())
    poller = zmq.Poller()
    poller.register(pull, zmq.POLLIN)
    poller.register(far_pull, zmq.POLLIN)
    for sender, receiver in ((push, pull), (far_push, far_pull)) * 2:
        sending = later(sender.send, b"x")
        assert poller.poll(SOON) == [(receiver, zmq.POLLIN)]
        assert receiver.recv() == b"x"
        sending.join()
    assert poller.poll(0) == []
    other.destroy(linger=0)


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_closed_socket_is_an_error(joined, when):
    pull = joined[1]
    poller = zmq.Poller()
    poller.register(pull, zmq.POLLIN)
    closing = later(pull.close) if when == "meanwhile" else None
    if closing is None:
        pull.close()
    with pytest.raises(zmq.ZMQError) as closed:
        poller.poll(SOON)
    assert closed.value.errno == errno.ENOTSOCK
    if closing is not None:
        closing.join()


def test_the_end_of_the_context_ends_the_wait(joined):
    push, pull = joined
    ending = later(lambda: pull.context.destroy(linger=0))
    poller = zmq.Poller()
    poller.register(pull, zmq.POLLIN)
    poller.register(push, zmq.POLLIN)
    with pytest.raises(zmq.ZMQError) as ended:
        poller.poll(SOON)
    assert ended.value.errno in (zmq.ETERM, errno.ENOTSOCK)
    ending.join()


# -- descriptors


def test_a_descriptor_alone(pipe):
    reader, writer = pipe
    poller = zmq.Poller()
    poller.register(reader, zmq.POLLIN)
    poller.register(writer, zmq.POLLOUT)
    assert poller.poll(0) == [(writer, zmq.POLLOUT)]
    os.write(writer, b"x")
    assert dict(poller.poll(SOON)) == {reader: zmq.POLLIN, writer: zmq.POLLOUT}


def test_a_descriptor_and_a_socket_each_end_the_wait(joined, pipe):
    push, pull = joined
    reader, writer = pipe
    poller = zmq.Poller()
    poller.register(pull, zmq.POLLIN)
    poller.register(reader, zmq.POLLIN)
    for _ in range(2):
        writing = later(os.write, writer, b"x")
        assert poller.poll(SOON) == [(reader, zmq.POLLIN)]
        assert os.read(reader, 1) == b"x"
        writing.join()
        sending = later(push.send, b"x")
        assert poller.poll(SOON) == [(pull, zmq.POLLIN)]
        assert pull.recv() == b"x"
        sending.join()
    assert poller.poll(20) == []


def test_an_object_with_a_fileno_is_named_by_its_number(joined):
    a, b = socket.socketpair()
    poller = zmq.Poller()
    poller.register(a, zmq.POLLIN)
    poller.register(joined[1], zmq.POLLIN)
    b.send(b"x")
    assert poller.poll(SOON) == [(a.fileno(), zmq.POLLIN)]
    a.close()
    b.close()


def test_one_descriptor_in_two_threads_polls_is_seen_by_both(joined, pipe):
    reader, writer = pipe
    seen = []

    def wait():
        items = [(reader, zmq.POLLIN), (joined[1], zmq.POLLIN)]
        seen.append(zmq.zmq_poll(items, SOON))

    threads = [threading.Thread(target=wait) for _ in range(2)]
    for thread in threads:
        thread.start()
    writing = later(os.write, writer, b"x")
    for thread in [*threads, writing]:
        thread.join()
    assert seen == [[(reader, zmq.POLLIN)]] * 2


def test_a_broken_descriptor_is_an_error_event_as_libzmq_gives_it():
    reader, writer = os.pipe()
    os.close(reader)
    assert zmq.zmq_poll([(writer, zmq.POLLOUT)], SOON) == [(writer, zmq.POLLOUT | zmq.POLLERR)]
    os.close(writer)


def test_a_regular_file_is_always_ready(joined, tmp_path):
    with (tmp_path / "file").open("w+") as file:
        assert dict(zmq.zmq_poll([(file, zmq.POLLIN), (joined[1], zmq.POLLIN)], SOON)) == {
            file.fileno(): zmq.POLLIN
        }


@pytest.mark.parametrize("absent", ["poll", "epoll"])
def test_descriptors_where_the_system_has_less(monkeypatch, joined, pipe, absent):
    push, pull = joined
    reader, writer = pipe
    monkeypatch.delattr(module.system, absent)
    items = [(reader, zmq.POLLIN | zmq.POLLERR), (writer, zmq.POLLOUT)]
    assert zmq.zmq_poll(items, SOON) == [(writer, zmq.POLLOUT)]
    items = [(reader, zmq.POLLIN), (pull, zmq.POLLIN)]
    assert zmq.zmq_poll(items, 20) == []
    for _ in range(2):
        writing = later(os.write, writer, b"x")
        assert zmq.zmq_poll(items, SOON) == [(reader, zmq.POLLIN)]
        os.read(reader, 1)
        writing.join()
        sending = later(push.send, b"x")
        assert zmq.zmq_poll(items, SOON) == [(pull, zmq.POLLIN)]
        pull.recv()
        sending.join()


# -- select


def test_select_takes_seconds_and_returns_three_lists(joined, pipe):
    push, pull = joined
    reader, writer = pipe
    assert zmq.select([pull, reader], [push, writer], [push], 0.01) == ([], [push, writer], [])
    push.send(b"x")
    os.write(writer, b"x")
    assert zmq.select([pull, reader], [], [pull], 1.5) == ([pull, reader], [], [])
    pull.recv()
    os.read(reader, 1)
    start = time.monotonic()
    assert zmq.select([pull, reader], [], [], 0.03) == ([], [], [])
    assert time.monotonic() - start >= 0.03


def test_select_without_a_limit_waits(joined):
    push, pull = joined
    sending = later(push.send, b"x")
    assert zmq.select([pull], [], []) == ([pull], [], [])
    sending.join()


def test_the_descriptor_of_a_socket_serves_other_loops(joined):
    push, pull = joined
    with pytest.raises(zmq.Again):
        pull.recv(zmq.DONTWAIT)
    assert select.select([pull], [], [], 0) == ([], [], [])
    sending = later(push.send, b"x")
    assert select.select([pull], [], [], 8) == ([pull], [], [])
    assert pull.events == zmq.POLLIN
    assert pull.recv() == b"x"
    assert select.select([pull], [], [], 0) == ([], [], [])
    sending.join()
