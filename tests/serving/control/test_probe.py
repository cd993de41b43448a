"""What is at the other end: a listener of each kind, and what the probe says of it, in time."""

import contextlib
import http.server
import logging
import socket
import threading
import time

import pytest
import zmq as pyzmq
from zmq.auth.thread import ThreadAuthenticator

from tests.kit.net import free_port
from tests.kit.raw import command, greeting, ready
from tests.serving.control.strangers import (
    PATIENCE,
    Server,
    Stranger,
    bound,
    hang_up,
    http_that_waits_for_a_line,
    saying,
    until_closed,
)
from zerohop.serving import KvEventPublisher
from zerohop.serving.codec import pack
from zerohop.serving.control.probe import ping
from zerohop.serving.control.protocol import Protocol
from zerohop.serving.control.server import SyncControlServer

pytestmark = pytest.mark.timeout(30)
SHORT = 0.4  # seconds, where the time runs out on purpose
LIMIT = 5.0

PING_MODERN = [pack(22), pack(None)]  # of LMCache 0.5.3 and 0.5.6, after the request's id


@contextlib.contextmanager
def in_time(seconds):
    """A machine that is busy may take longer, but not for ever."""
    begun = time.monotonic()
    yield
    assert time.monotonic() - begun < seconds + 5


# Nobody is reached.


@pytest.mark.parametrize(
    "endpoint",
    [
        *("", "tcp://", "tcp://127.0.0.1", "tcp://127.0.0.1:0", "tcp://127.0.0.1:65536"),
        *("tcp://*:5555", "tcp://:5555", "tcp://127.0.0.1:x", "127.0.0.1:5555", "ipc://"),
        *("ipc://a\0b", "inproc://here", "udp://127.0.0.1:5555", "http://127.0.0.1:5555"),
    ],
)
def test_what_nobody_can_connect_to_is_said_to_be_that(endpoint):
    assert ping(endpoint).code == "bad_endpoint"


def test_a_name_that_nobody_knows_is_said():
    finding = ping("tcp://no-such-host.invalid:5555", LIMIT)
    assert finding.code == "name_unresolved"
    assert "no-such-host.invalid" in finding.detail


def test_a_name_that_cannot_be_one_is_said():
    assert ping(f"tcp://{'x' * 70}.invalid:5555", LIMIT).code == "name_unresolved"


def test_a_resolver_that_does_not_answer_is_not_waited_for(monkeypatch):
    answered = threading.Event()

    def never(*_, **__):
        answered.wait(PATIENCE)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", never)
    with in_time(SHORT):
        finding = ping("tcp://slow.example:5555", SHORT)
    answered.set()
    assert finding.code == "name_unresolved"
    assert "nobody answered in time" in finding.detail


def test_a_port_that_nobody_listens_on_is_said():
    assert ping(f"tcp://127.0.0.1:{free_port()}", LIMIT).code == "no_listener"


def test_a_host_that_takes_no_connection_is_said_in_time():
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        port = listener.getsockname()[1]
        for _ in range(4):  # more than its queue has room for
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", port))
        with in_time(SHORT):
            finding = ping(f"tcp://127.0.0.1:{port}", SHORT)
    assert finding.code == "unreachable"


def test_the_second_address_of_a_name_is_tried(monkeypatch):
    nobody = ("127.0.0.1", free_port())
    with bound("zerohop", "PUB") as endpoint:
        port = int(endpoint.rpartition(":")[2])
        places = [nobody, ("127.0.0.1", port)]
        monkeypatch.setattr(
            socket,
            "getaddrinfo",
            lambda *_, **__: [(socket.AF_INET, 1, 6, "", at) for at in places],
        )
        assert ping("tcp://twofold.example:1", LIMIT).code == "other_socket_type"


def test_an_address_of_a_kind_that_this_machine_lacks_is_passed_over(monkeypatch):
    with bound("zerohop", "PUB") as endpoint:
        there = ("127.0.0.1", int(endpoint.rpartition(":")[2]))
        places = [(socket.AF_APPLETALK, 1, 6, "", None), (socket.AF_INET, 1, 6, "", there)]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: places)
        assert ping("tcp://twofold.example:1", LIMIT).code == "other_socket_type"
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: places[:1])
        assert ping("tcp://foreign.example:1", LIMIT).code == "unreachable"


def test_an_ipc_path_that_is_not_there_is_said(ipc_directory):
    assert ping(f"ipc://{ipc_directory}/nobody", LIMIT).code == "path_missing"


