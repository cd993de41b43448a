"""Context of zerohop.asyncio: its end, after whoever waited for it has gone."""

import asyncio
import time

import pytest

import zerohop as zmq
import zerohop.asyncio
from tests.kit.net import free_port


@pytest.mark.parametrize("sockets", [1, 3])
def test_a_context_can_be_ended_after_the_loop_that_waited_for_its_end_was_closed(sockets):
    context = zmq.asyncio.Context()
    kept = []

    async def give_up():
        for _ in range(sockets):
            push = context.socket(zmq.PUSH)
            kept.append(push)
            push.linger = 300
            push.connect(f"tcp://127.0.0.1:{free_port()}")
            push.send(b"for nobody")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(context.aclose(), 0.05)

    asyncio.run(give_up())
    started = time.monotonic()
    context.term(timeout=4)
    assert time.monotonic() - started < 2
