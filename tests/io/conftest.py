"""One fixture for the tests of blocking sockets: a context that lets no socket drop."""

import pytest

import zerohop as zmq

PATIENCE_MS = 8000  # a call that would wait for ever says Again instead, and the test its line


class Keeper(zmq.Context):
    """A context whose sockets live until it is destroyed, though a test forgets them."""

    def __init__(self):
        super().__init__()
        self._kept = []

    def socket(self, *args, **kwargs):
        made = super().socket(*args, **kwargs)
        self._kept.append(made)
        return made


@pytest.fixture
def context():
    context = Keeper()
    context.rcvtimeo = context.sndtimeo = PATIENCE_MS
    context.linger = 0
    yield context
    context.destroy(linger=0)
