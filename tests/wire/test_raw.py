"""ZMQ_STREAM: octets as they are."""

import pytest

from zerohop.wire.events import Handshaken
from zerohop.wire.raw import RawConnection


def test_the_peer_is_there_before_any_octet():
    assert RawConnection().start() == [Handshaken({}, minor=0, mechanism="")]


def test_every_chunk_is_a_message():
    connection = RawConnection()
    assert connection.receive_data(b"GET /", 0) == [b"GET /"]
    assert connection.receive_data(b"\xff\x00", 1) == [b"\xff\x00"]
    assert connection.receive_data(b"", 2) == []
    assert not connection.has_events
    assert connection.completed == []


def test_it_adds_nothing_to_what_is_sent():
    connection = RawConnection()
    body = bytes(100)
    buffers = connection.encode([b"a", [b"b", body], b"", memoryview(b"c")])
    assert buffers == [b"a", b"b", body, b"c"]
    assert buffers[2] is body
    assert connection.data_to_send() == b""
    assert not connection.has_output


def test_views_of_any_format_are_octets():
    numbers = memoryview(bytes(16)).cast("d")
    assert RawConnection().encode([numbers])[0].nbytes == len(RawConnection().encode([numbers])[0])


@pytest.mark.parametrize(
    ("message", "size"),
    [(b"abc", 3), ([b"a", b"bc"], 3), (b"", 0), (memoryview(bytes(16)).cast("d"), 16)],
)
def test_the_size_is_that_of_the_octets(message, size):
    assert RawConnection().encoded_size(message) == size


def test_nothing_comes_after_refusing():
    connection = RawConnection()
    connection.refuse("no")
    assert connection.phase == "closed"
    assert connection.receive_data(b"x", 0) == []
    assert connection.data_to_send() == b""


def test_nothing_comes_after_the_network_connection_is_gone():
    connection = RawConnection()
    connection.lost()
    assert connection.phase == "closed"
    assert connection.receive_data(b"x", 0) == []


def test_what_only_zmtp_has_does_nothing():
    connection = RawConnection()
    connection.send_subscription(b"x", subscribe=True)
    connection.handle_deadline(1e9)
    connection.written(1e9)
    assert connection.next_deadline() is None
    assert connection.peer_minor is None
    assert connection.buffer() is None
    assert connection.phase == "traffic"
    assert connection.data_to_send() == b""
