"""Every row is done with both libraries: the same value, or the same error in the same words."""

import pytest
import zmq

from tests.api.plain import PlainContext, PlainSocket
from zerohop import constants, errors
from zerohop.api.frame import Frame
from zerohop.api.tracker import MessageTracker


class Ours:
    """The names that the rows below use, of both libraries."""

    Context, Socket, Frame, MessageTracker = PlainContext, PlainSocket, Frame, MessageTracker
    ZMQError, ZMQBaseError = errors.ZMQError, errors.ZMQBaseError
    name = "Plain"


class Theirs:
    Context, Socket, Frame, MessageTracker = zmq.Context, zmq.Socket, zmq.Frame, zmq.MessageTracker
    ZMQError, ZMQBaseError = zmq.ZMQError, zmq.error.ZMQBaseError
    name = ""


SOCKET = [
    "hasattr(s, 'nosuch')",
    "setattr(s, 'nosuch', 1)",
    "s.router_mandatory",
    "s.SUBSCRIBE",
    "s.hwm",
    "s.linger",
    "s.events",
    "s.type",
    "s.TYPE",
    "s.mechanism",
    "s.affinity",
    "s.last_endpoint",
    "s.copy_threshold",
    "s.fd == s.FD == s.fileno() == s.get(c.FD)",
    "setattr(s, 'events', 3)",
    "setattr(s, 'last_endpoint', b'x')",
    "setattr(s, 'SUBSCRIBE', b'x')",
    "setattr(s, 'subscribe', b'x')",
    "setattr(s, 'identity', 'x')",
    "setattr(s, 'identity', b'')",
    "setattr(s, 'sndhwm', -1)",
    "setattr(s, 'linger', -2)",
    "s.set(c.LINGER, True) or s.linger",
    "s.set(c.LINGER, 1.5)",
    "s.set(c.LINGER, None)",
    "s.set(c.LINGER, b'x')",
    "s.set(c.LINGER, 2**40)",
    "s.set(c.MAXMSGSIZE, 2**40) or s.maxmsgsize",
    "s.set(c.SUBSCRIBE, 'x')",
    "s.set(c.SUBSCRIBE, 5)",
    "s.set(c.IDENTITY, bytearray(b'x'))",
    "s.set_string(c.IDENTITY, b'x')",
    "s.set_string(c.LINGER, 'x')",
    "s.get_string(c.LINGER)",
    "s.get('linger')",
    "s.get(None)",
    "s.get(9999)",
    "s.set(9999, 1)",
    "s.set(9999, b'x')",
    "s.get(c.HWM)",
    "s.set(c.HWM, 3)",
    "s.subscribe('x')",
    "s.subscribe(5)",
    "s.unsubscribe(None)",
    "s.join('x')",
    "s.leave('x')",
    "s.bind('foo://x')",
    "s.bind('localhost:5')",
    "s.bind(5)",
    "s.connect(5)",
    "s.unbind(5)",
    "s.disconnect(5)",
    "s.bind('tcp://nosuchif:*')",
    "s.connect('tcp://127.0.0.1')",
    "s.connect('tcp://127.0.0.1:*')",
    "s.unbind('tcp://127.0.0.1:3')",
    "s.disconnect('tcp://127.0.0.1:3')",
    "s.bind('inproc://a') and s.bind('inproc://a')",
    "s.bind(b'inproc://octets') and s.last_endpoint",
    "s.bind_to_random_port('tcp://nosuchif')",
    "s.bind_to_random_port('tcp://127.0.0.1', min_port=5000, max_port=5000)",
    "s.bind_to_random_port('tcp://127.0.0.1', max_port=60000, max_tries=0)",
    "s.monitor('tcp://127.0.0.1:3')",
    "s.monitor('abc')",
    "s.monitor(5)",
    "s.send_string(b'x')",
    "s.send_multipart(['x'])",
    "s.send_multipart([])",
    "s.send('x')",
    "s.send(None)",
    "s.recv_into(b'read-only')",
    "s.recv_into(bytearray(5), nbytes=9)",
    "s.__enter__() is s",
    "s.closed",
    "'closed' in repr(s)",
    "library.Socket(context, None)",
    "library.Socket(context, 99)",
    "library.Socket()",
    "library.Socket(context).type",
    "library.Socket(s).linger == library.Socket.shadow(s).linger == s.linger",
    "library.Socket.shadow(s.underlying).type",
    "library.Socket.shadow(s).close() or s.closed",
    "library.Socket(context, c.PUB, copy_threshold=3).copy_threshold",
]

CLOSED = [
    "s.closed",
    "s.close()",
    "s.close(0)",
    "s.type",
    "s.underlying",
    "'closed' in repr(s)",
    "s.linger",
    "s.hwm",
    "s.fileno()",
    "hasattr(s, 'nosuch')",
    "setattr(s, 'linger', 1)",
    "setattr(s, 'hwm', 1)",
    "setattr(s, 'nosuch', 1)",
    "s.set_hwm(1)",
    "s.subscribe('x')",
    "s.bind('inproc://x')",
    "s.connect('inproc://x')",
    "s.unbind('inproc://x')",
    "s.bind_to_random_port('tcp://127.0.0.1')",
    "s.monitor('inproc://x')",
    "s.get_monitor_socket()",
    "s.disable_monitor()",
    "s.__enter__() is s",
]

