"""REQ and REP: one request, one reply, and the envelope (RFC 28; libzmq's test_spec_req, _rep)."""

import pytest

from tests.kit.traffic import fill


async def test_a_request_is_answered(net, zmq):
    rep, req = net.socket(zmq.REP), net.socket(zmq.REQ)
    await net.link(rep, req)
    for n in range(20):
        await req.send_multipart([b"question", b"%d" % n])
        assert await rep.recv_multipart() == [b"question", b"%d" % n]
        await rep.send_multipart([b"answer", b"", b"%d" % n])
        assert await req.recv_multipart() == [b"answer", b"", b"%d" % n]


async def test_req_and_rep_may_bind_and_connect_the_other_way_round(net, zmq):
    rep, req = net.socket(zmq.REP), net.socket(zmq.REQ)
    await net.link(req, rep)
    await req.send(b"question")
    assert await rep.recv() == b"question"
    await rep.send(b"answer")
    assert await req.recv() == b"answer"


async def test_req_and_rep_keep_to_their_order(net, zmq):
    rep, req = net.socket(zmq.REP), net.socket(zmq.REQ)
    await net.link(rep, req)
    with pytest.raises(zmq.ZMQError) as too_early:
        await req.recv(zmq.DONTWAIT)
    assert too_early.value.errno == zmq.EFSM
    with pytest.raises(zmq.ZMQError) as too_early:
        await rep.send(b"no question yet")
    assert too_early.value.errno == zmq.EFSM
    await req.send(b"question")
    with pytest.raises(zmq.ZMQError) as twice:
        await req.send(b"another question")
    assert twice.value.errno == zmq.EFSM
    await rep.recv()
    with pytest.raises(zmq.ZMQError) as twice:
        await rep.recv(zmq.DONTWAIT)
    assert twice.value.errno == zmq.EFSM
    await rep.send(b"answer")
    assert await req.recv() == b"answer"


@pytest.mark.zerohop  # zmq.asyncio waits for POLLIN first, which never comes
async def test_a_receive_out_of_turn_fails_at_once_even_if_it_may_wait(net, zmq):
    rep, req = net.socket(zmq.REP, rcvtimeo=-1), net.socket(zmq.REQ, rcvtimeo=-1)
    await net.link(rep, req)
    with pytest.raises(zmq.ZMQError) as too_early:
        await req.recv()
    assert too_early.value.errno == zmq.EFSM
    await req.send(b"question")
    await rep.recv()
    with pytest.raises(zmq.ZMQError) as twice:
        await rep.recv()
    assert twice.value.errno == zmq.EFSM


async def test_a_request_may_be_sent_part_by_part(net, zmq):
    rep, req = net.socket(zmq.REP), net.socket(zmq.REQ)
    await net.link(rep, req)
    await req.send(b"a", zmq.SNDMORE)
    await req.send(b"b")
    assert (await rep.recv(), await rep.recv()) == (b"a", b"b")
    await rep.send(b"c", zmq.SNDMORE)
    await rep.send(b"d")
    assert (await req.recv(), await req.recv()) == (b"c", b"d")


async def test_events_follow_the_order_of_request_and_reply(net, zmq):
    rep, req = net.socket(zmq.REP), net.socket(zmq.REQ)
    await net.link(rep, req)
    assert (req.events, rep.events) == (zmq.POLLOUT, 0)
    await req.send(b"question")
    assert req.events == 0
    assert await rep.poll(5000) == zmq.POLLIN
    await rep.recv()
    assert rep.events == zmq.POLLOUT
    await rep.send(b"answer")
    assert await req.poll(5000) == zmq.POLLIN
    await req.recv()
    assert (req.events, rep.events) == (zmq.POLLOUT, 0)


async def test_requests_go_to_the_peers_in_turn(net, zmq):
    req, reps = net.socket(zmq.REQ), [net.socket(zmq.REP) for _ in range(3)]
    for rep in reps:
        await net.link(rep, req)
    for n in range(6):
        await req.send(b"%d" % n)
        assert await reps[n % 3].recv() == b"%d" % n
        await reps[n % 3].send(b"ok")
        assert await req.recv() == b"ok"


async def test_a_request_waits_for_a_peer(net, zmq):
    req, rep, endpoint = net.socket(zmq.REQ), net.socket(zmq.REP), net.endpoint()
    req.bind(endpoint)
    with pytest.raises(zmq.Again):
        await req.send(b"refused", zmq.DONTWAIT)
    sending = net.start(req.send(b"waited"))
    rep.connect(endpoint)
    assert await rep.recv() == b"waited"
    await sending


async def test_rep_answers_each_requester_in_turn(net, zmq):
    rep, reqs = net.socket(zmq.REP), [net.socket(zmq.REQ) for _ in range(3)]
    await net.link(rep, *reqs)
    for n, req in enumerate(reqs):
        await req.send(b"%d" % n)
    for _ in reqs:
        await rep.send(b"to " + await rep.recv())
    assert [await req.recv() for req in reqs] == [b"to 0", b"to 1", b"to 2"]


async def test_on_the_wire_a_request_has_an_empty_frame_before_its_body(net, zmq):
    router, req = net.socket(zmq.ROUTER), net.socket(zmq.REQ, routing_id=b"req")
    await net.link(router, req)
    await req.send_multipart([b"a", b"b"])
    assert await router.recv_multipart() == [b"req", b"", b"a", b"b"]
    await router.send_multipart([b"req", b"", b"c", b"d"])
    assert await req.recv_multipart() == [b"c", b"d"]


