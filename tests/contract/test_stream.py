"""STREAM: raw TCP behind ids (zmq_socket(3), "Native pattern"; libzmq's test_stream)."""

import socket

import pytest

from tests.kit.net import free_port

pytestmark = pytest.mark.over("tcp")


async def read_exactly(net, raw, size):
    """Read from a non-blocking socket while the socket under test goes on."""
    got = bytearray()

    def complete():
        try:
            while len(got) < size:
                data = raw.recv(size - len(got))
                assert data, f"closed after {bytes(got)!r}"
                got.extend(data)
        except BlockingIOError:
            return False
        return True

    await net.eventually(complete)
    return bytes(got)


async def dial(net, zmq, stream, endpoint):
    """Connect a raw socket to a bound STREAM; return it with the id it was given."""
    host, port = endpoint.removeprefix("tcp://").split(":")
    raw = socket.create_connection((host, int(port)))
    raw.setblocking(False)
    name, empty = await stream.recv_multipart()
    assert (len(name), empty) == (5, b"")
    return raw, name


async def test_a_connection_is_announced_by_an_empty_message(net, zmq):
    stream, endpoint = net.socket(zmq.STREAM), net.endpoint()
    stream.bind(endpoint)
    raw, name = await dial(net, zmq, stream, endpoint)
    with raw:
        assert name[0] == 0


async def test_octets_come_in_with_the_id_and_go_out_without(net, zmq):
    stream, endpoint = net.socket(zmq.STREAM), net.endpoint()
    stream.bind(endpoint)
    raw, name = await dial(net, zmq, stream, endpoint)
    with raw:
        raw.send(b"GET / HTTP/1.0\r\n\r\n")
        assert await stream.recv_multipart() == [name, b"GET / HTTP/1.0\r\n\r\n"]
        await stream.send_multipart([name, b"HTTP/1.0 200 OK\r\n"])
        assert await read_exactly(net, raw, 17) == b"HTTP/1.0 200 OK\r\n"


async def test_large_data_arrives_whole_and_in_order(net, zmq):
    stream, endpoint = net.socket(zmq.STREAM), net.endpoint()
    stream.bind(endpoint)
    raw, name = await dial(net, zmq, stream, endpoint)
    with raw:
        body = bytes(range(256)) * 2000
        await stream.send_multipart([name, body])
        assert await read_exactly(net, raw, len(body)) == body
        raw.send(body[:100_000])
        got = b""
        while len(got) < 100_000:
            got += (await stream.recv_multipart())[1]
        assert got == body[:100_000]


async def test_when_the_peer_closes_an_empty_message_says_so(net, zmq):
    stream, endpoint = net.socket(zmq.STREAM), net.endpoint()
    stream.bind(endpoint)
    raw, name = await dial(net, zmq, stream, endpoint)
    raw.close()
    assert await stream.recv_multipart() == [name, b""]


async def test_an_empty_message_closes_the_connection(net, zmq):
    stream, endpoint = net.socket(zmq.STREAM), net.endpoint()
    stream.bind(endpoint)
    raw, name = await dial(net, zmq, stream, endpoint)
    with raw:
        await stream.send_multipart([name, b"bye"])
        assert await read_exactly(net, raw, 3) == b"bye"
        await stream.send_multipart([name, b""])

        def closed():
            _ = stream.events  # libzmq ends a connection while it is looked at
            try:
                return raw.recv(1) == b""
            except BlockingIOError:
                return False

        await net.eventually(closed)


async def test_what_is_for_nobody_is_an_error(net, zmq):
    stream = net.socket(zmq.STREAM)
    stream.bind(net.endpoint())
    with pytest.raises(zmq.ZMQError) as nobody:
        await stream.send_multipart([b"nobody", b"x"])
    assert nobody.value.errno == zmq.EHOSTUNREACH


async def test_each_connection_has_an_id_of_its_own(net, zmq):
    stream, endpoint = net.socket(zmq.STREAM), net.endpoint()
    stream.bind(endpoint)
    raws = [await dial(net, zmq, stream, endpoint) for _ in range(3)]
    for n, (_, name) in enumerate(raws):
        await stream.send_multipart([name, b"you are %d" % n])
    for n, (raw, _) in enumerate(raws):
        assert await read_exactly(net, raw, 9) == b"you are %d" % n
        raw.close()
    assert len({name for _, name in raws}) == 3


async def test_a_stream_may_connect_to_any_server(net, zmq):
    stream = net.socket(zmq.STREAM)
    with socket.create_server(("127.0.0.1", free_port())) as server:
        stream.connect("tcp://127.0.0.1:{1}".format(*server.getsockname()))
        raw, _ = server.accept()
        with raw:
            raw.setblocking(False)
            name, empty = await stream.recv_multipart()
            assert empty == b""
            raw.send(b"220 ready\r\n")
            assert await stream.recv_multipart() == [name, b"220 ready\r\n"]
            await stream.send_multipart([name, b"HELO\r\n"])
            assert await read_exactly(net, raw, 6) == b"HELO\r\n"


async def test_without_notifications_only_data_arrives(net, zmq):
    stream, endpoint = net.socket(zmq.STREAM, stream_notify=0), net.endpoint()
    stream.bind(endpoint)
    host, port = endpoint.removeprefix("tcp://").split(":")
    with socket.create_connection((host, int(port))) as raw:
        raw.send(b"data")
        name, data = await stream.recv_multipart()
        assert (len(name), data) == (5, b"data")


async def test_streams_can_talk_to_each_other(net, zmq):
    bound, connected, endpoint = net.socket(zmq.STREAM), net.socket(zmq.STREAM), net.endpoint()
    bound.bind(endpoint)
    connected.connect(endpoint)
    to_connected, _ = await bound.recv_multipart()
    to_bound, _ = await connected.recv_multipart()
    await connected.send_multipart([to_bound, b"hello"])
    assert await bound.recv_multipart() == [to_connected, b"hello"]
