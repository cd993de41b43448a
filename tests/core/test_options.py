"""Every option, for every type, takes and refuses and returns what real libzmq does."""

import errno
import gc
import json
import weakref
from pathlib import Path

import pytest
import zmq

from zerohop.constants import EINVAL, ContextOption, SecurityMechanism, SocketOption, SocketType
from zerohop.core.option_table import TABLE
from zerohop.core.options import ContextOptions, SocketOptions, Subscription
from zerohop.core.reconnect import ReconnectOptions
from zerohop.core.system_options import IpcOptions
from zerohop.errors import UsageError
from zerohop.wire.heartbeat import HeartbeatOptions

MATRIX = json.loads(
    (Path(__file__).parent.parent / "data" / "sockopt_matrix.json").read_text("utf-8")
)
TRIALS = {  # what the matrix was made with; octets by their number
    "int": [0, 1, -1, 2, -2],
    "int64": [0, 1, -1],
    "bytes": [0, 1, 256],
    "fd": [0, 1, -1, 2, -2],
}
TYPES = [t for t in SocketType if t <= SocketType.STREAM]
O = SocketOption  # noqa: E741
DYNAMIC = {number for number, row in TABLE.items() if row.dynamic}  # the socket answers instead


def accepts(option, value, socket_type):
    try:
        SocketOptions.of(socket_type).set(option, value, socket_type)
    except UsageError as error:
        return error.errno != EINVAL
    return True


def taken(row, socket_type):
    """What set takes of what is tried, in the words of the matrix."""
    trials = TRIALS[row["type"]]
    values = [b"x" * trial if row["type"] == "bytes" else trial for trial in trials]
    return [t for t, v in zip(trials, values) if accepts(row["num"], v, socket_type)]


def returned(row, socket_type):
    """What get returns, or that it refuses, in the words of the matrix."""
    options = SocketOptions.of(socket_type, ContextOptions(blocky=False))  # as the matrix's
    try:
        value = options.get(row["num"], socket_type)
    except UsageError as error:
        return f"ERR {errno.errorcode[error.errno]}"
    assert type(value) in (int, bytes)
    return value.decode() if isinstance(value, bytes) else value


def refusals(answers):
    return {name for name, answer in answers.items() if answer == "ERR EINVAL"}


# All types in one test: one for each would be 2,500 more, which take longer to begin than to run.
@pytest.mark.parametrize("name", MATRIX)
def test_set_takes_and_refuses_what_the_matrix_says(name):
    row = MATRIX[name]
    assert {t.name: taken(row, t) for t in TYPES} == row["set_ok"]


@pytest.mark.parametrize("name", MATRIX)
def test_get_returns_or_refuses_what_the_matrix_says(name):
    row = MATRIX[name]
    answers = {t.name: returned(row, t) for t in TYPES}
    if row["num"] in DYNAMIC:
        assert refusals(answers) == refusals(row["get"])
        assert set(answers.values()) <= {"ERR EINVAL", 0, ""}
    else:
        assert answers == row["get"]


@pytest.fixture
def real_context():
    with zmq.Context() as context:
        yield context


NUMBERS = [
    *(-(2**31), -1000, -101, -100, -99, -2, -1, 0, 1, 2, 4, 99, 100, 101, 150, 199, 255, 256),
    *(1499, 65535, 65536, 6553599, 6553600, 2**31 - 1),
]
LONG_NUMBERS = [2**31, -(2**40), 2**63 - 1, -(2**63)]
OCTETS = [
    b"", b"\0", b"a", b"\0a", b"a\0b", b"x" * 31, b"x" * 32, b"y" * 40, b"y" * 41,
    b"y" * 40 + b"\0", b" " * 40, b"#" * 40, b"z" * 16, b"z" * 17, b"z" * 254, b"lo",
    b"X-k:v", b"X-:v", b"X-:vv", b"X-kk:", b"X-k", b"k:value", b"X-" + b"k" * 253 + b":v",
    b"X-" + b"k" * 254 + b":v", b"127.0.0.1", b"127.0.0.1/8", b"127.0.0.1/33",
    b"10.0.0.1:1080", b"localhost",
]  # fmt: skip
COMPARED = [
    o for o in SocketOption if o not in (O.FD, O.EVENTS, O.RCVMORE, O.LAST_ENDPOINT, O.USE_FD)
]


