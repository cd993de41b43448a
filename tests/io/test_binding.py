"""Binding: whose address it is, what the error says, and what is left in the file system."""

import errno
import os
import socket as plain
import stat
import subprocess
import sys
import textwrap

import pytest

import zerohop as zmq
from tests.io.hand import World
from tests.kit.net import free_port


@pytest.fixture
def pull(world):
    return world.socket(zmq.PULL)


@pytest.fixture
def another(world):
    return world.socket(zmq.PULL)


def refused(socket, endpoint):
    """Bind, and return the error with all it says."""
    with pytest.raises(zmq.ZMQError) as error:
        socket.bind(endpoint)
    return error.value.errno, " ".join([str(error.value), *getattr(error.value, "__notes__", [])])


def path_of(socket):
    return socket.last_endpoint.decode().removeprefix("ipc://")


def is_served(world, endpoint):
    """Whether whoever connects there is greeted."""
    scheme, _, address = endpoint.partition("://")
    if scheme == "ipc":
        caller = plain.socket(plain.AF_UNIX)
        caller.connect("\0" + address[1:] if address[0] == "@" else address)
    else:
        host, _, port = address.rpartition(":")
        caller = plain.create_connection((host.strip("[]"), int(port)))
    with caller:
        caller.setblocking(False)
        return world.loop.until(lambda: _first_octet(caller)) == b"\xff"


def _first_octet(caller):
    try:
        return caller.recv(1) or b"closed"
    except BlockingIOError:
        return b""
    except ConnectionError:
        return b"closed"


# -- tcp


def test_a_port_that_is_taken(pull, another):
    pull.bind("tcp://127.0.0.1:*")
    endpoint = pull.last_endpoint.decode()
    with pytest.raises(zmq.ZMQError) as raised:
        another.bind(endpoint)
    assert raised.value.errno == zmq.EADDRINUSE
    assert endpoint in str(raised.value)
    assert "bind to another port" in "".join(raised.value.__notes__)


def test_an_address_that_is_not_ours(pull):
    number, text = refused(pull, "tcp://192.0.2.1:5555")
    assert number == errno.EADDRNOTAVAIL
    assert "192.0.2.1" in text


def test_an_interface_that_does_not_exist_and_those_that_do(pull):
    number, text = refused(pull, "tcp://eth77:5555")
    assert number == errno.ENODEV
    assert "eth77" in text
    assert "lo" in text


