"""An API server has tokens streamed by an engine, another process, and leaves one request early."""

import asyncio
import logging
import multiprocessing
import sys
import time

from zerohop.serving import Delta, EngineClient, EngineServer


def run_engine(endpoint: str) -> None:
    """The engine: each step makes the next token of each request, and counts down with it."""
    left: dict[int, int] = {}
    running = [True]
    with EngineServer(endpoint, engine="engine-0", info={"model": "count-down"}) as server:
        server.utility("stop", running.clear)
        while running:
            news = server.receive(timeout=0 if left else 1)
            left.update((request.number, request.payload["from"]) for request in news.requests)
            for number in news.aborted:
                print("aborted in the engine at", left.pop(number), flush=True)
            left = {number: token - 1 for number, token in left.items() if token > 0}
            server.send_step(
                [Delta(number, [token], None if token else "end") for number, token in left.items()]
            )
            time.sleep(0.001)  # what a model would do in a step


async def main() -> None:
    """The API server: a stream to its end, a stream that is left, a call by name."""
    async with EngineClient() as client:
        context = multiprocessing.get_context("spawn")
        engine = context.Process(target=run_engine, args=[client.endpoint])
        engine.start()
        await client.wait_for_engines(1, timeout=20)
        print("engine-0 says of itself:", client.engines["engine-0"].info)

        async with client.generate({"from": 1_000_000}) as stream:
            async for _ in stream:
                break  # and so it is aborted, as it is where the task is cancelled

        tokens = []
        async for delta in client.generate({"from": 5}, deadline=30):
            tokens += delta.token_ids
        print(f"{tokens}, finish: {delta.finish}")

        await client.call("stop")
        await asyncio.to_thread(engine.join)


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stdout, format="in the log: %(message)s")
    asyncio.run(main())
