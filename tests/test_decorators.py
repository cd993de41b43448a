"""zmq.decorators, against pyzmq's own where both can be asked."""

import asyncio

import pytest
import zmq.decorators

import zerohop
import zerohop.asyncio
from zerohop import decorators

LIBRARIES = pytest.mark.parametrize(
    "library", [pytest.param(zerohop, id="zerohop"), pytest.param(zmq, id="zmq")]
)


@LIBRARIES
def test_both_are_given_in_the_order_of_the_decorators_and_end_with_the_call(library):
    @library.decorators.context()
    @library.decorators.socket(library.PUSH)
    @library.decorators.socket(library.PULL)
    def work(first, ctx, push, pull):
        assert push.context is pull.context is ctx
        pull.bind("inproc://work")
        push.connect("inproc://work")
        push.send(first)
        return pull.recv(), ctx, push

    received, ctx, push = work(b"hello")
    assert (received, ctx.closed, push.closed) == (b"hello", True, True)


@LIBRARIES
def test_they_may_be_given_by_name(library):
    @library.decorators.context("ctx")
    @library.decorators.socket("push", library.PUSH, context_name="ctx")
    @library.decorators.socket(library.PULL, name="pull", context_name="ctx")
    def work(*, ctx, push, pull):
        assert push.context is pull.context is ctx
        return push.type, pull.type

    assert work() == (library.PUSH, library.PULL)
    with pytest.raises(TypeError, match=r"work\(\) got multiple values for argument 'push'"):
        work(push=None)


@LIBRARIES
def test_without_a_context_it_is_the_shared_one(library):
    @library.decorators.socket(library.PUSH)
    def work(push):
        assert push.context is library.Context.instance()
        return push

    assert work().closed
    library.Context.instance().term()


@LIBRARIES
def test_the_socket_is_closed_when_the_function_fails(library):
    seen = []

    @library.decorators.context()
    @library.decorators.socket(library.PUSH)
    def work(ctx, push):
        seen.extend((ctx, push))
        raise LookupError

    with pytest.raises(LookupError):
        work()
    assert all(one.closed for one in seen)


def test_the_function_keeps_its_name_and_its_text():
    @decorators.context()
    def work(ctx):
        """Say what it does."""

    assert (work.__name__, work.__doc__) == ("work", "Say what it does.")


def test_a_coroutine_function_has_them_until_it_is_done():
    """pyzmq's close both before the coroutine begins."""

    @decorators.socket(zerohop.PUSH)
    @decorators.socket(zerohop.PULL)
    async def work(ctx, push, pull):
        pull.bind("inproc://work")
        push.connect("inproc://work")
        await push.send(b"hello")
        return await pull.recv(), push

    async def main():
        async with zerohop.asyncio.Context() as ctx:
            received, push = await work(ctx)
            assert (received, push.closed) == (b"hello", True)

    asyncio.run(main())
