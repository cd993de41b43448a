"""Misuse raises what pyzmq raises: the class, the number and the words, row by row."""

import errno
import re

import pytest

pytestmark = pytest.mark.over("inproc")  # none of these rules knows a transport


def words(text):
    r"""Match a message from its first letter to its last; notes may follow on their own lines."""
    return rf"^{re.escape(text)}(\n|\Z)"


# -- what is sent


@pytest.mark.parametrize(
    ("call", "message", "kind", "text"),
    [
        ("send", "x", TypeError, "unicode not allowed, use send_string"),
        ("send", None, TypeError, "a bytes-like object is required, not 'NoneType'"),
        ("send", 5, TypeError, "a bytes-like object is required, not 'int'"),
        ("send_string", b"x", TypeError, "str objects only"),
        ("send_multipart", [], IndexError, "list index out of range"),
        (
            "send_multipart",
            ["x"],
            TypeError,
            "Frame 0 ('x') does not support the buffer interface.",
        ),
        (
            "send_multipart",
            [b"ok", 5],
            TypeError,
            "Frame 1 (5) does not support the buffer interface.",
        ),
        (
            "send_multipart",
            b"abc",
            TypeError,
            "Frame 0 (97) does not support the buffer interface.",
        ),
    ],
)
async def test_what_cannot_be_sent(net, zmq, call, message, kind, text):
    sender, receiver = net.socket(zmq.PAIR), net.socket(zmq.PAIR)
    await net.link(receiver, sender)
    with pytest.raises(kind, match=words(text)):
        await getattr(sender, call)(message)
    await sender.send(b"nothing of it was sent")
    assert await receiver.recv_multipart() == [b"nothing of it was sent"]


async def test_an_untracked_frame_cannot_be_tracked(net, zmq):
    sender, receiver = net.socket(zmq.PAIR), net.socket(zmq.PAIR)
    await net.link(receiver, sender)
    with pytest.raises(ValueError, match=words("Not a tracked message")):
        await sender.send(zmq.Frame(b"x"), copy=False, track=True)


async def test_a_frame_is_not_made_of_a_string(net, zmq):
    text = "Str objects not allowed. Only: bytes, buffer interfaces."
    with pytest.raises(TypeError, match=words(text)):
        zmq.Frame("x")


async def test_one_cannot_receive_into_what_cannot_be_written(net, zmq):
    sender, receiver = net.socket(zmq.PAIR), net.socket(zmq.PAIR)
    await net.link(receiver, sender)
    await sender.send(b"x")
    with pytest.raises(BufferError, match=words("memoryview: underlying buffer is not writable")):
        await receiver.recv_into(b"ro")


# -- the wrong verb for the type, or for the moment

UNSUPPORTED = [("PUB", "recv"), ("PUSH", "recv"), ("SUB", "send"), ("PULL", "send")]


@pytest.mark.parametrize(("kind", "verb"), UNSUPPORTED)
async def test_a_verb_that_the_type_does_not_have(net, zmq, kind, verb):
    made = net.socket(getattr(zmq, kind))
    call = made.recv(zmq.DONTWAIT) if verb == "recv" else made.send(b"x")
    with pytest.raises(zmq.ZMQError, match=words("Operation not supported")) as wrong:
        await call
    assert wrong.value.errno == zmq.ENOTSUP == errno.ENOTSUP


@pytest.mark.parametrize(("kind", "verb"), [("REQ", "recv"), ("REP", "send")])
async def test_a_verb_that_comes_too_early(net, zmq, kind, verb):
    made = net.socket(getattr(zmq, kind))
    call = made.recv(zmq.DONTWAIT) if verb == "recv" else made.send(b"x")
    text = "Operation cannot be accomplished in current state"
    with pytest.raises(zmq.ZMQError, match=words(text)) as wrong:
        await call
    assert wrong.value.errno == zmq.EFSM == 156384763


async def test_again_says_that_the_resource_is_unavailable_for_now(net, zmq):
    with pytest.raises(zmq.Again, match=words("Resource temporarily unavailable")) as again:
        await net.socket(zmq.PULL).recv(zmq.DONTWAIT)
    assert again.value.errno == zmq.EAGAIN == errno.EAGAIN
    assert repr(again.value) == "Again('Resource temporarily unavailable')"