def outcome(socket_set, socket_get, option, value):
    """What set raised, and what get returned after it."""
    try:
        socket_set(option, value)
    except (UsageError, zmq.ZMQError) as error:
        done = (error.errno, str(error))
    except (TypeError, OverflowError) as error:
        done = (type(error), str(error))
    else:
        done = "done"
    try:
        kept = socket_get(option)
    except (UsageError, zmq.ZMQError):
        return done, "no value"
    # pyzmq's buffer has 255 octets, one of them for a NUL; more cannot be read there.
    return done, "no value" if isinstance(kept, bytes) and len(kept) > 254 else kept


@pytest.mark.interop
@pytest.mark.parametrize("option", COMPARED, ids=lambda o: o.name)
def test_the_live_library_answers_the_same(option, real_context):
    values = [*NUMBERS, *LONG_NUMBERS, *OCTETS, "text", None, 1.5, True, 2**63, bytearray(b"x")]
    for socket_type in TYPES:
        ours = SocketOptions.of(socket_type)
        with real_context.socket(int(socket_type)) as real:
            for value in values:
                expected = outcome(real.set, real.get, option, value)
                if option is O.TYPE:
                    expected = (expected[0], 0)  # the socket answers
                if option is O.MAXMSGSIZE and expected[1] < 0:
                    expected = (expected[0], -1)  # ours keeps "no limit", not its number
                seen = outcome(
                    lambda o, v: ours.set(o, v, socket_type),  # noqa: B023
                    lambda o: ours.get(o, socket_type),  # noqa: B023
                    option,
                    value,
                )
                assert seen == expected, (socket_type.name, value)


@pytest.mark.parametrize("option", ["LINGER", None, b"x"])
def test_an_option_is_a_number(option):
    with pytest.raises(TypeError, match="an integer is required"):
        SocketOptions().get(option, SocketType.PUSH)
    with pytest.raises(TypeError, match="an integer is required"):
        SocketOptions().set(option, 5, SocketType.PUSH)


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        (O.SUBSCRIBE, "x", "unicode not allowed, use setsockopt_string"),
        (O.LINGER, b"x", "expected int, got: b'x'"),
        (O.SUBSCRIBE, 5, "expected bytes, got: 5"),
        (O.HELLO_MSG, 5, "expected bytes, got: 5"),
        (9999, b"x", "expected int, got: b'x'"),
    ],
)
def test_a_value_of_the_wrong_type_is_a_type_error_with_pyzmqs_text(option, value, text):
    with pytest.raises(TypeError) as caught:
        SocketOptions().set(option, value, SocketType.SUB)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("option", "value", "socket_type", "hint"),
    [
        (9999, 5, SocketType.PUSH, "there is no option 9999"),
        (O.HWM, 5, SocketType.PUSH, "Set SNDHWM and RCVHWM"),
        (O.EVENTS, 5, SocketType.PUSH, "EVENTS can only be read"),
        (O.REQ_RELAXED, 1, SocketType.PUSH, "REQ_RELAXED is for REQ, not for PUSH"),
        (O.LINGER, -2, SocketType.PUSH, "LINGER takes: ms; -1: without limit, not -2"),
        (O.ROUTING_ID, b"", SocketType.PUSH, "ROUTING_ID takes: 1 to 255 octets, not b''"),
        (O.ROUTING_ID, b"i" * 256, SocketType.PUSH, "... (256 octets)"),
        (O.SUBSCRIBE, b"a", SocketType.XPUB, "only with XPUB_MANUAL set"),
    ],
)
def test_a_refusal_says_why(option, value, socket_type, hint):
    with pytest.raises(UsageError, match="Invalid argument") as caught:
        SocketOptions().set(option, value, socket_type)
    assert hint in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        (9999, "there is no option 9999"),
        (O.REQ_RELAXED, "REQ_RELAXED can be set but not read"),
        (O.TOPICS_COUNT, "TOPICS_COUNT can be read from PUB, SUB, XPUB, XSUB"),
    ],
)
def test_a_refusal_to_read_says_why(option, hint):
    with pytest.raises(UsageError, match="Invalid argument") as caught:
        SocketOptions().get(option, SocketType.PUSH)
    assert hint in caught.value.__notes__[0]


