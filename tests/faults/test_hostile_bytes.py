"""Strangers connect and say what they like: nobody else notices, and the log stays short."""

import asyncio
import random

import msgspec
import pytest

import zerohop as zmq
from tests.faults.lives import SOON
from tests.serving.control.running import wait_for
from tests.serving.engine.engines import engine_in_thread, streaming, tokens_of
from zerohop.serving import (
    BlockStored,
    EngineClient,
    EngineState,
    KvEventPublisher,
    Patience,
    PresentBlocks,
    SyncControlClient,
    SyncControlServer,
    SyncControlWorker,
    SyncKvEventSubscriber,
    SyncLmcacheClient,
    SyncLmcacheServer,
    ipc_endpoint,
)
from zerohop.serving.codec import pack
from zerohop.serving.engine.messages import PROTOCOL, Beat, Goodbye, Hello, HelloAgain, Welcome

pytestmark = pytest.mark.timeout(60)
PATIENCE = Patience(beat_every=0.1, gone_after=20.0, hung_after=20.0)
BOOT = (7).to_bytes(8)
ROUTING_IDS = [
    None,
    b"p" + BOOT + b"e0",
    b"r" + BOOT + b"e0",
    b"p" + BOOT + b"\xff",
    b"p",
    b"x" * 255,
]
VALUES = [
    b"",
    b"\xc1",
    b"\x91" * 100_000,  # nested
    *(b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff"),  # announced
    *(
        b"\xdd\x7f\xff\xff\xff" + b"\xc0" * 1000,
        b"\xd6\xff\x00\x00\x00\x00",
        b"\xa4\xff\xff\xff\xff",
    ),
    *map(pack, [None, True, -1, 2**63, float("nan"), "x", b"x", [], [1], [99, 1], {}, {"a": 1}]),
    pack({"zerohop": 1, "id": [], "ask": "snapshot"}),
    b"\x7f" + b"\xff" * 7 + pack({"zerohop": 1, "id": 1, "ask": "nothing"}),
    b"\xff" * 8,
    random.Random(1).randbytes(100_000),
]
MESSAGES = [
    *([value] for value in VALUES),
    *([b"", value] for value in VALUES),
    *([pack(1), value] for value in VALUES),
    *([pack(n), pack(f"operation {n}"), b"x"] for n in range(100)),
    *(
        [pack(1), pack(operation), value]
        for operation in ("register", "sync", 22)
        for value in VALUES
    ),
    [b""] * 1000,
    [b"\xc0"] * 100,
]


def say_it_all(endpoint, kind, more=(), routing_ids=ROUTING_IDS):
    """Send every message, as each of those who may be speaking."""
    with zmq.Context() as context:
        for routing_id in routing_ids:
            with context.socket(kind) as stranger:
                stranger.linger, stranger.sndtimeo = 2000, 5000
                if routing_id is not None:
                    stranger.routing_id = routing_id
                stranger.connect(endpoint)
                for frames in (*MESSAGES, *more):
                    stranger.send_multipart(frames)


@pytest.mark.parametrize("transport", ["ipc", "tcp"])
def test_an_api_server_that_strangers_speak_to_goes_on(transport, ipc_directory, caplog):
    place = ipc_endpoint("a", ipc_directory) if transport == "ipc" else "tcp://127.0.0.1:*"
    hello = Hello(PROTOCOL, "e1", 7, [], [], {})
    truncated = [[msgspec.msgpack.encode(hello)[:size]] for size in range(20)]

    async def body():
        async with streaming(place, PATIENCE) as (client, stream):
            await asyncio.to_thread(say_it_all, client.endpoint, zmq.DEALER, truncated)
            await asyncio.to_thread(
                say_it_all, client.outputs_endpoint, zmq.PUSH, truncated, [None]
            )
            assert await tokens_of(client.generate({"tokens": 2}, engine="e0")) == (
                [1, 0],
                "length",
            )
            await anext(stream)
            assert client.health["e0"] is EngineState.ALIVE
            assert client.malformed

    asyncio.run(asyncio.wait_for(body(), 50))
    assert len(caplog.records) < 50


def test_an_engine_goes_on_whatever_another_api_server_says(ipc_directory, caplog):
    odd = [
        Welcome(PROTOCOL, "odd", 1, [], "nowhere", float("nan"), float("nan"), 1),
        Welcome(PROTOCOL, "odd", 2, [], "tcp://x:y", 0.0, -1.0, 1),
        Welcome(PROTOCOL, "odd", 3, [], "ipc://" + "x" * 200, float("inf"), float("inf"), 1),
        Welcome(PROTOCOL, "odd", 4, [], "inproc://stop", 1e-9, 1e-9, 1),
        Welcome(PROTOCOL + 8, "odd", 5, [], "", 1.0, 1.0, 1),
        *(HelloAgain(), Goodbye("x" * 1000), Beat(1, 1, 1, 1)),
    ]
    messages = [*MESSAGES, *([msgspec.msgpack.encode(each)] for each in odd)]

    def be_odd(router):
        routing_id, *_ = router.recv_multipart()
        for kind in (b"p", b"r"):
            for frames in messages:
                router.send_multipart([kind + routing_id[1:], *frames])

    async def body(router, endpoint):
        async with EngineClient(ipc_endpoint("a", ipc_directory), patience=PATIENCE) as client:
            with engine_in_thread([endpoint, client.endpoint]) as engine:
                await client.wait_for_engines(1, timeout=SOON)
                stream = client.generate({"tokens": None})
                await asyncio.to_thread(be_odd, router)
                while not engine.server.malformed:
                    await anext(stream)
                for _ in range(20):
                    await anext(stream)
                assert await client.call("add", 1, 2) == 3
                assert client.health == {"e0": EngineState.ALIVE}
                await stream.aclose()
            assert engine.error is None

    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.linger, router.rcvtimeo, router.sndtimeo = 0, 10_000, 10_000
        router.bind("tcp://127.0.0.1:*")
        asyncio.run(asyncio.wait_for(body(router, router.last_endpoint.decode()), 50))
    assert len(caplog.records) < 100


def test_a_control_server_that_strangers_speak_to_goes_on(caplog):
    with SyncControlServer() as server, SyncControlWorker(server.endpoint, "w") as worker:
        worker.put("key", 1)
        assert worker.wait_settled(SOON)
        say_it_all(server.endpoint, zmq.DEALER)
        worker.put("key", 2)
        assert worker.wait_settled(SOON)
        assert (server.view("w").table, server.workers()) == ({"key": 2}, ["w"])
        with SyncControlClient(server.endpoint, timeout=SOON) as client:
            assert client.call("ping")["protocol"] == "zerohop-control"
        wait_for(lambda: server.counts.keys() >= {"unknown_operation", "malformed"})
    assert len(caplog.records) < 10


def test_a_server_for_lmcache_that_strangers_speak_to_goes_on(caplog):
    with SyncLmcacheServer() as server:
        say_it_all(server.endpoint, zmq.DEALER)
        with SyncLmcacheClient(server.endpoint) as client:
            assert client.ping() is True
            assert client.call("get_chunk_size") == 256
    assert len(caplog.records) < 10


def test_a_publisher_of_kv_events_that_strangers_speak_to_goes_on(caplog):
    with KvEventPublisher(replay="tcp://127.0.0.1:*") as publisher:
        publisher.publish([BlockStored([1], None, [1], 1)])
        say_it_all(publisher.replay_endpoint, zmq.DEALER)
        say_it_all(publisher.endpoint, zmq.XSUB, routing_ids=[None])
        view = PresentBlocks()
        with SyncKvEventSubscriber(publisher.endpoint, publisher.replay_endpoint) as subscriber:
            while 1 not in view:
                delivery = subscriber.receive(SOON)
                assert delivery is not None
                view.deliver(delivery)
        assert publisher.answers.failed == 0
    assert len(caplog.records) < 10
