"""Polls of sockets and descriptors, while other threads use, send to and close the same ones."""

import os
import socket as plain
import threading
import time
from random import Random

import pytest

import zerohop as zmq
from tests.stress.kit import TRANSPORTS, in_rounds, limited, until
from tests.stress.traffic import END, assert_in_order, everything, identify, send_all

pytestmark = [limited, pytest.mark.usefixtures("impatient")]

PATIENCE_MS = 8000


@pytest.fixture
def pipes():
    """Makes pairs of descriptors: one to poll, one to write to."""
    opened = []

    def make(kind):
        if kind == "pipe":
            reader, writer = os.pipe()
            os.set_blocking(reader, False)
        else:
            ends = plain.socketpair()
            reader, writer = ends[0].detach(), ends[1].detach()
            os.set_blocking(reader, False)
        opened.extend((reader, writer))
        return reader, writer

    yield make
    for descriptor in opened:
        os.close(descriptor)


@in_rounds(3)
def test_pollers_and_plain_receivers_share_what_comes_by_sockets_and_descriptors(
    new_context, bind, team, pipes, random
):
    """Two pollers see the same sockets, of two contexts, and the same descriptors; others, too,
    receive from these sockets. Whatever is sent is taken once, and nobody sleeps beside it."""
    contexts = [new_context(), new_context()]
    pulls, doors = [], []
    for transport in TRANSPORTS:
        for context in contexts:
            pull = context.socket(zmq.PULL)
            pull.rcvhwm = random.choice((1, 5, 1000))
            pulls.append(pull)
            doors.append((context, bind(pull, transport)))
    pairs = [pipes(kind) for kind in ("pipe", "socketpair")]
    readers = [reader for reader, _ in pairs]
    each, got, over = 80, [], threading.Event()
    for _ in range(2):
        team.start(poll_until, over, [*pulls, *readers], random.random(), got)
    for pull in random.sample(pulls, 3):
        team.start(receive_until, over, pull, got)
    sending = [
        team.start(send_by, context, door, random.random(), name, each)
        for name, (context, door) in enumerate(doors)
    ]
    sending += [team.start(write_by, writer, each) for _, writer in pairs]
    for member in sending:
        member.join()
    total = each * len(sending)
    until(lambda: len(got) >= total)
    over.set()
    team.join()
    messages = [item for item in got if isinstance(item, tuple)]
    assert sorted(messages) == everything(len(doors), each)
    assert len(got) == total


def send_by(context, door, seed, name, count):
    with context.socket(zmq.PUSH) as push:
        push.linger = -1
        push.connect(door)
        send_all(push, seed, name, count)


def write_by(descriptor, count):
    for n in range(count):
        os.write(descriptor, b"x")
        if n % 7 == 0:
            time.sleep(0.001)


def receive_until(over, pull, got):
    while not over.is_set():
        try:
            got.append(identify(pull.recv_multipart(timeout=0.05)))
        except zmq.Again:
            continue


def poll_until(over, items, seed, got):
    """Take what a poll says is there, messages and octets, unless another thread is quicker."""
    poller = zmq.Poller()
    Random(seed).shuffle(items)
    for item in items:
        poller.register(item, zmq.POLLIN)
    while not over.is_set():
        for item, events in poll_somehow(poller, items, seed):
            assert events == zmq.POLLIN
            try:
                if isinstance(item, int):
                    got.extend(os.read(item, 5))
                else:
                    got.append(identify(item.recv_multipart(zmq.DONTWAIT)))
            except (BlockingIOError, zmq.Again):
                continue


def poll_somehow(poller, items, seed):
    """With a Poller, or with select."""
    if seed < 0.5:
        return poller.poll(20)
    readable, _, _ = zmq.select(items, [], [], 0.02)
    return [(item, zmq.POLLIN) for item in readable]


@pytest.mark.parametrize("transport", TRANSPORTS)
@in_rounds(1)
def test_whoever_polls_for_room_gets_it_and_keeps_nobody_else_from_it(
    new_context, bind, team, transport, random
):
    """Several threads wait for POLLOUT of one socket, each with a pipe beside it in the poll."""
    context = new_context()
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    push.sndhwm = pull.rcvhwm = 2
    push.connect(bind(pull, transport))
    senders, each, size = 3, 60, random.choice((10, 50_000))

    def send(name):
        silent = context.socket(zmq.PULL)
        poller = zmq.Poller()
        poller.register(silent, zmq.POLLIN)
        poller.register(push, zmq.POLLOUT)
        for number in range(each):
            while True:
                assert poller.poll(PATIENCE_MS) == [(push, zmq.POLLOUT)]
                try:
                    push.send(b"%d %d " % (name, number) + bytes(size), zmq.DONTWAIT)
                except zmq.Again:
                    continue  # another thread was quicker
                break

    for name in range(senders):
        team.start(send, name)
    got = [identify(pull.recv_multipart()) for _ in range(senders * each)]
    assert sorted(got) == everything(senders, each)
    assert_in_order(got)


@pytest.mark.parametrize("transport", TRANSPORTS)
@in_rounds(1)
def test_time_limits_hold_beside_a_flood(new_context, bind, team, transport, random):
    """Whoever sits in the seat for others must not forget that its own time is over."""
    context = new_context()
    push, pull, silent = map(context.socket, (zmq.PUSH, zmq.PULL, zmq.PAIR))
    push.connect(bind(pull, transport))
    silent.sndtimeo = silent.rcvtimeo = 20
    bind(silent, transport)
    over = threading.Event()

    def flood():
        while not over.is_set():
            push.send(b"flood")
        push.send(END)

    def drink():
        while pull.recv() != END:
            pass

    def give_up(call):
        for _ in range(5):
            begin = time.monotonic()
            with pytest.raises(zmq.Again):
                call()
            assert 0.015 < time.monotonic() - begin < 2

    def poll():
        if not silent.poll(20, zmq.POLLIN | zmq.POLLOUT):
            raise zmq.Again

    others = [team.start(flood), team.start(drink)]
    waits = [silent.recv, lambda: silent.send(b"x"), poll, lambda: silent.wait_connected(0.02)]
    for member in [team.start(give_up, wait) for wait in waits]:
        member.join()
    over.set()
    for member in others:
        member.join()
