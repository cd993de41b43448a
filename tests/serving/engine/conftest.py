"""Where the API servers of a test are bound, and which of the two clients they are."""

import pytest

from tests.serving.engine.engines import PATIENT, engine_in_thread, run
from tests.serving.engine.threaded import ThreadedClient
from zerohop.serving import EngineClient, ipc_endpoint

CLIENTS = {"asyncio": EngineClient, "threads": ThreadedClient}


class Place:
    """Makes the API servers of one test."""

    def __init__(self, kind, transport, directory):
        self._client, self._transport, self._directory = CLIENTS[kind], transport, directory
        self._count = 0

    def client(self, endpoint=None, **options):
        return self._client(endpoint or self._free(), **options)

    def _free(self):
        if self._transport == "tcp":
            return "tcp://127.0.0.1:*"
        self._count += 1
        return ipc_endpoint(f"server {self._count}", self._directory)


@pytest.fixture(params=["asyncio-ipc", "asyncio-tcp", "threads-ipc", "threads-tcp"])
def place(request, ipc_directory):
    yield Place(*request.param.split("-"), ipc_directory)
    for path in ipc_directory.iterdir():  # whoever is killed leaves them
        path.unlink()


@pytest.fixture
def ask(place):
    """Runs a test's body with an API server, and an engine in a thread that is ready."""

    async def with_both(body, engine, options):
        async with place.client(**{"patience": PATIENT, **options}) as client:
            with engine_in_thread(client.endpoint, **(engine or {})) as thread:
                await client.wait_for_engines(timeout=10)
                await body(client, thread)

    def ask(body, *, engine=None, **options):
        run(with_both(body, engine, options))

    return ask
