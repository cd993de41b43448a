"""Large bodies: how often they are copied, how long a lent one is lent, what memory they take.

Memory is what Python has asked for (``tracemalloc``), so the bounds are the same on every machine.
A receiver's buffer may be an eighth larger than the body for a moment: it grows in steps.
"""

import contextlib
import gc
import struct
import sys
import tracemalloc
import weakref

import numpy as np
import pytest

from tests.kit.raw import LONG, RawListener, RawPeer, message
from tests.kit.traffic import introduce

MIB = 1 << 20
SIZE = 4 * MIB
LITTLE = 64 * 1024  # a call that copies no body stays below
BESIDE = MIB  # what else both ends may need at once: chunks that are read, lists, this test
OVER_THE_NETWORK = pytest.mark.over("tcp", "ipc")
COPY_OR_NOT = pytest.mark.parametrize("copy", [True, False], ids=["copy", "no copy"])


class Memory:
    """What was asked for since the ``with`` block began, beyond what there was before."""

    def __enter__(self):
        gc.collect()
        tracemalloc.start()
        return self

    def __exit__(self, *exc_info):
        tracemalloc.stop()

    @property
    def now(self):
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    @property
    def peak(self):
        return tracemalloc.get_traced_memory()[1]


def received(size):
    """What the receivers of so many octets may hold for them."""
    return size * 9 // 8 + BESIDE


