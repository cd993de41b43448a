"""Names are resolved beside the I/O: however slow the resolver is, nobody else waits."""

import errno
import socket as plain
import threading

import pytest

import zerohop as zmq
from tests.io.hand import HandLoop, server
from zerohop.io import dialing

IPV4 = plain.AF_INET


class Resolver:
    """Answers when the test lets it."""

    def __init__(self):
        self.asked = []
        self.answer = []
        self.go = threading.Event()
        self.done = threading.Event()

    def __call__(self, host, port, *, ipv6):
        self.asked.append((host, port, ipv6))
        assert self.go.wait(8)
        try:
            if isinstance(self.answer, OSError):
                raise self.answer
            return self.answer
        finally:
            self.done.set()

    def finish(self):
        """Answer, and wait until its thread has ended."""
        self.go.set()
        for thread in threading.enumerate():
            if thread.name.startswith("zerohop-resolve"):
                thread.join(8)


@pytest.fixture
def resolver(monkeypatch):
    made = Resolver()
    monkeypatch.setattr(dialing, "resolve", made)
    yield made
    made.finish()


def accepted(listening):
    try:
        return listening.accept()[0]
    except BlockingIOError:
        return None


def test_a_slow_resolver_delays_nobody_else(world, resolver):
    slow, quick = world.socket(zmq.PUSH, linger=0), world.socket(zmq.PUSH)
    pull = world.socket(zmq.PULL)
    slow.connect("tcp://slow.example:5555")
    pull.bind("tcp://127.0.0.1:*")
    quick.connect(pull.last_endpoint.decode())
    quick.send(b"quick")
    world.loop.until(lambda: pull.stats().incoming.messages)
    assert pull.recv() == b"quick"
    assert resolver.asked == [("slow.example", 5555, False)]
    assert not resolver.done.is_set()


def test_the_answer_is_dialled_when_it_comes(world, resolver, listening):
    push = world.socket(zmq.PUSH, linger=0, ipv6=1)
    port = listening.getsockname()[1]
    push.connect(f"tcp://name.example:{port}")
    world.loop.settle(3)
    resolver.answer = [(IPV4, ("127.0.0.1", port))]
    resolver.go.set()
    with world.loop.until(lambda: accepted(listening)):
        assert resolver.asked == [("name.example", port, True)]


def test_a_name_that_cannot_be_resolved_is_tried_again_and_the_endpoint_says_why(world, resolver):
    push = world.socket(zmq.PUSH, linger=0, reconnect_ivl=1)
    monitor = push.get_monitor_socket(zmq.EVENT_CLOSED | zmq.EVENT_CONNECT_RETRIED)
    monitor._driver.attach(world.loop)
    resolver.answer = plain.gaierror(plain.EAI_NONAME, "Name or service not known")
    resolver.go.set()
    push.connect("tcp://nowhere.example:5555")
    world.loop.until(lambda: len(resolver.asked) >= 3)
    (dialer,) = push._core.links.dialers
    assert "cannot resolve the name: Name or service not known" in str(dialer.last_error)
    world.loop.until(lambda: monitor._core.ready())
    frames = monitor.recv_multipart()
    assert int.from_bytes(frames[0][:2], "little") in (zmq.EVENT_CLOSED, zmq.EVENT_CONNECT_RETRIED)
    assert frames[1] == b"tcp://nowhere.example:5555"
    monitor.close(0)


def test_a_resolver_without_an_answer_is_a_failed_attempt(world, resolver):
    push = world.socket(zmq.PUSH, linger=0, reconnect_ivl=-1)
    resolver.go.set()
    push.connect("tcp://empty.example:5555")
    (dialer,) = push._core.links.dialers
    world.loop.until(lambda: dialer.stopped)
    assert dialer.last_error.errno == errno.EHOSTUNREACH


@pytest.mark.parametrize("how", ["disconnect", "close"])
def test_an_answer_that_comes_too_late_is_of_no_interest(world, resolver, listening, how):
    push = world.socket(zmq.PUSH, linger=0)
    port = listening.getsockname()[1]
    endpoint = f"tcp://name.example:{port}"
    push.connect(endpoint)
    push.disconnect(endpoint) if how == "disconnect" else push.close()
    resolver.answer = [(IPV4, ("127.0.0.1", port))]
    resolver.finish()
    world.loop.settle(5)
    assert accepted(listening) is None
    assert how == "disconnect" or push._driver.released


def test_a_socket_that_moves_while_its_name_is_resolved_is_connected_once(
    world, resolver, listening
):
    push = world.socket(zmq.PUSH, linger=0)
    port = listening.getsockname()[1]
    push.connect(f"tcp://name.example:{port}")
    first, world.loop = world.loop, HandLoop()
    push._driver.attach(world.loop)
    resolver.answer = [(IPV4, ("127.0.0.1", port))]
    resolver.finish()
    first.settle(3)
    assert first.idle
    with world.loop.until(lambda: accepted(listening)):
        world.loop.settle(3)
        assert accepted(listening) is None


