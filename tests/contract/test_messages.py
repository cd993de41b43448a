"""Every way to send and to receive one message (pyzmq's Socket)."""

import array
import pickle

import pytest


async def linked(net, zmq):
    a, b = net.socket(zmq.PAIR), net.socket(zmq.PAIR)
    await net.link(a, b)
    return a, b


@pytest.mark.parametrize("copy", [True, False], ids=["copy", "no copy"])
@pytest.mark.parametrize(
    "make",
    [bytes, bytearray, memoryview, lambda data: array.array("B", data)],
    ids=["bytes", "bytearray", "memoryview", "array"],
)
async def test_whatever_has_a_buffer_can_be_sent(net, zmq, make, copy):
    a, b = await linked(net, zmq)
    for size in (0, 10, 100_000):
        await a.send(make(b"x" * size), copy=copy)
        assert await b.recv() == b"x" * size


async def test_a_numpy_array_travels_as_its_octets(net, zmq):
    import numpy

    a, b = await linked(net, zmq)
    matrix = numpy.arange(12, dtype="<i4").reshape(3, 4)
    await a.send_multipart([b"matrix", matrix])
    name, octets = await b.recv_multipart()
    assert name == b"matrix"
    assert (numpy.frombuffer(octets, dtype="<i4").reshape(3, 4) == matrix).all()


async def test_a_buffer_that_changes_after_the_send_was_sent_as_it_was(net, zmq):
    a, b = await linked(net, zmq)
    for size in (10, 200_000):
        buffer = bytearray(b"x" * size)
        await a.send(buffer)
        buffer[:] = b"y" * size
        assert await b.recv() == b"x" * size


async def test_a_message_received_without_copy_is_a_frame(net, zmq):
    a, b = await linked(net, zmq)
    await a.send_multipart([b"a", b"b" * 100_000])
    first = await b.recv(copy=False)
    second = await b.recv(copy=False)
    assert [type(first), type(second)] == [zmq.Frame, zmq.Frame]
    assert (first.bytes, bytes(first), len(first), first.more) == (b"a", b"a", 1, True)
    assert (bytes(second.buffer), second.more) == (b"b" * 100_000, False)
    await a.send_multipart([b"a", b"b"])
    assert [frame.bytes for frame in await b.recv_multipart(copy=False)] == [b"a", b"b"]


async def test_a_frame_can_be_sent_and_sent_on(net, zmq):
    a, b = await linked(net, zmq)
    await a.send(zmq.Frame(b"a frame"))
    frame = await b.recv(copy=False)
    await b.send(frame, copy=False)
    assert await a.recv() == b"a frame"
    await b.send_multipart([frame, zmq.Frame(b"another")])
    assert await a.recv_multipart() == [b"a frame", b"another"]


async def test_a_tracker_tells_when_the_message_is_gone(net, zmq):
    a, b = await linked(net, zmq)
    for size in (10, 200_000):
        tracker = await a.send(b"x" * size, copy=False, track=True)
        assert await b.recv() == b"x" * size
        await net.eventually(lambda tracker=tracker: tracker.done)
        tracker.wait(timeout=5)
    assert zmq.MessageTracker().done


async def test_a_copied_message_has_no_tracker_and_an_uncopied_one_has(net, zmq):
    a, b = await linked(net, zmq)
    assert await a.send(b"x") is None
    assert isinstance(await a.send(b"x", copy=False), zmq.MessageTracker)
    assert await a.send_multipart([b"x", b"y"]) is None
    for _ in range(3):
        await b.recv_multipart()


async def test_strings_travel_in_utf_8_unless_asked_otherwise(net, zmq):
    a, b = await linked(net, zmq)
    await a.send_string("grüße")
    assert await b.recv() == "grüße".encode()
    await a.send_string("grüße", encoding="latin-1")
    assert await b.recv_string(encoding="latin-1") == "grüße"
    await a.send_string("a", flags=zmq.SNDMORE)
    await a.send_string("b")
    assert [await b.recv_string(), await b.recv_string()] == ["a", "b"]


async def test_a_string_that_cannot_be_decoded_is_an_error_and_is_gone(net, zmq):
    a, b = await linked(net, zmq)
    await a.send(b"\xff")
    await a.send_string("next")
    with pytest.raises(UnicodeDecodeError):
        await b.recv_string()
    assert await b.recv_string() == "next"


async def test_json_and_python_objects_travel(net, zmq):
    a, b = await linked(net, zmq)
    value = {"a": [1, 2.5, None, True], "ü": "ß"}
    await a.send_json(value)
    assert await b.recv_json() == value
    await a.send_json({"b": 1, "a": 2}, sort_keys=True, separators=(",", ":"))
    assert await b.recv() == b'{"a":2,"b":1}'
    await a.send_pyobj({1: {2, 3}})
    assert await b.recv_pyobj() == {1: {2, 3}}
    await a.send_pyobj(1.5, protocol=pickle.HIGHEST_PROTOCOL)
    assert await b.recv_pyobj() == 1.5


async def test_serializers_see_the_whole_message(net, zmq):
    a, b = await linked(net, zmq)
    await a.send_serialized(["one", "two"], serialize=lambda words: [w.encode() for w in words])
    words = await b.recv_serialized(lambda frames: [frame.decode() for frame in frames])
    assert words == ["one", "two"]


async def test_a_message_can_be_received_into_a_buffer(net, zmq):
    a, b = await linked(net, zmq)
    buffer = bytearray(8)
    await a.send(b"12345")
    assert await b.recv_into(buffer) == 5
    assert buffer == b"12345\0\0\0"
    await a.send_multipart([b"abc", b"def"])
    assert await b.recv_into(memoryview(buffer)[5:], nbytes=3) == 3
    assert b.rcvmore
    assert await b.recv() == b"def"
    assert buffer == b"12345abc"


async def test_a_multipart_message_may_have_a_thousand_parts(net, zmq):
    a, b = await linked(net, zmq)
    parts = [b"%d" % n for n in range(1000)]
    await a.send_multipart(parts)
    assert await b.recv_multipart() == parts


async def test_multipart_accepts_any_iterable_of_buffers(net, zmq):
    a, b = await linked(net, zmq)
    await a.send_multipart((b"a", bytearray(b"b"), memoryview(b"c")))
    assert await b.recv_multipart() == [b"a", b"b", b"c"]


async def test_half_a_message_by_hand_and_the_rest_at_once(net, zmq):
    a, b = await linked(net, zmq)
    await a.send(b"a", zmq.SNDMORE)
    await a.send_multipart([b"b", b"c"], zmq.SNDMORE)
    await a.send(b"d")
    assert await b.recv() == b"a"
    assert await b.recv_multipart() == [b"b", b"c", b"d"]
