"""The public names: what stands here is promised, and what is promised stands here."""

import importlib
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
    *("MessageTracker", "Stopwatch", "select", "zmq_poll", "device", "proxy", "proxy_steerable"),
    *("Again", "ContextTerminated", "DraftFDWarning", "EndpointError", "HandshakeError"),
    *("InterruptedSystemCall", "NotDone", "ProtocolError", "UsageError", "ZMQBaseError"),
    *("ZMQBindError", "ZMQError", "ZMQVersionError", "strerror"),
    *("get_includes", "get_library_dirs", "zmq_errno"),
    *("has", "pyzmq_version", "pyzmq_version_info", "zmq_version", "zmq_version_info"),
    *("COPY_THRESHOLD", "DRAFT_API", "IPC_PATH_MAX_LEN", "__version__"),
}
ASYNCIO = {"Context", "Poller", "Socket"}

NOT_OURS = {  # names that pyzmq exports and we do not, with the reason
    **dict.fromkeys(("Enum", "IntEnum", "IntFlag"), "the standard library's, exported by accident"),
    **dict.fromkeys(("_FINISHED_TRACKER", "__revision__", "PYZMQ_DRAFT_API"), "pyzmq's inner life"),
    **dict.fromkeys(("curve_keypair", "curve_public"), "there is no CURVE yet"),
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


@pytest.mark.parametrize("name", ["error", "decorators", "sugar", "utils", "devices", "constants"])
def test_a_module_of_pyzmqs_is_there_after_the_import_and_has_its_names(name):
    """In a fresh interpreter: ``zmq.utils.jsonapi`` needs no import of its own."""
    theirs = importlib.import_module(f"zmq.{name}")
    public = {n for n in getattr(theirs, "__all__", ()) if not n.startswith("_")}
    names = public - set(NOT_OURS)
    if name == "sugar":
        names = {"socket", "context", "poll", "frame", "tracker", "stopwatch", "version"}
    program = f"import sys, zerohop; [getattr(zerohop.{name}, n) for n in {names!r}]"
    source = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], timeout=30, env=source)
    assert done.returncode == 0


@pytest.mark.parametrize("name", ["socket", "context", "poll", "frame", "tracker", "version"])
def test_the_modules_of_sugar_have_pyzmqs_names(name):
    theirs = importlib.import_module(f"zmq.sugar.{name}")
    ours = importlib.import_module(f"zerohop.sugar.{name}")
    assert set(theirs.__all__) - set(ours.__all__) <= set(NOT_OURS)
    assert all(getattr(ours, n) is getattr(zerohop, n) for n in ours.__all__)


def test_modules_are_asked_for_by_attribute():
    assert zerohop.asyncio.Socket is importlib.import_module("zerohop.asyncio").Socket
    assert zerohop.utils.jsonapi.dumps([1]) == b"[1]"
    with pytest.raises(AttributeError, match="has no attribute 'no_such_module'"):
        zerohop.utils.no_such_module  # noqa: B018 - asking is the test


@pytest.mark.parametrize("heavy", ["asyncio", "ssl", "json", "pickle", "subprocess", "numpy"])
def test_importing_the_blocking_api_does_not_pay_for(heavy):
    program = f"import sys, zerohop; sys.exit({heavy!r} in sys.modules)"
    source = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], timeout=30, env=source)
    assert done.returncode == 0