def test_an_answer_for_a_loop_that_has_ended_is_of_no_interest(world, resolver):
    class Ended(HandLoop):
        def call_soon_threadsafe(self, callback, *args):
            raise RuntimeError("Event loop is closed")

    push = world.socket(zmq.PUSH, linger=0)
    push._driver.attach(Ended())
    push.connect("tcp://name.example:5555")
    resolver.finish()
    push._driver.attach(world.loop)


def test_every_address_is_tried_before_the_attempt_has_failed(world, resolver, listening):
    push = world.socket(zmq.PUSH, linger=0, ipv6=1)
    port = listening.getsockname()[1]
    resolver.answer = [
        (plain.AF_INET6, ("::1", 1, 0, 0)),  # nobody there
        (IPV4, ("127.0.0.1", 1)),
        (9999, ("?", port)),  # no such family
        (IPV4, ("127.0.0.1", port)),
    ]
    resolver.go.set()
    push.connect(f"tcp://name.example:{port}")
    with world.loop.until(lambda: accepted(listening)):
        assert len(resolver.asked) == 1


@pytest.fixture
def busy():
    """A listener whose queue is full: who calls now is not answered."""
    with server(backlog=0) as made:
        callers = []
        for _ in range(3):
            callers.append(plain.socket())
            callers[-1].setblocking(False)
            callers[-1].connect_ex(made.getsockname())
        yield made
        for caller in callers:
            caller.close()


def test_a_socket_that_moves_while_it_calls_waits_for_the_answer_in_the_next_loop(world, busy):
    push = world.socket(zmq.PUSH, linger=0, connect_timeout=60_000)
    push.connect(f"tcp://127.0.0.1:{busy.getsockname()[1]}")
    world.loop.settle(3)
    assert world.loop.writers
    first, world.loop = world.loop, HandLoop()
    push._driver.attach(world.loop)
    assert first.idle
    assert world.loop.writers


def test_a_call_that_nobody_answers_is_given_up_and_made_again(world, busy):
    push = world.socket(zmq.PUSH, linger=0, connect_timeout=1000, reconnect_ivl=1)
    push.connect(f"tcp://127.0.0.1:{busy.getsockname()[1]}")
    (dialer,) = push._core.links.dialers
    world.loop.settle(3)
    assert dialer.last_error is None
    world.loop.skip(1.1)
    assert dialer.last_error.errno == errno.ETIMEDOUT
    world.loop.until(lambda: world.loop.writers)


def test_a_connection_to_itself_is_none(world, monkeypatch):
    """TCP lets a port of the range for outgoing connections connect to itself."""
    push = world.socket(zmq.PUSH, linger=0, reconnect_ivl=-1)
    with server() as free:
        port = free.getsockname()[1]
    push.connect(f"tcp://127.0.0.1:{port};127.0.0.1:{port}")
    (dialer,) = push._core.links.dialers
    world.loop.until(lambda: dialer.stopped)
    assert dialer.last_error.errno == errno.ECONNREFUSED


def test_a_connection_that_is_gone_before_it_is_looked_at_is_a_failed_attempt(
    world, listening, monkeypatch
):
    def gone(_):
        raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")

    monkeypatch.setattr(plain.socket, "getpeername", gone)
    push = world.socket(zmq.PUSH, linger=0, reconnect_ivl=-1)
    push.connect(f"tcp://127.0.0.1:{listening.getsockname()[1]}")
    (dialer,) = push._core.links.dialers
    world.loop.until(lambda: dialer.stopped)
    assert dialer.last_error.errno == errno.ENOTCONN


def test_a_source_that_does_not_exist_is_a_failed_attempt(world, listening):
    push = world.socket(zmq.PUSH, linger=0, reconnect_ivl=-1)
    push.connect(f"tcp://eth77:0;127.0.0.1:{listening.getsockname()[1]}")
    (dialer,) = push._core.links.dialers
    world.loop.until(lambda: dialer.stopped)
    assert dialer.last_error.errno == errno.ENODEV
    assert "eth77" in str(dialer.last_error)


@pytest.mark.parametrize("path", ["/nowhere/x", "@nobody-is-here"])
def test_an_ipc_endpoint_that_is_not_there_is_tried_again(world, path):
    push = world.socket(zmq.PUSH, linger=0, reconnect_ivl=1)
    push.connect(f"ipc://{path}")
    (dialer,) = push._core.links.dialers
    world.loop.until(lambda: dialer.attempt >= 3)
    assert dialer.last_error.errno in (errno.ENOENT, errno.ECONNREFUSED)