def test_an_ipc_path_whose_server_is_gone_is_said(ipc_directory):
    path = ipc_directory / "left"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    assert ping(f"ipc://{path}", LIMIT).code == "no_listener"
    path.unlink()


def test_an_ipc_path_that_is_a_file_is_said(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    assert ping(f"ipc://{path}", LIMIT).code == "not_a_socket"


def test_an_ipc_path_of_another_kind_of_socket_is_said(ipc_directory):
    path = ipc_directory / "datagrams"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(str(path))
        assert ping(f"ipc://{path}", LIMIT).code == "not_a_socket"
    path.unlink()


def test_an_ipc_path_that_is_too_long_is_said_with_the_limit():
    finding = ping(f"ipc:///tmp/{'x' * 200}", LIMIT)
    assert finding.code == "path_too_long"
    assert "107" in finding.detail


def test_an_ipc_listener_that_accepts_nobody_is_silent(ipc_directory):
    path = ipc_directory / "full"
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(path))
        listener.listen(0)
        first = stack.enter_context(socket.socket(socket.AF_UNIX))
        first.connect(str(path))
        assert ping(f"ipc://{path}", LIMIT).code == "silent"
    path.unlink()


# Something else than ZeroMQ.


def test_who_says_nothing_is_silent_in_time():
    with Stranger(until_closed) as endpoint, in_time(SHORT):
        assert ping(endpoint, SHORT).code == "silent"


def test_who_is_slow_to_speak_is_heard_all_the_same():
    over = threading.Event()

    def script(connection):
        over.wait(1.7)  # longer than half of the time
        connection.sendall(greeting() + ready(b"PUB"))
        until_closed(connection)

    with Stranger(script) as endpoint:
        finding = ping(endpoint, 3.0)
        over.set()
    assert finding.code == "other_socket_type"


def test_who_accepts_no_connection_is_silent_in_time():
    with socket.create_server(("127.0.0.1", 0)) as stopped, in_time(SHORT):
        endpoint = f"tcp://127.0.0.1:{stopped.getsockname()[1]}"
        assert ping(endpoint, SHORT).code == "silent"


def test_who_hangs_up_at_once_is_said():
    with Stranger(hang_up) as endpoint:
        assert ping(endpoint, LIMIT).code == "hung_up"


def test_an_http_server_is_known_though_it_waits_to_be_asked():
    with Stranger(http_that_waits_for_a_line) as endpoint:
        finding = ping(endpoint, 2.0)
    assert finding.code == "not_zeromq"
    assert "HTTP/1.1 404 Not Found" in finding.detail


def test_the_http_server_of_the_standard_library_is_known():
    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        finding = ping(f"tcp://127.0.0.1:{server.server_address[1]}", 2.0)
        server.shutdown()
        thread.join()
    assert finding.code == "not_zeromq"
    assert "HTTP" in finding.detail


@pytest.mark.parametrize(
    ("octets", "words"),
    [(b"SSH-2.0-OpenSSH_9.6\r\n", "SSH"), (b"-ERR unknown command\r\n", "Redis")],
)
def test_who_speaks_first_is_known_at_once(octets, words):
    with Stranger(saying(octets)) as endpoint:
        finding = ping(endpoint, LIMIT)
    assert finding.code == "not_zeromq"
    assert words in finding.detail


def test_a_stranger_on_an_ipc_path_is_known(ipc_directory):
    path = ipc_directory / "redis"
    with Stranger(saying(b"-ERR unknown command\r\n"), path) as endpoint:
        assert ping(endpoint, LIMIT).code == "not_zeromq"
    path.unlink()


# ZeroMQ, but nobody to ask.


@pytest.mark.parametrize(
    ("octets", "version"),
    [(b"\xff" + bytes(7) + b"\x01\x7f\x01\x05", "2.0"), (b"\x01\x00", "1.0")],
)
def test_older_zeromq_is_told_by_its_version(octets, version):
    with Stranger(saying(octets)) as endpoint:
        finding = ping(endpoint, LIMIT)
    assert finding.code == "old_zeromq"
    assert f"ZMTP {version}" in finding.detail


