import asyncio

import pytest
import zmq.utils.jsonapi
import zmq.utils.monitor
import zmq.utils.z85

import zerohop
import zerohop.asyncio
from zerohop.utils import jsonapi, monitor, strtypes, z85

FRAMES = [b"\x01\0\x05\0\0\0", b"tcp://127.0.0.1:5555"]


def test_monitor_messages_are_read_as_pyzmq_reads_them():
    ours, theirs = (
        monitor.parse_monitor_message(FRAMES),
        zmq.utils.monitor.parse_monitor_message(FRAMES),
    )
    assert ours == theirs == {"event": 1, "value": 5, "endpoint": b"tcp://127.0.0.1:5555"}
    assert ours["event"] is zerohop.EVENT_CONNECTED


@pytest.mark.parametrize("frames", [[], FRAMES[:1], [b"short", b""], [*FRAMES, b""]])
def test_what_is_no_monitor_message_is_refused_in_pyzmqs_words(frames):
    texts = set()
    for module in (monitor, zmq.utils.monitor):
        with pytest.raises(RuntimeError) as raised:
            module.parse_monitor_message(frames)
        texts.add(str(raised.value))
    assert texts == {f"Invalid event message format: {frames}"}


def test_a_blocking_monitor_socket_gives_events():
    with zerohop.Context() as context, context.socket(zerohop.REP) as rep:
        events = rep.get_monitor_socket()
        rep.bind("tcp://127.0.0.1:*")
        seen = monitor.recv_monitor_message(events)
        assert (seen["event"], seen["endpoint"]) == (zerohop.EVENT_LISTENING, rep.last_endpoint)
        with pytest.raises(zerohop.Again):
            monitor.recv_monitor_message(events, zerohop.DONTWAIT)
        events.close()


def test_an_asyncio_monitor_socket_gives_awaitables_of_events():
    async def body():
        async with zerohop.asyncio.Context() as context:
            rep = context.socket(zerohop.REP)
            events = rep.get_monitor_socket()
            later = asyncio.ensure_future(monitor.recv_monitor_message(events))
            await asyncio.sleep(0)
            rep.bind("tcp://127.0.0.1:*")
            assert (await later)["endpoint"] == rep.last_endpoint
            rep.unbind(rep.last_endpoint.decode())
            assert (await monitor.recv_monitor_message(events))["event"] == zerohop.EVENT_CLOSED

    asyncio.run(body())


@pytest.mark.parametrize("value", [None, {"é": [1.5, "x"]}, "é"])
def test_json_is_written_and_read_as_by_pyzmq(value):
    assert jsonapi.dumps(value) == zmq.utils.jsonapi.dumps(value)
    assert jsonapi.loads(jsonapi.dumps(value)) == value
    assert jsonapi.loads(jsonapi.dumps(value).decode()) == value


def test_z85_is_written_and_read_as_by_pyzmq():
    assert z85.encode(b"\x00\x01\x02\xff") == zmq.utils.z85.encode(b"\x00\x01\x02\xff")
    assert z85.decode(zmq.utils.z85.encode(b"abcdefgh")) == b"abcdefgh"


def test_text_and_octets_are_cast_either_way():
    assert strtypes.cast_bytes("é") == strtypes.b("é".encode()) == "é".encode()
    assert strtypes.cast_unicode("é".encode()) == strtypes.u("é") == "é"
    assert strtypes.asbytes("é", "latin-1") == b"\xe9"
    assert (strtypes.bytes, strtypes.unicode, strtypes.basestring) == (bytes, str, (str,))


@pytest.mark.parametrize("cast", [strtypes.cast_bytes, strtypes.cast_unicode])
def test_what_is_neither_text_nor_octets_is_not_cast(cast):
    with pytest.raises(TypeError, match="^Expected unicode or bytes, got 5$"):
        cast(5)
