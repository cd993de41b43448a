"""Filling and emptying sockets: what a test of queues does again and again."""

from typing import Any


async def fill(zmq: Any, sender: Any, most: int, *rest: bytes, settle_ms: int = 0) -> int:
    """Send the messages b"0", b"1", ... until one is refused or ``most`` are sent; return how many.

    Args:
        zmq: The library under test.
        sender: The socket to fill.
        most: Stop here: the queue is taken for unlimited.
        rest: More frames for every message.
        settle_ms: How long to wait, at a refusal, for the network to take some more.
    """
    for n in range(most):
        message = [b"%d" % n, *rest]
        try:
            await sender.send_multipart(message, zmq.DONTWAIT)
        except zmq.Again:
            if not settle_ms or not await sender.poll(settle_ms, zmq.POLLOUT):
                return n
            await sender.send_multipart(message, zmq.DONTWAIT)
    return most


async def drain(zmq: Any, receiver: Any) -> list[bytes]:
    """Receive what is there; return the first frame of each message."""
    got: list[bytes] = []
    while True:
        try:
            got.append((await receiver.recv_multipart(zmq.DONTWAIT))[0])
        except zmq.Again:
            return got


async def receive_numbers(receiver: Any, count: int) -> list[int]:
    """Receive ``count`` messages; return the number in the first frame of each."""
    return [int((await receiver.recv_multipart())[0]) for _ in range(count)]


async def introduce(net: Any, publisher: Any, *subscribers: Any, topic: bytes = b"") -> None:
    """Publish under ``topic`` until each subscriber has heard it; nothing of it is left over.

    A PUB does not show its subscriptions; each subscriber must have subscribed to ``topic``.
    """
    for subscriber in subscribers:

        async def heard(subscriber: Any = subscriber) -> int:
            await publisher.send_multipart([topic, b"can you hear me?"])
            return int(await subscriber.poll(1))

        await net.eventually(heard)
    await publisher.send_multipart([topic, b"introduced"])
    for subscriber in subscribers:
        while await subscriber.recv_multipart() != [topic, b"introduced"]:
            pass


async def leave_while_answered(router: Any, dealer: Any, endpoint: str) -> None:
    """Send requests and close; assert that each arrives, though each is answered."""
    router.bind(endpoint)
    dealer.connect(endpoint)
    for n in range(800):
        await dealer.send_multipart([b"%d" % n, bytes(4000)])
    dealer.close()
    for n in range(800):
        who, number, _ = await router.recv_multipart()
        assert int(number) == n
        await router.send_multipart([who, b"an answer"])
