"""The engine channel in use that nobody plans: all of it ends, and nothing is mixed up."""

import asyncio
import os
import signal
from collections import Counter

import pytest

from tests.faults.kit import FAULTS
from tests.faults.lives import SOON
from tests.faults.test_engine_kills import ENGINE, line_of
from tests.serving.engine.engines import engine_in_thread, streaming, tokens_of, until
from zerohop.serving import EngineClient, EngineDead, Patience, RequestRefused, ipc_endpoint

pytestmark = pytest.mark.timeout(90)
MANY = 1000 if FAULTS else 100
PATIENT = Patience(beat_every=0.1, gone_after=20.0, hung_after=20.0)
QUICK = Patience(beat_every=0.1, gone_after=1.5, hung_after=20.0)


def run(body):
    asyncio.run(asyncio.wait_for(body, 80))


def lives_in(tokens):
    return {token >> 40 for token in tokens}


def test_an_engine_that_was_stopped_for_long_comes_back_and_nothing_of_before_is_heard(
    program, ipc_directory
):
    async def body():
        place = ipc_endpoint("a", ipc_directory)
        async with EngineClient(place, patience=QUICK, default_deadline=None) as client:
            engine = program(ENGINE.format(1, "e0", [client.endpoint]))
            assert await line_of(engine) == "here"
            await client.wait_for_engines(1, timeout=SOON)
            old = [client.generate({"tag": tag, "tokens": 10**6}) for tag in range(20)]
            await anext(old[0])
            engine.signal(signal.SIGSTOP)
            for stream in old:
                with pytest.raises(EngineDead, match="nothing was heard of it"):
                    async for _ in stream:
                        pass
            with pytest.raises((RequestRefused, EngineDead)):
                client.generate({"tag": 99, "tokens": 1})
            engine.signal(signal.SIGCONT)
            await client.wait_for_engines(1, timeout=SOON)
            tokens, finish = await tokens_of(client.generate({"tag": 100, "tokens": 30}))
            assert (tokens, finish) == ([1 << 40 | 100 << 16 | n for n in range(30)], "length")
            await until(lambda: client.engines["e0"].open == 0)
            assert await client.call("tags") == []  # what was open then is aborted there
            engine.tell("end")
            assert await asyncio.to_thread(engine.end) == []

    run(body())


def test_of_two_engines_with_one_id_the_later_one_has_the_requests(program, ipc_directory):
    async def body():
        async with EngineClient(ipc_endpoint("a", ipc_directory), patience=PATIENT) as client:
            program(ENGINE.format(1, "e0", [client.endpoint]))
            await client.wait_for_engines(1, timeout=SOON)
            stream = client.generate({"tag": 1, "tokens": 10**6})
            await anext(stream)
            program(ENGINE.format(2, "e0", [client.endpoint]))
            with pytest.raises(EngineDead, match="it has restarted"):
                async for _ in stream:
                    pass
            await client.wait_for_engines(1, timeout=SOON)
            for tag in range(20):
                tokens, _ = await tokens_of(client.generate({"tag": tag, "tokens": 3}))
                assert lives_in(tokens) == {2}

    run(body())


def test_a_loop_that_stood_still_for_longer_than_gone_after_loses_no_engine(ipc_directory):
    async def body():
        async with streaming(ipc_endpoint("a", ipc_directory), QUICK) as (client, stream):
            signal.sigtimedwait([], 3)  # stands still: nothing of the loop runs
            for _ in range(10):
                await anext(stream)
            assert await tokens_of(client.generate({"tokens": 2})) == ([1, 0], "length")

    run(body())


