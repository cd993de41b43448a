"""Both subscribers against publishers that drop, end, begin anew, and say what nobody can read."""

import asyncio
import contextlib
import itertools
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

import zerohop as zmq
from tests.serving.kv.places import Places, removed, stored
from zerohop.serving import (
    Applied,
    Health,
    HealthChanged,
    KvEventPublisher,
    KvEventSubscriber,
    Lost,
    PresentBlocks,
    Restarted,
    Snapshot,
    SyncKvEventSubscriber,
    Undecodable,
)
from zerohop.serving.kv.questions import OrderOptions
from zerohop.serving.kv.replies import seq_octets

pytestmark = pytest.mark.timeout(30)
PATIENCE = 10.0
BATCHES = 500


class OnALoop:
    """An asyncio subscriber, as a blocking one."""

    def __init__(self, *args, **options):
        self._loop = asyncio.new_event_loop()
        self.subscriber = self._loop.run_until_complete(self._make(args, options))

    async def _make(self, args, options):
        return KvEventSubscriber(*args, **options)

    def receive(self, timeout):
        async def one():
            try:
                return await asyncio.wait_for(anext(self.subscriber), timeout)
            except TimeoutError:
                return None

        return self._loop.run_until_complete(one())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._loop.run_until_complete(self.subscriber.aclose())
        self._loop.close()


@pytest.fixture(params=["ipc", "tcp"])
def places(request, ipc_directory):
    return Places(request.param, ipc_directory)


@pytest.fixture(params=[SyncKvEventSubscriber, OnALoop], ids=["blocking", "asyncio"])
def subscribe(request):
    return request.param


class Consumer:
    """A view of what a subscriber delivers."""

    def __init__(self, subscriber):
        self._subscriber = subscriber
        self.view = PresentBlocks()
        self.seen = []
        self.health = None

    def until(self, condition, patience=PATIENCE):
        give_up = time.monotonic() + patience
        while not condition():
            left = give_up - time.monotonic()
            delivery = self._subscriber.receive(max(left, 0.0)) if left > 0 else None
            assert delivery is not None, (self.seen, self.health)
            self.seen.append(delivery)
            self.view.deliver(delivery)
            if isinstance(delivery, HealthChanged):
                self.health = delivery.health

    def until_it_is(self, truth):
        self.until(
            lambda: self.health is Health.LIVE and self.view.copies() == expected(truth).copies()
        )

    def kinds(self):
        return [type(each) for each in self.seen]

    def numbers(self):
        return [each.seq for each in self.seen if isinstance(each, Applied)]


def expected(batches):
    blocks = PresentBlocks()
    for events in batches:
        blocks.apply(events, 0)
    return blocks


def steps(count, start=0):
    """Batches of an engine: two blocks stored each, and one removed of an earlier one."""
    return [
        [stored(10 * at, 2), *([removed(10 * (at - 3))] if at >= start + 3 else [])]
        for at in range(start, start + count)
    ]


def publish(publisher, batches):
    for events in batches:
        publisher.publish(events)
    assert publisher.flush(PATIENCE)


def test_live_batches_are_applied_in_order_and_once(places, subscribe):
    with (
        KvEventPublisher(places.free(), replay=places.free()) as publisher,
        subscribe(publisher.endpoint, publisher.replay_endpoint, worker="w") as subscriber,
    ):
        consumer = Consumer(subscriber)
        publish(publisher, steps(100))
        consumer.until_it_is(steps(100))
        publish(publisher, steps(10, 100))
        consumer.until(lambda: len(consumer.numbers()) == 110)
    assert consumer.numbers() == list(range(110))
    assert {(each.worker, each.dp_rank) for each in consumer.seen if type(each) is Applied} == {
        ("w", 0)
    }


def test_who_comes_late_gets_what_was_before(places, subscribe):
    with KvEventPublisher(places.free(), replay=places.free()) as publisher:
        publish(publisher, steps(200))
        with subscribe(publisher.endpoint, publisher.replay_endpoint) as subscriber:
            consumer = Consumer(subscriber)
            consumer.until_it_is(steps(200))
    assert consumer.numbers() == list(range(200))


