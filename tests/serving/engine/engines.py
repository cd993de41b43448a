"""Engines without a model, for the tests: in a thread, or in a process of their own.

A payload says what is to be made of it: ``{"tokens": 3}`` three tokens, one a step (``None``: for
ever), ``{"echo": x}`` a single delta with x in it, ``{"refuse": "why"}`` an error.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from zerohop.serving import Delta, EngineClient, EngineServer, Patience

REPOSITORY = Path(__file__).parent.parent.parent.parent
SECONDS = 10  # what a thing may take that must happen
QUICK = Patience(beat_every=0.1, gone_after=1.0, hung_after=0.5)
PATIENT = Patience(beat_every=0.1, gone_after=20.0, hung_after=20.0)


class Engine:
    """A loop of steps over the requests that it has."""

    def __init__(self, endpoints, engine="e0", **options):
        self.endpoints, self.options = endpoints, {"engine": engine, **options}
        self.stop = threading.Event()
        self.hanging = threading.Event()
        self.aborted = []
        self.error = None

    def run(self):
        with EngineServer(self.endpoints, **self.options) as server:
            self.server = server
            server.utility("add", lambda a, b: a + b)
            server.utility("divide", lambda a, b: a / b)
            server.utility("length", len)
            server.utility("object", object)
            server.utility("hang", self._hang)
            server.utility("aborted", lambda: self.aborted)
            server.utility("open", lambda: server.open)
            running = {}
            while not self.stop.is_set():
                news = server.receive(0.002 if running else 0.05)
                running |= {each.number: each for each in news.requests}
                self._drop(running, news.aborted)
                self._drop(running, server.send_step(list(self._step(server, running))))

    def _drop(self, running, numbers):
        self.aborted += numbers
        for number in numbers:
            running.pop(number, None)

    def _step(self, server, running):
        for number, request in list(running.items()):
            match request.payload:
                case {"refuse": why}:
                    del running[number]
                    server.refuse(number, why)
                case {"echo": anything}:
                    del running[number]
                    extra = [anything, request.priority, request.deadline]
                    yield Delta(number, [], "stop", extra)
                case {"tokens": left}:
                    if left is not None:
                        request.payload["tokens"] = left = left - 1
                    if left == 0:
                        del running[number]
                    yield Delta(number, [left or 0], "length" if left == 0 else None)

    def _hang(self):
        """Stand still, as a loop does that waits for a device which does not answer."""
        self.hanging.set()
        while self.hanging.is_set() and not self.stop.is_set():
            time.sleep(0.005)


@contextlib.contextmanager
def engine_in_thread(endpoints, engine="e0", **options):
    """An engine in a thread of this process."""
    made = Engine(endpoints, engine, **options)

    def run():
        try:
            made.run()
        except Exception as error:  # noqa: BLE001 - the test looks at it
            made.error = error

    thread = threading.Thread(target=run, name=f"engine {engine}")
    thread.start()
    try:
        yield made
    finally:
        made.stop.set()
        thread.join(SECONDS)
        assert not thread.is_alive()


@contextlib.asynccontextmanager
async def streaming(place, patience):
    """An API server, an engine in a thread, and a stream without end that has begun."""
    async with EngineClient(place, patience=patience) as client:
        with engine_in_thread(client.endpoint):
            await client.wait_for_engines(1, timeout=2 * SECONDS)
            stream = client.generate({"tokens": None})
            await anext(stream)
            yield client, stream
            await stream.aclose()


@contextlib.contextmanager
def engine_process(*endpoints, engine="e0"):
    """An engine in a process of its own, which is killed in the end if it still is there."""
    command = [sys.executable, "-m", "tests.serving.engine.engines", engine, *endpoints]
    process = subprocess.Popen(command, cwd=REPOSITORY)
    try:
        yield process
    finally:
        process.kill()
        process.wait(SECONDS)


def run(body):
    """A test's body, on an event loop."""
    asyncio.run(asyncio.wait_for(body, 25))


async def until(condition, seconds=SECONDS):
    """Wait until something is so."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - of another thread
            await asyncio.sleep(0.002)


async def tokens_of(stream):
    """All tokens of a stream, and its finish."""
    tokens, finish = [], None
    async for delta in stream:
        tokens += delta.token_ids
        finish = delta.finish
    return tokens, finish


async def give_more_and_more(client, streams, payload):
    """Give requests until that fails."""
    while True:
        streams.append(client.generate(payload))
        await asyncio.sleep(0)


def main():
    engine, *endpoints = sys.argv[1:]
    made = Engine(endpoints, engine, info={"pid": os.getpid()})
    signal.signal(signal.SIGTERM, lambda *_: made.stop.set())
    made.run()


if __name__ == "__main__":
    main()