async def test_rep_gives_back_the_whole_envelope(net, zmq):
    rep, dealer = net.socket(zmq.REP), net.socket(zmq.DEALER)
    await net.link(rep, dealer)
    await dealer.send_multipart([b"hop 2", b"hop 1", b"", b"", b"body"])
    assert await rep.recv_multipart() == [b"", b"body"]
    await rep.send_multipart([b"answer", b"end"])
    assert await dealer.recv_multipart() == [b"hop 2", b"hop 1", b"", b"answer", b"end"]


async def test_rep_passes_over_a_request_without_an_empty_frame(net, zmq):
    rep, dealer = net.socket(zmq.REP), net.socket(zmq.DEALER)
    await net.link(rep, dealer)
    await dealer.send(b"no envelope")
    await dealer.send_multipart([b"none", b"either"])
    await dealer.send_multipart([b"", b"a request"])
    assert await rep.recv_multipart() == [b"a request"]
    await rep.send(b"its answer")
    assert await dealer.recv_multipart() == [b"", b"its answer"]


async def test_a_reply_to_a_peer_that_has_left_is_dropped(net, zmq):
    rep, gone, req = net.socket(zmq.REP), net.socket(zmq.REQ), net.socket(zmq.REQ)
    endpoint = await net.link(rep, gone)
    await gone.send(b"question")
    assert await rep.recv() == b"question"
    gone.close(linger=0)
    await rep.send(b"to nobody")
    await net.join(endpoint, rep, req)
    await req.send(b"another")
    assert await rep.recv() == b"another"
    await rep.send(b"to somebody")
    assert await req.recv() == b"to somebody"


async def test_req_hears_only_the_peer_it_asked(net, zmq):
    req, asked = net.socket(zmq.REQ, routing_id=b"req"), net.socket(zmq.ROUTER)
    other = net.socket(zmq.ROUTER, router_mandatory=1)
    await net.link(asked, req)
    await net.link(other, req)
    await req.send(b"1")
    assert await asked.recv_multipart() == [b"req", b"", b"1"]
    await other.send_multipart([b"req", b"", b"unasked"])
    with pytest.raises(zmq.Again):
        await req.recv(zmq.DONTWAIT)
    await asked.send_multipart([b"req", b"", b"asked"])
    assert await req.recv() == b"asked"


@pytest.mark.over("inproc")  # elsewhere nothing tells when the superfluous reply has arrived
async def test_req_forgets_what_came_before_its_request(net, zmq):
    req, router = net.socket(zmq.REQ, routing_id=b"req"), net.socket(zmq.ROUTER)
    await net.link(router, req)
    for n in (b"1", b"2"):
        await req.send(n)
        assert await router.recv_multipart() == [b"req", b"", n]
        await router.send_multipart([b"req", b"", b"answer " + n])
        await router.send_multipart([b"req", b"", b"one too many"])
        assert await req.recv() == b"answer " + n


@pytest.mark.over("inproc", "tcp")
async def test_without_its_peer_a_req_that_waits_can_neither_send_nor_receive(net, zmq):
    rep, req = net.socket(zmq.REP), net.socket(zmq.REQ)
    await net.link(rep, req)
    await req.send(b"question")
    assert await rep.recv() == b"question"
    rep.close(linger=0)
    assert await req.poll(50, zmq.POLLIN | zmq.POLLOUT) == 0


@pytest.mark.parametrize("bodies", [[b"x"], [b"", b"x", b""], [b"y" * 100_000, b"z"]])
async def test_a_chain_of_devices_brings_the_reply_back(net, zmq, bodies):
    """REQ - ROUTER DEALER - ROUTER DEALER - REP: each ROUTER adds a hop, each DEALER keeps it."""
    req, rep = net.socket(zmq.REQ), net.socket(zmq.REP)
    fronts = [net.socket(zmq.ROUTER) for _ in range(2)]
    backs = [net.socket(zmq.DEALER) for _ in range(2)]
    await net.link(fronts[0], req)
    await net.link(fronts[1], backs[0])
    await net.link(backs[1], rep)
    for _ in range(3):
        await req.send_multipart(bodies)
        for front, back in zip(fronts, backs):
            await back.send_multipart(await front.recv_multipart())
        assert await rep.recv_multipart() == bodies
        await rep.send_multipart([b"re", *bodies])
        for front, back in zip(reversed(fronts), reversed(backs)):
            await front.send_multipart(await back.recv_multipart())
        assert await req.recv_multipart() == [b"re", *bodies]


# -- what is no request


async def by_waiting(net, zmq, rep):
    return await rep.recv()


async def by_polling(net, zmq, rep):
    assert await rep.poll(5000)
    return await rep.recv()


async def by_asking_again_and_again(net, zmq, rep):
    async def ask():
        try:
            return await rep.recv(zmq.DONTWAIT)
        except zmq.Again:
            return b""

    return await net.eventually(ask)


@pytest.mark.parametrize("ask", [by_waiting, by_polling, by_asking_again_and_again])
@pytest.mark.parametrize("already_full", [False, True])
async def test_a_queue_full_of_what_is_no_request_does_not_stop_the_requests_behind(
    net, zmq, ask, already_full
):
    rep, dealer = net.socket(zmq.REP, rcvhwm=5), net.socket(zmq.DEALER)
    await net.link(rep, dealer)
    for _ in range(40):
        await dealer.send(bytes(5000))  # no empty frame precedes it
    await dealer.send_multipart([b"", b"question"])
    if already_full:
        await net.tick(0.1)
    assert await ask(net, zmq, rep) == b"question"


@pytest.mark.over("inproc")
async def test_what_is_no_request_and_was_looked_at_leaves_room_for_more(net, zmq):
    rep, dealer = net.socket(zmq.REP, rcvhwm=2), net.socket(zmq.DEALER, sndhwm=2)
    await net.link(rep, dealer)
    await fill(zmq, dealer, 100)
    assert not await rep.poll(0)
    assert await dealer.poll(2000, zmq.POLLOUT)