# -- options


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("SUBSCRIBE", "x", "unicode not allowed, use setsockopt_string"),
        ("LINGER", b"x", "expected int, got: b'x'"),
        ("SUBSCRIBE", 5, "expected bytes, got: 5"),
    ],
)
async def test_an_option_of_the_wrong_type(net, zmq, option, value, text):
    sub = net.socket(zmq.SUB)
    with pytest.raises(TypeError, match=words(text)):
        sub.setsockopt(getattr(zmq, option), value)
    with pytest.raises(TypeError, match=words(text)):
        sub.set(getattr(zmq, option), value)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("LINGER", -2),
        ("SNDHWM", -1),
        ("RCVHWM", -1),
        ("RCVTIMEO", -2),
        ("IDENTITY", b""),
        ("IDENTITY", b"x" * 256),
        ("IPV6", 2),
        ("IMMEDIATE", 2),
        ("TCP_KEEPALIVE", 2),
        ("TYPE", 1),
        ("EVENTS", 1),
        ("LAST_ENDPOINT", b"tcp://127.0.0.1:1"),
    ],
)
async def test_an_option_with_a_value_out_of_range(net, zmq, option, value):
    dealer = net.socket(zmq.DEALER)
    with pytest.raises(zmq.ZMQError, match=words("Invalid argument")) as wrong:
        dealer.setsockopt(getattr(zmq, option), value)
    assert wrong.value.errno == zmq.EINVAL == errno.EINVAL


async def test_an_option_that_is_not_there(net, zmq):
    push = net.socket(zmq.PUSH)
    with pytest.raises(zmq.ZMQError, match=words("Invalid argument")) as unknown:
        push.set(9999, 1)
    assert unknown.value.errno == zmq.EINVAL
    with pytest.raises(zmq.ZMQError) as unknown:
        push.get(9999)
    assert unknown.value.errno == zmq.EINVAL
    with pytest.raises(AttributeError, match="(?i)nosuch"):
        _ = push.nosuch
    with pytest.raises(AttributeError, match=words("Socket has no such option: NOSUCH")):
        push.nosuch = 1


async def test_an_option_that_is_for_another_type(net, zmq):
    push = net.socket(zmq.PUSH)
    for option, value in (("SUBSCRIBE", b""), ("ROUTER_MANDATORY", 1), ("REQ_RELAXED", 1)):
        with pytest.raises(zmq.ZMQError) as other:
            push.setsockopt(getattr(zmq, option), value)
        assert other.value.errno == zmq.EINVAL


async def test_an_option_that_can_only_be_set(net, zmq):
    router = net.socket(zmq.ROUTER)
    with pytest.raises(zmq.ZMQError) as write_only:
        router.getsockopt(zmq.ROUTER_MANDATORY)
    assert write_only.value.errno == zmq.EINVAL
    with pytest.raises(AttributeError, match="write-only"):
        _ = router.router_mandatory


# -- a closed socket


@pytest.mark.parametrize("verb", ["send", "recv"])
async def test_a_closed_socket_is_no_socket(net, zmq, verb):
    pair = net.socket(zmq.PAIR)
    pair.close()
    with pytest.raises(zmq.ZMQError, match=words("Socket operation on non-socket")) as closed:
        await (pair.recv() if verb == "recv" else pair.send(b"x"))
    assert closed.value.errno == zmq.ENOTSOCK == errno.ENOTSOCK


async def test_a_closed_socket_has_no_options_and_no_endpoints(net, zmq):
    pair = net.socket(zmq.PAIR)
    pair.close()
    for call in (
        lambda: pair.set(zmq.LINGER, 0),
        lambda: pair.get(zmq.LINGER),
        lambda: pair.linger,
        lambda: pair.bind("inproc://x"),
        lambda: pair.connect("inproc://x"),
        lambda: pair.unbind("inproc://x"),
        lambda: pair.disconnect("inproc://x"),
    ):
        with pytest.raises(zmq.ZMQError) as closed:
            call()
        assert closed.value.errno == zmq.ENOTSOCK


