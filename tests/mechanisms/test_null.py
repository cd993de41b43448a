"""RFC 37, "The NULL Security Mechanism"."""

import pytest

from tests.wire.kit import octets
from zerohop.constants import Event
from zerohop.errors import ProtocolError
from zerohop.mechanisms.null import NullMechanism
from zerohop.wire.commands import encode_metadata
from zerohop.wire.mechanism import Mechanism

pytestmark = pytest.mark.rfc(37, "The NULL Security Mechanism")

READY = octets("0b 536f636b65742d54797065 00000004 50554c4c")  # Socket-Type: PULL


def started() -> NullMechanism:
    mechanism = NullMechanism({"Socket-Type": b"PUSH"})
    mechanism.start()
    return mechanism


def test_it_fills_the_interface():
    mechanism = NullMechanism({})
    assert all(hasattr(mechanism, name) for name in Mechanism.__annotations__)
    assert (mechanism.name, mechanism.as_server) == ("NULL", False)
    assert (mechanism.plain, mechanism.overhead) == (True, 0)


def test_ready_is_said_with_the_greeting_and_once():
    """The RFC lets the server wait for the client; libzmq does not, nor do we."""
    mechanism = started()
    assert mechanism.eager == octets("05 5245414459  0b 536f636b65742d54797065 00000004 50555348")
    assert not mechanism.outgoing
    assert not mechanism.complete


def test_a_ready_that_was_made_already_is_said_as_it_is():
    assert NullMechanism({"Socket-Type": b"PUSH"}, b"\5READYetc").eager == b"\5READYetc"


def test_the_peers_ready_completes_it():
    mechanism = started()
    mechanism.receive_command(b"READY", READY)
    assert mechanism.complete
    assert mechanism.peer_properties == {"socket-type": b"PULL"}


@pytest.mark.parametrize("extra", [b"", b"x" * 300], ids=["short", "long"])
def test_each_of_many_peers_that_say_the_same_is_heard(extra):
    ready = encode_metadata({"Socket-Type": b"PULL", "X-Extra": extra})
    for _ in range(3):
        mechanism = started()
        mechanism.receive_command(b"READY", ready)
        assert mechanism.peer_properties == {"socket-type": b"PULL", "x-extra": extra}


@pytest.mark.parametrize("name", [b"HELLO", b"ready", b"PING", b"\xff" * 255])
def test_any_other_command_is_refused(name):
    mechanism = started()
    with pytest.raises(ProtocolError, match="where READY was due") as caught:
        mechanism.receive_command(name, b"")
    assert caught.value.code == Event.PROTOCOL_ERROR_ZMTP_UNEXPECTED_COMMAND
    assert len(str(caught.value)) < 400
    assert not mechanism.complete


def test_bad_metadata_is_refused():
    mechanism = started()
    with pytest.raises(ProtocolError, match="bad metadata"):
        mechanism.receive_command(b"READY", READY[:-1])
    assert not mechanism.complete


@pytest.mark.parametrize("call", ["encode", "decode"])
def test_frames_are_never_wrapped(call):
    with pytest.raises(AssertionError):
        getattr(started(), call)(b"x")
