"""What an address means, and what is said of one that means nothing."""

import errno

import pytest
import zmq
from hypothesis import example, given
from hypothesis import strategies as st

from zerohop.constants import Errno
from zerohop.core.endpoint import (
    IPC_PATH_MAX_LEN,
    Endpoint,
    InprocEndpoint,
    IpcEndpoint,
    TcpEndpoint,
    parse,
)
from zerohop.errors import EndpointError, ZMQError

INVAL, NODEV, PROTO = Errno.EINVAL, errno.ENODEV, Errno.EPROTONOSUPPORT
COMPAT, LONG = Errno.ENOCOMPATPROTO, errno.ENAMETOOLONG
tcp, ipc, inproc = TcpEndpoint, IpcEndpoint, InprocEndpoint
PATH_107 = "/" + "a" * 106

#    address, what bind makes of it, what connect makes of it: an endpoint, or an error number
SAME_AS_LIBZMQ = [
    ("tcp://*:*", tcp("*", 0), INVAL),
    ("tcp://*:0", tcp("*", 0), INVAL),
    ("tcp://*:5556", tcp("*", 5556), INVAL),
    ("tcp://127.0.0.1:*", tcp("127.0.0.1", 0), INVAL),
    ("tcp://127.0.0.1:0", tcp("127.0.0.1", 0), tcp("127.0.0.1", 0)),
    ("tcp://127.0.0.1:65535", tcp("127.0.0.1", 65535), tcp("127.0.0.1", 65535)),
    ("tcp://127.0.0.1:05560", tcp("127.0.0.1", 5560), tcp("127.0.0.1", 5560)),
    ("tcp://127.1:5555", tcp("127.1", 5555), tcp("127.1", 5555)),
    ("tcp://lo:*", tcp("lo", 0), INVAL),
    ("tcp://localhost:5555", tcp("localhost", 5555), tcp("localhost", 5555)),
    ("tcp://a_b:5555", tcp("a_b", 5555), tcp("a_b", 5555)),
    ("tcp://kv-router.svc.local:1", tcp("kv-router.svc.local", 1), tcp("kv-router.svc.local", 1)),
    ("tcp://[::1]:5559", tcp("::1", 5559), tcp("::1", 5559)),
    ("tcp://::1:5559", tcp("::1", 5559), tcp("::1", 5559)),
    ("tcp://[::]:*", tcp("::", 0), INVAL),
    ("tcp://[fe80::1%lo]:5555", tcp("fe80::1%lo", 5555), tcp("fe80::1%lo", 5555)),
    ("tcp://[fe80::1%1]:5555", tcp("fe80::1%1", 5555), tcp("fe80::1%1", 5555)),
    ("tcp://:5555", NODEV, None),
    ("tcp://[]:5555", NODEV, None),
    ("tcp://[::1:5555", NODEV, None),
    ("tcp://::1]:5555", NODEV, None),
    ("tcp://a b:5555", NODEV, INVAL),
    ("tcp://é:5555", NODEV, INVAL),
    ("tcp://%lo:1", NODEV, INVAL),
    ("tcp://", INVAL, INVAL),
    ("tcp://*", INVAL, INVAL),
    ("tcp://*:", INVAL, INVAL),
    ("tcp://127.0.0.1", INVAL, INVAL),
    ("tcp://127.0.0.1:abc", INVAL, INVAL),
    ("tcp://127.0.0.1:!", INVAL, INVAL),
    ("tcp://127.0.0.1:65536", INVAL, None),
    ("tcp://;127.0.0.1:5555", INVAL, INVAL),
    ("tcp://a;b;c:1", INVAL, None),
    ("tcp://1.2.3.4;127.0.0.1:5555", INVAL, tcp("127.0.0.1", 5555, "1.2.3.4")),
    ("tcp://1.2.3.4:0;127.0.0.1:5555", None, tcp("127.0.0.1", 5555, "1.2.3.4", 0)),
    ("tcp://1.2.3.4:*;127.0.0.1:5555", None, tcp("127.0.0.1", 5555, "1.2.3.4", 0)),
    ("tcp://1.2.3.4:99;127.0.0.1:5555", None, tcp("127.0.0.1", 5555, "1.2.3.4", 99)),
    ("tcp://lo:0;[::1]:5555", None, tcp("::1", 5555, "lo", 0)),
    ("tcp://[::1];[::2]:5555", None, tcp("::2", 5555, "::1")),
    ("tcp://[::1]:7;[::2]:5555", None, tcp("::2", 5555, "::1", 7)),
    ("tcp://*:0;127.0.0.1:5555", None, INVAL),
    ("ipc://", INVAL, INVAL),
    ("ipc://@", INVAL, INVAL),
    ("ipc://*", ipc("", wildcard=True), None),
    ("ipc:///tmp/x", ipc("/tmp/x"), ipc("/tmp/x")),
    ("ipc://x", ipc("x"), ipc("x")),
    ("ipc://@abc", ipc("abc", abstract=True), ipc("abc", abstract=True)),
    ("ipc://" + PATH_107, ipc(PATH_107), ipc(PATH_107)),
    ("ipc://" + PATH_107 + "a", LONG, LONG),
    ("ipc://" + PATH_107[:-1] + "é", LONG, LONG),
    ("ipc://@" + "a" * 106, ipc("a" * 106, abstract=True), ipc("a" * 106, abstract=True)),
    ("ipc://@" + "a" * 107, LONG, LONG),
    ("inproc://", INVAL, INVAL),
    ("inproc://a", inproc("a"), inproc("a")),
    ("inproc://*", inproc("*"), inproc("*")),
    ("inproc://a://b c", inproc("a://b c"), inproc("a://b c")),
    ("inproc://" + "a" * 300, inproc("a" * 300), inproc("a" * 300)),
    ("udp://127.0.0.1:5555", COMPAT, COMPAT),
    ("pgm://x", PROTO, PROTO),
    ("epgm://x", PROTO, PROTO),
    ("norm://x", PROTO, PROTO),
    ("ws://127.0.0.1:5", PROTO, PROTO),
    ("wss://x", PROTO, PROTO),
    ("vmci://*:*", PROTO, PROTO),
    ("vsock://*:1", PROTO, PROTO),
    ("foo://x", PROTO, PROTO),
    ("TCP://127.0.0.1:5", PROTO, PROTO),
    (" tcp://127.0.0.1:5", PROTO, PROTO),
    ("", INVAL, INVAL),
    ("foo://", INVAL, INVAL),
    ("://x", INVAL, INVAL),
    ("localhost:5", INVAL, INVAL),
    ("tcp:/127.0.0.1:1", INVAL, INVAL),
    ("tcp//x", INVAL, INVAL),
    ("tcp://127.0.0.1:\0", INVAL, INVAL),
]  # None: libzmq takes it for something else; see below

