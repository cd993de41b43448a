"""proxy, proxy_steerable and devices: two sockets joined by a thread (zmq_proxy(3))."""

import pytest

pytestmark = pytest.mark.on("blocking")


class Threaded:
    """A proxy in a thread of its own; ends when its context does."""

    def __init__(self, net, zmq, run, *kinds):
        self.net = net
        self.context = net.new_context()
        self.sockets = [self.context.socket(kind) for kind in kinds]
        self.endpoints = [net.endpoint() for _ in kinds]
        for made, endpoint in zip(self.sockets, self.endpoints):
            made.linger = 0
            made.bind(endpoint)

        async def until_the_context_ends():
            try:
                run(*self.sockets)
            except zmq.ContextTerminated:
                pass
            finally:
                for made in self.sockets:
                    made.close(linger=0)

        self.task = net.start(until_the_context_ends())

    async def end(self):
        self.context.term()
        await self.task


def peers(net, proxy, *kinds):
    """Return a socket for each side of the proxy; inproc needs the proxy's own context."""
    made = [net.socket(kind, context=proxy.context, linger=0) for kind in kinds]
    for peer, endpoint in zip(made, proxy.endpoints):
        peer.connect(endpoint)
    return made


async def test_requests_pass_through_a_router_and_a_dealer(net, zmq):
    proxy = Threaded(net, zmq, zmq.proxy, zmq.ROUTER, zmq.DEALER)
    req, rep = peers(net, proxy, zmq.REQ, zmq.REP)
    for n in range(20):
        await req.send_multipart([b"question", b"%d" % n])
        assert await rep.recv_multipart() == [b"question", b"%d" % n]
        await rep.send(b"answer %d" % n)
        assert await req.recv() == b"answer %d" % n
    req.close()
    rep.close()
    await proxy.end()


async def test_subscriptions_pass_up_and_messages_pass_down(net, zmq):
    proxy = Threaded(net, zmq, zmq.proxy, zmq.XSUB, zmq.XPUB)
    xpub, sub = peers(net, proxy, zmq.XPUB, zmq.SUB)
    sub.subscribe(b"a")
    assert await xpub.recv() == b"\x01a"
    await xpub.send(b"b in vain")
    await xpub.send_multipart([b"abc", b"more"])
    assert await sub.recv_multipart() == [b"abc", b"more"]
    xpub.close()
    sub.close()
    await proxy.end()


async def test_work_passes_through_a_streamer_in_order(net, zmq):
    proxy = Threaded(net, zmq, zmq.proxy, zmq.PULL, zmq.PUSH)
    push, pull = peers(net, proxy, zmq.PUSH, zmq.PULL)
    for n in range(1000):
        await push.send_multipart([b"%d" % n, b"work"])
    for n in range(1000):
        assert await pull.recv_multipart() == [b"%d" % n, b"work"]
    push.close()
    pull.close()
    await proxy.end()


async def test_a_capture_socket_sees_both_directions(net, zmq):
    seen = net.socket(zmq.PULL)
    capture = net.socket(zmq.PUSH)
    await net.link(seen, capture)

    def run(front, back):
        zmq.proxy(front, back, capture.wrapped)

    proxy = Threaded(net, zmq, run, zmq.ROUTER, zmq.DEALER)
    req, rep = peers(net, proxy, zmq.REQ, zmq.REP)
    await req.send(b"question")
    assert await rep.recv() == b"question"
    await rep.send(b"answer")
    assert await req.recv() == b"answer"
    assert [(await seen.recv_multipart())[-1] for _ in range(2)] == [b"question", b"answer"]
    req.close()
    rep.close()
    await proxy.end()


async def test_one_socket_at_both_ends_echoes(net, zmq):
    """The heartbeat of a Jupyter kernel: zmq.device(zmq.QUEUE, socket, socket)."""
    proxy = Threaded(net, zmq, lambda s: zmq.device(zmq.QUEUE, s, s), zmq.ROUTER)
    (req,) = peers(net, proxy, zmq.REQ)
    for n in range(5):
        await req.send(b"ping %d" % n)
        assert await req.recv() == b"ping %d" % n
    req.close()
    await proxy.end()
