"""A signal handler that raises anywhere in what the main thread does: the program can go on.

The call that is interrupted may have done its work or not, and a message that it had taken may be
lost; a connection whose octets were being moved is made anew. But nothing hangs, now or later, no
peer stays cut off, nothing comes twice, and everything can be closed.
"""

import pytest

from tests.stress.interruption import describe, handler_that_raises, interrupt, places
from tests.stress.kit import in_rounds, limited
from tests.stress.scenarios import SCENARIOS

pytestmark = [
    limited,
    # Of what was just being made when the exception came, and is nobody's.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    # Python drops what a handler raises in the callback of a weak reference.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

_places = {}  # of a scenario and a transport


def places_of(scenario, transport, bind):
    """Where a scenario can be interrupted, and how often; always in the same order."""
    found = _places.get((scenario, transport))
    if found is None:
        world = scenario(bind, transport)
        counts = places(world.act)
        world.end()
        found = sorted(counts.items(), key=lambda item: describe(item[0]))
        _places[scenario, transport] = found
    return found


@pytest.fixture(autouse=True)
def interruptible(ipc_directory):
    with handler_that_raises():
        yield
    for path in ipc_directory.iterdir():
        path.unlink()  # of a bind that did not come to its end; the next one would replace it


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
@in_rounds(6)
def test_the_program_goes_on_or_ends_after_an_interruption_of(
    new_context, team, bind, scenario, random
):
    transport = random.choice(scenario.transports)
    place, count = random.choice(places_of(scenario, transport, bind))
    times = random.randint(1, min(count, 6))
    print(f"{scenario.__name__} over {transport}: {describe(place)}, the {times}. time")
    world = scenario(bind, transport)
    interrupt(world.act, place, times)
    assert not world.context._io.lock._is_owned()
    if random.random() < 0.5:  # else everything is closed as the exception left it
        team.start(world.go_on).join(15)
    team.start(world.end).join(15)