def test_who_has_no_publisher_at_the_other_end_is_not_live_by_replays_alone(places, subscribe):
    """The publisher connects to somewhere else, say; what is published later would not come."""
    with KvEventPublisher(places.free(), replay=places.free()) as publisher:
        publish(publisher, steps(20))
        with zmq.Context() as context, context.socket(zmq.PUB) as elsewhere:
            elsewhere.bind(places.free())
            nobody = elsewhere.last_endpoint.decode()
            elsewhere.close()
            with subscribe(nobody, publisher.replay_endpoint) as subscriber:
                consumer = Consumer(subscriber)
                consumer.until(lambda: consumer.numbers() == list(range(20)))
                assert subscriber.receive(timeout=0.2) is None
                assert consumer.health is None


class Dropping:
    """A PUB that some numbers never leave."""

    def __init__(self, pub, numbers):
        self._pub, self._numbers, self.closed = pub, numbers, False

    def send_multipart(self, frames):
        if int.from_bytes(frames[1], "big") not in self._numbers:
            self._pub.send_multipart(frames)

    def close(self, linger):
        self._pub.close(linger)


def test_a_gap_is_filled_by_a_replay(places, subscribe):
    with (
        KvEventPublisher(places.free(), replay=places.free()) as publisher,
        subscribe(publisher.endpoint, publisher.replay_endpoint) as subscriber,
    ):
        consumer = Consumer(subscriber)
        publish(publisher, steps(1))
        consumer.until_it_is(steps(1))
        publisher._pub = Dropping(publisher._pub, {3, 4, 7})
        publish(publisher, steps(9, 1))
        consumer.until(lambda: len(consumer.numbers()) == 10)
    assert consumer.numbers() == list(range(10))
    assert Lost not in consumer.kinds()


def test_a_restart_is_told_and_the_new_life_followed(places, subscribe):
    with KvEventPublisher(places.free(), replay=places.free(), bind=True) as old:
        endpoint, replay = old.endpoint, old.replay_endpoint
        subscriber = subscribe(endpoint, replay)
        with subscriber:
            consumer = Consumer(subscriber)
            publish(old, steps(20))
            consumer.until_it_is(steps(20))
            old.close()
            with KvEventPublisher(endpoint, replay=replay, bind=True) as new:
                publish(new, steps(5, 50))
                consumer.until(lambda: Restarted in consumer.kinds())
                consumer.until_it_is(steps(5, 50))
    assert Lost not in consumer.kinds()


def test_what_is_too_old_is_made_up_for_by_a_snapshot(places, subscribe):
    with KvEventPublisher(places.free(), replay=places.free(), buffer=3) as publisher:
        publish(publisher, steps(50))
        with subscribe(publisher.endpoint, publisher.replay_endpoint) as subscriber:
            consumer = Consumer(subscriber)
            consumer.until_it_is(steps(50))
            assert Snapshot in consumer.kinds()
            publish(publisher, steps(3, 50))
            consumer.until(lambda: consumer.numbers()[-3:] == [50, 51, 52])


def test_what_is_too_old_and_in_no_snapshot_is_lost(places, subscribe):
    options = {"buffer": 3, "snapshots": False}
    with KvEventPublisher(places.free(), replay=places.free(), **options) as publisher:
        publish(publisher, steps(50))
        with subscribe(publisher.endpoint, publisher.replay_endpoint) as subscriber:
            consumer = Consumer(subscriber)
            consumer.until(lambda: consumer.numbers() == [47, 48, 49])
            assert Lost in consumer.kinds()
            publisher.clear()
            consumer.until(lambda: consumer.health is Health.LIVE)


def test_without_answers_what_is_missed_is_lost_within_the_time_limit(places, subscribe):
    options = OrderOptions(silence=0.05, attempts=2, check=None)
    with KvEventPublisher(places.free()) as publisher:
        publish(publisher, steps(1))
        nobody = "tcp://127.0.0.1:1"
        with subscribe(publisher.endpoint, nobody, options=options) as subscriber:
            consumer = Consumer(subscriber)
            while not consumer.numbers():
                publisher.publish([])
                delivery = subscriber.receive(0.02)
                if delivery is not None:
                    consumer.seen.append(delivery)
    assert Lost in consumer.kinds()


