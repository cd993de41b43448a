"""A listener that takes connections and says nothing."""

import socket

import pytest

from tests.cli.commands import SECONDS


@pytest.fixture
def listener():
    """An endpoint, and a call that waits until somebody has connected to it and said something.

    Before that, a Ctrl-C may meet a socket that is nobody's yet, which Python then warns of.
    """
    connections = []

    def accepted():
        connections.append(it.accept()[0])
        connections[-1].settimeout(SECONDS)
        assert connections[-1].recv(1)

    with socket.create_server(("127.0.0.1", 0)) as it:
        it.settimeout(SECONDS)
        yield (
            f"tcp://127.0.0.1:{it.getsockname()[1]}",
            accepted,
        )
    for connection in connections:
        connection.close()
