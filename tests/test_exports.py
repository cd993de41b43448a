"""The public names: what stands here is promised, and what is promised stands here."""

import inspect
import os
import subprocess
import sys

import pytest
import zmq

import zerohop
import zerohop.asyncio
from zerohop import constants

BLOCKING = {
    *("Context", "Socket", "Poller", "SyncContext", "SyncSocket", "Frame", "Message"),
    *("MessageTracker", "select", "zmq_poll", "device", "proxy", "proxy_steerable"),
    *("Again", "ContextTerminated", "DraftFDWarning", "EndpointError", "HandshakeError"),
    *("InterruptedSystemCall", "NotDone", "ProtocolError", "UsageError", "ZMQBaseError"),
    *("ZMQBindError", "ZMQError", "ZMQVersionError", "strerror"),
    *("has", "pyzmq_version", "pyzmq_version_info", "zmq_version", "zmq_version_info"),
    *("COPY_THRESHOLD", "DRAFT_API", "IPC_PATH_MAX_LEN", "__version__"),
}
ASYNCIO = {"Context", "Poller", "Socket"}

NOT_OURS = {  # names that pyzmq exports and we do not, with the reason
    **dict.fromkeys(("Enum", "IntEnum", "IntFlag"), "the standard library's, exported by accident"),
    **dict.fromkeys(("_FINISHED_TRACKER", "__revision__", "PYZMQ_DRAFT_API"), "pyzmq's inner life"),
    **dict.fromkeys(("curve_keypair", "curve_public"), "there is no CURVE yet"),
    "Stopwatch": "a timer, which Python has",
    "get_includes": "header files, which we have none of",
    "zmq_errno": "a thread's last errno; our errors carry theirs",
}
MEMBERS_NOT_OURS = {"Frame": {"group", "tracker_event"}}  # of draft sockets; pyzmq's inner life


def test_the_blocking_api_exports_these_names():
    assert set(zerohop.__all__) - set(constants.__all__) == BLOCKING


def test_the_asyncio_api_exports_these_names():
    assert set(zerohop.asyncio.__all__) == ASYNCIO


@pytest.mark.parametrize("module", [zerohop, zerohop.asyncio], ids=lambda m: m.__name__)
def test_every_exported_name_is_there_once(module):
    assert len(module.__all__) == len(set(module.__all__))
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_every_name_of_pyzmq_is_ours_or_has_its_reason():
    assert {name for name in zmq.__all__ if not hasattr(zerohop, name)} == set(NOT_OURS)


@pytest.mark.parametrize("name", ["Context", "Socket", "Poller", "Frame", "MessageTracker"])
def test_every_member_of_pyzmqs_classes_is_ours(name):
    theirs, ours = getattr(zmq, name), getattr(zerohop, name)
    options = {
        option.lower() for option in dir(zmq)
    }  # theirs are class attributes, ours are looked up
    missing = {
        member
        for member in dir(theirs)
        if not member.startswith("_") and member.lower() not in options
    } - set(dir(ours))
    assert missing <= MEMBERS_NOT_OURS.get(name, set())


@pytest.mark.parametrize("module", [zerohop, zerohop.asyncio], ids=lambda m: m.__name__)
def test_every_exported_class_and_function_says_what_it_is_for(module):
    exported = [getattr(module, name) for name in module.__all__]
    mute = [
        value.__name__
        for value in exported
        if (inspect.isclass(value) or inspect.isroutine(value)) and not inspect.getdoc(value)
    ]
    assert mute == []


@pytest.mark.parametrize("heavy", ["asyncio", "ssl", "json", "pickle", "subprocess", "numpy"])
def test_importing_the_blocking_api_does_not_pay_for(heavy):
    program = f"import sys, zerohop; sys.exit({heavy!r} in sys.modules)"
    source = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], timeout=30, env=source)
    assert done.returncode == 0
