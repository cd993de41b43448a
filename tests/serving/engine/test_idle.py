"""Who has nothing to do costs nothing worth mentioning: the beats, and no spinning."""

import asyncio
import threading
import time

from zerohop.serving import EngineClient, EngineServer

SECONDS = 2.0
MOST = 0.05  # of a core, both sides together: 1 % is what each may have, where nothing is checked


def test_a_channel_without_requests_rests(ipc_directory):
    async def body():
        async with EngineClient(f"ipc://{ipc_directory}/requests") as client:
            ended = threading.Event()

            def loop():
                with EngineServer(client.endpoint, engine="e0") as server:
                    server.utility("end", ended.set)
                    while not ended.is_set():
                        server.receive(0.5)

            thread = threading.Thread(target=loop)
            thread.start()
            await client.wait_for_engines(timeout=10)
            await asyncio.sleep(1)  # an engine that has just joined beats faster
            before = time.process_time()
            await asyncio.sleep(SECONDS)
            used = time.process_time() - before
            await client.call("end")
            await asyncio.to_thread(thread.join)
            return used

    assert asyncio.run(body()) < MOST * SECONDS
