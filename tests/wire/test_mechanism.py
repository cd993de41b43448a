"""The seam between the wire and security: whoever fills it has all of it."""

import inspect

import pytest

from tests.wire.toy import ToyMechanism
from zerohop.mechanisms.null import NullMechanism
from zerohop.wire.mechanism import Mechanism

FILLERS = [
    pytest.param(NullMechanism({}), id="NULL"),
    pytest.param(ToyMechanism({}, as_server=True), id="toy"),
]
CALLS = [name for name, _ in inspect.getmembers(Mechanism, inspect.isfunction) if name[0] != "_"]


@pytest.mark.parametrize("mechanism", FILLERS)
def test_it_has_every_attribute(mechanism):
    assert [name for name in Mechanism.__annotations__ if not hasattr(mechanism, name)] == []


@pytest.mark.parametrize("mechanism", FILLERS)
@pytest.mark.parametrize("name", CALLS)
def test_it_takes_every_call(mechanism, name):
    wanted = list(inspect.signature(getattr(Mechanism, name)).parameters)[1:]
    assert list(inspect.signature(getattr(mechanism, name)).parameters) == wanted


def test_the_calls_are_those_that_the_connection_makes():
    assert CALLS == ["decode", "encode", "receive_command", "start"]
