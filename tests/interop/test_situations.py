"""What happens to real connections with libzmq: restarts, heartbeats, devices, floods, options."""

import pytest

from tests.kit.traffic import fill, introduce, leave_while_answered, receive_numbers

pytestmark = [pytest.mark.interop, pytest.mark.over("tcp", "ipc")]

HEARTBEATS = {"heartbeat_ivl": 20, "heartbeat_timeout": 5000, "heartbeat_ttl": 6000}


@pytest.fixture(params=["ours", "theirs"])
def sides(request, net, theirs):
    """Two networks: the first holds the end the test is about; both ways round."""
    return (net, theirs) if request.param == "ours" else (theirs, net)


# -- either side leaves and comes back


async def test_a_connecting_sender_finds_its_peer_again(net, zmq, sides):
    mine, other = sides
    push, endpoint = mine.socket(zmq.PUSH, reconnect_ivl=10), other.endpoint()
    push.connect(endpoint)
    for n in range(3):
        pull = other.socket(zmq.PULL)
        await other.rebind(pull, endpoint)
        with mine.watch(push, zmq.EVENT_DISCONNECTED) as events:
            await push.send(b"%d" % n)
            assert await pull.recv() == b"%d" % n
            pull.close(linger=0)
            await events.next()


async def test_a_bound_receiver_takes_its_peer_back(net, zmq, sides):
    mine, other = sides
    pull, endpoint = mine.socket(zmq.PULL), mine.endpoint()
    pull.bind(endpoint)
    for n in range(3):
        push = other.socket(zmq.PUSH)
        push.connect(endpoint)
        await push.send_multipart([b"%d" % n, b"x" * 100_000])
        push.close()
        assert await pull.recv_multipart() == [b"%d" % n, b"x" * 100_000]


async def test_a_dealer_keeps_its_name_when_the_router_restarts(net, zmq, sides):
    mine, other = sides
    dealer = mine.socket(zmq.DEALER, routing_id=b"name", reconnect_ivl=10)
    endpoint = other.endpoint()
    dealer.connect(endpoint)
    for n in range(3):
        router = other.socket(zmq.ROUTER)
        await other.rebind(router, endpoint)
        with mine.watch(dealer, zmq.EVENT_DISCONNECTED) as events:
            await dealer.send(b"%d" % n)
            assert await router.recv_multipart() == [b"name", b"%d" % n]
            await router.send_multipart([b"name", b"re %d" % n])
            assert await dealer.recv() == b"re %d" % n
            router.close(linger=0)
            await events.next()


async def test_a_subscriber_subscribes_again_when_the_publisher_restarts(net, zmq, sides):
    mine, other = sides
    sub, endpoint = mine.socket(zmq.SUB, reconnect_ivl=10), other.endpoint()
    sub.subscribe(b"a")
    sub.connect(endpoint)
    for _ in range(3):
        pub = other.socket(zmq.PUB)
        await other.rebind(pub, endpoint)
        with mine.watch(sub, zmq.EVENT_DISCONNECTED) as events:
            await introduce(net, pub, sub, topic=b"a")
            await pub.send(b"b in vain")
            await pub.send(b"abc")
            assert await sub.recv() == b"abc"
            pub.close(linger=0)
            await events.next()


async def test_a_publisher_forgets_a_subscriber_that_left(net, zmq, sides):
    mine, other = sides
    xpub, endpoint = mine.socket(zmq.XPUB), mine.endpoint()
    xpub.bind(endpoint)
    for _ in range(3):
        sub = other.socket(zmq.SUB)
        sub.connect(endpoint)
        sub.subscribe(b"a")
        assert await xpub.recv() == b"\x01a"
        sub.close(linger=0)
        assert await xpub.recv() == b"\x00a"


# -- heartbeats


@pytest.mark.parametrize("who", ["ours", "theirs", "both"])
async def test_heartbeats_do_not_disturb(net, theirs, zmq, who):
    mine = net.socket(zmq.DEALER, **(HEARTBEATS if who != "theirs" else {}))
    peer = theirs.socket(zmq.DEALER, **(HEARTBEATS if who != "ours" else {}))
    await net.link(mine, peer)
    with net.watch(mine, zmq.EVENT_DISCONNECTED):
        for n in range(5):
            await net.tick(0.03)  # longer than an interval: the connection is idle
            await mine.send_multipart([b"%d" % n, b"x" * 100_000])
            assert await peer.recv_multipart() == [b"%d" % n, b"x" * 100_000]
            await peer.send(b"re %d" % n)
            assert await mine.recv() == b"re %d" % n
        assert not mine.events & zmq.POLLIN


async def test_requests_and_heartbeats_go_together(net, zmq, sides):
    mine, other = sides
    req, rep = mine.socket(zmq.REQ, **HEARTBEATS), other.socket(zmq.REP, **HEARTBEATS)
    await other.link(rep, req)
    for n in range(3):
        await net.tick(0.03)
        await req.send(b"%d" % n)
        assert await rep.recv() == b"%d" % n
        await net.tick(0.03)
        await rep.send(b"re %d" % n)
        assert await req.recv() == b"re %d" % n


