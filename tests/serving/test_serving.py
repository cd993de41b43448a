"""The front door of serving: names when they are asked for, and nothing before."""

import subprocess
import sys

import pytest

from zerohop import serving


def test_every_name_is_there():
    assert [name for name in serving.__all__ if not hasattr(serving, name)] == []
    assert set(serving.__all__) <= set(dir(serving))


def test_every_name_is_promised_once():
    promised = [name for names in serving._IMPORTED_LATER.values() for name in names]
    assert sorted(promised) == sorted(serving.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Router3'"):
        serving.Router3  # noqa: B018


def test_the_sockets_and_the_front_door_need_neither_msgspec_nor_serving():
    program = (
        "import sys, zerohop, zerohop.asyncio; assert 'zerohop.serving' not in sys.modules;"
        "import zerohop.serving; assert 'msgspec' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_without_msgspec_it_is_said_how_to_install_it():
    program = "import sys; sys.modules['msgspec'] = None; from zerohop.serving import EngineClient"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == "in a clone of zerohop: pip install '.[serving]'"