def test_an_ipv6_address_without_the_option(pull):
    number, text = refused(pull, "tcp://[::1]:5555")
    assert number == errno.ENODEV
    assert "IPV6" in text


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.ENOBUFS])
def test_whatever_the_system_says_is_the_error(pull, monkeypatch, number):
    def bind(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(plain.socket, "bind", bind)
    assert refused(pull, "tcp://127.0.0.1:5555")[0] == number
    assert refused(pull, "ipc:///tmp/zh-refused")[0] == number


def test_a_socket_that_could_not_be_bound_can_be_bound_elsewhere(world, pull):
    refused(pull, "tcp://192.0.2.1:5555")
    pull.bind("tcp://127.0.0.1:*")
    assert is_served(world, pull.last_endpoint.decode())


def test_all_interfaces_with_ipv6_serve_both_families(world):
    pull = world.socket(zmq.PULL, ipv6=1)
    pull.bind("tcp://*:*")
    port = pull.last_endpoint.decode().rpartition(":")[2]
    assert is_served(world, f"tcp://127.0.0.1:{port}")
    assert is_served(world, f"tcp://[::1]:{port}")


def test_an_interface_by_name_with_ipv6(world):
    pull = world.socket(zmq.PULL, ipv6=1)
    pull.bind("tcp://lo:*")
    assert is_served(world, pull.last_endpoint.decode())


@pytest.mark.parametrize("how", ["unbind", "close"])
def test_the_port_is_free_at_return(pull, another, how):
    pull.bind(f"tcp://127.0.0.1:{free_port()}")
    endpoint = pull.last_endpoint.decode()
    pull.unbind(endpoint) if how == "unbind" else pull.close()
    another.bind(endpoint)


def test_only_what_is_bound_can_be_unbound(pull):
    pull.bind("tcp://127.0.0.1:*")
    with pytest.raises(zmq.ZMQError) as error:
        pull.unbind("tcp://127.0.0.1:1")
    assert error.value.errno == errno.ENOENT
    assert pull.last_endpoint.decode() in " ".join(error.value.__notes__)


@pytest.mark.parametrize(
    ("network", "admitted"),
    [("127.0.0.1", True), ("127.0.0.0/8", True), ("10.0.0.0/8", False), ("::1", False)],
)
def test_accept_filters_admit_their_networks(world, pull, network, admitted):
    pull.setsockopt(zmq.TCP_ACCEPT_FILTER, network.encode())
    pull.bind("tcp://127.0.0.1:*")
    host, port = pull.last_endpoint.decode().removeprefix("tcp://").split(":")
    with plain.create_connection((host, int(port))) as caller:
        caller.setblocking(False)
        first = world.loop.until(lambda: _first_octet(caller))
    assert (first == b"\xff") == admitted


@pytest.mark.parametrize("over", ["tcp", "ipc"])
def test_more_callers_than_are_accepted_in_a_turn(world, pull, over, tmp_path):
    pull.backlog = 200
    pull.bind("tcp://127.0.0.1:*" if over == "tcp" else f"ipc://{tmp_path}/x")
    callers = []
    for _ in range(100):
        if over == "tcp":
            host, port = pull.last_endpoint.decode().removeprefix("tcp://").split(":")
            callers.append(plain.create_connection((host, int(port))))
        else:
            callers.append(plain.socket(plain.AF_UNIX))
            callers[-1].connect(path_of(pull))
    world.loop.turn()
    assert len(pull._core.links.open_links) == 64
    world.loop.settle(3)
    assert len(pull._core.links.open_links) == 100
    for caller in callers:
        caller.close()
    world.loop.until(lambda: not pull._core.links.open_links)


# -- ipc: files


@pytest.mark.parametrize("how", ["unbind", "close"])
def test_the_file_goes_with_the_binding(pull, tmp_path, how):
    pull.bind(f"ipc://{tmp_path}/x")
    assert stat.S_ISSOCK(os.stat(tmp_path / "x").st_mode)
    pull.unbind(f"ipc://{tmp_path}/x") if how == "unbind" else pull.close()
    assert not list(tmp_path.iterdir())


def test_a_file_that_another_has_put_in_its_place_stays(pull, tmp_path):
    pull.bind(f"ipc://{tmp_path}/x")
    (tmp_path / "x").unlink()
    (tmp_path / "x").write_text("somebody else's")
    pull.close()
    assert (tmp_path / "x").read_text() == "somebody else's"


def test_a_file_that_is_gone_already_is_no_trouble(pull, tmp_path):
    pull.bind(f"ipc://{tmp_path}/x")
    (tmp_path / "x").unlink()
    pull.close()


def test_a_file_named_from_where_the_program_stood_is_found_again(pull, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pull.bind("ipc://x")
    monkeypatch.chdir("/")
    pull.close()
    assert not list(tmp_path.iterdir())


def test_a_file_that_nobody_listens_at_is_replaced(world, pull, tmp_path):
    dead = plain.socket(plain.AF_UNIX)
    dead.bind(str(tmp_path / "x"))
    dead.close()
    pull.bind(f"ipc://{tmp_path}/x")
    assert is_served(world, f"ipc://{tmp_path}/x")


@pytest.mark.parametrize("callers", [0, 3])
def test_a_file_that_somebody_listens_at_is_not_stolen(pull, tmp_path, callers):
    """Not even if he is too busy to accept."""
    path = str(tmp_path / "x")
    with plain.socket(plain.AF_UNIX) as alive:
        alive.bind(path)
        alive.listen(0)
        waiting = [plain.socket(plain.AF_UNIX) for _ in range(callers)]
        for caller in waiting:
            caller.setblocking(False)
            caller.connect_ex(path)
        number, text = refused(pull, f"ipc://{path}")
        for caller in waiting:
            caller.close()
    assert number == zmq.EADDRINUSE
    assert "a live process" in text
    assert os.path.exists(path)


@pytest.mark.parametrize("what", ["file", "directory"])
def test_what_is_no_socket_is_not_replaced(pull, tmp_path, what):
    path = tmp_path / "x"
    path.write_text("precious") if what == "file" else path.mkdir()
    number, text = refused(pull, f"ipc://{path}")
    assert number == zmq.EADDRINUSE
    assert "not a socket" in text
    assert path.exists()


def test_a_directory_that_does_not_exist(pull, tmp_path):
    number, text = refused(pull, f"ipc://{tmp_path}/nowhere/x")
    assert number == errno.ENOENT
    assert "directory" in text


def test_a_binding_that_fails_halfway_leaves_nothing(pull, tmp_path, monkeypatch):
    def listen(*_):
        raise OSError(errno.ENOBUFS, "No buffer space available")

    monkeypatch.setattr(plain.socket, "listen", listen)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for endpoint in (f"ipc://{tmp_path}/x", "ipc://*"):
        assert refused(pull, endpoint)[0] == errno.ENOBUFS
    assert not list(tmp_path.iterdir())


# -- ipc: made-up and abstract names


@pytest.mark.parametrize("how", ["unbind", "close"])
def test_the_directory_of_a_made_up_name_goes_with_it(world, pull, tmp_path, monkeypatch, how):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pull.bind("ipc://*")
    assert os.path.dirname(path_of(pull)) in map(str, tmp_path.iterdir())
    assert stat.S_IMODE(os.stat(os.path.dirname(path_of(pull))).st_mode) == 0o700
    assert is_served(world, pull.last_endpoint.decode())
    pull.unbind(pull.last_endpoint.decode()) if how == "unbind" else pull.close()
    assert not list(tmp_path.iterdir())


def test_the_directory_of_a_made_up_name_goes_though_its_file_is_gone(pull, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pull.bind("ipc://*")
    os.unlink(path_of(pull))
    pull.close()
    assert not list(tmp_path.iterdir())


def test_a_directory_of_the_users_stays_whatever_its_name(pull, tmp_path):
    (tmp_path / "zerohop-app").mkdir()
    pull.bind(f"ipc://{tmp_path}/zerohop-app/socket")
    pull.close()
    assert (tmp_path / "zerohop-app").is_dir()
    assert not list((tmp_path / "zerohop-app").iterdir())


def test_abstract_names_leave_no_file_and_are_free_at_return(world, pull, another, tmp_path):
    endpoint = f"ipc://@zh-abstract-{os.getpid()}"
    pull.bind(endpoint)
    assert pull.last_endpoint.decode() == endpoint
    assert refused(another, endpoint)[0] == zmq.EADDRINUSE
    assert is_served(world, endpoint)
    pull.unbind(endpoint)
    another.bind(endpoint)


@pytest.mark.parametrize(
    ("option", "value", "admitted"),
    [
        (zmq.IPC_FILTER_UID, os.getuid(), True),
        (zmq.IPC_FILTER_UID, os.getuid() + 1, False),
        (zmq.IPC_FILTER_GID, os.getgid(), True),
        (zmq.IPC_FILTER_GID, os.getgid() + 1, False),
        (zmq.IPC_FILTER_PID, os.getpid(), True),
        (zmq.IPC_FILTER_PID, os.getpid() + 1, False),
    ],
    ids=["uid", "other uid", "gid", "other gid", "pid", "other pid"],
)
def test_ipc_filters_admit_whom_they_name(world, pull, tmp_path, option, value, admitted):
    pull.setsockopt(option, value)
    pull.bind(f"ipc://{tmp_path}/x")
    assert is_served(world, f"ipc://{tmp_path}/x") == admitted


# -- USE_FD


@pytest.mark.parametrize("over", ["tcp", "ipc"])
def test_a_listener_that_another_has_made_is_used_and_not_closed(world, tmp_path, over):
    family = plain.AF_INET if over == "tcp" else plain.AF_UNIX
    with plain.socket(family) as given:
        given.bind(("127.0.0.1", 0) if over == "tcp" else str(tmp_path / "x"))
        given.listen(5)
        pull = world.socket(zmq.PULL, use_fd=given.fileno())
        pull.bind("tcp://127.0.0.1:*" if over == "tcp" else "ipc://ignored")
        endpoint = pull.last_endpoint.decode()
        if over == "tcp":
            assert endpoint == f"tcp://127.0.0.1:{given.getsockname()[1]}"
        else:
            assert endpoint == f"ipc://{tmp_path}/x"
        assert is_served(world, endpoint)
        pull.close()
        assert given.fileno() >= 0
        os.fstat(given.fileno())
        assert over == "tcp" or (tmp_path / "x").exists()


def test_a_descriptor_that_is_no_socket_is_refused(world, tmp_path):
    with open(tmp_path / "x", "w") as given:
        pull = world.socket(zmq.PULL, use_fd=given.fileno())
        number, text = refused(pull, "tcp://127.0.0.1:*")
    assert number == errno.ENOTSOCK
    assert "tcp://127.0.0.1" in text


# -- no more descriptors


def run(program):
    """Run a program in a process of its own, with few descriptors; return what it prints."""
    program = "import resource, zerohop as zmq\n" + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", program],
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def test_without_a_free_descriptor_accepting_pauses_and_goes_on_later():
    assert run("""
        import os, socket, time
        from zerohop.io import listening

        context = zmq.Context()
        pull = context.socket(zmq.PULL)
        port = pull.bind_to_random_port("tcp://127.0.0.1")
        monitor = pull.get_monitor_socket(zmq.EVENT_ACCEPT_FAILED)
        caller = socket.socket()
        caller.settimeout(8)
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        most = 2 + max(map(int, os.listdir("/proc/self/fd")))
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, limit))
        spare = []
        try:
            while True:
                spare.append(os.dup(0))
        except OSError:
            pass
        used = time.process_time()
        caller.connect(("127.0.0.1", port))
        event = int.from_bytes(monitor.recv_multipart()[0][2:6], "little")
        print("told", event == 24)
        time.sleep(0.3)
        print("asleep", time.process_time() - used < 0.2)
        for fd in spare:
            os.close(fd)
        print("greeted", caller.recv(1) == b"\\xff")
        caller.close()
        monitor.close()
        pull.close()
        context.term()
    """).split() == ["told", "True", "asleep", "True", "greeted", "True"]


@pytest.mark.parametrize("endpoint", ["tcp://127.0.0.1:*", "ipc://*", "ipc://@zh-no-descriptor"])
def test_binding_without_a_free_descriptor_is_an_error_of_ours(endpoint):
    assert run(f"""
        import errno, os, tempfile
        context = zmq.Context()
        pull = context.socket(zmq.PULL)
        pull.bind("tcp://127.0.0.1:*")
        pull.unbind(pull.last_endpoint.decode())
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, limit))
        try:
            pull.bind({endpoint!r})
        except zmq.ZMQError as error:
            print(error.errno == errno.EMFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, limit))
        pull.bind({endpoint!r})
        pull.close()
        context.term()
    """).split() == ["True"]


def test_the_world_of_these_tests_notices_what_is_left():
    world = World()
    world.loop.call_at(world.loop.time() + 1000, print)
    with pytest.raises(AssertionError, match="left on the loop"):
        world.close()
    world.context.term()