def test_what_nobody_can_read_is_reported_and_closes_nothing(places, subscribe):
    context = zmq.Context()
    pub = context.socket(zmq.PUB)
    pub.bind(places.free())
    try:
        with subscribe(pub.last_endpoint.decode()) as subscriber:
            consumer = Consumer(subscriber)
            pub.linger = 0
            for _ in range(100):
                pub.send_multipart([b"kv", seq_octets(0), b"\xc1nonsense"])
                if (delivery := subscriber.receive(0.05)) is not None:
                    break
            consumer.seen.append(delivery)
            consumer.until(lambda: Undecodable in consumer.kinds())
            pub.send_multipart([b"one frame"])
            consumer.until(lambda: consumer.kinds().count(Undecodable) >= 2)
    finally:
        context.destroy(linger=0)
    found = [each.error.data for each in consumer.seen if isinstance(each, Undecodable)]
    assert b"\xc1nonsense" in found
    assert b"one frame" in found


def test_a_publisher_may_connect(places, subscribe):
    with subscribe(places.free(), bind=True) as subscriber:
        endpoint = getattr(subscriber, "subscriber", subscriber).endpoint
        with KvEventPublisher(endpoint, bind=False) as publisher:
            consumer = Consumer(subscriber)
            while not consumer.numbers():
                publisher.publish([])
                delivery = subscriber.receive(0.02)
                if delivery is not None:
                    consumer.seen.append(delivery)


@pytest.mark.parametrize(
    ("endpoint", "bind", "said"),
    [
        ("tcp://127.0.0.1:9", None, True),
        ("tcp://127.0.0.1:9", False, False),
        ("tcp://127.0.0.1:*", None, False),
    ],
)
def test_a_publisher_that_connects_although_nobody_said_so_tells_it(endpoint, bind, said, caplog):
    with KvEventPublisher(endpoint, bind=bind):
        assert ("the publisher connects to tcp://127.0.0.1:9" in caplog.text) is said


ENGINE = """
import sys, time
from zerohop.serving import BlockStored, KvEventPublisher
first, endpoint, replay = int(sys.argv[1]), sys.argv[2], sys.argv[3]
publisher = KvEventPublisher(endpoint, replay=replay, bind=True)
for at in range(first, first + 20):
    publisher.publish([BlockStored([at], None, list(range(16)), 16)])
publisher.flush()
print(publisher.endpoint, publisher.replay_endpoint, flush=True)
time.sleep(60)
"""


def engine(first, endpoint, replay):
    process = subprocess.Popen(
        [sys.executable, "-c", ENGINE, str(first), endpoint, replay],
        stdout=subprocess.PIPE,
        text=True,
    )
    endpoint, replay = process.stdout.readline().split()
    process.stdout.close()
    return SimpleNamespace(process=process, endpoint=endpoint, replay=replay)


def blocks_of(first):
    return [[stored(at, 1)] for at in range(first, first + 20)]


def test_a_killed_publisher_comes_back_with_another_life(places, subscribe):
    one = engine(0, places.free(), places.free())
    running = [one]
    try:
        with subscribe(one.endpoint, one.replay) as subscriber:
            consumer = Consumer(subscriber)
            consumer.until_it_is(blocks_of(0))
            one.process.send_signal(signal.SIGKILL)
            one.process.wait()
            running.append(engine(100, one.endpoint, one.replay))
            consumer.until(lambda: Restarted in consumer.kinds())
            consumer.until_it_is(blocks_of(100))
    finally:
        for each in running:
            each.process.kill()
            each.process.wait()
        for path in places.left_by_the_killed():
            path.unlink()


def test_closing_ends_the_iteration_of_another_thread(places):
    with KvEventPublisher(places.free()) as publisher:
        subscriber = SyncKvEventSubscriber(publisher.endpoint)
        found = []
        thread = threading.Thread(target=lambda: found.extend(subscriber))
        thread.start()
        time.sleep(0.05)
        subscriber.close()
        thread.join(5)
        assert not thread.is_alive()
        assert subscriber.receive(0) is None
        subscriber.close()


