"""The blocking client as the tests of the asyncio one use it: each wait is one of a thread."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from zerohop.serving import SyncEngineClient

READERS = 128  # more than any test has at a time: who waits for one would wait for another


class ThreadedClient:
    """A client whose calls wait in threads."""

    def __init__(self, *arguments, **options):
        self._client = SyncEngineClient(*arguments, **options)
        self._pool = ThreadPoolExecutor(READERS)

    def __getattr__(self, name):
        return getattr(self._client, name)

    def in_thread(self, function, *arguments):
        return asyncio.get_running_loop().run_in_executor(self._pool, function, *arguments)

    def generate(self, payload, **options):
        return ThreadedStream(self, self._client.generate(payload, **options))

    async def call(self, name, *arguments, **options):
        return await self.in_thread(lambda: self._client.call(name, *arguments, **options))

    async def wait_for_engines(self, *arguments, **options):
        await self.in_thread(lambda: self._client.wait_for_engines(*arguments, **options))

    async def aclose(self):
        await asyncio.to_thread(self._client.close)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.aclose()
        await asyncio.to_thread(self._pool.shutdown)


class ThreadedStream:
    """A stream whose reader is a thread for each delta."""

    def __init__(self, client, stream):
        self._client, self._stream = client, stream

    engine = property(lambda self: self._stream.engine)
    number = property(lambda self: self._stream.number)

    def __aiter__(self):
        return self

    async def __anext__(self):
        try:
            delta = await self._client.in_thread(next, self._stream, None)
        except asyncio.CancelledError:
            self._stream.close()
            raise
        if delta is None:
            raise StopAsyncIteration
        return delta

    async def aclose(self):
        self._stream.close()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.aclose()
