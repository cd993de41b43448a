"""The workers of `make test`: as strict as one process would be, and out of each other's way."""

import shlex
import subprocess
import sys

from tests.kit.workers import share

STRICT = [sys.executable, "-X", "dev", "-bb", "-c"]


def said_by(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    return done.stdout.strip()


def test_a_worker_has_the_flags_of_the_interpreter_that_starts_it():
    flags = "import sys; print(sys.flags)"
    worker = said_by(*STRICT, "from tests.kit.workers import command; print(command())")
    assert said_by(*shlex.split(worker), "-c", flags) == said_by(*STRICT, flags)


def test_a_worker_has_a_share_that_no_other_has(monkeypatch):
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "3")
    shares = []
    for worker in ("gw0", "gw1", "gw2"):
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
        shares.append(share(range(8)))
    assert [list(each) for each in shares] == [[0, 3, 6], [1, 4, 7], [2, 5]]


def test_a_worker_that_takes_the_place_of_another_has_a_share_too(monkeypatch):
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "3")
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw4")
    assert share("abcdef") == "be"


def test_without_workers_everything_is_there_for_all(monkeypatch):
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    assert share("abc") == "abc"
