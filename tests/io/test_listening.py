"""Acceptor: a connection that cannot be had is reported, and the next one is accepted."""

import errno
import socket as plain
import sys

import pytest

import zerohop as zmq
from zerohop.io import listening

linux = pytest.mark.parametrize("count", [1000] if sys.platform == "linux" else [])


def listen(context, **options):
    """A PULL, where it listens, and its monitor, which tells only of what could not be accepted."""
    pull = context.socket(zmq.PULL)
    pull.rcvtimeo = 8000
    for name, value in options.items():
        setattr(pull, name, value)
    monitor = pull.get_monitor_socket(zmq.EVENT_ACCEPT_FAILED)
    monitor.rcvtimeo = 8000
    return pull, pull.bind_to_random_port("tcp://127.0.0.1"), monitor


def event(monitor):
    """Number and value of the next event."""
    body, _ = monitor.recv_multipart()
    return int.from_bytes(body[:2], sys.byteorder), int.from_bytes(body[2:6], sys.byteorder)


def is_hung_up_on(port):
    """Whether whoever connects is sent away, without a word."""
    with plain.create_connection(("127.0.0.1", port)) as stranger:
        stranger.settimeout(8)
        try:
            return stranger.recv(1) == b""
        except ConnectionResetError:
            return True


@linux
def test_an_option_that_the_kernel_refuses_is_reported_and_no_connection_stays(context, count):
    pull, port, monitor = listen(context, tcp_keepalive=1, tcp_keepalive_cnt=count)
    for _ in range(3):
        assert is_hung_up_on(port)
        assert event(monitor) == (zmq.EVENT_ACCEPT_FAILED, errno.EINVAL)
    assert pull.last_error(f"tcp://127.0.0.1:{port}").errno == errno.EINVAL
    monitor.close(0)


def test_after_a_connection_that_could_not_be_had_the_next_one_is_accepted(context, monkeypatch):
    set_options = listening.set_tcp_options

    def refuse(sock, options):
        monkeypatch.setattr(listening, "set_tcp_options", set_options)
        raise OSError(errno.ENOPROTOOPT, "Protocol not available")

    pull, port, monitor = listen(context)
    monkeypatch.setattr(listening, "set_tcp_options", refuse)
    assert is_hung_up_on(port)
    assert event(monitor) == (zmq.EVENT_ACCEPT_FAILED, errno.ENOPROTOOPT)
    push = context.socket(zmq.PUSH)
    push.connect(f"tcp://127.0.0.1:{port}")
    push.send(b"the next one")
    assert pull.recv() == b"the next one"
    monitor.close(0)
