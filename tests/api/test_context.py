import copy
import gc
import pickle
import threading

import pytest

from tests.api.plain import PlainContext, PlainSocket, drop_what_lingers
from zerohop import constants as zmq
from zerohop.errors import Again, ContextTerminated, ZMQError


def test_new_sockets_have_the_options_of_their_context(context):
    context.linger = 7
    context.RCVHWM = 9
    context.router_mandatory = 1  # not an option of the others: ignored for them
    assert [context.socket(kind).linger for kind in (zmq.PUB, zmq.ROUTER)] == [7, 7]
    assert context.socket(zmq.SUB).rcvhwm == 9
    del context.linger
    assert context.socket(zmq.PUB).linger == -1


def test_a_context_that_is_not_blocky_makes_sockets_that_do_not_linger(context):
    context.set(zmq.BLOCKY, 0)
    assert context.socket(zmq.PUSH).linger == 0


def test_sockets_are_counted_and_limited(context):
    context.max_sockets = 2
    kept = [context.socket(zmq.PUB), context.socket(zmq.PUB)]
    with pytest.raises(ZMQError) as raised:
        context.socket(zmq.PUB)
    assert raised.value.errno == 24  # EMFILE
    assert "MAX_SOCKETS" in raised.value.__notes__[0]
    kept[0].close()
    context.socket(zmq.PUB)


def test_repr_counts_open_sockets():
    context = PlainContext()
    name = "tests.api.plain.PlainContext"
    assert repr(context) == f"<{name}() at {id(context):#x}>"
    with context.socket(zmq.PUB):
        assert repr(context) == f"<{name}(1 socket) at {id(context):#x}>"
        with context.socket(zmq.PUB):
            assert repr(context) == f"<{name}(2 sockets) at {id(context):#x}>"
    context.term()
    assert repr(context) == f"<{name}() at {id(context):#x} closed>"


def test_another_socket_class_may_be_asked_for(context):
    class Other(PlainSocket):
        pass

    assert type(context.socket(zmq.PUB, socket_class=Other)) is Other
    assert context.socket(zmq.PUB, copy_threshold=5).copy_threshold == 5


def test_dir_lists_every_option(context):
    assert {"MAX_SOCKETS", "LINGER", "socket", "term"} <= set(dir(context))


def test_a_subclass_has_its_own_attributes():
    class Named(PlainContext):
        label = "a"

        def __init__(self):
            super().__init__()
            self.__dict__["count"] = 0

    context = Named()
    context.label = "b"
    context.count += 1
    context._undeclared = 1
    assert (context.label, context.count, context._undeclared, context.sockopts) == ("b", 1, 1, {})
    with pytest.raises(AttributeError, match=r"^Named has no such option: LABLE$"):
        context.lable = "c"
    del context.count
    assert not hasattr(context, "count")
    context.term()


# The end


def test_term_waits_for_sockets_and_says_which(context):
    s = context.socket(zmq.PUB)
    with pytest.raises(Again) as raised:
        context.term(timeout=0)
    assert repr(s) in raised.value.__notes__[0]
    assert not context.closed
    for call in (lambda: s.send(b"x"), lambda: s.bind("inproc://x"), lambda: s.events):
        with pytest.raises(ContextTerminated):
            call()
    with pytest.raises(ContextTerminated):
        context.socket(zmq.PUB)
    s.close()
    context.term()
    assert context.closed


def test_term_says_where_a_closed_socket_still_has_to_send(context):
    s = context.socket(zmq.PUSH)
    s.connect("tcp://127.0.0.1:9")
    s.send(b"undeliverable")
    s.close()
    with pytest.raises(Again) as raised:
        context.term(timeout=0)
    assert "PUSH socket with messages for tcp://127.0.0.1:9" in raised.value.__notes__[0]
    drop_what_lingers(context)
    context.term()


def test_term_tells_every_front(context):
    s = context.socket(zmq.PULL)
    before = s._front.calls
    with pytest.raises(Again):
        context.term(timeout=0)
    assert s._front.calls > before


def test_destroy_closes_every_socket():
    context = PlainContext()
    sockets = [context.socket(kind) for kind in (zmq.PUB, zmq.PUSH)]
    sockets[1].connect("tcp://127.0.0.1:9")
    sockets[1].send(b"undeliverable")
    context.destroy(linger=0)
    assert context.closed
    assert all(s.closed for s in sockets)


def test_a_with_block_destroys_and_complains_of_what_is_open():
    with PlainContext() as context:
        context.socket(zmq.PUB).close()
    assert context.closed
    with (
        pytest.warns(ResourceWarning, match="Destroying context with unclosed socket"),
        PlainContext() as context,
    ):
        s = context.socket(zmq.PUB)
    assert s.closed


def test_a_dropped_context_is_complained_of():
    context = PlainContext()
    with pytest.warns(ResourceWarning, match=r"^Unclosed context <.*PlainContext\(\).*>$"):
        del context


def test_a_socket_keeps_its_context():
    context = PlainContext()
    s = context.socket(zmq.PUB)
    context = None
    gc.collect()
    assert not s.context.closed
    s.context.destroy()


# One world, several Contexts


def test_a_shadow_reaches_the_sockets_of_its_context(context):
    a = context.socket(zmq.PAIR)
    a.bind("inproc://shared")
    for shadow in (PlainContext(context), PlainContext.shadow(context.underlying),
                   copy.copy(context), copy.deepcopy(context)):  # fmt: skip
        with shadow.socket(zmq.PAIR) as b:
            b.connect("inproc://shared")
            a.send(b"x")
            assert b.recv() == b"x"


def test_destroying_a_shadow_closes_only_what_it_made(context):
    own = context.socket(zmq.PUB)
    shadow = PlainContext.shadow(context)
    borrowed = shadow.socket(zmq.PUB)
    shadow.destroy()
    assert (shadow.closed, borrowed.closed) == (True, True)
    assert (context.closed, own.closed) == (False, False)
    assert shadow.underlying == 0


def test_an_unknown_handle_is_no_context():
    with pytest.raises(ZMQError) as raised:
        PlainContext.shadow(1)
    assert raised.value.errno == zmq.EFAULT


def test_a_context_cannot_be_pickled(context):
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(context)


def test_the_shared_instance_is_one_for_each_class():
    class Other(PlainContext):
        pass

    shared, other = PlainContext.instance(), Other.instance()
    assert PlainContext.instance() is shared
    assert Other.instance() is other is not shared
    shared.term()
    assert PlainContext.instance() is not shared
    PlainContext.instance().term()
    other.term()


def test_threads_that_ask_at_once_get_the_same_instance():
    got = []
    threads = [
        threading.Thread(target=lambda: got.append(PlainContext.instance())) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(set(got)) == 1
    PlainContext.instance().term()


def test_a_socket_whose_default_option_is_wrong_is_closed(context):
    context.setsockopt(zmq.LINGER, "soon")
    with pytest.raises(TypeError) as caught:
        context.socket(zmq.PUB)
    assert not context._io.drivers, caught  # whose traceback still has the socket
