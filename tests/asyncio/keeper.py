"""A Context of asyncio sockets for tests that forget theirs."""

import zerohop.asyncio as zmqa


class Keeper(zmqa.Context):
    """A context whose sockets live until it is ended, though a test forgets them."""

    def __init__(self):
        super().__init__()
        self._kept = []

    def socket(self, *args, **kwargs):
        made = super().socket(*args, **kwargs)
        self._kept.append(made)
        return made