@pytest.mark.parametrize("option", [O.CURVE_SECRETKEY, O.PLAIN_PASSWORD, O.SOCKS_PASSWORD])
def test_a_refusal_never_repeats_a_secret(option):
    with pytest.raises(UsageError) as caught:
        SocketOptions().set(option, b"secret" * 50, SocketType.PUSH)
    assert "secret" not in caught.value.__notes__[0]


def test_secrets_do_not_appear_in_a_repr():
    options = SocketOptions()
    for option in (O.CURVE_SECRETKEY, O.PLAIN_PASSWORD, O.SOCKS_PASSWORD):
        options.set(option, b"q" * 32, SocketType.PUSH)
    assert "qqqq" not in repr(options)
    assert repr(options).startswith("SocketOptions(mechanism=")
    assert "qqqq" not in repr(options.frozen().tcp)


def test_milliseconds_become_seconds_and_no_limit_becomes_none():
    options = SocketOptions()
    options.set(O.LINGER, 1500, SocketType.PUSH)
    assert options.linger == 1.5
    options.set(O.LINGER, -1, SocketType.PUSH)
    assert options.linger is None
    options.set(O.HANDSHAKE_IVL, 0, SocketType.PUSH)
    assert options.handshake_ivl is None
    options.set(O.MAXMSGSIZE, 100, SocketType.PUSH)
    assert options.maxmsgsize == 100


def test_a_heartbeat_ttl_is_kept_in_tenths_of_a_second():
    options = SocketOptions()
    options.set(O.HEARTBEAT_TTL, 150, SocketType.PUSH)
    assert options.heartbeat_ttl_ds == 1
    assert options.get(O.HEARTBEAT_TTL, SocketType.PUSH) == 100


@pytest.mark.parametrize(
    ("socket_type", "blocky", "linger"),
    [
        (SocketType.PUSH, True, None),
        (SocketType.SUB, True, 0.0),
        (SocketType.XSUB, True, 0.0),
        (SocketType.PUSH, False, 0.0),
    ],
)
def test_a_new_socket_lingers_as_its_type_and_its_context_say(socket_type, blocky, linger):
    assert SocketOptions.of(socket_type, ContextOptions(blocky=blocky)).linger == linger


def test_a_new_socket_takes_ipv6_from_its_context():
    assert SocketOptions.of(SocketType.PUSH, ContextOptions(ipv6=True)).ipv6


def test_ipv4only_is_the_reverse_of_ipv6():
    options = SocketOptions()
    options.set(O.IPV4ONLY, 0, SocketType.PUSH)
    assert options.ipv6
    assert options.get(O.IPV6, SocketType.PUSH) == 1


def test_subscriptions_are_checked_here_and_carried_out_by_the_socket():
    options = SocketOptions()
    assert options.set(O.SUBSCRIBE, b"kv", SocketType.SUB) == Subscription(b"kv", subscribe=True)
    assert options.set(O.UNSUBSCRIBE, b"", SocketType.SUB) == Subscription(b"", subscribe=False)


@pytest.mark.parametrize("manual", [O.XPUB_MANUAL, O.XPUB_MANUAL_LAST_VALUE])
@pytest.mark.parametrize("socket_type", [SocketType.XPUB, SocketType.PUB])
def test_a_manual_publisher_subscribes_for_its_peers(manual, socket_type):
    options = SocketOptions()
    options.set(manual, 1, socket_type)
    assert options.xpub_manual
    assert options.set(O.SUBSCRIBE, b"a", socket_type) == Subscription(b"a", subscribe=True)


