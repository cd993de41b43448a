"""A Context for tests of blocking sockets, whose tests may forget theirs."""

from contextlib import contextmanager

import zerohop as zmq
from tests.kit.net import PATIENCE_MS


class Keeper(zmq.Context):
    """A context whose sockets live until it is destroyed, though a test forgets them."""

    def __init__(self):
        super().__init__()
        self._kept = []

    def socket(self, *args, **kwargs):
        made = super().socket(*args, **kwargs)
        self._kept.append(made)
        return made


@contextmanager
def keeper():
    """Such a context, destroyed at the end; no call on its sockets waits for ever."""
    context = Keeper()
    context.rcvtimeo = context.sndtimeo = PATIENCE_MS
    context.linger = 0
    yield context
    context.destroy(linger=0)