OTHER_THAN_LIBZMQ = [  # libzmq takes each of them, for what the comment says, or never connects
    ("tcp://127.0.0.1:99999", INVAL, INVAL),  # 34463
    ("tcp://127.0.0.1:65536", INVAL, INVAL),  # connect: 0
    ("tcp://127.0.0.1:-1", INVAL, INVAL),  # bind: 65535
    ("tcp://127.0.0.1:+80", INVAL, INVAL),  # bind: 80
    ("tcp://127.0.0.1: 80", INVAL, INVAL),  # bind: 80
    ("tcp://127.0.0.1:80 ", INVAL, INVAL),  # bind: 80
    ("tcp://localhost:5555x", INVAL, INVAL),  # 5555
    ("tcp://127.0.0.1:5555/", INVAL, INVAL),  # bind: 5555
    ("tcp://127.0.0.1:0x50", INVAL, INVAL),  # connect: 0
    ("tcp://127.0.0.1:٣", INVAL, INVAL),
    ("tcp://127.0.0.1:" + "9" * 5000, INVAL, INVAL),
    ("tcp://:5555", NODEV, INVAL),
    ("tcp://[]:5555", NODEV, INVAL),
    ("tcp://[::1:5555", NODEV, INVAL),
    ("tcp://::1]:5555", NODEV, INVAL),
    ("tcp://a;b;c:1", INVAL, INVAL),
    ("tcp://127.0.0.1:1;", INVAL, INVAL),
    ("tcp://127.0.0.1:*;127.0.0.1:5555", INVAL, tcp("127.0.0.1", 5555, "127.0.0.1", 0)),
    ("tcp://a..b:5", NODEV, INVAL),  # no name that could ever be resolved
    (f"tcp://{'a' * 64}:5", NODEV, INVAL),  # the same
    ("ipc://*", ipc("", wildcard=True), INVAL),  # connect: a file named *
    ("ipc:///tmp/a\0b", INVAL, INVAL),  # /tmp/a
    ("inproc://a\0b", INVAL, INVAL),  # a
    ("tipc://{1,2,3}", PROTO, PROTO),  # a transport that we do not have
    ("tcp://\ud800:5", INVAL, INVAL),
]


