"""Fixtures of the black-box suites: the library under test, one network per driver and transport.

Pure tests (tests/wire, tests/patterns, tests/core) use none of this; they only share the check that
nothing is left behind.
"""

import gc
import inspect
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.kit import workers
from tests.kit.drivers import DRIVERS, driver, warm_up
from tests.kit.leaks import Belongings
from tests.kit.library import MODULE_NAMES, load, start_collector_of_pyzmq
from tests.kit.net import TRANSPORTS, Net

MARKERS = (
    "over(*transports): the transports that the rule speaks of, where not all of them",
    "on(*drivers): the drivers that the rule speaks of, where not all of them",
    "zerohop: zerohop differs from libzmq here on purpose; not run against pyzmq",
)
SECONDS_PER_TEST = 20

# A loaded machine is no fault: how long an example takes, or making one up, says nothing.
settings.register_profile("zerohop", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("zerohop")


def pytest_addoption(parser):
    parser.addoption(
        "--library",
        choices=sorted(MODULE_NAMES),
        default="zerohop",
        help="the library under test: zerohop, or zmq (pyzmq) to prove the tests right",
    )


def pytest_configure(config):
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # `make test &` in a script
        # What the tests start would inherit it, and no Ctrl-C would ever reach it.
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)  # pytest may run without pytest-xdist
def pytest_xdist_setupnodes(specs):
    """Make the workers as strict as the process that starts them."""
    for spec in specs:
        spec.python = workers.command()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Return how many workers `make test` starts."""
    return workers.count()


def pytest_generate_tests(metafunc):
    """Run a test that uses ``net`` for every driver and transport its marks allow."""
    if "net" not in metafunc.fixturenames:
        return
    places = [
        pytest.param((name, transport), id=f"{name}-{transport}")
        for name in _allowed(metafunc, "on", DRIVERS)
        for transport in _allowed(metafunc, "over", TRANSPORTS)
    ]
    metafunc.parametrize("place", places)


def _allowed(metafunc, mark, everything):
    marks = list(metafunc.definition.iter_markers(mark))  # the closest mark decides
    return marks[0].args if marks else everything


def pytest_collection_modifyitems(config, items):
    for item in items:
        if "library" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(SECONDS_PER_TEST))
    if config.getoption("library") == "zerohop":
        return
    ours = [item for item in items if item.get_closest_marker("zerohop")]
    config.hook.pytest_deselected(items=ours)
    items[:] = [item for item in items if item not in ours]


def pytest_collection_finish():
    """Take the thousands of tests out of what a garbage collection looks through: 0.5 s each."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def library(request):
    """The library under test."""
    loaded = load(request.config.getoption("library"))
    if loaded.is_libzmq:
        start_collector_of_pyzmq()
    return loaded


@pytest.fixture(scope="session")
def zmq(library):
    """The module of the library under test, under the name that programs give it."""
    return library.blocking


@pytest.fixture(scope="session")
def ipc_directory():
    """A directory with a short name: an ipc path has at most 107 octets."""
    directory = Path(tempfile.mkdtemp(prefix="zh"))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def net(library, place, ipc_directory):
    """A network for this test alone."""
    driver_name, transport = place
    return Net(library, driver(driver_name), transport, ipc_directory)


@pytest.fixture(scope="session")
def warm_loops():
    """What a loop opens once per process must not look like a leak of the first test."""
    warm_up()


@pytest.fixture(autouse=True)
def nothing_is_left_behind(request, ipc_directory, warm_loops):
    """Fail a test that leaves a thread, a file descriptor or a file."""
    before = Belongings(ipc_directory)
    yield
    if request.config.getoption("library") == "zmq":
        for path in ipc_directory.iterdir():  # libzmq 4.3.5 leaves the file of an ipc endpoint
            path.unlink()
    assert before.left_behind() == []


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run an ``async def`` test on the driver of its network, and close its networks after it."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    net = pyfuncitem.funcargs["net"]
    nets = [value for value in pyfuncitem.funcargs.values() if isinstance(value, Net)]

    async def body():
        try:
            await pyfuncitem.obj(**arguments)
        finally:
            for each in nets:
                await each.close()

    net.driver.run(body())
    return True
