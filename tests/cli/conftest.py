"""A listener that takes connections and says nothing."""

import socket

import pytest

from tests.cli.commands import SECONDS


@pytest.fixture
def listener():
    """An endpoint, and a call that waits until somebody has connected to it."""
    connections = []
    with socket.create_server(("127.0.0.1", 0)) as it:
        it.settimeout(SECONDS)
        yield (
            f"tcp://127.0.0.1:{it.getsockname()[1]}",
            lambda: connections.append(it.accept()[0]),
        )
    for connection in connections:
        connection.close()
