"""The constants are pyzmq's: names, numbers, kinds, and how members relate to module names."""

import copy
import enum
import pickle

import pytest
import zmq.constants as reference

from zerohop import constants

LEAKED = {"Enum", "IntEnum", "IntFlag"}  # pyzmq's __all__ has these three of the module enum, too
REFERENCE_NAMES = [name for name in reference.__all__ if name not in LEAKED]
ENUMS = [name for name in REFERENCE_NAMES if isinstance(getattr(reference, name), enum.EnumType)]


def test_the_reference_has_the_enums_that_we_know():
    assert len(ENUMS) == 13
    assert len(REFERENCE_NAMES) == 257


@pytest.mark.parametrize("name", REFERENCE_NAMES)
def test_every_public_name_of_pyzmq_exists_with_an_equal_value(name):
    ours, theirs = getattr(constants, name), getattr(reference, name)
    if name in ENUMS:
        assert {n: int(m) for n, m in ours.__members__.items()} == {
            n: int(m) for n, m in theirs.__members__.items()
        }
        assert issubclass(ours, enum.IntFlag) == issubclass(theirs, enum.IntFlag)
    else:
        assert ours == theirs
        assert repr(ours) == repr(theirs)
        assert str(ours) == str(theirs)


@pytest.mark.parametrize("name", reference.SocketOption.__members__)
def test_a_socket_option_carries_the_kind_of_its_value(name):
    kind = constants.SocketOption[name].kind
    assert kind.value == reference.SocketOption[name]._opt_type.value


@pytest.mark.parametrize(
    ("enum_name", "member", "attribute"),
    [
        ("SocketType", "PUSH", "PUSH"),
        ("SocketType", "DEALER", "XREQ"),
        ("SocketOption", "ROUTING_ID", "IDENTITY"),
        ("Event", "CONNECTED", "EVENT_CONNECTED"),
        ("Event", "PROTOCOL_ERROR_ZAP_UNSPECIFIED", "PROTOCOL_ERROR_ZAP_UNSPECIFIED"),
        ("RouterNotify", "CONNECT", "NOTIFY_CONNECT"),
        ("NormMode", "CC", "NORM_CC"),
        ("ReconnectStop", "CONN_REFUSED", "RECONNECT_STOP_CONN_REFUSED"),
        ("ContextOption", "SOCKET_LIMIT", "THREAD_PRIORITY"),
        ("Flag", "DONTWAIT", "NOBLOCK"),
    ],
)
def test_a_member_is_the_same_object_as_the_attribute_of_the_module(enum_name, member, attribute):
    assert getattr(constants, attribute) is getattr(constants, enum_name)[member]


def test_a_star_import_brings_the_constants_and_nothing_else():
    assert set(constants.__all__) - set(REFERENCE_NAMES) == {"LIBZMQ_VERSION", "OptionKind"}
    assert {n for n in vars(constants) if not n.startswith("_")} == set(constants.__all__)
    assert len(constants.__all__) == len(set(constants.__all__))


def test_the_numbers_that_only_zeromq_has():
    assert constants.EFSM == 156384763
    assert constants.ENOCOMPATPROTO == 156384764
    assert constants.ETERM == 156384765
    assert constants.EMTHREAD == 156384766


def test_an_unknown_bit_of_an_event_is_kept():
    assert int(constants.Event(1 << 20)) == 1 << 20


def test_a_socket_option_can_be_copied_and_pickled():
    option = constants.SocketOption.MAXMSGSIZE
    assert copy.deepcopy(option) is option
    assert pickle.loads(pickle.dumps(option)) is option
