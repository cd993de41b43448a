"""Real libzmq on the other end: a second network, and the record behind docs/interop.md."""

import datetime
import platform
import tempfile
from pathlib import Path

import pytest

from tests.interop.matrix import CELLS
from tests.kit.drivers import driver
from tests.kit.library import load, start_collector_of_pyzmq
from tests.kit.net import Net

RESULTS = pytest.StashKey[dict[str, bool]]()


@pytest.fixture(scope="session")
def libzmq():
    """The module of pyzmq: the same names as the library under test, over real libzmq."""
    start_collector_of_pyzmq()
    return load("zmq").blocking


@pytest.fixture(scope="session")
def libzmq_directory():
    """Where libzmq binds: it leaves the files of its ipc endpoints behind."""
    with tempfile.TemporaryDirectory(prefix="lz") as directory:
        yield Path(directory)


@pytest.fixture
def theirs(libzmq, place, libzmq_directory):
    """A network of libzmq sockets beside ``net``, under the same driver."""
    driver_name, transport = place
    return Net(load("zmq"), driver(driver_name), transport, libzmq_directory)


def pytest_configure(config):
    config.stash[RESULTS] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Remember how each cell of the matrix fared, setup and teardown included."""
    report = yield
    callspec = getattr(item, "callspec", None)
    if callspec is not None and "cell" in callspec.params:
        key = "|".join([*callspec.params["place"], callspec.params["cell"].key])
        results = item.config.stash[RESULTS]
        results[key] = results.get(key, True) and report.passed
    return report


def pytest_sessionfinish(session):
    """Keep the record of a run, where scripts/interop_table.py finds it."""
    config = session.config
    results = config.stash[RESULTS]
    if not results or config.getoption("library") != "zerohop":
        return
    zmq, ours = load("zmq").blocking, load("zerohop").blocking
    versions = {
        "zerohop": ours.__version__,
        "pyzmq": zmq.__version__,
        "libzmq": zmq.zmq_version(),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }
    config.cache.set(
        "interop/results",
        {
            "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
            "versions": versions,
            "cells": results,
            "pairs": list(dict.fromkeys(cell.pair for cell in CELLS)),
        },
    )
