"""The flood is a PUSH to whoever listens, and its bytes are the stream's messages."""

import socket
import threading

import pytest

from bench.floor.flood import GREETING, READY, connect_as_push, flood, receive_exactly
from bench.floor.frames import Decoder
from bench.stream import make_pass


def test_the_greeting_is_zmtp_3_0_null():
    assert len(GREETING) == 64
    assert GREETING[:10] == bytes.fromhex("ff 0000000000000000 7f")
    assert GREETING[10:33] == b"\x03\x00NULL" + bytes(17)


def test_ready_is_a_command_with_the_socket_type():
    assert READY == b"\x04\x1a" + b"\x05READY" + b"\x0bSocket-Type" + b"\x00\x00\x00\x04PUSH"


@pytest.fixture
def pair():
    left, right = socket.socketpair()
    with left, right:
        yield left, right


def test_the_flood_is_whole_passes_in_order_until_the_time_is_over(pair):
    left, right = pair
    came, written = [], []
    messages = make_pass(64, messages=16)

    def flood_and_end():
        written.append(flood(left, messages, 0.05))
        left.shutdown(socket.SHUT_WR)

    flooding = threading.Thread(target=flood_and_end)
    flooding.start()
    decoder, octets = Decoder(came.append), 0
    while data := right.recv(1 << 16):
        octets += len(data)
        decoder.receive_data(data)
    flooding.join()
    assert written == [octets]
    assert len(came) > len(messages)
    assert came == [messages[number % 16] for number in range(len(came))]


def test_a_peer_that_leaves_ends_the_flood(pair):
    left, right = pair
    right.close()
    assert flood(left, make_pass(64, messages=16), 30) == 0


def test_a_peer_that_leaves_during_the_handshake_is_an_error(pair):
    left, right = pair
    right.sendall(b"abc")
    right.close()
    with pytest.raises(ConnectionError, match="closed the flood's connection"):
        receive_exactly(left, 64)


@pytest.mark.interop
def test_libzmq_takes_the_flood_for_a_push():
    import zmq

    messages = make_pass(64, messages=16)
    with zmq.Context() as context, context.socket(zmq.PULL) as pull:
        pull.rcvtimeo = 5000
        endpoint = f"tcp://127.0.0.1:{pull.bind_to_random_port('tcp://127.0.0.1')}"
        with connect_as_push(endpoint) as connection:
            flooding = threading.Thread(target=flood, args=(connection, messages, 0.05))
            flooding.start()
            assert [pull.recv() for _ in range(48)] == messages * 3
            flooding.join()