def meaning(address, for_bind):
    try:
        return parse(address, for_bind=for_bind)
    except EndpointError as error:
        return error.errno


@pytest.mark.parametrize(
    ("address", "bound", "connected"),
    [*SAME_AS_LIBZMQ, *OTHER_THAN_LIBZMQ],
    ids=lambda v: repr(v)[:40],
)
def test_what_an_address_means(address, bound, connected):
    if bound is not None:
        assert meaning(address, for_bind=True) == bound
    if connected is not None:
        assert meaning(address, for_bind=False) == connected


@pytest.fixture(scope="module")
def real():
    """connect and bind of the live library, which say the number of the error or None."""

    def attempt(address, for_bind):
        with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
            socket.linger = 0
            try:
                (socket.bind if for_bind else socket.connect)(address)
            except zmq.ZMQError as error:
                return error.errno
            return None

    return attempt


# Whether an address of this machine can be bound is not the parser's to say.
DECIDED_BY_THE_SYSTEM = {"tcp://lo:*", "ipc://" + PATH_107}


@pytest.mark.interop
@pytest.mark.parametrize(
    ("address", "for_bind", "expected"),
    [
        pytest.param(address, for_bind, expected, id=f"{address[:30]!r}-{for_bind}")
        for address, bound, connected in SAME_AS_LIBZMQ
        for for_bind, expected in [(True, bound), (False, connected)]
        if expected is not None
        and address not in DECIDED_BY_THE_SYSTEM
        and (not for_bind or isinstance(expected, int))
    ],
)  # fmt: skip
def test_the_live_library_says_the_same(address, for_bind, expected, real):
    number = expected if isinstance(expected, int) else None
    assert real(address, for_bind) == number


@pytest.mark.parametrize(
    ("address", "for_bind", "text"),
    [
        ("foo://x", True, "Protocol not supported (addr='foo://x')"),
        ("localhost:5", False, "Invalid argument (addr='localhost:5')"),
        (b"localhost:5", False, "Invalid argument (addr=b'localhost:5')"),
        ("ipc://" + "a" * 108, False, f"File name too long (addr='ipc://{'a' * 108}')"),
        (
            "udp://127.0.0.1:5",
            True,
            "The protocol is not compatible with the socket type (addr='udp://127.0.0.1:5')",
        ),
    ],
)
def test_an_error_reads_as_pyzmqs(address, for_bind, text):
    with pytest.raises(EndpointError) as caught:
        parse(address, for_bind=for_bind)
    assert str(caught.value) == text
    assert caught.value.endpoint == address


def test_a_path_that_is_too_long_to_bind_is_named_with_the_limit():
    with pytest.raises(EndpointError) as caught:
        parse("ipc://" + "a" * 108, for_bind=True)
    assert str(caught.value).startswith(
        f'ipc path "{"a" * 108}" is longer than {IPC_PATH_MAX_LEN} characters '
        "(sizeof(sockaddr_un.sun_path))."
    )