@pytest.mark.parametrize("library", ["zerohop", "pyzmq"])
@pytest.mark.parametrize("kind", ["PUB", "XPUB", "SUB", "XSUB", "PUSH", "PULL", "PAIR", "DEALER"])
def test_a_socket_of_another_type_is_named(library, kind):
    with bound(library, kind) as endpoint:
        finding = ping(endpoint, LIMIT)
    assert finding.code == "other_socket_type"
    assert f"{kind} socket" in finding.detail


@pytest.mark.parametrize("library", ["zerohop", "pyzmq"])
def test_over_ipc_it_is_the_same(library, ipc_directory):
    with bound(library, "PUB", f"ipc://{ipc_directory}/pub") as endpoint:
        assert ping(endpoint, LIMIT).code == "other_socket_type"


def test_an_abstract_ipc_name_will_do():
    with bound("zerohop", "PUB", "ipc://@zerohop-test-of-the-probe") as endpoint:
        assert ping(endpoint, LIMIT).code == "other_socket_type"


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        ("PLAIN", {"plain_server": True}),
        (
            "CURVE",
            {"curve_server": True, "curve_secretkey": b"D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs"},
        ),
    ],
)
def test_another_mechanism_is_named(mechanism, options):
    with bound("pyzmq", "ROUTER", **options) as endpoint:
        finding = ping(endpoint, LIMIT)
    assert finding.code == "other_mechanism"
    assert mechanism in finding.detail


def test_who_is_refused_by_the_peer_is_told_its_reason():
    with Stranger(saying(greeting(), command(b"ERROR", b"\x03400"))) as endpoint:
        finding = ping(endpoint, LIMIT)
    assert finding.code == "refused"
    assert "400" in finding.detail


def test_who_is_refused_by_an_authenticator_is_told_so():
    with pyzmq.Context() as context:
        authenticator = ThreadAuthenticator(context)
        authenticator.start()
        authenticator.deny("127.0.0.1")
        with context.socket(pyzmq.ROUTER) as router:
            router.zap_domain = b"global"
            router.bind("tcp://127.0.0.1:*")
            finding = ping(router.last_endpoint.decode(), LIMIT)
        authenticator.stop()
    assert finding.code == "refused"
    assert "400" in finding.detail


def test_a_peer_that_greets_and_goes_silent_is_said_in_time():
    with Stranger(saying(greeting())) as endpoint, in_time(SHORT):
        finding = ping(endpoint, SHORT)
    assert finding.code == "no_handshake"
    assert "said nothing more" in finding.detail


def test_a_peer_that_always_has_one_more_octet_is_not_listened_to_for_ever():
    def script(connection):
        connection.sendall(greeting() + b"\x06" + (2**16).to_bytes(8))  # a READY, and a long one
        while True:  # until the other end has closed
            connection.sendall(b"x")
            time.sleep(0.0003)

    with Stranger(script) as endpoint, in_time(SHORT):
        assert ping(endpoint, SHORT).code == "no_handshake"


def test_a_peer_that_greets_and_hangs_up_is_said():
    def script(connection):
        connection.sendall(greeting())
        connection.recv(1)

    with Stranger(script) as endpoint:
        finding = ping(endpoint, LIMIT)
    assert finding.code == "no_handshake"
    assert "closed the connection" in finding.detail


def test_a_peer_that_waits_for_our_ready_gets_it():
    def script(connection):
        connection.sendall(greeting())
        heard = b""
        while b"READY" not in heard:
            heard += connection.recv(4096)
        connection.sendall(ready(b"PUB"))
        until_closed(connection)

    with Stranger(script) as endpoint:
        assert ping(endpoint, 2.0).code == "other_socket_type"


def test_a_peer_that_waits_for_our_whole_greeting_gets_it():
    def script(connection):
        connection.sendall(greeting()[:11])
        heard = b""
        while len(heard) < 64:
            heard += connection.recv(4096)
        connection.sendall(greeting()[11:] + ready(b"PULL"))
        until_closed(connection)

    with Stranger(script) as endpoint:
        assert ping(endpoint, 2.0).code == "other_socket_type"


# A server.


def lmcache(frames):
    """The answers of LMCache 0.5.6 to a PING, and its silence to anything else."""
    uid, *request = frames
    return [uid, pack(22), pack(True)] if request == PING_MODERN else None


@pytest.mark.parametrize("transport", ["tcp", "ipc"])
def test_a_control_server_of_ours_says_who_it_is(transport, ipc_directory):
    endpoint = "tcp://127.0.0.1:*" if transport == "tcp" else f"ipc://{ipc_directory}/control"
    with SyncControlServer(endpoint, protocol=Protocol("cache")) as server:
        finding = ping(server.endpoint, LIMIT)
        assert server.counts == {}
    assert finding.code == "answered_control"
    assert finding.answered
    assert "protocol 'cache'" in finding.detail
    assert server.boot.hex() in finding.detail


