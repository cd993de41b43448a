"""Contexts, endpoints, threads and programs of one test; nothing of them is left after it."""

import itertools

import pytest

from tests.kit.keeper import Keeper
from tests.kit.net import PATIENCE_MS
from tests.stress.kit import Program, Team, switching

_names = itertools.count(1)


class Contexts:
    """Makes contexts that hold their sockets, and whose calls do not wait for ever."""

    def __init__(self):
        self._made = []

    def __call__(self):
        context = Keeper()
        context.rcvtimeo = context.sndtimeo = PATIENCE_MS
        context.linger = 0
        self._made.append(context)
        return context

    def destroy(self):
        """End those that the test has not ended."""
        while self._made:
            context = self._made.pop()
            if not context.closed:
                context.destroy(linger=0)


@pytest.fixture
def new_context():
    contexts = Contexts()
    yield contexts
    contexts.destroy()


@pytest.fixture
def context(new_context):
    return new_context()


@pytest.fixture
def bind(ipc_directory):
    """Binds a socket where nobody was before, and says where."""

    def bind(socket, transport):
        match transport:
            case "tcp":
                socket.bind("tcp://127.0.0.1:*")
                return socket.last_endpoint.decode()
            case "ipc":
                endpoint = f"ipc://{ipc_directory}/stress-{next(_names)}"
            case _:
                endpoint = f"inproc://stress-{next(_names)}"
        socket.bind(endpoint)
        return endpoint

    return bind


@pytest.fixture
def team(new_context):
    """Threads; the test is over when they are."""
    team = Team()
    yield team
    new_context.destroy()  # lets those go who still wait, if the test has failed
    team.join()


@pytest.fixture
def impatient():
    """The interpreter changes threads as often as it can: 500 times as often as by default."""
    with switching(1e-5):
        yield


@pytest.fixture
def program():
    """Starts programs; none outlives the test."""
    started = []

    def program(text):
        started.append(Program(text))
        return started[-1]

    yield program
    for each in started:
        each.discard()
