"""What an import brings: a budget in modules, which is the same on every machine.

Clocks are in ``bench/cases/imports.py``. A module of the standard library that is named here costs
0.3 to 10 ms with what it imports itself; one of our own costs 0.1 to 0.3 ms. Who needs one of them
seldom imports it in the function that needs it. ``typing`` is for type checkers::

    TYPE_CHECKING = False
    if TYPE_CHECKING:
        from typing import Any
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import zerohop
import zerohop.asyncio

SOURCE = Path(__file__).parent.parent / "src"

ONLY_IMPORT = "import zerohop"
A_SOCKET = """
import zerohop as zmq
context = zmq.Context()
context.socket(zmq.PUSH).close()
context.term()
"""
A_MESSAGE = """
import zerohop as zmq
context = zmq.Context()
pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
push.connect(f"tcp://127.0.0.1:{pull.bind_to_random_port('tcp://127.0.0.1')}")
push.send(b"hello")
assert pull.recv() == b"hello"
context.destroy()
"""
AN_OPTION = """
import zerohop as zmq
with zmq.Context() as context, context.socket(zmq.SUB) as socket:
    socket.linger = 0
    socket.subscribe("")
"""
ASYNCIO_IMPORT = "import zerohop.asyncio"
ASYNCIO_SOCKET = """
import zerohop as zmq, zerohop.asyncio
context = zmq.asyncio.Context()
context.socket(zmq.PUSH).close()
context.term()
"""

DEAR = {  # what no ordinary program needs of the standard library
    *("ast", "concurrent.futures", "contextlib", "dataclasses", "dis", "importlib.metadata"),
    *("inspect", "ipaddress", "json", "logging", "multiprocessing", "pickle", "platform", "random"),
    *("re", "shutil", "string", "subprocess", "tempfile", "textwrap", "tokenize", "traceback"),
    *("typing", "asyncio", "ssl", "copy"),
}
RARE = {  # what few programs need of ours
    *("zerohop.api.about", "zerohop.api.feed", "zerohop.api.fronts", "zerohop.api.records"),
    *("zerohop.api.statistics", "zerohop.core.monitor", "zerohop.core.option_reference"),
    *(
        "zerohop.devices",
        "zerohop.io.log",
        "zerohop.io.descriptor",
        "zerohop.io.signal",
        "zerohop.utils",
        "zerohop.wire.raw",
    ),
    *("zerohop.patterns.publish", "zerohop.patterns.reqrep", "zerohop.patterns.router"),
    "zerohop.wire.wrapping",
    *("zerohop.patterns.stream", "zerohop.sync.poller", "zerohop.sync.system_items"),
}
UNSET = {"zerohop.core.option_table", "zerohop.core.option_shapes", "zerohop.wire.z85"}
UNCONNECTED = {
    *("zerohop.io.listening", "zerohop.io.dialing", "zerohop.io.stream"),
    *("zerohop.mechanisms", "zerohop.wire.connection", "zerohop.wire.decoder"),
}
BLOCKING = {"zerohop.sync.context", "zerohop.sync.socket", "zerohop.sync.front"}


def modules_after(program: str) -> set[str]:
    """What a fresh interpreter has imported when the program is done."""
    report = "\nimport sys; print(*sys.modules)"
    # -S: what is installed beside us may import at start-up whatever it likes.
    command = [sys.executable, "-S", "-c", f"import sys; sys.path.append({str(SOURCE)!r})\n"]
    command[-1] += program + report
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.split(".")[0] == "zerohop"}


@pytest.mark.parametrize(
    ("program", "more"),
    [(ONLY_IMPORT, set()), (ASYNCIO_IMPORT, {"zerohop.asyncio"})],
    ids=["blocking", "asyncio"],
)
def test_the_import_brings_constants_and_errors_and_nothing_else(program, more):
    modules = modules_after(program)
    assert ours(modules) == {"zerohop", "zerohop.constants", "zerohop.errors"} | more
    assert not modules & (DEAR | {"socket", "threading", "selectors", "struct"})


@pytest.mark.parametrize(
    ("program", "missing", "most"),
    [
        (A_SOCKET, DEAR | RARE | UNSET | UNCONNECTED, 55),
        (AN_OPTION, DEAR | RARE | UNCONNECTED, 60),
        (A_MESSAGE, DEAR | RARE | UNSET, 72),
    ],
    ids=["a socket", "an option", "a message"],
)
def test_a_blocking_program_brings_what_it_uses(program, missing, most):
    modules = modules_after(program)
    assert not modules & missing
    assert len(ours(modules)) <= most


def test_an_asyncio_program_brings_no_blocking_socket():
    modules = modules_after(ASYNCIO_SOCKET)
    assert not modules & (RARE | UNSET | UNCONNECTED | BLOCKING | {"dataclasses", "random"})
    assert len(ours(modules)) <= 56


@pytest.mark.parametrize("package", [zerohop, zerohop.asyncio], ids=lambda p: p.__name__)
def test_a_name_that_is_imported_later_is_a_name_like_any_other(package):
    assert set(package.__all__) <= set(dir(package))
    assert all(getattr(package, name) is getattr(package, name) for name in package.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        package.no_such_name  # noqa: B018 - asking is the test


@pytest.mark.parametrize("package", [zerohop, zerohop.asyncio], ids=lambda p: p.__name__)
def test_type_checkers_are_told_where_each_name_comes_from(package):
    told, star = set(), set()
    for node in ast.walk(ast.parse(Path(package.__file__).read_text())):
        if isinstance(node, ast.ImportFrom):
            told |= {alias.asname or alias.name for alias in node.names}
            if node.names[0].name == "*":
                star |= set(zerohop.constants.__all__)
        elif isinstance(node, ast.Assign):
            told |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    assert set(package.__all__) <= told | star


def test_other_names_for_the_blocking_classes():
    assert zerohop.SyncContext is zerohop.Context
    assert zerohop.SyncSocket is zerohop.Socket
    assert zerohop.Message is zerohop.Frame
