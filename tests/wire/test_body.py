"""A body that is gathered: right however it comes, copied once, no larger than what came of it."""

import ctypes
import errno
import gc
import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.kit import pieces
from zerohop.wire import body as body_module
from zerohop.wire.body import Body

FIRST = body_module._FIRST


def dirty(size: int) -> bytes:
    """Memory that nobody has written to for this body, as it may be: full of what was there."""
    return b"\xff" * size


def put(body: Body, octets: bytes) -> None:
    """As a network does: into the buffer, as far as it reaches, again and again."""
    while octets:
        view = body.buffer()
        count = min(len(view), len(octets))
        view[:count] = octets[:count]
        body.filled(count)
        octets = octets[count:]


@given(
    size=st.integers(0, 2000),
    cuts=st.lists(st.integers(0, 2000), max_size=12),
    ways=st.lists(st.booleans(), min_size=13, max_size=13),
    proven=st.sampled_from([0, 100, 5000]),
)
def test_octets_come_in_both_ways_in_any_order(size, cuts, ways, proven):
    whole = bytes(i % 251 for i in range(size))
    body = Body(size, proven)
    for piece, into_buffer in zip(pieces(whole, cuts), ways, strict=False):
        put(body, piece) if into_buffer else body.add(piece)
    assert body.missing == 0
    assert body.take() == whole


@given(
    size=st.integers(1, 2000),
    cuts=st.lists(st.integers(0, 2000), max_size=12),
    ways=st.lists(st.booleans(), min_size=13, max_size=13),
    first=st.integers(1, 50),
    proven=st.integers(0, 3000),
    looks=st.booleans(),
)
def test_nothing_is_delivered_that_did_not_come_however_the_buffer_grows(
    size, cuts, ways, first, proven, looks
):
    whole = bytes(i % 251 for i in range(size))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(body_module, "_FIRST", first)
        patch.setattr(body_module, "unwritten", lambda: dirty)
        body = Body(size, proven)
        for piece, into_buffer in zip(pieces(whole, cuts), ways, strict=False):
            put(body, piece) if into_buffer else body.add(piece)
            if looks and body.missing:
                body.buffer()
        assert body.take() == whole


def test_what_is_taken_is_octets_that_can_be_hashed():
    body = Body(100_000)
    put(body, bytes(100_000))
    taken = body.take()
    assert type(taken) is bytes
    assert hash(taken) == hash(bytes(100_000))


def test_the_buffer_is_what_is_missing_where_that_is_little():
    body = Body(1000)
    body.add(bytes(400))
    assert len(body.buffer()) == 600


def test_a_view_that_was_lent_is_of_no_use_when_octets_came_another_way():
    body = Body(1000)
    view = body.buffer()
    body.add(b"x")
    with pytest.raises(ValueError, match="released"):
        len(view)
    assert len(body.buffer()) == 999


# What it costs


def address_of_octets(view: memoryview) -> int:
    import numpy as np

    return np.frombuffer(view, dtype="u1").__array_interface__["data"][0]


@pytest.mark.parametrize("size", [FIRST, 300_000, 5_000_000])
def test_the_body_is_the_very_octets_that_the_network_wrote(size):
    body = Body(size, proven=size)
    where = address_of_octets(body.buffer())
    put(body, bytes(size))
    assert address_of_octets(memoryview(body.take())) == where


def test_nobody_else_refers_to_the_body():
    body = Body(300_000)
    put(body, bytes(300_000))
    taken = body.take()
    del body
    assert sys.getrefcount(taken) == 2


@pytest.mark.parametrize("size", [300_000, 5_000_000])
@pytest.mark.parametrize("proven", [0, 10_000_000])
def test_there_is_never_a_second_copy(size, proven):
    piece = bytes(50_000)
    tracemalloc.start()
    try:
        body = Body(size, proven)
        while body.missing > len(piece):
            put(body, piece)
        put(body, piece[: body.missing])
        octets = body.take()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(octets) == size
    assert peak <= 1.13 * size + 1000  # it grows by an eighth too much where it grows by little


@pytest.mark.parametrize("step", [1_000, 65_536, 1_000_000])
@pytest.mark.parametrize("announced", [10_000_000, 2**62])
def test_memory_grows_with_what_came_not_with_what_was_announced(step, announced):
    piece = bytes(step)
    tracemalloc.start()
    try:
        body = Body(announced)
        body.buffer()
        assert tracemalloc.get_traced_memory()[0] < 1.2 * FIRST
        for come in range(step, 3_000_000, step):
            put(body, piece)
            body.buffer()
            assert tracemalloc.get_traced_memory()[0] <= 1.2 * max(FIRST, 2 * come)
    finally:
        tracemalloc.stop()


def test_what_the_peer_has_sent_before_may_be_held_at_once():
    assert len(Body(2**62, proven=500_000).buffer()) == 500_000
    assert len(Body(400_000, proven=500_000).buffer()) == 400_000


@pytest.fixture
def nothing_found_yet():
    body_module.unwritten.cache_clear()
    yield
    body_module.unwritten.cache_clear()


class Refuse:
    """Where modules are looked for first, and what is said there of ``ctypes``."""

    def __init__(self, error):
        self.error = error

    def find_spec(self, name, *_):
        if name == "ctypes":
            raise self.error


@pytest.mark.usefixtures("nothing_found_yet")
@pytest.mark.parametrize(
    "error", [ImportError("not built"), OSError(errno.EMFILE, "no descriptor"), MemoryError()]
)
def test_where_ctypes_cannot_be_imported_what_is_held_are_zeros(monkeypatch, error):
    monkeypatch.delitem(sys.modules, "ctypes")
    monkeypatch.setattr(sys, "meta_path", [Refuse(error), *sys.meta_path])
    assert body_module.unwritten()(100) == bytes(100)


@pytest.mark.usefixtures("nothing_found_yet")
def test_where_ctypes_does_not_reach_python_itself_what_is_held_are_zeros(monkeypatch):
    monkeypatch.delattr(ctypes, "pythonapi")
    assert body_module.unwritten()(100) == bytes(100)


@pytest.mark.usefixtures("nothing_found_yet")
def test_what_others_have_declared_of_pythons_own_functions_is_theirs(monkeypatch):
    monkeypatch.setattr(ctypes.pythonapi.PyBytes_FromStringAndSize, "argtypes", ())
    body = Body(FIRST, proven=FIRST)
    put(body, bytes(FIRST))
    assert body.take() == bytes(FIRST)
    assert ctypes.pythonapi.PyBytes_FromStringAndSize.argtypes == ()


def test_one_that_dies_in_a_cycle_while_its_place_is_lent_does_so_in_silence(monkeypatch):
    """io's finalizer would complain of the view, in development mode."""
    said = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    for lent_first in (True, False):
        cycle = {}
        body = Body(200_000)
        for name in ("view", "body") if lent_first else ("body", "view"):
            cycle[name] = body.buffer() if name == "view" else body
        cycle["itself"] = cycle
        del body, cycle
        gc.collect()
    assert said == []