# -- floods: nothing lost, nothing twice, in order


@pytest.mark.parametrize("size", [0, 20_000])
async def test_a_flood_arrives_whole(net, zmq, sides, size):
    mine, other = sides
    push, pull = mine.socket(zmq.PUSH, sndhwm=50), other.socket(zmq.PULL, rcvhwm=50)
    await other.link(pull, push)

    async def flood():
        for n in range(700):
            await push.send_multipart([b"%d" % n, b"x" * size])

    sending = net.start(flood())
    assert await receive_numbers(pull, 700) == list(range(700))
    await sending


async def test_a_slow_peer_stops_a_sender_of_the_other_library(net, zmq, sides):
    mine, other = sides
    push, pull = mine.socket(zmq.PUSH, sndhwm=5), other.socket(zmq.PULL, rcvhwm=5)
    push.sndbuf = pull.rcvbuf = 65536
    await other.link(pull, push)
    taken = await fill(mine.zmq, push, 500, b"x" * 100_000, settle_ms=100)
    assert 10 <= taken < 100
    assert await receive_numbers(pull, taken) == list(range(taken))


# -- options whose effect is seen at the other end


async def test_a_routing_id_is_told_to_the_router(net, zmq, sides):
    mine, other = sides
    router = other.socket(zmq.ROUTER)
    for name in (b"x", b"\0\1\2", b"\xff" * 255):
        dealer = mine.socket(zmq.DEALER, routing_id=name)
        await other.link(router, dealer)
        await dealer.send(b"hello")
        assert await router.recv_multipart() == [name, b"hello"]


async def test_a_probe_is_an_empty_message_to_the_router(net, zmq, sides):
    mine, other = sides
    router = other.socket(zmq.ROUTER)
    dealer = mine.socket(zmq.DEALER, routing_id=b"prober", probe_router=1)
    await other.link(router, dealer)
    assert await router.recv_multipart() == [b"prober", b""]


async def test_a_correlated_request_is_answered_by_the_other_library(net, zmq, sides):
    mine, other = sides
    req = mine.socket(zmq.REQ, req_correlate=1, req_relaxed=1)
    rep = other.socket(zmq.REP)
    await other.link(rep, req)
    for n in range(3):
        await req.send(b"%d" % n)
        assert await rep.recv() == b"%d" % n
        await rep.send(b"re %d" % n)
        assert await req.recv() == b"re %d" % n


async def test_a_newcomer_takes_a_name_over_across_libraries(net, zmq, sides):
    mine, other = sides
    router = mine.socket(zmq.ROUTER, router_handover=1)
    first, second = (other.socket(zmq.DEALER, routing_id=b"A") for _ in range(2))
    endpoint = await mine.link(router, first)
    await first.send(b"from the first")
    assert await router.recv_multipart() == [b"A", b"from the first"]
    await mine.join(endpoint, router, second)
    await second.send(b"from the second")
    assert await router.recv_multipart() == [b"A", b"from the second"]
    await router.send_multipart([b"A", b"to the second"])
    assert await second.recv() == b"to the second"


async def test_a_welcome_reaches_a_subscriber_of_the_other_library(net, zmq, sides):
    mine, other = sides
    xpub, sub = mine.socket(zmq.XPUB), other.socket(zmq.SUB)
    xpub.setsockopt(zmq.XPUB_WELCOME_MSG, b"welcome")
    sub.subscribe(b"welcome")
    await mine.link(xpub, sub)
    assert await sub.recv() == b"welcome"


@pytest.mark.parametrize("size", [0, 1, 254, 255, 256, 8000])
async def test_topics_of_any_length_are_understood(net, zmq, sides, size):
    mine, other = sides
    xpub, sub = mine.socket(zmq.XPUB), other.socket(zmq.SUB)
    topic = b"t" * size
    await mine.link(xpub, sub)
    sub.subscribe(topic)
    assert await xpub.recv() == b"\x01" + topic
    await xpub.send(topic + b"!")
    assert await sub.recv() == topic + b"!"
    sub.unsubscribe(topic)
    assert await xpub.recv() == b"\x00" + topic


@pytest.mark.zerohop  # against libzmq itself 1,000 arrive
async def test_5000_subscriptions_of_ours_reach_a_libzmq_publisher(net, theirs, zmq):
    xpub, sub = theirs.socket(zmq.XPUB), net.socket(zmq.SUB)
    await theirs.link(xpub, sub)
    for n in range(5000):
        sub.subscribe(b"%d" % n)
    assert {await xpub.recv() for _ in range(5000)} == {b"\x01%d" % n for n in range(5000)}


