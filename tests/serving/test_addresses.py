"""Endpoints: short, the same for the same name, on the loopback, nobody else's."""

import os
import tempfile
from pathlib import Path

import pytest

from zerohop.serving.addresses import ipc_endpoint, outputs_beside, reachable_from

LONGEST = 107  # octets of an ipc path


@pytest.fixture
def temporary(monkeypatch):
    """The directory for temporary files, with a name shorter than those of ``tmp_path``."""
    with tempfile.TemporaryDirectory(prefix="zh") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield Path(folder)


def test_a_name_of_any_length_has_a_short_path(ipc_directory):
    endpoint = ipc_endpoint("a/very/long/model-name" * 100, ipc_directory)
    assert len(endpoint.removeprefix("ipc://")) <= LONGEST
    assert endpoint.startswith(f"ipc://{ipc_directory}/")


def test_the_same_name_has_the_same_endpoint_and_another_has_another(ipc_directory):
    assert ipc_endpoint("a", ipc_directory) == ipc_endpoint("a", ipc_directory)
    assert ipc_endpoint("a", ipc_directory) != ipc_endpoint("b", ipc_directory)


def test_the_directory_is_the_users_own(temporary):
    folder = temporary / f"zerohop-{os.getuid()}"
    assert ipc_endpoint("a").startswith(f"ipc://{folder}/")
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_directory_for_temporary_files_with_a_long_name_is_not_used(monkeypatch, tmp_path):
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    assert len(ipc_endpoint("a").removeprefix("ipc://")) <= LONGEST


def test_a_directory_that_others_may_write_to_is_refused(temporary):
    folder = temporary / f"zerohop-{os.getuid()}"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(PermissionError, match="no one else writes to"):
        ipc_endpoint("a")


def test_a_path_of_the_callers_that_is_too_long_is_refused(tmp_path):
    with pytest.raises(ValueError, match="107"):
        ipc_endpoint("a", tmp_path / ("d" * 120))


@pytest.mark.parametrize(
    "requests, outputs",
    [
        ("tcp://127.0.0.1:5555", "tcp://127.0.0.1:*"),
        ("tcp://[::1]:5555", "tcp://[::1]:*"),
        ("ipc://@name", "ipc://@name-outputs"),
    ],
)
def test_outputs_are_bound_beside_requests(requests, outputs):
    assert outputs_beside(requests) == outputs


def test_outputs_of_an_ipc_endpoint_are_in_the_same_directory():
    assert outputs_beside("ipc:///run/engines").startswith("ipc:///run/")
    assert outputs_beside("ipc:///run/engines") != "ipc:///run/engines"


@pytest.mark.parametrize(
    "announced, used, reachable",
    [
        ("tcp://0.0.0.0:7", "tcp://10.0.0.4:5", "tcp://10.0.0.4:7"),
        ("tcp://[::]:7", "tcp://[fe80::1]:5", "tcp://[fe80::1]:7"),
        ("tcp://*:7", "tcp://head:5", "tcp://head:7"),
        ("tcp://10.0.0.9:7", "tcp://10.0.0.4:5", "tcp://10.0.0.9:7"),
        ("ipc:///a", "tcp://10.0.0.4:5", "ipc:///a"),
        ("tcp://0.0.0.0:7", "ipc:///a", "tcp://0.0.0.0:7"),
    ],
)
def test_what_is_bound_everywhere_is_reached_where_the_other_was(announced, used, reachable):
    assert reachable_from(announced, used) == reachable


def test_a_name_is_a_text():
    with pytest.raises(TypeError, match="name is a str, not 3"):
        ipc_endpoint(3)