def pattern(size):
    """Octets that are not the same if a piece of them is missing, twice, or elsewhere."""
    return np.arange(size // 4, dtype="<u4").tobytes()


async def linked(net, zmq, kinds=("PUSH", "PULL"), **options):
    ends = [net.socket(getattr(zmq, kind), **options) for kind in kinds]
    await net.link(ends[1], ends[0])
    return ends


# Copies


@COPY_OR_NOT
async def test_64_mib_are_there_once_at_the_sender_and_once_at_the_receiver(net, zmq, copy):
    body = pattern(64 * MIB)
    push, pull = await linked(net, zmq)
    with Memory() as memory:
        await push.send(body, copy=copy)
        came = await pull.recv(copy=copy)
        peak = memory.peak
    assert (came if copy else came.bytes) == body
    assert peak <= received(64 * MIB)


@OVER_THE_NETWORK
@COPY_OR_NOT
async def test_only_what_can_change_is_copied_to_be_sent(net, zmq, copy):
    push, pull = await linked(net, zmq)
    parts = [
        b"head",
        np.arange(SIZE // 8, dtype="<f8").reshape(4, -1),
        bytearray(pattern(SIZE)),
        memoryview(pattern(SIZE)),
        b"",
        pattern(SIZE),
        zmq.Frame(pattern(SIZE), copy=False),
        b"tail",
    ]
    with Memory() as memory:
        await push.send_multipart(parts, copy=copy)
        came = await pull.recv_multipart(copy=False)
        peak = memory.peak
    assert [bytes(frame) for frame in came] == [bytes(part) for part in parts]
    assert [frame.more for frame in came] == [True] * 7 + [False]
    assert peak <= received(5 * SIZE) + 3 * SIZE * copy


@pytest.mark.zerohop  # pyzmq copies from libzmq's message
@COPY_OR_NOT
async def test_what_was_received_is_handed_out_without_another_copy(net, zmq, copy):
    push, pull = await linked(net, zmq)
    await push.send(pattern(SIZE))
    assert await pull.poll()
    with Memory() as memory:
        came = await pull.recv(copy=copy)
        peak = memory.peak
    assert len(came) == SIZE
    assert peak <= LITTLE


@pytest.mark.zerohop  # pyzmq copies when it is first asked for bytes
async def test_a_frame_is_a_view_of_what_was_received(net, zmq):
    push, pull = await linked(net, zmq)
    await push.send_multipart([pattern(SIZE), pattern(SIZE)])
    for frame in await pull.recv_multipart(copy=False):
        with Memory() as memory:
            assert frame.bytes is frame.bytes
            assert len(frame.buffer) == SIZE
            assert np.frombuffer(frame.buffer, "<u4")[-1] == SIZE // 4 - 1
            assert memory.peak <= LITTLE


@pytest.mark.over("inproc")
@pytest.mark.zerohop  # libzmq copies, or shares the memory and not the object
@COPY_OR_NOT
async def test_octets_go_through_a_process_as_the_very_object(net, zmq, copy):
    push, pull = await linked(net, zmq)
    first, second = pattern(SIZE), pattern(SIZE)
    await push.send(first, copy=copy)
    assert await pull.recv() is first
    await push.send_multipart([first, second], copy=copy)
    frames = await pull.recv_multipart(copy=False)
    assert frames[0].bytes is first
    assert frames[1].bytes is second


@pytest.mark.over("inproc")
async def test_what_is_lent_is_copied_once_within_a_process(net, zmq):
    push, pull = await linked(net, zmq)
    with Memory() as memory:
        body = bytearray(SIZE)
        await push.send(body, copy=False)
        came = await pull.recv(copy=False)
        peak = memory.peak
    assert came.bytes == body
    assert peak <= 2 * SIZE + BESIDE


async def test_a_frame_is_sent_on_without_a_copy(net, zmq):
    first, second = await linked(net, zmq), await linked(net, zmq)
    body = pattern(SIZE)
    with Memory() as memory:
        await first[0].send(body)
        await second[0].send(await first[1].recv(copy=False), copy=False)
        came = await second[1].recv(copy=False)
        peak = memory.peak
    assert came.bytes == body
    assert peak <= received(2 * SIZE)


async def test_all_subscribers_are_sent_the_same_octets(net, zmq):
    pub = net.socket(zmq.PUB)
    subs = [net.socket(zmq.SUB) for _ in range(3)]
    for sub in subs:
        sub.setsockopt(zmq.SUBSCRIBE, b"")
    await net.link(pub, *subs)
    await introduce(net, pub, *subs)
    body = bytearray(pattern(SIZE))
    with Memory() as memory:
        await pub.send(body, copy=False)
        came = [await sub.recv(copy=False) for sub in subs]
        peak = memory.peak
    assert [frame.bytes == body for frame in came] == [True] * 3
    assert peak <= received(3 * SIZE)


async def test_a_part_is_received_into_a_buffer_without_a_second_one(net, zmq):
    push, pull = await linked(net, zmq)
    body, buffer = pattern(SIZE), bytearray(SIZE + 1)
    with Memory() as memory:
        await push.send(body)
        assert await pull.recv_into(buffer) == SIZE
        peak = memory.peak
    assert buffer[:SIZE] == body
    assert peak <= received(SIZE)


# What is lent


@pytest.mark.parametrize("part_of_many", [False, True], ids=["send", "send_multipart"])
@COPY_OR_NOT
async def test_what_is_lent_is_sent_as_it_is_when_it_goes_out(net, zmq, copy, part_of_many):
    """That it is not the caller's to change: here somebody does, which shows that it is no copy."""
    push, pull, endpoint = net.socket(zmq.PUSH), net.socket(zmq.PULL), net.endpoint()
    push.reconnect_ivl = 10
    push.connect(endpoint)
    body = np.zeros(SIZE, np.uint8)
    if part_of_many:
        await push.send_multipart([b"head", body], copy=copy)
    else:
        await push.send(body, copy=copy)
    body[:] = 1
    pull.bind(endpoint)
    assert (await pull.recv_multipart())[-1] == bytes([not copy]) * SIZE


@OVER_THE_NETWORK
@pytest.mark.zerohop  # libzmq copies octets, too, where it is not asked not to
@COPY_OR_NOT
async def test_octets_are_held_until_they_are_out_and_then_no_more(net, zmq, copy):
    push, pull, endpoint = net.socket(zmq.PUSH), net.socket(zmq.PULL), net.endpoint()
    push.reconnect_ivl = 10
    push.connect(endpoint)
    body = pattern(SIZE)
    before = sys.getrefcount(body)
    await push.send(body, copy=copy)
    assert sys.getrefcount(body) > before
    pull.bind(endpoint)
    assert await pull.recv() == body
    await net.eventually(lambda: sys.getrefcount(body) == before)


@OVER_THE_NETWORK
@pytest.mark.zerohop
async def test_a_publisher_lets_go_of_octets_that_are_out(net, zmq):
    pub, sub, endpoint = net.socket(zmq.PUB), net.socket(zmq.SUB), net.endpoint()
    pub.bind(endpoint)
    sub.subscribe(b"")
    sub.connect(endpoint)
    await pub.wait_for_subscribers(b"", 1)
    body = pattern(SIZE)
    before = sys.getrefcount(body)
    await pub.send(body)
    assert await sub.recv() == body
    await net.eventually(lambda: sys.getrefcount(body) == before)


@OVER_THE_NETWORK
@pytest.mark.zerohop  # who looks into queues (peers) to see what the system has
async def test_a_tracker_is_done_as_soon_as_the_system_has_the_last_octet(net, zmq):
    push = net.socket(zmq.PUSH)
    with RawListener(net) as listener:
        push.connect(listener.endpoint)
        peer = await listener.accept()
        await peer.handshake(b"PULL")
        body = np.ones(SIZE, np.uint8)
        lent = weakref.ref(body)
        sent_before = push.peers()[0].octets_sent
        tracker = await push.send(body, copy=False, track=True)
        del body
        out = sent_before + 9 + SIZE
        seen = set()
        for _ in range(SIZE // (MIB // 4)):
            before = push.peers()[0].octets_sent
            held = lent() is not None  # looked at first: another thread may send meanwhile
            done = tracker.done
            after = push.peers()[0].octets_sent
            assert (before == out) <= done <= (after == out)
            assert done or held
            seen.add(done)
            await peer.read(MIB // 4)
        assert (await peer.read(9)) == b"\x01" * 9
        await net.eventually(lambda: tracker.done)
        assert push.peers()[0].octets_sent == out
        assert lent() is None
        assert False in seen


async def test_one_tracker_speaks_for_all_parts(net, zmq):
    push, pull, endpoint = net.socket(zmq.PUSH), net.socket(zmq.PULL), net.endpoint()
    push.reconnect_ivl = 10
    push.connect(endpoint)
    parts = [np.zeros(SIZE, np.uint8), bytearray(SIZE), b"small", memoryview(bytes(SIZE))]
    tracker = await push.send_multipart(parts, copy=False, track=True)
    assert not tracker.done
    with pytest.raises(zmq.NotDone):
        tracker.wait(0)
    pull.bind(endpoint)
    assert list(map(len, await pull.recv_multipart())) == [SIZE, SIZE, 5, SIZE]
    await net.eventually(lambda: tracker.done)


WITH_GAPS = pytest.mark.parametrize(
    "make",
    [
        lambda: memoryview(bytearray(200_000))[::2],
        lambda: np.zeros(200_000, np.uint8)[::2],
        lambda: np.zeros((1024, 200), np.uint8)[:, :100],
    ],
    ids=["memoryview", "array", "columns of a matrix"],
)


@WITH_GAPS
@COPY_OR_NOT
async def test_a_buffer_with_gaps_is_refused(net, zmq, make, copy):
    push, pull = await linked(net, zmq)
    with pytest.raises((BufferError, ValueError), match="contiguous"):
        await push.send(make(), copy=copy)
    await push.send(b"next")
    assert await pull.recv_multipart() == [b"next"]


@pytest.mark.zerohop  # pyzmq has sent the parts before it by then
@WITH_GAPS
@COPY_OR_NOT
async def test_a_message_with_such_a_part_is_refused_as_a_whole(net, zmq, make, copy):
    push, pull = await linked(net, zmq)
    with pytest.raises(BufferError, match="contiguous"):
        await push.send_multipart([b"head", make(), b"tail"], copy=copy)
    await push.send(b"next")
    assert await pull.recv_multipart() == [b"next"]


async def test_octets_go_in_the_order_that_they_have_in_memory(net, zmq):
    push, pull = await linked(net, zmq)
    matrix = np.arange(SIZE // 4, dtype="<u4").reshape(1024, -1)
    for array in (matrix, matrix[::-1][::-1], matrix.reshape(4, 256, -1)):
        await push.send(array, copy=False)
        assert await pull.recv() == matrix.tobytes()
    await push.send(matrix.astype(">u4")[:512], copy=False)
    assert (np.frombuffer(await pull.recv(), ">u4").reshape(512, -1) == matrix[:512]).all()


# Memory


@OVER_THE_NETWORK
@pytest.mark.zerohop  # libzmq allocates what a header of nine octets announces
async def test_memory_grows_with_what_has_come_and_not_with_what_was_announced(net, zmq):
    pull, endpoint, step = net.socket(zmq.PULL), net.endpoint(), MIB // 2
    pull.bind(endpoint)
    piece = bytes(step)
    with await RawPeer.dial(net, endpoint) as peer:
        await peer.handshake(b"PUSH")
        with Memory() as memory:
            await peer.send(bytes([LONG]) + struct.pack(">Q", 1 << 40))
            assert memory.peak <= BESIDE
            before = pull.peers()[0].octets_received
            for come in range(step, 4 * MIB, step):
                await peer.send(piece)
                await net.eventually(
                    lambda come=come: pull.peers()[0].octets_received >= before + come
                )
                assert memory.peak <= 2 * come * 9 // 8 + BESIDE
            peer.reset()
            await net.eventually(lambda: not pull.peers())
            assert memory.now <= BESIDE


@OVER_THE_NETWORK
async def test_who_does_not_receive_holds_what_the_high_water_mark_allows(net, zmq):
    push, pull = await linked(net, zmq, rcvhwm=1, sndhwm=1)
    body = pattern(SIZE)
    with Memory() as memory:
        sent = 0
        while await push.poll(100, zmq.POLLOUT):
            with contextlib.suppress(zmq.Again):
                await push.send(body, zmq.DONTWAIT)
                sent += 1
        assert 2 <= sent <= 6, "two queues, two batches, and what the system holds"
        assert memory.peak <= received(2 * SIZE)
        for _ in range(sent):
            assert len(await pull.recv(copy=False)) == SIZE
        await net.eventually(lambda: memory.now <= BESIDE)


@OVER_THE_NETWORK
async def test_a_body_may_be_cut_anywhere_and_have_anything_around_it(net, zmq):
    pull, endpoint = net.socket(zmq.PULL), net.endpoint()
    pull.bind(endpoint)
    body = pattern(300_000)
    small = [b"small", b"", b"x" * 255, b"y" * 256]
    octets = message(*small) + message(body) + message(b"head", body, b"tail") + message(b"end")
    expected = [small, [body], [b"head", body, b"tail"], [b"end"]]
    with await RawPeer.dial(net, endpoint) as peer:
        await peer.handshake(b"PUSH")
        for cut in (1, 9, 400, 520, 535, 65_536, 300_000, 300_538, 300_560, 600_560):
            await peer.send(octets[:cut])
            await net.tick(0.002)
            await peer.send(octets[cut:])
            assert [await pull.recv_multipart() for _ in expected] == expected
