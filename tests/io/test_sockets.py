"""Options that are set on the sockets of the system: seen there with getsockopt."""

import socket as plain

import pytest

import zerohop as zmq


def on_both_ends(context, option, **options):
    """What the kernel says of an option of the connection: the dialled end, and the accepted."""
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    for socket in (push, pull):
        for name, value in options.items():
            setattr(socket, name, value)
    push.connect(f"tcp://127.0.0.1:{pull.bind_to_random_port('tcp://127.0.0.1')}")
    push.wait_connected(8)
    pull.wait_connected(8)
    return [of_the_system(socket).getsockopt(*option) for socket in (push, pull)]


def of_the_system(socket):
    (stream,) = socket._driver._streams.values()
    return stream._sock


@pytest.mark.parametrize(("value", "seen"), [(-1, 0), (0, 0), (1, 1)])
def test_keepalive_is_off_unless_it_is_asked_for(context, value, seen):
    option = (plain.SOL_SOCKET, plain.SO_KEEPALIVE)
    assert on_both_ends(context, option, tcp_keepalive=value) == [seen, seen]


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("tcp_keepalive_cnt", "TCP_KEEPCNT", 7),
        ("tcp_keepalive_idle", "TCP_KEEPIDLE", 77),
        ("tcp_keepalive_intvl", "TCP_KEEPINTVL", 17),
    ],
)
def test_how_keepalive_probes_is_what_was_asked_for(context, name, option, value):
    number = getattr(plain, option, None) or plain.TCP_KEEPALIVE  # macOS calls the idle time so
    option = (plain.IPPROTO_TCP, number)
    assert on_both_ends(context, option, tcp_keepalive=1, **{name: value}) == [value, value]


def test_how_keepalive_probes_is_the_systems_affair_without_keepalive(context):
    option = (plain.IPPROTO_TCP, plain.TCP_KEEPCNT)
    with plain.socket() as untouched:
        usual = untouched.getsockopt(*option)
    assert on_both_ends(context, option, tcp_keepalive_cnt=usual + 1) == [usual, usual]


def test_small_messages_never_wait_for_an_acknowledgement(context):
    seen = on_both_ends(context, (plain.IPPROTO_TCP, plain.TCP_NODELAY))
    assert all(seen)
