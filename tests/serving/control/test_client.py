"""Who asks a control server, and is closed meanwhile: blocking, and on an event loop."""

import asyncio
import math
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import zerohop as zmq
import zerohop.asyncio
from tests.serving.control.running import SECONDS, run, wait_for
from zerohop.serving import (
    ControlClient,
    LmcacheClient,
    NoAnswer,
    SyncControlClient,
    SyncControlWorker,
    SyncLmcacheClient,
)
from zerohop.serving.codec import unpack

NOBODY = "tcp://127.0.0.1:1"


@pytest.fixture
def silent():
    """A ROUTER that answers nothing."""
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.linger, router.rcvtimeo = 0, int(SECONDS * 1000)
        router.bind("tcp://127.0.0.1:*")
        yield router


@pytest.mark.parametrize("kind", [SyncControlClient, SyncLmcacheClient])
class TestAClientThatIsClosed:
    def test_ends_the_call_that_waits_for_its_reply_and_those_that_wait_for_their_turn(
        self, kind, silent
    ):
        client = kind(silent.last_endpoint.decode(), timeout=math.inf)
        with ThreadPoolExecutor(3) as asking:
            asked = [asking.submit(client.call, "noop") for _ in range(3)]
            silent.recv_multipart()
            client.close()
            for each in asked:
                with pytest.raises(RuntimeError, match=r"Client is closed; make another one"):
                    each.result(SECONDS)

    def test_ends_the_call_that_nobody_is_there_to_hear(self, kind):
        client = kind(NOBODY, timeout=math.inf)
        begun = threading.Event()
        with ThreadPoolExecutor(1) as asking:
            asking.submit(begun.set)
            asked = asking.submit(client.call, "noop")
            assert begun.wait(SECONDS)
            client.close()
            with pytest.raises(RuntimeError, match="is closed"):
                asked.result(SECONDS)

    def test_is_asked_for_nothing_more(self, kind):
        client = kind(NOBODY)
        client.close()
        client.close()
        with pytest.raises(RuntimeError, match="is closed"):
            client.call("noop")


@pytest.mark.parametrize("kind", [ControlClient, LmcacheClient])
class TestAClientThatIsClosedOnALoop:
    def test_ends_the_calls_that_wait_for_a_reply(self, kind):
        async def body():
            async with zerohop.asyncio.Context() as context:
                router = context.socket(zmq.ROUTER)
                router.bind("tcp://127.0.0.1:*")
                client = kind(router.last_endpoint.decode(), timeout=math.inf)
                asked = [asyncio.ensure_future(client.call("noop")) for _ in range(3)]
                for _ in asked:
                    await router.recv_multipart()
                await client.aclose()
                for each in asked:
                    with pytest.raises(RuntimeError, match="Client is closed; make another one"):
                        await each

        run(body())

    def test_has_given_each_call_a_time_of_its_own(self, kind):
        async def body():
            async with kind(NOBODY, timeout=math.inf) as client:
                with pytest.raises(NoAnswer, match=r"within 0\.01 s"):
                    await client.call("noop", timeout=0.01)

        run(body())

    def test_ends_the_calls_that_nobody_is_there_to_hear(self, kind):
        async def body():
            client = kind(NOBODY, timeout=math.inf)
            asked = asyncio.ensure_future(client.call("noop"))
            await asyncio.sleep(0)
            await client.aclose()
            with pytest.raises(RuntimeError, match="is closed"):
                await asked
            with pytest.raises(RuntimeError, match="is closed"):
                await client.call("noop")

        run(body())


def test_a_client_may_be_closed_where_its_call_is_interrupted(silent):
    """As a handler of signals does it, on the thread that asks."""
    client = SyncControlClient(silent.last_endpoint.decode(), timeout=math.inf)
    poll = client._dealer.poll

    def interrupted(*arguments):
        client.close()
        return poll(*arguments)

    client._dealer.poll = interrupted
    with pytest.raises(RuntimeError, match="is closed"):
        client.call("noop")


def test_a_server_that_comes_late_does_not_hear_what_was_said_before(silent, tmp_path):
    place = f"ipc://{tmp_path}/c"
    with SyncControlWorker(place, "w", patience=0.01) as worker:
        wait_for(lambda: worker._session._uids > 3)
        said = worker._session._uids
        silent.bind(place)
        _, uid, *_ = silent.recv_multipart()
    assert unpack(uid) > said


def test_waiting_until_a_worker_has_settled_ends_where_it_is_closed():
    worker = SyncControlWorker(NOBODY, "w")
    with ThreadPoolExecutor(1) as waiting:
        waited = waiting.submit(worker.wait_settled, math.inf)
        worker.close()
        assert waited.result(SECONDS) is False