@pytest.mark.zerohop  # against libzmq itself 900, 600, 900
async def test_900_subscriptions_of_ours_survive_three_restarts_of_libzmq(net, theirs, zmq):
    sub, endpoint = net.socket(zmq.SUB, reconnect_ivl=10), theirs.endpoint()
    for n in range(900):
        sub.subscribe(b"%d" % n)
    sub.connect(endpoint)
    for _ in range(3):
        xpub = theirs.socket(zmq.XPUB)
        await theirs.rebind(xpub, endpoint)
        with net.watch(sub, zmq.EVENT_DISCONNECTED) as events:
            assert {await xpub.recv() for _ in range(900)} == {b"\x01%d" % n for n in range(900)}
            xpub.close(linger=0)
            await events.next()


# -- devices of one library between peers of the other


async def test_a_router_and_a_dealer_of_the_other_library_pass_requests_on(net, zmq, sides):
    mine, other = sides
    req, rep = mine.socket(zmq.REQ), mine.socket(zmq.REP)
    front, back = other.socket(zmq.ROUTER), other.socket(zmq.DEALER)
    await other.link(front, req)
    await other.link(back, rep)
    for n in range(5):
        await req.send_multipart([b"%d" % n, b"x" * 10_000])
        await back.send_multipart(await front.recv_multipart())
        assert await rep.recv_multipart() == [b"%d" % n, b"x" * 10_000]
        await rep.send_multipart([b"re", b"%d" % n])
        await front.send_multipart(await back.recv_multipart())
        assert await req.recv_multipart() == [b"re", b"%d" % n]


async def test_an_xsub_and_an_xpub_of_the_other_library_pass_messages_on(net, zmq, sides):
    mine, other = sides
    pub, sub = mine.socket(zmq.XPUB), mine.socket(zmq.SUB)
    upper, lower = other.socket(zmq.XSUB), other.socket(zmq.XPUB)
    await mine.link(pub, upper)
    await other.link(lower, sub)
    sub.subscribe(b"a")
    await upper.send(await lower.recv())
    assert await pub.recv() == b"\x01a"
    await pub.send(b"b in vain")
    await pub.send_multipart([b"abc", b"more"])
    await lower.send_multipart(await upper.recv_multipart())
    assert await sub.recv_multipart() == [b"abc", b"more"]


@pytest.mark.on("blocking")
@pytest.mark.parametrize("whose", ["ours", "theirs"])
async def test_a_proxy_of_one_library_serves_the_other(net, theirs, zmq, libzmq, whose):
    middle, outer = (net, theirs) if whose == "ours" else (theirs, net)
    module = zmq if whose == "ours" else libzmq
    context = middle.new_context()
    front, back = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    endpoints = middle.endpoint(), middle.endpoint()
    for end, endpoint in zip((front, back), endpoints):
        end.linger = 0
        end.bind(endpoint)

    async def forward():
        try:
            module.proxy(front, back)
        except module.ContextTerminated:
            front.close()
            back.close()

    proxying = net.start(forward())
    req, rep = outer.socket(zmq.REQ), outer.socket(zmq.REP)
    req.connect(endpoints[0])
    rep.connect(endpoints[1])
    for n in range(20):
        await req.send_multipart([b"question", b"%d" % n])
        assert await rep.recv_multipart() == [b"question", b"%d" % n]
        await rep.send(b"answer %d" % n)
        assert await req.recv() == b"answer %d" % n
    context.term()
    await proxying


# -- what must not work


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [("PUSH", "SUB"), ("REQ", "REQ"), ("PUB", "PULL"), ("PAIR", "DEALER"), ("DEALER", "PULL")],
)
async def test_types_that_do_not_fit_exchange_nothing(net, zmq, sides, kind, wrong):
    mine, other = sides
    bound, stranger = mine.socket(getattr(zmq, kind)), other.socket(getattr(zmq, wrong))
    endpoint = mine.endpoint()
    bound.bind(endpoint)
    with other.watch(stranger, zmq.EVENT_DISCONNECTED) as events:
        stranger.connect(endpoint)
        await events.next()
    assert not bound.events & zmq.POLLIN


@pytest.mark.over("tcp")
async def test_a_stream_of_one_library_talks_to_a_stream_of_the_other(net, zmq, sides):
    mine, other = sides
    bound, connected, endpoint = mine.socket(zmq.STREAM), other.socket(zmq.STREAM), mine.endpoint()
    bound.bind(endpoint)
    connected.connect(endpoint)
    to_connected, _ = await bound.recv_multipart()
    to_bound, _ = await connected.recv_multipart()
    await connected.send_multipart([to_bound, b"hello"])
    assert await bound.recv_multipart() == [to_connected, b"hello"]
    await bound.send_multipart([to_connected, b"hello back"])
    assert await connected.recv_multipart() == [to_bound, b"hello back"]


async def test_a_client_that_leaves_takes_no_request_back(net, zmq, theirs):
    router, dealer, endpoint = theirs.socket(zmq.ROUTER), net.socket(zmq.DEALER), theirs.endpoint()
    await leave_while_answered(router, dealer, endpoint)
