"""A context that lets no socket drop, though a test forgets it."""

import pytest

from tests.kit.keeper import keeper


@pytest.fixture
def context():
    with keeper() as context:
        yield context
