"""Where the publishers of these tests are, and readers written by hand."""

import itertools

import zerohop as zmq
from zerohop.serving.kv.events import BlockRemoved, BlockStored

_numbers = itertools.count()
SECONDS = 10_000  # milliseconds: what a receive may take, where a message must come
END = b"\xff" * 8


class Places:
    """Endpoints over one transport."""

    def __init__(self, transport, directory):
        self._transport, self._directory = transport, directory

    def free(self):
        """An endpoint that can be bound."""
        if self._transport == "tcp":
            return "tcp://127.0.0.1:*"
        return f"ipc://{self._directory}/kv{next(_numbers)}"

    def left_by_the_killed(self):
        """Files of ipc endpoints: who is killed does not take them away."""
        return list(self._directory.glob("kv*"))


def stored(first, count=2, parent=None):
    hashes = list(range(first, first + count))
    return BlockStored(hashes, parent, list(range(16 * count)), 16)


def removed(*hashes):
    return BlockRemoved(list(hashes))


class Reader:
    """One socket in a Context of its own, connected."""

    def __init__(self, kind, endpoint, **options):
        self._context = zmq.Context()
        self.socket = self._context.socket(kind)
        self.socket.linger, self.socket.rcvtimeo = 0, SECONDS
        for name, value in options.items():
            setattr(self.socket, name, value)
        if kind == zmq.SUB:
            self.socket.subscribe(b"")
        self.socket.connect(endpoint)

    def __enter__(self):
        return self.socket

    def __exit__(self, *_):
        self._context.destroy(linger=0)


def receive_answer(socket):
    """All messages up to the end marker, and the end marker."""
    messages = []
    while True:
        messages.append(socket.recv_multipart())
        if messages[-1][-2] == END:
            return messages[:-1], messages[-1]
