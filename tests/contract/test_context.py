"""Context: the life of sockets together (zmq_ctx_term(3); pyzmq's Context)."""

import errno
import gc
import threading

import pytest


async def test_a_context_makes_sockets_and_closes_them(net, zmq):
    context = net.new_context()
    assert not context.closed
    sockets = [net.adopt(context.socket(zmq.PUSH)) for _ in range(3)]
    assert [made.closed for made in sockets] == [False] * 3
    context.destroy(linger=0)
    assert context.closed
    assert [made.closed for made in sockets] == [True] * 3


async def test_a_context_without_sockets_terminates_at_once(net, zmq):
    context = net.new_context()
    context.term()
    assert context.closed
    context.term()  # and again: nothing to do


async def test_a_terminated_context_makes_no_sockets(net, zmq):
    context = net.new_context()
    context.term()
    with pytest.raises(zmq.ZMQError) as closed:
        context.socket(zmq.PUSH)
    assert closed.value.errno == zmq.ENOTSUP


@pytest.mark.on("blocking")
async def test_term_waits_until_every_socket_is_closed(net, zmq):
    context = net.new_context()
    push = net.socket(zmq.PUSH, context=context)
    ending = threading.Thread(target=context.term)
    ending.start()
    await net.tick(0.05)
    assert ending.is_alive()
    push.close()
    ending.join(5)
    assert not ending.is_alive()
    assert context.closed


@pytest.mark.on("blocking")
@pytest.mark.parametrize("waits", ["recv", "send", "poll"])
async def test_term_wakes_who_waits(net, zmq, waits):
    context = net.new_context()
    pair = net.socket(zmq.PAIR, context=context, rcvtimeo=-1, sndtimeo=-1)
    pair.bind(net.endpoint())
    calls = {"recv": pair.recv, "send": lambda: pair.send(b"x"), "poll": pair.poll}
    waiting = net.start(calls[waits]())
    await net.tick(0.05)
    ending = threading.Thread(target=context.term)
    ending.start()
    with pytest.raises(zmq.ContextTerminated) as ended:
        await waiting
    assert ended.value.errno == zmq.ETERM
    with pytest.raises(zmq.ContextTerminated):  # and so does every later call
        await pair.recv(zmq.DONTWAIT)
    pair.close()
    ending.join(5)
    assert not ending.is_alive()


@pytest.mark.over("tcp", "ipc")
async def test_term_lets_messages_out_that_linger(net, zmq):
    context = net.new_context()
    push, pull = net.socket(zmq.PUSH, context=context), net.socket(zmq.PULL)
    await net.link(pull, push)
    for n in range(500):
        await push.send(b"%d" % n)
    push.close()
    ending = threading.Thread(target=context.term)
    ending.start()
    assert [await pull.recv() for _ in range(500)] == [b"%d" % n for n in range(500)]
    await net.eventually(lambda: not ending.is_alive())
    ending.join()


@pytest.mark.over("tcp", "ipc")
async def test_destroy_with_no_linger_ends_at_once_though_messages_wait(net, zmq):
    context = net.new_context()
    push = net.socket(zmq.PUSH, context=context, linger=-1)
    push.connect(net.endpoint())
    await push.send(b"for nobody")
    context.destroy(linger=0)
    assert push.closed
    assert context.closed


@pytest.mark.over("inproc")
async def test_a_with_statement_ends_a_context_and_its_sockets(net, zmq):
    with net.new_context() as context:
        with context.socket(zmq.PUSH) as push:
            assert not push.closed
        assert push.closed
    assert context.closed


@pytest.mark.over("inproc")
async def test_new_sockets_take_the_default_options_of_their_context(net, zmq):
    context = net.new_context()
    context.linger = 17
    context.setsockopt(zmq.RCVTIMEO, 18)
    context.subscribe = b"only a SUB can take this"
    push = net.adopt(context.socket(zmq.PUSH))
    assert (push.linger, push.rcvtimeo, push.sndtimeo) == (17, 18, -1)
    assert (context.linger, context.getsockopt(zmq.RCVTIMEO)) == (17, 18)
    del context.linger
    assert net.adopt(context.socket(zmq.PUSH)).linger == -1


@pytest.mark.over("inproc")
async def test_a_context_has_options_of_its_own(net, zmq):
    context = net.new_context()
    assert context.get(zmq.IO_THREADS) == 1
    assert context.get(zmq.MAX_SOCKETS) == 1023
    context.set(zmq.MAX_SOCKETS, 2)
    sockets = [net.adopt(context.socket(zmq.PUSH)) for _ in range(2)]
    with pytest.raises(zmq.ZMQError) as too_many:
        context.socket(zmq.PUSH)
    assert too_many.value.errno == errno.EMFILE
    for made in sockets:
        made.close()


@pytest.mark.over("inproc")
async def test_instance_is_one_context_until_it_is_terminated(net, zmq):
    kind = type(net.context)
    first = kind.instance()
    assert kind.instance() is first
    assert first is not net.context
    first.term()
    second = kind.instance()
    assert second is not first
    assert not second.closed
    second.term()


@pytest.mark.over("inproc")
async def test_blocking_and_asyncio_contexts_have_instances_of_their_own(net, zmq):
    blocking, native = zmq.Context.instance(), net.library.asyncio.Context.instance()
    assert blocking is not native
    blocking.term()
    native.term()


@pytest.mark.over("inproc")
async def test_a_closed_socket_says_so_and_may_be_closed_again(net, zmq):
    push = net.socket(zmq.PUSH)
    assert "zmq.PUSH" in repr(push)
    push.close()
    push.close()
    assert push.closed
    assert "closed" in repr(push)


@pytest.mark.over("inproc")
@pytest.mark.filterwarnings("always")
async def test_a_forgotten_socket_warns_and_is_closed(net, zmq):
    context = net.new_context()
    context.linger = 0

    def forget_a_socket():
        context.socket(zmq.PUSH)
        gc.collect()

    with pytest.warns(ResourceWarning, match="[Uu]nclosed"):
        forget_a_socket()
    context.term()  # does not wait: nobody holds it up
    assert context.closed


@pytest.mark.over("inproc")
@pytest.mark.on("asyncio")
async def test_inproc_joins_blocking_and_asyncio_sockets_of_one_context(net, zmq):
    blocking = zmq.Context.shadow(net.context.underlying)
    pull, endpoint = net.socket(zmq.PULL), net.endpoint()
    pull.bind(endpoint)
    push = blocking.socket(zmq.PUSH)
    push.connect(endpoint)
    push.send_multipart([b"across", b"the border"])
    assert await pull.recv_multipart() == [b"across", b"the border"]
    push.close()
