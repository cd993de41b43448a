import pytest

from tests.api.plain import KeepingContext


@pytest.fixture
def context():
    made = KeepingContext()
    yield made
    made.destroy(linger=0)


@pytest.fixture
def pair(context):
    """Two PAIR sockets that are connected."""
    a, b = context.socket(0), context.socket(0)
    a.bind("inproc://pair")
    b.connect("inproc://pair")
    return a, b