def test_closing_ends_the_iteration_of_another_task(places):
    async def body():
        subscriber = KvEventSubscriber(publisher.endpoint)

        async def read():
            return [delivery async for delivery in subscriber]

        task = asyncio.create_task(read())
        await asyncio.sleep(0.05)
        await subscriber.aclose()
        return await asyncio.wait_for(task, 5)

    with KvEventPublisher(places.free()) as publisher:
        assert asyncio.run(body()) == []


def test_who_waits_on_a_loop_looks_only_when_there_may_be_something():
    async def body():
        looks = []
        async with KvEventSubscriber("tcp://127.0.0.1:1") as subscriber:
            pump = subscriber._pump
            subscriber._pump = lambda: looks.append(1) or pump()
            read = asyncio.create_task(anext(subscriber))
            for _ in range(200):
                await asyncio.sleep(0)
        await asyncio.wait([read])
        assert len(looks) < 3

    asyncio.run(body())


def test_a_read_that_is_cancelled_anywhere_loses_nothing(places):
    async def body(publisher):
        async with KvEventSubscriber(publisher.endpoint) as subscriber, asyncio.timeout(20):
            seqs, turns = [], itertools.cycle(range(30))
            while not seqs:  # before the connection is there, nothing comes
                publisher.publish([stored(0)])
                with contextlib.suppress(TimeoutError):
                    if isinstance(
                        delivery := await asyncio.wait_for(anext(subscriber), 0.1), Applied
                    ):
                        seqs.append(delivery.seq)
            for block in range(BATCHES):
                last = publisher.publish([stored(block)])
            while seqs[-1] < last:
                read = asyncio.create_task(anext(subscriber))
                for _ in range(next(turns)):
                    await asyncio.sleep(0)
                read.cancel()
                await asyncio.wait([read])
                if not read.cancelled() and isinstance(read.result(), Applied):
                    seqs.append(read.result().seq)
            return seqs

    with KvEventPublisher(places.free(), replay=places.free()) as publisher:
        seqs = asyncio.run(body(publisher))
    assert seqs == list(range(seqs[0], seqs[0] + len(seqs)))


def test_what_was_received_stays_where_the_read_is_cancelled_between_two_sockets(places):
    class Suspending:
        """A socket that has nothing, and whose caller is suspended, as at the end of a turn."""

        asked = 0

        async def recv_multipart(self, _):
            self.asked += 1
            await asyncio.sleep(0)
            raise zmq.Again

        def close(self, linger=None):
            pass

    async def body(publisher):
        async with KvEventSubscriber(publisher.endpoint) as subscriber, asyncio.timeout(20):
            seqs = []
            while not seqs:  # before the connection is there, nothing comes
                publisher.publish([stored(0)])
                with contextlib.suppress(TimeoutError):
                    delivery = await asyncio.wait_for(anext(subscriber), 0.1)
                    seqs += [delivery.seq] if isinstance(delivery, Applied) else []
            monitor, suspending = subscriber._monitor, Suspending()
            subscriber._monitor = suspending
            last = publisher.publish([stored(1)])
            read = asyncio.create_task(anext(subscriber))
            while not suspending.asked:
                if read.done():  # it had something to tell already
                    read = asyncio.create_task(anext(subscriber))
                await asyncio.sleep(0)
            read.cancel()
            await asyncio.wait([read])
            subscriber._monitor = monitor
            while seqs[-1] != last:
                delivery = await anext(subscriber)
                seqs += [delivery.seq] if isinstance(delivery, Applied) else []

    with KvEventPublisher(places.free()) as publisher:
        asyncio.run(body(publisher))


def test_an_endpoint_that_makes_no_sense_leaves_nothing_behind(subscribe):
    with pytest.raises(zmq.ZMQError):
        SyncKvEventSubscriber("nonsense")

    async def body():
        with pytest.raises(zmq.ZMQError):
            KvEventSubscriber("nonsense")

    asyncio.run(body())
