"""A signal handler that raises anywhere in what the blocking client of engines does: it goes on.

The call that is interrupted may have been sent or not, and what it asked for ends; engines may have
to join anew. But nothing hangs, now or later, no other thread gets what is not its own, and no
request stays open, here or in the engine.
"""

import contextlib

import pytest

from tests.serving.engine.engines import PATIENT, engine_in_thread
from tests.stress.interruption import describe, handler_that_raises, interrupt, places
from tests.stress.kit import in_rounds, limited, until
from zerohop.serving import EngineDead, RequestRefused, ServingError, SyncEngineClient

pytestmark = [
    limited,
    # Python drops what a handler raises in a __del__.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class World:
    """A client, what is interrupted of it, and what must be so afterwards."""

    def __init__(self, client, engine):
        self.client, self.engine = client, engine
        self.places = []

    def act(self):
        self.tokens(2)
        with self.client.generate({"tokens": None}) as stream:
            next(stream)
        for _ in self.client.generate({"tokens": None}):
            break
        self.client.call("add", 1, 2)
        self.client.wait_for_engines(1, timeout=10)

    def tokens(self, count):
        deltas = self.client.generate({"tokens": count}, deadline=10)
        return [token for delta in deltas for token in delta.token_ids]

    def go_on(self):
        """In another thread: the engine may have to join first."""
        while True:
            self.client.wait_for_engines(timeout=10)
            with contextlib.suppress(EngineDead, RequestRefused):
                assert self.tokens(3) == [2, 1, 0]
                return


@pytest.fixture
def world(ipc_directory):
    with (
        SyncEngineClient(f"ipc://{ipc_directory}/requests", patience=PATIENT) as client,
        engine_in_thread(client.endpoint) as engine,
        handler_that_raises(),
    ):
        client.wait_for_engines(timeout=10)
        world = World(client, engine)
        world.act()  # what is done once is done
        world.places = sorted(places(world.act).items(), key=lambda item: describe(item[0]))
        yield world


@in_rounds(60)
def test_requests_go_on_or_end_after_an_interruption(new_context, team, world, random):
    place, count = random.choice(world.places)
    times = random.randint(1, min(count, 6))
    print(f"{describe(place)}, the {times}. time")
    with contextlib.suppress(ServingError):  # of the engine that joins anew
        interrupt(world.act, place, times)
    assert not world.client._channel._lock._is_owned()
    team.start(world.go_on).join(15)
    until(lambda: world.engine.server.open == 0)
    assert world.client.engines["e0"].open == 0
