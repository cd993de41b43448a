"""What other systems lack, taken away here: Windows has no sendmsg, its Python no Unix sockets."""

import errno
import os
import socket as plain

import pytest

import zerohop as zmq
from tests.io.hand import Peer, endpoint_of, server
from tests.kit.raw import message
from zerohop.io import stream
from zerohop.io.signal import Signal


@pytest.mark.parametrize("verb", ["bind", "connect"])
def test_without_unix_sockets_ipc_is_refused_with_advice(world, monkeypatch, verb):
    monkeypatch.delattr(plain, "AF_UNIX")
    pair = world.socket(zmq.PAIR)
    with pytest.raises(zmq.ZMQError) as error:
        getattr(pair, verb)("ipc:///tmp/x")
    assert error.value.errno == errno.EPROTONOSUPPORT
    assert "tcp://127.0.0.1" in error.value.__notes__[0]


def test_without_sendmsg_messages_are_joined_before_they_are_written(world, monkeypatch):
    monkeypatch.setattr(stream, "_GATHERS", False)
    monkeypatch.setattr(plain.socket, "sendmsg", None, raising=False)
    with server() as listening:
        push = world.socket(zmq.PUSH, linger=0)
        push.connect(endpoint_of(listening))
        peer = Peer(world, push, listening)
    peer.handshake(b"PULL")
    push.send(bytes(100_000), copy=False)
    push.send_multipart([b"1", bytes(3_000_000), b"2"])
    peer.sees(message(bytes(100_000)) + message(b"1", bytes(3_000_000), b"2"))
    peer.raw.close()


@pytest.mark.parametrize("eventfd", [True, False])
def test_a_signal_is_readable_while_it_is_set(monkeypatch, eventfd):
    if not eventfd:
        monkeypatch.delattr(os, "eventfd")
    signal = Signal()
    for _ in range(3):
        assert not readable(signal)
        signal.set()
        signal.set()
        assert signal.is_set
        assert readable(signal)
        signal.clear()
        signal.clear()
        assert not signal.is_set
    signal.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(signal.fd)


def readable(signal):
    import select

    return bool(select.select([signal.fd], [], [], 0)[0])
