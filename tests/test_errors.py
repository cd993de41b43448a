"""The exceptions are pyzmq's: hierarchy, numbers, texts; and they can say what to do."""

import copy
import errno as system
import os
import pickle
import traceback

import pytest
import zmq

from zerohop import errors
from zerohop.constants import Errno, Event


@pytest.mark.parametrize("number", [*range(140), *Errno, 156384712 + 99])
def test_strerror_says_what_libzmq_says(number):
    assert errors.strerror(number) == zmq.strerror(number)


@pytest.mark.parametrize("name", zmq.error.__all__)
def test_the_bases_of_an_exception_are_those_of_pyzmq(name):
    ours, theirs = getattr(errors, name), getattr(zmq.error, name)
    assert [base.__name__ for base in ours.__mro__] == [base.__name__ for base in theirs.__mro__]


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("ZMQError", (22,)),
        ("ZMQError", (22, "other text")),
        ("ZMQError", (22, "")),
        ("ZMQError", (Errno.EFSM,)),
        ("ZMQError", (Errno.EHOSTUNREACH,)),
        ("Again", ()),
        ("Again", (3, "ignored")),
        ("ContextTerminated", ()),
        ("ContextTerminated", ("ignored", "ignored")),
        ("ZMQBindError", ("Could not bind socket to random port.",)),
        ("NotDone", ()),
        ("DraftFDWarning", ("text",)),
        ("ZMQVersionError", ("5.0",)),
        ("ZMQVersionError", ("5.0", "poll")),
    ],
)
def test_an_exception_prints_as_pyzmq_prints_it(name, args):
    ours, theirs = getattr(errors, name)(*args), getattr(zmq.error, name)(*args)
    assert str(ours) == str(theirs)
    assert repr(ours) == repr(theirs)
    for field in ("errno", "strerror", "msg", "min_version", "version"):
        assert getattr(ours, field, None) == getattr(theirs, field, None)


def test_an_error_with_a_text_alone_has_no_number():
    error = errors.ZMQError("just a text")
    assert error.errno is None
    assert error.strerror == str(error) == "just a text"


def test_an_error_of_nothing_has_the_number_of_success():
    assert errors.ZMQError().errno == 0
    assert str(errors.ZMQError()) == os.strerror(0)
    assert repr(errors.ZMQError(None, "text")) == "ZMQError('text')"


def test_an_interrupted_system_call_is_also_pythons_interrupted_error():
    error = errors.InterruptedSystemCall()
    assert isinstance(error, InterruptedError)
    assert error.errno == system.EINTR
    assert str(error) == os.strerror(system.EINTR)


def test_an_again_is_made_of_class_attributes_alone():
    assert vars(errors.Again()) == {}


def test_a_hint_is_a_note_and_leaves_the_text_alone():
    error = errors.UsageError(Errno.EFSM, hint="receive the reply first (RFC 28)")
    assert str(error) == "Operation cannot be accomplished in current state"
    assert "receive the reply first (RFC 28)" in "".join(traceback.format_exception(error))


def test_no_hint_leaves_no_note():
    assert not hasattr(errors.UsageError(Errno.EFSM), "__notes__")


@pytest.mark.parametrize(
    "error",
    [
        errors.Again(hint="h"),
        errors.ContextTerminated(hint="h"),
        errors.InterruptedSystemCall(hint="h"),
        errors.EndpointError(22, endpoint="x", hint="h"),
        errors.ProtocolError("p", source="RFC", hint="h"),
    ],
)
def test_every_kind_takes_a_hint(error):
    assert error.__notes__ == ["h"]


def test_an_endpoint_error_carries_the_address_and_prints_it_as_pyzmq_does():
    error = errors.EndpointError(Errno.EADDRINUSE, endpoint="inproc://a")
    assert str(error) == "Address already in use (addr='inproc://a')"
    assert error.errno == Errno.EADDRINUSE
    assert error.endpoint == "inproc://a"


def test_an_endpoint_error_may_have_a_text_of_its_own():
    error = errors.EndpointError(2, "No such file", endpoint="ipc://x")
    assert str(error) == "No such file (addr='ipc://x')"


def test_a_protocol_error_names_the_rule_that_the_peer_broke():
    error = errors.ProtocolError("reserved bits set in frame flags 0x80", source="RFC 37, Framing")
    assert str(error) == "reserved bits set in frame flags 0x80 (RFC 37, Framing)"
    assert error.errno == system.EPROTO
    assert error.problem == "reserved bits set in frame flags 0x80"
    assert error.source == "RFC 37, Framing"
    assert error.code is Event.PROTOCOL_ERROR_ZMTP_UNSPECIFIED


def test_a_handshake_error_is_a_protocol_error_with_its_own_code():
    error = errors.HandshakeError(
        "peer offers CURVE, this socket is NULL",
        source="RFC 37, Version Negotiation",
        code=Event.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH,
    )
    assert isinstance(error, errors.ProtocolError)
    assert error.code is Event.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (system.EAGAIN, errors.Again),
        (Errno.ETERM, errors.ContextTerminated),
        (system.EINTR, errors.InterruptedSystemCall),
        (system.EINVAL, errors.ZMQError),
    ],
)
def test_an_error_number_becomes_the_exception_that_pyzmq_raises(number, kind):
    error = errors.error_from_errno(number, hint="h")
    assert type(error) is kind
    assert error.errno == number
    assert error.__notes__ == ["h"]


def test_an_error_number_may_come_with_a_text():
    assert str(errors.error_from_errno(system.ENOENT, "no socket file")) == "no socket file"


@pytest.mark.parametrize(
    "error",
    [
        errors.ZMQError(22),
        errors.ZMQError("text"),
        errors.Again(),
        errors.ContextTerminated(),
        errors.InterruptedSystemCall(),
        errors.UsageError(22, hint="h"),
        errors.EndpointError(22, endpoint="x", hint="h"),
        errors.ProtocolError("p", source="RFC", code=Event.PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC),
        errors.ZMQVersionError("5.0", "poll"),
    ],
)
@pytest.mark.parametrize("again", [copy.copy, lambda e: pickle.loads(pickle.dumps(e))])
def test_an_exception_survives_a_copy_and_a_pickle(error, again):
    other = again(error)
    assert type(other) is type(error)
    assert str(other) == str(error)
    assert vars(other) == vars(error)
    assert getattr(other, "errno", None) == getattr(error, "errno", None)


def test_the_docstring_draws_every_exception():
    for name in errors.__all__:
        if isinstance(getattr(errors, name), type):
            assert name in errors.__doc__
