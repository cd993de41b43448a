"""What only the client on an event loop does; what both do is in ``test_client``."""

import asyncio
import time

import pytest

from tests.serving.engine.engines import (
    PATIENT,
    QUICK,
    engine_in_thread,
    engine_process,
    give_more_and_more,
    run,
    tokens_of,
)
from zerohop.serving import EngineDead, EngineState, RequestRefused

pytestmark = [
    pytest.mark.timeout(30),
    pytest.mark.parametrize("place", ["asyncio-ipc", "asyncio-tcp"], indirect=True),
]


def test_it_runs_on_uvloop(place):
    uvloop = pytest.importorskip("uvloop")

    async def body():
        async with place.client(patience=PATIENT) as client:
            with engine_in_thread(client.endpoint):
                await client.wait_for_engines(timeout=10)
                streams = [client.generate({"tokens": 10}) for _ in range(10)]
                results = await asyncio.gather(*map(tokens_of, streams))
                assert results == [(list(range(9, -1, -1)), "length")] * 10

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(body(), 25))


def test_an_api_server_that_stood_still_reads_what_has_come_before_it_believes_in_silence(ask):
    async def body(client, _):
        stream = client.generate({"tokens": None})
        await anext(stream)
        time.sleep(1.5)  # noqa: ASYNC251 - the loop stands still for longer than gone_after
        for _ in range(200):
            await anext(stream)
        assert client.health == {"e0": EngineState.ALIVE}
        await stream.aclose()

    ask(body, patience=QUICK)


def test_what_has_come_in_time_counts_though_the_loop_reads_it_late(ask):
    async def body(client, engine):
        stream = client.generate({"tokens": 3}, deadline=2)
        late = asyncio.get_running_loop().time() + 2.1
        while asyncio.get_running_loop().time() < late:  # the loop stands still
            time.sleep(0.1)  # noqa: ASYNC251
        assert engine.server.open == 0
        assert await tokens_of(stream) == ([2, 1, 0], "length")

    ask(body)


def test_a_request_for_an_engine_that_was_just_killed_ends_with_it(place):
    async def body():
        async with place.client(patience=PATIENT) as client:
            with engine_process(client.endpoint) as process:
                await client.wait_for_engines(timeout=20)
                process.kill()
                process.wait(10)
                streams = [client.generate({"tokens": 1})]  # the connection still seems to be there
                with pytest.raises((EngineDead, RequestRefused)):
                    await give_more_and_more(client, streams, {"tokens": 1})
                for stream in streams:
                    with pytest.raises(EngineDead):
                        await tokens_of(stream)

    run(body())


def test_a_reader_may_close_the_client(ask):
    async def body(client, _):
        others = [client.generate({"tokens": None}) for _ in range(3)]
        async for _ in client.generate({"tokens": 2}):
            await client.aclose()
            break
        for stream in others:
            with pytest.raises(EngineDead):
                await tokens_of(stream)

    ask(body)


def test_what_ends_the_loop_in_a_reader_does_not_end_the_reading(place):
    async def read_and_exit(client):
        await anext(client.generate({"tokens": None}))
        raise SystemExit

    async def read(client):
        return await asyncio.wait_for(tokens_of(client.generate({"tokens": 50})), 20)

    async def opened():
        return await place.client(patience=PATIENT).__aenter__()

    loop = asyncio.new_event_loop()
    try:
        client = loop.run_until_complete(opened())
        with engine_in_thread(client.endpoint):
            loop.run_until_complete(client.wait_for_engines(timeout=10))
            reading, exiting = (loop.create_task(each(client)) for each in (read, read_and_exit))
            with pytest.raises(SystemExit):
                loop.run_forever()
            assert isinstance(exiting.exception(), SystemExit)
            assert loop.run_until_complete(reading) == (list(range(49, -1, -1)), "length")
            loop.run_until_complete(client.aclose())
    finally:
        loop.close()


def test_a_client_runs_once(place):
    async def body():
        client = place.client()
        async with client:
            with pytest.raises(RuntimeError, match="runs once"):
                await client.__aenter__()
        with pytest.raises(RuntimeError, match="runs once"):
            await client.__aenter__()

    run(body())


def test_a_client_that_is_not_running_says_so(place):
    async def body():
        client = place.client()
        with pytest.raises(RuntimeError, match="not running"):
            await client.wait_for_engines()
        async with client:
            waiting = asyncio.ensure_future(client.wait_for_engines())
            await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="not running"):
            await waiting
        with pytest.raises(RuntimeError, match="not running"):
            client.generate({"tokens": 1})
        with pytest.raises(RuntimeError, match="not running"):
            await client.call("add", 1, 2)

    run(body())
