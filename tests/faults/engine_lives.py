"""Lives of engines and of API servers, and traffic between them that is held to what it may become.

A token says who made it: ``life << 40 | tag << 16 | place``, where the tag is of the request.
"""

import asyncio
import itertools
import logging
import os
from collections import Counter
from random import Random

from tests.faults.lives import SOON, told
from zerohop.serving import (
    DeadlineExceeded,
    Delta,
    EngineClient,
    EngineDead,
    EngineServer,
    Patience,
    RequestRefused,
)

PATIENCE = Patience(beat_every=0.1, gone_after=10.0, hung_after=10.0)
HOUR = 3600.0
EVER = 1_000_000  # tokens of a request that is not meant to finish


async def until(condition, traffic, within=SOON):
    """Wait until something is so, while traffic goes on."""
    give_up = asyncio.get_running_loop().time() + within
    while not condition():
        assert asyncio.get_running_loop().time() < give_up, str(traffic)
        assert not traffic.going.done(), traffic.going.exception()
        await asyncio.sleep(0.003)


def engine_life(life, engine, *endpoints):
    """Be an engine until killed or told."""
    print("here")
    end, running = told(), {}
    with EngineServer(endpoints, engine=engine, info={"life": life}) as server:
        server.utility("life", lambda: life)
        server.utility("tags", lambda: [request.payload["tag"] for request, _ in running.values()])
        server.utility("descriptors", lambda: len(os.listdir("/proc/self/fd")))
        while not end.is_set():
            news = server.receive(0.005 if running else 0.05)
            running |= {request.number: (request, itertools.count()) for request in news.requests}
            deltas = []
            for number in news.aborted:
                running.pop(number, None)
            for number, (request, count) in list(running.items()):
                place = next(count)
                is_last = place + 1 == request.payload["tokens"]
                token = life << 40 | request.payload["tag"] << 16 | place & 0xFFFF
                deltas.append(Delta(number, [token], "length" if is_last else None))
                if is_last:
                    del running[number]
            for number in server.send_step(deltas):
                running.pop(number, None)


class Traffic:
    """Requests, one after the other in each of several tasks, until it is told to end.

    Args:
        client: whose requests they are.
        chance: what is random in them.
        tags: of the requests.

    Attributes:
        going: ends with the last of them.
        ends: how many ended in what.
        dead: the engines' lives that requests ended with.
    """

    def __init__(self, client, chance, tags):
        self._client, self._chance, self._tags = client, chance, tags
        self._is_over = False
        self.ends, self.dead = Counter(), set()

    def __str__(self):
        client = self._client
        return f"{self.ends}, stale {client.stale}, malformed {client.malformed}: {client.engines}"

    def start(self, patient, impatient):
        """Have so many tasks of either kind."""
        self.going = asyncio.create_task(self._go_on(patient, impatient))

    async def _go_on(self, patient, impatient):
        async with asyncio.TaskGroup() as group:
            for _ in range(patient):
                group.create_task(self._until_it_is_over(self.one_without_end))
            for _ in range(impatient):
                group.create_task(self._until_it_is_over(self.one))

    def be_over(self):
        """Begin nothing any more; :attr:`going` is done when all have ended."""
        self._is_over = True

    async def _until_it_is_over(self, one):
        while not self._is_over:
            end = await one()
            self.ends[end] += 1
            if end == "refused":
                await asyncio.sleep(0.01)  # no engine is there

    async def one_without_end(self):
        """A request that ends with its engine, and by nothing else."""
        end = await self._follow(EVER, None, None)
        assert end in ("dead", "refused"), end
        return end

    async def one(self):
        """A request of any kind."""
        chance = self._chance
        kind = chance.random()
        deadline = chance.choice((0.02, 5.0, 5.0, 5.0))
        if kind < 0.1:
            return await self._call(deadline)
        tokens = chance.randint(1, 30)
        leaves = chance.randint(0, tokens) if kind < 0.3 else None
        async with asyncio.timeout(deadline + SOON):  # or it is silence
            return await self._follow(tokens, deadline, leaves)

    async def _follow(self, tokens, deadline, leaves):
        client, tag = self._client, next(self._tags)
        try:
            stream = client.generate({"tag": tag, "tokens": tokens}, deadline=deadline)
        except (RequestRefused, EngineDead):
            return "refused"
        life = client.engines[stream.engine].info["life"]
        place = 0
        async with stream:
            try:
                async for delta in stream:
                    for token in delta.token_ids:
                        assert token == life << 40 | tag << 16 | place & 0xFFFF
                        place += 1
                    if leaves is not None and place >= leaves:
                        return "left"
            except EngineDead:
                self.dead.add((stream.engine, life))
                return "dead"
            except DeadlineExceeded:
                return "late"
        assert (place, delta.finish) == (tokens, "length")
        return "finished"

    async def _call(self, deadline):
        engines = self._client.engines
        if not engines:
            return "refused"
        name = self._chance.choice(sorted(engines))
        try:
            async with asyncio.timeout(deadline + SOON):
                life = await self._client.call("life", engine=name, timeout=deadline)
        except RequestRefused:
            return "refused"
        except EngineDead:
            return "dead"
        except DeadlineExceeded:
            return "late"
        assert life == engines[name].info["life"]
        return "answered"


def api_life(life, endpoint, seed):
    """Be an API server until killed or told. It says where it is, and when it has been served."""

    async def body():
        logging.disable(logging.WARNING)  # that engines are gone for it when it closes
        end = told()
        async with EngineClient(endpoint, patience=PATIENCE) as client:
            print(client.endpoint)
            traffic = Traffic(client, Random(seed), itertools.count(1000 * life))
            traffic.start(2, 3)
            await until(lambda: traffic.ends["finished"], traffic, within=HOUR)
            print("served")
            await until(end.is_set, traffic, within=HOUR)
            traffic.be_over()
            await client.aclose()  # ends those that are without end
            await traffic.going

    asyncio.run(body())