async def test_a_closed_socket_cannot_be_polled(net, zmq):
    pair = net.socket(zmq.PAIR)
    pair.close()
    with pytest.raises(zmq.ZMQError, match=words("Operation not supported")) as closed:
        await pair.poll(0)
    assert closed.value.errno == zmq.ENOTSUP


# -- endpoints


@pytest.mark.parametrize("verb", ["bind", "connect"])
@pytest.mark.parametrize(
    ("endpoint", "name", "text"),
    [
        ("foo://x", "EPROTONOSUPPORT", "Protocol not supported"),
        ("localhost:5", "EINVAL", "Invalid argument"),
        ("", "EINVAL", "Invalid argument"),
        ("tcp://", "EINVAL", "Invalid argument"),
        ("tcp://127.0.0.1", "EINVAL", "Invalid argument"),
        ("tcp://127.0.0.1:", "EINVAL", "Invalid argument"),
        ("tcp://127.0.0.1:http", "EINVAL", "Invalid argument"),
        (
            "udp://127.0.0.1:5555",
            "ENOCOMPATPROTO",
            "The protocol is not compatible with the socket type",
        ),
    ],
)
async def test_an_endpoint_that_cannot_be(net, zmq, verb, endpoint, name, text):
    with pytest.raises(zmq.ZMQError) as wrong:
        getattr(net.socket(zmq.PUSH), verb)(endpoint)
    assert wrong.value.errno == getattr(zmq, name)
    assert str(wrong.value).startswith(text)


@pytest.mark.parametrize("verb", ["bind", "connect"])
async def test_an_endpoint_that_is_no_string(net, zmq, verb):
    with pytest.raises(TypeError, match=words("Expected addr to be str, got addr=5")):
        getattr(net.socket(zmq.PUSH), verb)(5)


async def test_an_error_of_bind_and_connect_names_the_endpoint(net, zmq):
    first, second, endpoint = net.socket(zmq.PUSH), net.socket(zmq.PUSH), net.endpoint()
    first.bind(endpoint)
    with pytest.raises(zmq.ZMQError) as taken:
        second.bind(endpoint)
    assert taken.value.errno == zmq.EADDRINUSE == errno.EADDRINUSE
    assert str(taken.value) == f"Address already in use (addr='{endpoint}')"
    assert taken.value.strerror == f"Address already in use (addr='{endpoint}')"


async def test_an_address_in_use(net, zmq):
    first, second = net.socket(zmq.PUSH), net.socket(zmq.PUSH)
    port = first.bind_to_random_port("tcp://127.0.0.1")
    with pytest.raises(zmq.ZMQError, match="Address already in use") as taken:
        second.bind(f"tcp://127.0.0.1:{port}")
    assert taken.value.errno == zmq.EADDRINUSE


async def test_an_interface_that_is_not_there(net, zmq):
    with pytest.raises(zmq.ZMQError, match="No such device") as missing:
        net.socket(zmq.PUSH).bind("tcp://nosuchif:*")
    assert missing.value.errno == errno.ENODEV


async def test_a_wildcard_cannot_be_connected_to(net, zmq):
    with pytest.raises(zmq.ZMQError) as wildcard:
        net.socket(zmq.PUSH).connect("tcp://127.0.0.1:*")
    assert wildcard.value.errno == zmq.EINVAL


async def test_a_host_that_is_not_there_is_no_error(net, zmq):
    push = net.socket(zmq.PUSH)
    push.connect("tcp://no-such-host.invalid:5555")
    await push.send(b"it may come yet", zmq.DONTWAIT)


async def test_an_ipc_path_that_is_too_long(net, zmq):
    path = "/tmp/" + "x" * 110
    with pytest.raises(zmq.ZMQError) as too_long:
        net.socket(zmq.PUSH).bind(f"ipc://{path}")
    assert too_long.value.errno == errno.ENAMETOOLONG
    start = f'ipc path "{path}" is longer than 107 characters (sizeof(sockaddr_un.sun_path))'
    assert str(too_long.value).startswith(start)
    assert zmq.IPC_PATH_MAX_LEN == 107