def test_a_storm_of_cancellations_leaves_nothing_in_the_engine(ipc_directory):
    async def body():
        async with EngineClient(ipc_endpoint("a", ipc_directory), patience=PATIENT) as client:
            with engine_in_thread(client.endpoint) as engine:
                await client.wait_for_engines(1, timeout=SOON)
                kept = client.generate({"tokens": None})
                tasks = [
                    asyncio.create_task(tokens_of(client.generate({"tokens": None})))
                    for _ in range(MANY)
                ]
                await asyncio.sleep(0.02)
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
                assert all(task.cancelled() for task in tasks)
                await anext(kept)
                await until(lambda: engine.server.open == 1, 2 * SOON)
                assert client.engines["e0"].open == 1
                await kept.aclose()

    run(body())


def test_thousands_of_requests_at_once_all_finish_or_are_told_what_was_too_much(ipc_directory):
    async def end_of(client):
        try:
            return await tokens_of(client.generate({"tokens": 1}))
        except Exception as error:  # noqa: BLE001 - which one is what is asked
            return type(error).__name__

    async def body():
        async with EngineClient(ipc_endpoint("a", ipc_directory), patience=PATIENT) as client:
            with engine_in_thread(client.endpoint):
                await client.wait_for_engines(1, timeout=SOON)
                ends = await asyncio.gather(*(end_of(client) for _ in range(10 * MANY)))
                ends = Counter(end if isinstance(end, str) else end[1] for end in ends)
                assert ends.keys() <= {"length", "EngineOverloaded", "SlowConsumer"}
                assert ends["length"] > MANY / 10
                assert client.engines["e0"].open == 0

    run(body())


@pytest.mark.parametrize("endpoint", [None, "tcp://127.0.0.1:0"])
def test_a_hundred_megabytes_travel_both_ways_while_others_stream(endpoint):
    large = bytearray(100_000_000)
    large[-1] = 7

    async def body():
        async with streaming(endpoint, PATIENT) as (client, stream):
            (delta,) = [each async for each in client.generate({"echo": large})]
            assert delta.extra[0] == large
            await anext(stream)

    run(body())


def test_closing_while_requests_are_made_ends_each_of_them(ipc_directory):
    async def ask(client):
        ends = Counter()
        while not ends["refused"]:
            try:
                await tokens_of(client.generate({"tokens": 3}))
                ends["finished"] += 1
            except EngineDead:
                ends["dead"] += 1
            except (RequestRefused, RuntimeError):  # the client is closed
                ends["refused"] += 1
        return ends

    async def body():
        async with EngineClient(ipc_endpoint("a", ipc_directory), patience=PATIENT) as client:
            with engine_in_thread(client.endpoint):
                await client.wait_for_engines(1, timeout=SOON)
                asking = [asyncio.create_task(ask(client)) for _ in range(50)]
                await asyncio.sleep(0.1)
                await client.aclose()
                async with asyncio.timeout(SOON):
                    ends = sum(await asyncio.gather(*asking), Counter())
                assert ends["refused"] == 50

    run(body())


def test_a_generator_over_a_stream_that_is_closed_aborts_the_request(ipc_directory):
    async def texts(client):
        async with client.generate({"tokens": None}) as stream:
            async for delta in stream:
                yield str(delta.token_ids)

    async def body():
        async with EngineClient(ipc_endpoint("a", ipc_directory), patience=PATIENT) as client:
            with engine_in_thread(client.endpoint) as engine:
                await client.wait_for_engines(1, timeout=SOON)
                generator = texts(client)
                await anext(generator)
                await generator.aclose()
                await until(lambda: len(engine.aborted) == 1 and engine.server.open == 0)

    run(body())


def test_a_fork_in_the_middle_disturbs_neither_stream_nor_engine(ipc_directory):
    async def body():
        async with streaming(ipc_endpoint("a", ipc_directory), PATIENT) as (client, stream):
            child = os.fork()
            if not child:
                os._exit(0)
            assert await asyncio.to_thread(os.waitpid, child, 0) == (child, 0)
            for _ in range(5):
                await anext(stream)
            assert await client.call("add", 1, 2) == 3

    run(body())
