"""for record in socket.monitor_records()"""

import asyncio
import gc
import threading

import pytest

import zerohop as zmq
import zerohop.asyncio
from zerohop.constants import Event

SECONDS = 8


@pytest.fixture
def context():
    made = zmq.Context()
    yield made
    made.destroy(linger=0)


@pytest.fixture
def rep(context):
    with context.socket(zmq.REP) as made:
        yield made


def test_records_say_who_where_and_why(context, rep):
    with (
        context.socket(zmq.REQ) as req,
        rep.monitor_records(timeout=SECONDS) as records,
    ):
        req.identity = b"me"
        port = rep.bind_to_random_port("tcp://127.0.0.1")
        req.connect(f"tcp://127.0.0.1:{port}")
        seen = [next(records) for _ in range(3)]
        assert [r.event for r in seen] == [
            Event.LISTENING, Event.ACCEPTED, Event.HANDSHAKE_SUCCEEDED,
        ]  # fmt: skip
        assert {r.endpoint for r in seen} == {f"tcp://127.0.0.1:{port}"}
        assert seen[2].remote == rep.peers()[0].address
        assert seen[2].routing_id == b"me"


def test_the_reason_of_a_failure_is_in_words(context, rep):
    with context.socket(zmq.PUSH) as push:
        push.linger = 0
        records = push.monitor_records(Event.HANDSHAKE_FAILED_PROTOCOL, timeout=SECONDS)
        push.connect(f"tcp://127.0.0.1:{rep.bind_to_random_port('tcp://127.0.0.1')}")
        assert "REP" in next(records).reason


def test_records_end_when_the_socket_is_closed(context):
    rep = context.socket(zmq.REP)
    records = rep.monitor_records()
    rep.bind("tcp://127.0.0.1:*")
    rep.close()
    assert [record.event for record in records] == [Event.LISTENING, Event.CLOSED]
    assert list(records) == []


def test_a_thread_that_waits_for_records_is_let_go(context):
    rep = context.socket(zmq.REP)
    records, seen = rep.monitor_records(), []
    reading = threading.Thread(target=lambda: seen.extend(records))
    reading.start()
    rep.bind("tcp://127.0.0.1:*")
    rep.close()
    reading.join(SECONDS)
    assert [record.event for record in seen] == [Event.LISTENING, Event.CLOSED]


def test_records_end_with_the_context():
    context = zmq.Context()
    rep = context.socket(zmq.REP)
    records = rep.monitor_records()
    with pytest.raises(zmq.Again):
        context.term(timeout=0)
    assert list(records) == []
    records.close()
    rep.close()
    context.term(timeout=SECONDS)


def test_waiting_for_a_record_may_be_limited(rep):
    with rep.monitor_records(timeout=0) as records, pytest.raises(zmq.Again):
        next(records)


def test_only_wanted_events_are_recorded_and_readers_do_not_share(rep):
    first = rep.monitor_records(Event.CLOSED, timeout=0)
    second = rep.monitor_records(Event.LISTENING, timeout=0)
    rep.bind("tcp://127.0.0.1:*")
    rep.unbind(rep.last_endpoint.decode())
    assert next(first).event == Event.CLOSED
    assert next(second).event == Event.LISTENING


def test_an_abandoned_iteration_leaves_nothing(context, rep):
    for _ in range(3):
        records = rep.monitor_records(timeout=0)
        rep.bind("tcp://127.0.0.1:*")
        for _record in records:
            break
    del records
    gc.collect()
    assert rep._core.links.monitors == []
    assert len(context._io.drivers) == 1


def test_a_closed_socket_has_no_records(context):
    rep = context.socket(zmq.REP)
    rep.close()
    with pytest.raises(zmq.ZMQError) as raised:
        rep.monitor_records()
    assert raised.value.errno == zmq.ENOTSOCK


def test_the_records_of_an_asyncio_socket_are_awaited():
    async def body():
        context = zerohop.asyncio.Context()
        rep = context.socket(zmq.REP)
        async with rep.monitor_records(timeout=SECONDS) as records:
            rep.bind("tcp://127.0.0.1:*")
            assert (await anext(records)).event == Event.LISTENING
            with pytest.raises(TypeError, match="use `async for`"):
                next(records)
            later = asyncio.ensure_future(anext(records))
            await asyncio.sleep(0)
            rep.unbind(rep.last_endpoint.decode())
            assert (await later).event == Event.CLOSED
            rep.close()
            assert [record async for record in records] == []
        context.destroy(linger=0)

    asyncio.run(body())


def test_the_records_of_an_asyncio_socket_end_with_its_context():
    async def body():
        context = zerohop.asyncio.Context()
        rep = context.socket(zmq.REP)
        records = rep.monitor_records()
        reading = asyncio.ensure_future(anext(records, None))
        await asyncio.sleep(0)
        context.destroy(linger=0)
        (ended,) = await asyncio.gather(reading, return_exceptions=True)
        # Whichever is closed first: the socket ends its records, the reader's wait is cancelled.
        assert ended is None or isinstance(ended, asyncio.CancelledError)
        assert rep.closed

    asyncio.run(body())
