"""What is set on the system's sockets, and who may connect to them."""

import pytest

from zerohop.constants import SocketOption, SocketType
from zerohop.core.options import SocketOptions

O = SocketOption  # noqa: E741


def test_filters_add_up():
    options = SocketOptions()
    for option, value in [
        (O.TCP_ACCEPT_FILTER, b"10.1.2.3/8"),
        (O.TCP_ACCEPT_FILTER, b"::1"),
        (O.IPC_FILTER_UID, 1000),
        (O.IPC_FILTER_PID, 7),
        (O.IPC_FILTER_GID, 50),
    ]:
        options.set(option, value, SocketType.PULL)
    tcp = options.frozen().tcp
    assert [tcp.admits(a) for a in ("10.9.9.9", "::1", "::ffff:10.0.0.1", "fe80::1%eth0")] == [
        *(True, True, True, False),
    ]
    ipc = options.frozen().ipc
    assert ipc.filtered
    assert [ipc.admits(*who) for who in ((7, 0, 0), (0, 1000, 0), (0, 0, 50), (1, 1, 1))] == [
        *(True, True, True, False),
    ]


def test_without_filters_everybody_is_admitted():
    assert SocketOptions().frozen().tcp.admits("192.0.2.1")
    assert SocketOptions().frozen().ipc.admits(1, 2, 3)
    assert not SocketOptions().frozen().ipc.filtered


def test_a_backlog_that_was_not_set_is_as_long_as_it_may_be():
    """libzmq listens with the 100 that its manual names: a burst of clients is turned away then."""
    options = SocketOptions()
    assert options.get(O.BACKLOG, SocketType.PULL) == 100
    assert options.frozen().tcp.backlog == options.frozen().ipc.backlog == 4096
    options.set(O.BACKLOG, 100, SocketType.PULL)
    assert options.frozen().tcp.backlog == options.frozen().ipc.backlog == 100


def test_a_unix_domain_socket_has_room_for_four_messages_of_256_kib_unless_it_is_told_otherwise():
    options = SocketOptions()
    assert options.get(O.SNDBUF, SocketType.PUSH) == -1
    assert options.frozen().ipc.sndbuf == 1024 * 1024
    assert options.frozen().tcp.sndbuf == -1, "TCP's grows with the need"
    options.set(O.SNDBUF, 65_536, SocketType.PUSH)
    assert options.frozen().ipc.sndbuf == options.frozen().tcp.sndbuf == 65_536


@pytest.mark.parametrize(
    "option, value",
    [
        (O.SNDBUF, 4096),
        (O.RCVBUF, 4096),
        (O.TOS, 8),
        (O.TCP_KEEPALIVE, 0),
        (O.TCP_KEEPALIVE, 1),
        (O.TCP_MAXRT, 1000),
        (O.BINDTODEVICE, b"lo"),
    ],
)
def test_what_is_to_be_set_on_a_connected_socket_makes_it_no_plain_one(option, value):
    options = SocketOptions()
    assert options.frozen().tcp.plain
    options.set(option, value, SocketType.PULL)
    assert not options.frozen().tcp.plain