@pytest.mark.parametrize(
    ("sets", "verbose", "verboser"),
    [
        ([(O.XPUB_VERBOSE, 1)], True, False),
        ([(O.XPUB_VERBOSER, 1)], True, True),
        ([(O.XPUB_VERBOSER, 1), (O.XPUB_VERBOSE, 1)], True, False),
        ([(O.XPUB_VERBOSER, 1), (O.XPUB_VERBOSER, 0)], False, False),
    ],
)
def test_verbose_ends_verboser(sets, verbose, verboser):
    options = SocketOptions()
    for option, value in sets:
        options.set(option, value, SocketType.XPUB)
    assert (options.xpub_verbose, options.xpub_verboser) == (verbose, verboser)


@pytest.mark.parametrize("socket_type", TYPES, ids=lambda t: t.name)
def test_conflate_acts_on_five_types_and_reads_back_on_all(socket_type):
    options = SocketOptions()
    options.set(O.CONFLATE, 1, socket_type)
    assert options.get(O.CONFLATE, socket_type) == 1
    assert options.conflate == (socket_type.name in {"DEALER", "PULL", "PUSH", "PUB", "SUB"})


SECURITY = {
    O.PLAIN_SERVER: 1,
    O.PLAIN_USERNAME: b"name",
    O.PLAIN_PASSWORD: b"word",
    O.CURVE_SERVER: 1,
    O.CURVE_PUBLICKEY: b"y" * 40,
    O.CURVE_SECRETKEY: b"y" * 32,
    O.CURVE_SERVERKEY: b"y" * 40 + b"\0",
}


@pytest.mark.interop
@pytest.mark.parametrize("first", SECURITY)
@pytest.mark.parametrize("second", SECURITY)
@pytest.mark.parametrize("off", [O.PLAIN_SERVER, O.CURVE_SERVER])
def test_the_security_option_that_is_set_last_decides(first, second, off, real_context):
    ours, push = SocketOptions(), SocketType.PUSH
    with real_context.socket(zmq.PUSH) as real:
        for option, value in [(first, SECURITY[first]), (second, SECURITY[second]), (off, 0)]:
            ours.set(option, value, push)
            real.set(option, value)
            for state in (O.MECHANISM, O.PLAIN_SERVER, O.CURVE_SERVER):
                assert ours.get(state, push) == real.get(state)


def test_keys_are_kept_as_their_32_octets():
    options = SocketOptions()
    options.set(O.CURVE_PUBLICKEY, b"0" * 40, SocketType.PUSH)
    options.set(O.CURVE_SERVERKEY, b"k" * 32, SocketType.PUSH)
    assert options.curve_publickey == bytes(32)
    assert options.curve_serverkey == b"k" * 32
    assert options.mechanism is SecurityMechanism.CURVE


def test_metadata_adds_up():
    options = SocketOptions()
    options.set(O.METADATA, b"X-role:engine", SocketType.PULL)
    options.set(O.METADATA, b"X-rank:3", SocketType.PULL)
    assert options.metadata == {"X-role": b"engine", "X-rank": b"3"}


def test_each_layer_gets_the_few_options_that_are_its_business():
    options, push = SocketOptions(), SocketType.PUSH
    for option, value in [
        (O.HEARTBEAT_IVL, 2000), (O.HEARTBEAT_TTL, 6000),
        (O.RECONNECT_IVL, 250), (O.RECONNECT_IVL_MAX, 8000), (O.RECONNECT_STOP, 3),
        (O.BINDTODEVICE, b"eth0"), (O.SOCKS_PROXY, b"proxy:1080"), (O.USE_FD, 3),
    ]:  # fmt: skip
        options.set(option, value, push)
    assert options.frozen().heartbeat == HeartbeatOptions(interval=2.0, ttl_ds=60, timeout=2.0)
    assert options.frozen().reconnect == ReconnectOptions(ivl=0.25, ivl_max=8.0, stop=3)
    tcp = options.frozen().tcp
    assert (tcp.bindtodevice, tcp.socks_proxy, tcp.use_fd) == ("eth0", "proxy:1080", 3)
    assert options.frozen().ipc == IpcOptions(4096, 1024 * 1024, -1, 3, *[frozenset()] * 3)


