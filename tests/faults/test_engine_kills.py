"""kill -9 of engines and of API servers, at random moments, with requests under way all the time.

Every request ends: finished with all of its tokens, with its engine's end, or at its deadline; none
has a token of another life; and who was not killed goes on as if nothing had been.
"""

import asyncio
import itertools
from functools import partial

from tests.faults.engine_lives import PATIENCE, Traffic, until
from tests.faults.kit import KILLS, campaign
from tests.faults.lives import SOON
from zerohop.serving import EngineClient, EngineState, ipc_endpoint

ENGINE = "from tests.faults.engine_lives import engine_life\nengine_life({}, {!r}, *{!r})"
SERVER = "from tests.faults.engine_lives import api_life\napi_life({}, {!r}, {})"
TAGS_OF_THE_KILLED = set(range(1000, 1000 * (KILLS + 1)))


async def line_of(program):
    """The next line that it prints. One that says none is killed: it would keep the loop."""
    try:
        async with asyncio.timeout(SOON):
            return await asyncio.to_thread(program.line)
    except BaseException:
        program.kill()
        raise


def place_of(name, chance, directory):
    return "tcp://127.0.0.1:*" if chance.random() < 0.5 else ipc_endpoint(name, directory)


@campaign
def test_engines_that_are_killed_take_their_own_requests_with_them(program, chance, ipc_directory):
    names = ("e0", "e1")

    async def body():
        lives = itertools.count(1)
        async with EngineClient(place_of("a", chance, ipc_directory), patience=PATIENCE) as client:
            traffic = Traffic(client, chance, itertools.count(1))

            async def start(name):
                life = next(lives)
                engine = program(ENGINE.format(life, name, [client.endpoint]))
                assert await line_of(engine) == "here"
                return engine, life

            def is_ready(name, life):
                known = client.engines.get(name)
                return known and (known.info["life"], known.state) == (life, EngineState.ALIVE)

            def is_gone(name, life):
                known = client.engines.get(name)
                return known is None or known.info["life"] != life

            here = {name: await start(name) for name in names}
            traffic.start(4, 4)
            killed = set()
            for _ in range(KILLS):
                name = chance.choice(names)
                engine, life = here[name]
                if chance.random() < 0.7:  # else it is killed while it introduces itself
                    await until(partial(is_ready, name, life), traffic)
                await asyncio.sleep(chance.random() * 0.2)
                engine.kill()
                killed.add((name, life))
                await until(partial(is_gone, name, life), traffic)
                here[name] = await start(name)
            for name in names:
                await until(partial(is_ready, name, here[name][1]), traffic)
            finished = traffic.ends["finished"]
            await until(lambda: traffic.ends["finished"] > finished + 10, traffic)
            assert traffic.dead <= killed
            traffic.be_over()
            for engine, _ in here.values():
                engine.tell("end")
                assert await asyncio.to_thread(engine.end) == []
            async with asyncio.timeout(SOON):
                await traffic.going
            assert client.engines == {}

    asyncio.run(body())


@campaign
def test_api_servers_that_are_killed_leave_the_engine_to_the_others(program, chance, ipc_directory):
    async def body():
        async with EngineClient(place_of("b", chance, ipc_directory), patience=PATIENCE) as client:
            traffic = Traffic(client, chance, itertools.count(10_000))
            endpoint = place_of("a", chance, ipc_directory)
            server = program(SERVER.format(1, endpoint, chance.getrandbits(32)))
            endpoint = await line_of(server)
            engine = program(ENGINE.format(1, "e0", [endpoint, client.endpoint]))
            await client.wait_for_engines(1, timeout=SOON)
            traffic.start(0, 4)
            assert await line_of(server) == "served"
            descriptors = await client.call("descriptors")
            for life in range(2, KILLS + 2):
                await asyncio.sleep(chance.random() * 0.2)
                server.kill()
                server = program(SERVER.format(life, endpoint, chance.getrandbits(32)))
                assert await line_of(server) == endpoint
                if life == KILLS + 1 or chance.random() < 0.7:  # else it is killed as it begins
                    assert await line_of(server) == "served"
            async with asyncio.timeout(SOON):
                while TAGS_OF_THE_KILLED & set(await client.call("tags")):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
            assert await client.call("descriptors") <= descriptors
            server.tell("end")
            assert await asyncio.to_thread(server.end) == []
            assert traffic.ends.keys() <= {"finished", "left", "late", "answered"}
            traffic.be_over()
            engine.tell("end")
            assert await asyncio.to_thread(engine.end) == ["here"]
            async with asyncio.timeout(SOON):
                await traffic.going

    asyncio.run(body())
