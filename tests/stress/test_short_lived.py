"""Thousands of sockets and contexts that live for a moment: nothing of them stays."""

import asyncio
import collections
import gc
import os
import sys
import threading
import time
import warnings

import pytest

import zerohop as zmq
import zerohop.asyncio as zmqa
from tests.stress.kit import SOAK, TRANSPORTS, limited

pytestmark = limited

TIMES = 100 + int(30 * SOAK)  # a second makes about 500 pairs
CANCELLED_TIMERS = 64  # stay with a reactor, without what they would have called
BEFORE = 20  # rounds after which what is made once has been made


class Holdings:
    """What this process has that could grow."""

    def __init__(self):
        gc.collect()
        kinds = map(type, gc.get_objects())
        self.objects = collections.Counter(
            kind.__name__ for kind in kinds if str(kind.__module__).startswith("zerohop")
        )
        self.descriptors = len(os.listdir("/proc/self/fd"))
        self.threads = threading.active_count()
        self.blocks = sys.getallocatedblocks()

    def growth_since(self, before, times):
        """What has been added, in words; what is closed ends on another thread, a little later."""
        added = self.objects - before.objects
        if added["Handle"] <= CANCELLED_TIMERS:
            del added["Handle"]
        for name in ("descriptors", "threads"):
            if getattr(self, name) > getattr(before, name):
                added[name] = getattr(self, name) - getattr(before, name)
        blocks = self.blocks - before.blocks
        if blocks > 500 + times / 2:  # a block for two lives would be a leak
            added["blocks of memory"] = blocks
        return added


def assert_nothing_grows(live):
    """Call ``live`` again and again; after the first times nothing may be added."""
    for _ in range(BEFORE):
        live()
    time.sleep(0.05)
    before = Holdings()
    for _ in range(TIMES):
        live()
    patience = 100
    while growth := Holdings().growth_since(before, TIMES):
        assert patience, growth
        patience -= 1
        time.sleep(0.02)


@pytest.fixture
def own():
    """A context that forgets its sockets."""
    own = zmq.Context()
    yield own
    own.destroy(linger=0)


def use(context, bind, transport):
    """Two sockets meet, talk, and are closed."""
    with context.socket(zmq.DEALER) as one, context.socket(zmq.ROUTER) as other:
        one.linger = other.linger = 0
        one.connect(bind(other, transport))
        one.send(b"x")
        other.send_multipart(other.recv_multipart(timeout=8))
        assert one.recv(timeout=8) == b"x"


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_sockets_of_one_context(own, bind, transport):
    assert_nothing_grows(lambda: use(own, bind, transport))


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_contexts(bind, transport):
    def live():
        with zmq.Context() as own:
            use(own, bind, transport)

    assert_nothing_grows(live)


def test_clients_of_a_server_that_stays(context, own, bind):
    """What the server kept of each of them goes with it."""
    router = context.socket(zmq.ROUTER)
    pub = context.socket(zmq.XPUB)
    doors = bind(router, "tcp"), bind(pub, "ipc")

    def live():
        with own.socket(zmq.REQ) as req, own.socket(zmq.SUB) as sub:
            req.linger = sub.linger = 0
            req.connect(doors[0])
            sub.connect(doors[1])
            sub.subscribe(b"anything")
            req.send(b"x")
            router.send_multipart(router.recv_multipart())
            assert req.recv(timeout=8) == b"x"
            assert pub.recv() == b"\1anything"
        assert pub.recv() == b"\0anything"
        while router.peers():
            router.poll(1)

    assert_nothing_grows(live)


def test_sockets_that_nobody_closes(own, bind):

    def live():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            push, pull = own.socket(zmq.PUSH), own.socket(zmq.PULL)
            push.connect(bind(pull, "tcp"))
            push.send(b"x")
            assert pull.recv(timeout=8) == b"x"
            del push, pull

    assert_nothing_grows(live)


def test_waits_and_polls_that_come_to_nothing(context, bind):
    pull = context.socket(zmq.PULL)
    bind(pull, "tcp")
    poller = zmq.Poller()
    poller.register(pull, zmq.POLLIN)
    reader, writer = os.pipe()
    poller.register(reader, zmq.POLLIN)

    def live():
        for _ in range(3):
            assert poller.poll(0.01) == []
            with pytest.raises(zmq.Again):
                pull.recv(timeout=0.00001)
            assert not pull.poll(0.01)

    assert_nothing_grows(live)
    os.close(reader), os.close(writer)


def test_asyncio_contexts_and_loops(bind):
    async def talk():
        with zmqa.Context() as own, own.socket(zmq.REQ) as req, own.socket(zmq.REP) as rep:
            req.linger = 0
            req.connect(bind(rep, "tcp"))
            await req.send(b"x")
            await rep.send(await rep.recv())
            assert await req.recv() == b"x"

    assert_nothing_grows(lambda: asyncio.run(talk()))
