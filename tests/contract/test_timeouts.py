"""RCVTIMEO, SNDTIMEO, DONTWAIT (zmq_setsockopt(3); libzmq's test_timeo)."""

import time

import pytest


async def test_a_receive_gives_up_after_rcvtimeo(net, zmq):
    pull = net.socket(zmq.PULL, rcvtimeo=30)
    pull.bind(net.endpoint())
    started = time.monotonic()
    with pytest.raises(zmq.Again) as gave_up:
        await pull.recv()
    assert 0.029 <= time.monotonic() - started < 5
    assert gave_up.value.errno == zmq.EAGAIN
    assert str(gave_up.value) == "Resource temporarily unavailable"


async def test_a_send_gives_up_after_sndtimeo(net, zmq):
    push = net.socket(zmq.PUSH, sndtimeo=30)
    push.bind(net.endpoint())
    started = time.monotonic()
    with pytest.raises(zmq.Again):
        await push.send(b"x")
    assert 0.029 <= time.monotonic() - started < 5


async def test_dontwait_and_a_timeout_of_zero_do_not_wait(net, zmq):
    pull, push = net.socket(zmq.PULL, rcvtimeo=-1), net.socket(zmq.PUSH, sndtimeo=-1)
    for call in (pull.recv, pull.recv_multipart, pull.recv_string, pull.recv_json):
        with pytest.raises(zmq.Again):
            await call(zmq.DONTWAIT)
    for call, message in ((push.send, b"x"), (push.send_multipart, [b"x"]), (push.send_json, 1)):
        with pytest.raises(zmq.Again):
            await call(message, flags=zmq.DONTWAIT)
    pull.rcvtimeo = push.sndtimeo = 0
    with pytest.raises(zmq.Again):
        await pull.recv()
    with pytest.raises(zmq.Again):
        await push.send(b"x")


async def test_without_a_timeout_a_receive_waits_for_its_message(net, zmq):
    pull, push = net.socket(zmq.PULL, rcvtimeo=-1), net.socket(zmq.PUSH)
    await net.link(pull, push)
    assert (pull.rcvtimeo, pull.sndtimeo) == (-1, 8000)
    waiting = net.start(pull.recv())
    await net.tick(0.05)
    assert not waiting.done()
    await push.send(b"at last")
    assert await waiting == b"at last"


async def test_a_message_in_time_ends_the_wait(net, zmq):
    pull, push = net.socket(zmq.PULL, rcvtimeo=10_000), net.socket(zmq.PUSH)
    await net.link(pull, push)
    for n in range(20):
        waiting = net.start(pull.recv_multipart())
        await push.send(b"%d" % n)
        assert await waiting == [b"%d" % n]


async def test_a_timed_out_receive_takes_no_message_with_it(net, zmq):
    pull, push = net.socket(zmq.PULL, rcvtimeo=1), net.socket(zmq.PUSH)
    await net.link(pull, push)
    got = []
    for n in range(100):
        await push.send(b"%d" % n)
        try:
            got.append(await pull.recv())
        except zmq.Again:
            continue
    pull.rcvtimeo = 5000
    got += [await pull.recv() for _ in range(100 - len(got))]
    assert got == [b"%d" % n for n in range(100)]


async def test_a_message_of_several_parts_times_out_as_a_whole(net, zmq):
    pull, push = net.socket(zmq.PULL, rcvtimeo=20), net.socket(zmq.PUSH)
    await net.link(pull, push)
    await push.send(b"a", zmq.SNDMORE)
    with pytest.raises(zmq.Again):
        await pull.recv_multipart()
    await push.send(b"b")
    assert await pull.recv_multipart() == [b"a", b"b"]


@pytest.mark.zerohop  # a per-call time limit, in seconds
@pytest.mark.parametrize("call", ["recv", "recv_multipart", "recv_string"])
async def test_a_call_may_have_a_timeout_of_its_own(net, zmq, call):
    pull, push = net.socket(zmq.PULL, rcvtimeo=-1), net.socket(zmq.PUSH)
    await net.link(pull, push)
    started = time.monotonic()
    with pytest.raises(zmq.Again):
        await getattr(pull, call)(timeout=0.03)
    assert 0.029 <= time.monotonic() - started < 5
    await push.send(b"in time")
    assert await pull.recv(timeout=5.0) == b"in time"


@pytest.mark.zerohop
async def test_a_timeout_that_is_no_number_is_a_type_error(net, zmq):
    pair = net.socket(zmq.PAIR)
    pair.bind(net.endpoint())
    for call in (pair.recv, pair.wait_connected, lambda **how: pair.send(b"x", **how)):
        with pytest.raises(TypeError, match="timeout is a number of seconds or None, not 'soon'"):
            await call(timeout="soon")


@pytest.mark.zerohop
async def test_a_send_may_have_a_timeout_of_its_own(net, zmq):
    push = net.socket(zmq.PUSH, sndtimeo=-1)
    push.bind(net.endpoint())
    with pytest.raises(zmq.Again):
        await push.send(b"x", timeout=0.03)
    with pytest.raises(zmq.Again):
        await push.send_multipart([b"x", b"y"], timeout=0.03)