CONTEXT = [
    "context.get(c.IO_THREADS)",
    "context.get(c.MAX_SOCKETS)",
    "context.get(c.SOCKET_LIMIT)",
    "context.get(c.MSG_T_SIZE)",
    "context.get(c.IPV6)",
    "context.get(c.BLOCKY)",
    "context.get(9999)",
    "context.get('a')",
    "context.set(c.IO_THREADS, 'a')",
    "context.set(c.IO_THREADS, -1)",
    "context.set(c.MAX_SOCKETS, 0)",
    "context.max_sockets",
    "setattr(context, 'max_sockets', 2) or context.MAX_SOCKETS",
    "context.linger",
    "setattr(context, 'linger', 5) or (context.linger, context.LINGER)",
    "setattr(context, 'linger', 5) or context.getsockopt(c.LINGER)",
    "setattr(context, 'linger', 5) or delattr(context, 'linger') or context.linger",
    "setattr(context, 'linger', 5) or context.socket(c.PUB).linger",
    "setattr(context, 'subscribe', b'x') or context.socket(c.PUB).linger",
    "context.setsockopt(c.LINGER, 'bad') or context.socket(c.PUB)",
    "context.setsockopt(c.RCVHWM, 9) or context.socket(c.SUB).rcvhwm",
    "setattr(context, 'ipv6', 1) or (context.ipv6, context.get(c.IPV6))",
    "context.getsockopt(c.RCVHWM)",
    "context.nosuch",
    "setattr(context, 'nosuch', 1)",
    "delattr(context, 'linger')",
    "delattr(context, 'nosuch')",
    "context.socket(None)",
    "context.socket(99)",
    "context.socket('PUB')",
    "context.set(c.MAX_SOCKETS, 1) or [context.socket(c.PUB), context.socket(c.PUB)]",
    "context.closed",
    "context.term() or (context.closed, context.underlying)",
    "context.destroy() or context.destroy() or context.term()",
    "context.term() or context.socket(c.PUB)",
    "context.term() or context.get(c.IO_THREADS)",
    "context.term() or context.set(c.IO_THREADS, 1)",
    "context.term() or context.linger",
    "context.term() or context.max_sockets",
    "library.Context(3).get(c.IO_THREADS)",
    "library.Context(io_threads=3).io_threads",
    "library.Context('x')",
    "library.Context.shadow('x')",
    "library.Context.shadow(context).underlying == context.underlying",
    "library.Context(context).underlying == context.underlying",
    "library.Context.instance() is library.Context.instance()",
    "library.Context.instance().term() or library.Context.instance().closed",
]

FRAME = [
    "library.Frame('x')",
    "library.Frame(5)",
    "library.Frame(memoryview(b'abcd')[::2])",
    "library.Frame(b'abc').nosuch",
    "library.Frame(b'abc')['User-Id']",
    "library.Frame(b'abc').get(c.MORE)",
    "library.Frame(b'abc').get(c.SHARED)",
    "library.Frame(b'abc').get(c.SRCFD)",
    "library.Frame(b'abc').get(77)",
    "library.Frame(b'abc')[None]",
    "library.Frame(b'abc').MORE",
    "library.Frame(b'abc').set(c.MORE, 1)",
    "library.Frame(b'abc').set('User-Id', 'x')",
    "library.Frame(b'abc').routing_id",
    "library.Frame(b'abc') == library.Frame(b'abc')",
    "repr(library.Frame(b'abc')).replace('zerohop', 'zmq')",
    "repr(library.Frame(b'a' * 2000)).replace('zerohop', 'zmq')",
    "len(library.Frame(b'abc')), bool(library.Frame()), library.Frame(library.Frame(b'a')).bytes",
    "library.MessageTracker().done",
    "library.MessageTracker(5)",
    "library.MessageTracker(library.Frame(b'abc'))",
    "library.Frame(b'abc', track=True).tracker.done",
]


def outcome(library, expression, *, socket=True, closed=False):
    """Return what an expression gives, or what it raises, such that the libraries compare."""
    context = library.Context()
    s = context.socket(zmq.DEALER) if socket else None
    if closed:
        s.close()
    try:
        try:
            value = eval(
                expression, {"library": library, "context": context, "s": s, "c": constants}
            )
        except library.ZMQError as error:
            return "ZMQError", error.errno, str(error)
        except library.ZMQBaseError as error:
            return type(error).__name__, str(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
            return type(error).__name__, str(error).replace("Plain", "")
        if value is None or isinstance(value, int | str | bytes | tuple):
            return value
        return type(value).__name__.replace("Plain", "")
    finally:
        library.Context.instance().destroy(0)
        context.destroy(0)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("expression", SOCKET)
def test_both_libraries_agree_about_a_socket(expression):
    assert outcome(Ours, expression) == outcome(Theirs, expression)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("expression", [*CONTEXT, *FRAME])
def test_both_libraries_agree_about_contexts_and_frames(expression):
    assert outcome(Ours, expression, socket=False) == outcome(Theirs, expression, socket=False)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("expression", CLOSED)
def test_both_libraries_agree_about_a_closed_socket(expression):
    assert outcome(Ours, expression, closed=True) == outcome(Theirs, expression, closed=True)