async def test_an_ipc_path_in_a_directory_that_is_not_there(net, zmq):
    path = f"{net.directory}/no/such/directory"
    with pytest.raises(zmq.ZMQError) as missing:
        net.socket(zmq.PUSH).bind(f"ipc://{path}")
    assert missing.value.errno == errno.ENOENT
    assert str(missing.value).startswith(f'No such file or directory for ipc path "{path}".')


@pytest.mark.parametrize("verb", ["unbind", "disconnect"])
@pytest.mark.parametrize("endpoint", ["inproc://never", "tcp://127.0.0.1:1", "ipc:///never"])
async def test_one_cannot_undo_what_was_not_done(net, zmq, verb, endpoint):
    with pytest.raises(zmq.ZMQError, match=words("No such file or directory")) as unknown:
        getattr(net.socket(zmq.PUSH), verb)(endpoint)
    assert unknown.value.errno == errno.ENOENT


# -- contexts and pollers


async def test_a_socket_type_that_is_not_there(net, zmq):
    with pytest.raises(zmq.ZMQError, match=words("Invalid argument")) as unknown:
        net.context.socket(99)
    assert unknown.value.errno == zmq.EINVAL
    with pytest.raises(TypeError, match="an integer is required"):
        net.context.socket(None)


async def test_a_context_that_is_closed(net, zmq):
    context = net.new_context()
    context.term()
    with pytest.raises(zmq.ZMQError, match=words("Operation not supported")) as closed:
        context.socket(zmq.PUSH)
    assert closed.value.errno == zmq.ENOTSUP
    with pytest.raises(RuntimeError, match=words("Context has been destroyed")):
        context.get(zmq.IO_THREADS)


async def test_an_option_of_a_context_that_was_never_set(net, zmq):
    with pytest.raises(AttributeError):
        _ = net.context.linger
    with pytest.raises(TypeError, match=words("expected int, got: 'a'")):
        net.context.set(zmq.IO_THREADS, "a")


async def test_a_poller_without_sockets_has_nothing_to_wait_for(net, zmq):
    poller = net.poller()
    assert await poller.poll(0) == []
    with pytest.raises(KeyError):
        poller.unregister(net.socket(zmq.PUSH))


@pytest.mark.on("blocking")
async def test_a_poller_polls_what_can_be_polled(net, zmq):
    assert zmq.Poller().poll() == []
    poller = zmq.Poller()
    poller.register("abc", zmq.POLLIN)
    text = "Socket must be a 0MQ socket, an integer fd or have a fileno() method: 'abc'"
    with pytest.raises(TypeError, match=words(text)):
        poller.poll(0)


# -- the exceptions themselves


def test_the_exceptions_form_the_tree_that_programs_expect(zmq):
    assert issubclass(zmq.ZMQError, zmq.ZMQBaseError)
    assert not issubclass(zmq.ZMQError, OSError)
    for kind in (zmq.Again, zmq.ContextTerminated, zmq.InterruptedSystemCall):
        assert issubclass(kind, zmq.ZMQError)
    assert issubclass(zmq.InterruptedSystemCall, InterruptedError)
    for kind in (zmq.ZMQBindError, zmq.NotDone):
        assert issubclass(kind, zmq.ZMQBaseError)
        assert not issubclass(kind, zmq.ZMQError)
    assert issubclass(zmq.ZMQVersionError, NotImplementedError)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (errno.EHOSTUNREACH, "Host unreachable"),
        (156384763, "Operation cannot be accomplished in current state"),
        (156384764, "The protocol is not compatible with the socket type"),
        (156384765, "Context was terminated"),
        (156384766, "No thread available"),
        (errno.EAGAIN, "Resource temporarily unavailable"),
    ],
)
def test_an_error_is_made_of_its_number(zmq, number, text):
    error = zmq.ZMQError(number)
    assert (error.errno, error.strerror, str(error)) == (number, text, text)
    assert repr(error) == f"ZMQError({text!r})"
    assert zmq.strerror(number) == text