def test_endpoints_with_the_same_options_have_one_copy_of_them():
    options, others = SocketOptions(linger=1.0), SocketOptions(linger=1.0)
    frozen = options.frozen()
    assert options.frozen() is frozen
    assert others.frozen() is frozen
    assert (frozen.linger, frozen.sndhwm) == (1.0, 1000)


def test_what_is_frozen_does_not_change_with_the_options():
    options = SocketOptions(maxmsgsize=10)
    frozen = options.frozen()
    options.maxmsgsize = None
    assert frozen.maxmsgsize == 10
    assert options.frozen().maxmsgsize is None
    assert options.frozen() is not frozen


def test_frozen_options_go_with_the_last_endpoint_that_has_them():
    options = SocketOptions(plain_password=b"secret")
    kept = weakref.ref(options.frozen())
    gc.collect()
    assert kept() is None


def test_what_follows_from_frozen_options_is_found_once():
    frozen = SocketOptions().frozen()
    assert frozen.tcp is frozen.tcp
    assert frozen.heartbeat is frozen.heartbeat
    assert repr(frozen) == "SocketOptions()"


@pytest.mark.parametrize(("timeout", "seconds"), [(0, 0.0), (500, 0.5)])
def test_a_heartbeat_timeout_may_be_off_or_differ_from_the_interval(timeout, seconds):
    options = SocketOptions(heartbeat_ivl=2.0)
    options.set(O.HEARTBEAT_TIMEOUT, timeout, SocketType.PUSH)
    assert options.frozen().heartbeat.timeout == seconds


def test_without_heartbeats_no_ping_is_sent_and_nobody_is_given_up():
    assert SocketOptions().frozen().heartbeat == HeartbeatOptions(0.0, 0, 0.0)


CONTEXT_NUMBERS = [*range(-1, 12), 42, 70, 71, 9999]


@pytest.mark.interop
@pytest.mark.parametrize("option", CONTEXT_NUMBERS)
def test_context_options_answer_as_the_live_library(option):
    ours = ContextOptions()
    with zmq.Context() as real:
        for value in (-(2**31), -1, 0, 1, 2, 65536, 2**31 - 1, 2**31, "a", 1.5, b"x", None):
            seen = outcome(ours.set, ours.get, option, value)
            expected = outcome(real.set, real.get, option, value)
            if isinstance(value, str):  # this text pyzmq has for sockets alone
                assert seen[0][0] is expected[0][0] is TypeError
            elif seen[1] == -1:  # which pyzmq takes for an error, or not, as errno happens to be
                assert seen[0] == expected[0]
            else:
                assert seen == expected, value


@pytest.mark.parametrize("option", ["IO_THREADS", None])
def test_a_context_option_is_a_number(option):
    with pytest.raises(TypeError, match="an integer is required"):
        ContextOptions().get(option)
    with pytest.raises(TypeError, match="an integer is required"):
        ContextOptions().set(option, 1)


def test_a_context_keeps_the_processors_of_its_threads():
    options = ContextOptions()
    options.set(ContextOption.THREAD_AFFINITY_CPU_ADD, 1)
    options.set(ContextOption.THREAD_AFFINITY_CPU_ADD, 2)
    options.set(ContextOption.THREAD_AFFINITY_CPU_REMOVE, 1)
    assert options.thread_cpus == {2}
    with pytest.raises(UsageError, match="Invalid argument") as caught:
        options.set(ContextOption.THREAD_AFFINITY_CPU_REMOVE, 1)
    assert "processor 1 was not added" in caught.value.__notes__[0]
