"""Dialing: every address of a name, a source, a time limit, and no descriptor to dial with."""

import errno
import os
import socket as plain
import subprocess
import sys
import time

import pytest

import zerohop as zmq
from tests.io.hand import endpoint_of, server
from tests.kit.net import free_port
from zerohop.io import dialing


def bound(context):
    pull = context.socket(zmq.PULL)
    pull.rcvtimeo = 8000
    return pull, pull.bind_to_random_port("tcp://127.0.0.1")


# -- which address


def resolver(monkeypatch, *addresses):
    """Let every name have these addresses; return the names that were asked for."""
    asked = []

    def getaddrinfo(host, port, *_):
        asked.append(host)
        return [
            (plain.AF_INET, plain.SOCK_STREAM, plain.IPPROTO_TCP, "", (address, use or port))
            for address, use in addresses
        ]

    monkeypatch.setattr(plain, "getaddrinfo", getaddrinfo)
    return asked


def test_of_several_addresses_the_one_that_answers_is_found(context, monkeypatch):
    pull, port = bound(context)
    dead = free_port()
    asked = resolver(monkeypatch, ("127.0.0.1", dead), ("127.0.0.2", dead), ("127.0.0.1", None))
    push = context.socket(zmq.PUSH)
    push.reconnect_ivl = 60_000  # what is found is found at the first attempt
    push.connect(f"tcp://several.example:{port}")
    push.send(b"found")
    assert pull.recv() == b"found"
    assert asked == ["several.example"]


def test_if_no_address_answers_all_are_asked_for_again(context, monkeypatch):
    port = free_port()
    asked = resolver(monkeypatch, ("127.0.0.1", None), ("127.0.0.2", None))
    push = context.socket(zmq.PUSH)
    push.reconnect_ivl = 10
    address = f"tcp://several.example:{port}"
    push.connect(address)
    push.send(b"x")
    deadline = time.monotonic() + 8
    while len(asked) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert push.last_error(address).errno == errno.ECONNREFUSED
    pull = context.socket(zmq.PULL)
    pull.rcvtimeo = 8000
    pull.bind(f"tcp://127.0.0.1:{port}")
    assert pull.recv() == b"x"


only_linux = [pytest.param("127.0.0.2")] if sys.platform == "linux" else []


@pytest.mark.parametrize("source", ["127.0.0.1", *only_linux])
def test_a_connection_comes_from_the_source_that_the_endpoint_names(context, source):
    with plain.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(8)
        push = context.socket(zmq.PUSH)
        push.connect(f"tcp://{source}:0;127.0.0.1:{server.getsockname()[1]}")
        connection, (host, _) = server.accept()
        connection.close()
        assert host == source
        push.close(0)


def test_a_connection_comes_from_the_port_that_the_endpoint_names(context):
    own = free_port()
    with plain.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(8)
        push = context.socket(zmq.PUSH)
        push.connect(f"tcp://127.0.0.1:{own};127.0.0.1:{server.getsockname()[1]}")
        connection, name = server.accept()
        connection.close()
        assert name == ("127.0.0.1", own)
        push.close(0)


# -- how soon


@pytest.mark.parametrize("times", [1] if sys.platform == "linux" else [])
def test_over_loopback_the_connection_is_there_when_connect_returns(world, times):
    push = world.socket(zmq.PUSH)
    listening = server()
    push.connect(endpoint_of(listening))
    assert len(push._core.links.open_links) == times
    assert not world.loop.writers, "the loop need not watch"
    listening.close()


@pytest.mark.parametrize("times", [1] if sys.platform == "linux" else [])
def test_over_loopback_a_refusal_is_known_when_connect_returns(world, times):
    push = world.socket(zmq.PUSH)
    push.connect(f"tcp://127.0.0.1:{free_port()}")
    [dialer] = push._core.links.dialers
    assert dialer.attempt == times
    assert not world.loop.writers


def not_known_for(monkeypatch, times):
    """Let the system say so many times that there is no connection yet."""
    peer_of, left = dialing._peer_of, iter(range(times))
    monkeypatch.setattr(
        dialing, "_peer_of", lambda sock: peer_of(sock) if next(left, None) is None else None
    )


def test_a_connection_that_takes_its_time_is_waited_for(world, monkeypatch):
    not_known_for(monkeypatch, 1)
    push = world.socket(zmq.PUSH)
    listening = server()
    push.connect(endpoint_of(listening))
    assert world.loop.writers
    assert not push._core.links.open_links
    world.loop.until(lambda: push._core.links.open_links)
    listening.close()


def test_a_connection_that_is_gone_again_is_made_anew(world, monkeypatch):
    not_known_for(monkeypatch, 2)
    push = world.socket(zmq.PUSH)
    push.reconnect_ivl = 1
    listening = server()
    address = endpoint_of(listening)
    push.connect(address)
    world.loop.until(lambda: push.last_error(address))
    assert push.last_error(address).errno == errno.ENOTCONN
    world.loop.until(lambda: push._core.links.open_links)
    listening.close()


# -- how long


@pytest.fixture
def deaf():
    """A port whose queue of callers is full: the system lets further ones wait."""
    server = plain.socket()
    server.bind(("127.0.0.1", 0))
    server.listen(0)
    callers = []
    for _ in range(8):
        caller = plain.socket()
        caller.setblocking(False)
        caller.connect_ex(server.getsockname())
        callers.append(caller)
    yield server.getsockname()[1]
    for each in (server, *callers):
        each.close()


def test_an_attempt_that_nobody_answers_is_given_up_in_time(context, deaf):
    push = context.socket(zmq.PUSH)
    push.connect_timeout, push.reconnect_ivl = 100, 60_000
    address = f"tcp://127.0.0.1:{deaf}"
    started = time.monotonic()
    push.connect(address)
    while push.last_error(address) is None:
        assert time.monotonic() < started + 8
        time.sleep(0.005)
    assert push.last_error(address).errno == errno.ETIMEDOUT
    assert 0.095 < time.monotonic() - started < 1


def test_without_a_time_limit_an_attempt_goes_on(context, deaf):
    push = context.socket(zmq.PUSH)
    address = f"tcp://127.0.0.1:{deaf}"
    push.connect(address)
    time.sleep(0.2)
    assert push.last_error(address) is None


# -- with what

WITHOUT_A_DESCRIPTOR = """
import os, resource, sys
import zerohop as zmq

address = sys.argv[1]
context = zmq.Context()
push = context.socket(zmq.PUSH)
push.reconnect_ivl = 20
if sys.argv[2] == "warm":
    push.connect("tcp://127.0.0.1:9")
    push.disconnect("tcp://127.0.0.1:9")
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
taken = []
try:
    while True:
        taken.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
try:
    push.connect(address)
    said = "will dial"
except OSError as error:
    said = "refused"
for each in taken:
    os.close(each)
if said == "refused":
    push.connect(address)
push.send(b"from there")
push.close()
context.term(timeout=8)
print(said)
"""


@pytest.mark.parametrize("before", ["cold", "warm"])
def test_a_connect_without_a_free_descriptor_fails_or_dials_later(context, before):
    pull, port = bound(context)
    child = subprocess.run(
        [sys.executable, "-c", WITHOUT_A_DESCRIPTOR, f"tcp://127.0.0.1:{port}", before],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert (child.returncode, child.stdout.strip() in ("will dial", "refused")) == (0, True), (
        child.stdout + child.stderr
    )
    assert pull.recv() == b"from there"
