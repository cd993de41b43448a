"""REQ_RELAXED and REQ_CORRELATE: a REQ that may ask again (libzmq's test_req_relaxed)."""

import pytest


async def test_a_relaxed_req_may_ask_again_before_the_reply(net, zmq):
    req = net.socket(zmq.REQ, req_relaxed=1, req_correlate=1)
    reps = [net.socket(zmq.REP) for _ in range(2)]
    for rep in reps:
        await net.link(rep, req)
    await req.send(b"to the first")
    assert await reps[0].recv() == b"to the first"
    await req.send(b"to the second")
    assert await reps[1].recv() == b"to the second"
    await reps[0].send(b"late")
    await reps[1].send(b"in time")
    assert await req.recv() == b"in time"


async def test_a_correlated_request_carries_four_octets_before_the_empty_frame(net, zmq):
    req = net.socket(zmq.REQ, req_relaxed=1, req_correlate=1, routing_id=b"req")
    router = net.socket(zmq.ROUTER)
    await net.link(router, req)
    ids = []
    for n in (b"1", b"2", b"3"):
        await req.send(n)
        who, request_id, empty, body = await router.recv_multipart()
        assert (who, len(request_id), empty, body) == (b"req", 4, b"", n)
        ids.append(int.from_bytes(request_id, "little"))
    assert [(later - ids[0]) % 2**32 for later in ids] == [0, 1, 2]


async def test_a_reply_with_another_request_id_is_discarded(net, zmq):
    req = net.socket(zmq.REQ, req_relaxed=1, req_correlate=1, routing_id=b"req")
    router = net.socket(zmq.ROUTER)
    await net.link(router, req)
    await req.send(b"first")
    _, first_id, *_ = await router.recv_multipart()
    await req.send(b"second")
    _, second_id, *_ = await router.recv_multipart()
    await router.send_multipart([b"req", first_id, b"", b"late"])
    await router.send_multipart([b"req", bytes(4), b"", b"never asked"])
    await router.send_multipart([b"req", second_id, b"", b"in time"])
    assert await req.recv() == b"in time"


async def test_rep_gives_back_the_request_id_too(net, zmq):
    req, rep = net.socket(zmq.REQ, req_correlate=1), net.socket(zmq.REP)
    await net.link(rep, req)
    for n in (b"1", b"2"):
        await req.send(n)
        assert await rep.recv_multipart() == [n]
        await rep.send(b"answer " + n)
        assert await req.recv_multipart() == [b"answer " + n]


async def test_a_correlated_req_that_is_not_relaxed_is_still_strict(net, zmq):
    req, rep = net.socket(zmq.REQ, req_correlate=1), net.socket(zmq.REP)
    await net.link(rep, req)
    await req.send(b"1")
    with pytest.raises(zmq.ZMQError) as twice:
        await req.send(b"2")
    assert twice.value.errno == zmq.EFSM


async def test_without_correlation_a_late_reply_is_taken_for_the_new_one(net, zmq):
    req, rep = net.socket(zmq.REQ, req_relaxed=1, routing_id=b"req"), net.socket(zmq.ROUTER)
    await net.link(rep, req)
    for n in (b"1", b"2"):
        await req.send(n)
        assert await rep.recv_multipart() == [b"req", b"", n]
    await rep.send_multipart([b"req", b"", b"answer 1"])
    assert await req.recv() == b"answer 1"


async def test_a_relaxed_req_asks_the_next_peer_when_the_first_has_left(net, zmq):
    req = net.socket(zmq.REQ, req_relaxed=1, req_correlate=1)
    endpoint = net.endpoint()
    req.bind(endpoint)
    first, second = net.socket(zmq.REP), net.socket(zmq.REP)
    await net.join(endpoint, req, first)
    await req.send(b"to the first")
    assert await first.recv() == b"to the first"
    first.close(linger=0)
    await net.eventually(lambda: not req.events & zmq.POLLOUT)
    await net.join(endpoint, req, second)
    await req.send(b"to the second")
    assert await second.recv() == b"to the second"
    await second.send(b"answer")
    assert await req.recv() == b"answer"


async def test_a_relaxed_req_that_has_no_answer_to_wait_for_still_cannot_receive(net, zmq):
    req, rep = net.socket(zmq.REQ, req_relaxed=1), net.socket(zmq.REP)
    await net.link(rep, req)
    with pytest.raises(zmq.ZMQError) as too_early:
        await req.recv(zmq.DONTWAIT)
    assert too_early.value.errno == zmq.EFSM
