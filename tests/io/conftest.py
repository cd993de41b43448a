"""A context that lets no socket drop, though a test forgets it."""

import pytest

from tests.io.hand import World
from tests.kit.keeper import keeper


@pytest.fixture
def context():
    with keeper() as context:
        yield context


@pytest.fixture
def world():
    """Sockets on a loop that the test turns by hand."""
    made = World()
    yield made
    made.close()