@pytest.mark.parametrize(
    ("address", "for_bind", "hint"),
    [
        ("localhost:5555", False, "write transport://address, such as tcp://127.0.0.1:5555"),
        ("TCP://127.0.0.1:5", False, "in lower case"),
        ("http://x", False, "the transports are tcp, ipc and inproc"),
        ("ws://x", False, "use tcp"),
        ("tcp://127.0.0.1", False, "the port is missing"),
        ("tcp://127.0.0.1:99999", True, "a number from 0 to 65535, not '99999'"),
        ("tcp://*:5555", False, "* is for bind"),
        ("tcp://a:1;b:2", True, "for connect alone"),
        ("tcp://:5555", True, "bind to *"),
        ("tcp://münchen.de:5", False, "the ASCII form"),
        ("ipc://*", False, "LAST_ENDPOINT"),
        ("ipc://@", True, "ipc://@name"),
        (b"tcp://\xff:5", True, "UTF-8"),
    ],
)
def test_an_error_says_what_to_write_instead(address, for_bind, hint):
    with pytest.raises(EndpointError) as caught:
        parse(address, for_bind=for_bind)
    assert hint in caught.value.__notes__[0]


@pytest.mark.parametrize("address", [5, None, ["tcp://127.0.0.1:5"]])
def test_what_is_no_text_is_a_type_error_with_pyzmqs_words(address):
    with pytest.raises(TypeError) as caught:
        parse(address, for_bind=True)
    assert str(caught.value) == f"Expected addr to be str, got addr={address!r}"


def test_octets_are_taken_for_utf_8():
    assert parse("ipc:///tmp/é".encode(), for_bind=True) == IpcEndpoint("/tmp/é")


def test_a_wildcard_host_says_so():
    assert parse("tcp://*:5", for_bind=True).wildcard
    assert not parse("tcp://127.0.0.1:5", for_bind=True).wildcard


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:05560", "tcp://*:*", "tcp://::1:5", "ipc://*", "ipc://@a"]
)
def test_an_endpoint_prints_as_it_was_written(address):
    assert str(parse(address, for_bind=True)) == address


@pytest.mark.parametrize(
    ("endpoint", "text"),
    [
        (tcp("127.0.0.1", 5555), "tcp://127.0.0.1:5555"),
        (tcp("*", 0), "tcp://*:0"),
        (tcp("::1", 5555), "tcp://[::1]:5555"),
        (tcp("fe80::1%lo", 5555), "tcp://[fe80::1%lo]:5555"),
        (tcp("h", 1, "lo"), "tcp://lo;h:1"),
        (tcp("h", 1, "::1", 7), "tcp://[::1]:7;h:1"),
        (ipc("/tmp/x"), "ipc:///tmp/x"),
        (ipc("x", abstract=True), "ipc://@x"),
        (ipc("", wildcard=True), "ipc://*"),
        (inproc("x"), "inproc://x"),
    ],
)
def test_an_endpoint_that_was_not_written_prints_in_its_plain_form(endpoint, text):
    assert str(endpoint) == text


def plain(endpoint: Endpoint) -> Endpoint:
    """The same endpoint without the memory of how it was written."""
    match endpoint:
        case TcpEndpoint(host, port, source_host, source_port):
            return TcpEndpoint(host, port, source_host, source_port)
        case IpcEndpoint(path, abstract, wildcard):
            return IpcEndpoint(path, abstract, wildcard)
        case _:
            return endpoint


hosts = st.sampled_from(
    ["*", "lo", "127.0.0.1", "[::1]", "::", "fe80::1%1", "h.example.", "", "[", "%", "a;b", "x y"]
)
ports = st.integers(-1, 70000).map(str) | st.sampled_from(["*", "", "0x5", "5 "])
sources = st.none() | st.tuples(hosts, ports).map(":".join) | hosts
addresses = st.one_of(
    st.text(max_size=40),
    st.binary(max_size=40),
    st.tuples(st.sampled_from(["tcp", "ipc", "inproc", "udp"]), st.text(max_size=120)).map("://".join),
    st.tuples(sources, hosts, ports).map(
        lambda t: f"tcp://{'' if t[0] is None else t[0] + ';'}{t[1]}:{t[2]}"
    ),
)  # fmt: skip


@given(address=addresses, for_bind=st.booleans())
@example(address="tcp://[[::1]]:5", for_bind=False)
@example(address="ipc://@@", for_bind=True)
def test_any_text_parses_to_something_stable_or_raises_zmq_error(address, for_bind):
    try:
        endpoint = parse(address, for_bind=for_bind)
    except ZMQError:
        return
    assert parse(str(endpoint), for_bind=for_bind) == endpoint
    assert parse(str(plain(endpoint)), for_bind=for_bind) == endpoint