def has_ipv6():
    """Whether this machine has the loopback of IPv6: that Python was built for it says nothing."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
def test_a_server_on_ipv6_is_asked_there():
    with SyncControlServer("tcp://[::1]:*") as server:
        assert ping(server.endpoint, LIMIT).code == "answered_control"


def test_lmcache_is_told_by_its_answer_to_one_ping():
    with Server(lmcache) as server:
        finding = ping(server.endpoint, LIMIT)
    assert finding.code == "answered_lmcache"
    assert finding.answered
    assert "0.5.3 or 0.5.6" in finding.detail
    assert [frames[1:] for frames in server.heard] == [PING_MODERN]


def test_lmcache_of_a_release_that_is_named_is_sent_its_own_ping():
    def old(frames):
        return [frames[0], pack(17), pack(True)] if frames[1:] == [pack(17)] else None

    with Server(old) as server:
        finding = ping(server.endpoint, LIMIT, release="0.4.6")
    assert finding.code == "answered_lmcache"
    assert "0.4.6" in finding.detail
    assert [frames[1:] for frames in server.heard] == [[pack(17)]]


def test_a_release_without_a_ping_is_the_callers_mistake():
    with pytest.raises(ValueError, match=r"0\.4\.1 has no PING"):
        ping("tcp://127.0.0.1:1", LIMIT, release="0.4.1")


@pytest.mark.parametrize("library", ["zerohop", "pyzmq"])
def test_a_server_without_a_ping_handler_is_told_in_one_line_and_in_time(library, caplog):
    """LMCache 0.4.2's blend server: two lines in its log for each ping, and never an answer."""
    log = logging.getLogger("cache server")
    handlers = {pack(3): "store", pack(4): "retrieve", pack(5): "lookup"}

    def answer(frames):
        if frames[1] in handlers:
            return [*frames[:2], pack("OK")]
        log.error("no handler for request type %r", frames[1])
        log.error("message dropped")
        return None

    with Server(answer, library=library) as server, in_time(SHORT):
        finding = ping(server.endpoint, SHORT)
    assert finding.code == "no_ping_handler"
    assert "is a ROUTER that left a PING without an answer" in finding.detail
    assert "PING handler" in finding.advice
    assert "\n" not in finding.detail + finding.advice
    assert len(server.heard) == 1
    assert len(caplog.records) == 2


def test_a_server_that_answers_an_error_has_no_ping_handler():
    with Server(lambda _: [b"error: unknown operation"]) as server:
        finding = ping(server.endpoint, LIMIT)
    assert finding.code == "no_ping_handler"
    assert "unknown operation" in finding.detail


def test_a_rep_server_is_asked_as_a_req_would():
    with Server(lambda _: [b"error: what?"], kind="REP") as server:
        finding = ping(server.endpoint, LIMIT)
    assert finding.code == "no_ping_handler"
    assert "is a REP" in finding.detail
    assert [frames[1:] for frames in server.heard] == [PING_MODERN]


def test_a_server_that_answers_something_else_is_not_what_is_looked_for():
    with Server(lambda _: [b"hello"]) as server:
        finding = ping(server.endpoint, LIMIT)
    assert finding.code == "unknown_answer"
    assert "hello" in finding.detail


def test_a_server_that_hangs_up_when_asked_is_said():
    asked = threading.Event()

    def script(connection):
        connection.sendall(greeting() + ready(b"ROUTER"))
        heard = b""
        while b"\x16" not in heard[64:]:  # the number of PING, after the greeting
            data = connection.recv(4096)
            if not data:
                return
            heard += data
        asked.set()

    with Stranger(script) as endpoint, in_time(SHORT):
        finding = ping(endpoint, SHORT * 2)
    assert asked.is_set()
    assert finding.code == "no_ping_handler"


def test_the_replay_socket_of_a_publisher_takes_no_harm():
    with KvEventPublisher(replay="tcp://127.0.0.1:*") as publisher:
        assert publisher.replay_endpoint is not None
        assert ping(publisher.replay_endpoint, SHORT).code == "no_ping_handler"
        assert publisher.clear() == 0
        assert publisher.flush(PATIENCE)
