"""Payloads with arrays and large bytes: what gets a frame, and that nobody copies."""

import array
import contextlib
import sys
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerohop.serving.codec import MAX_OCTETS
from zerohop.serving.engine.buffers import THRESHOLD, PayloadDecoder, PayloadEncoder
from zerohop.serving.engine.messages import Request
from zerohop.serving.errors import Malformed, Unencodable

LARGE = THRESHOLD
decoder = PayloadDecoder(Any)


def frames_of(value):
    encoder = PayloadEncoder()
    return encoder.frames(encoder.lift(value))


def there_and_back(value):
    return decoder.message([bytes(frame) for frame in frames_of(value)])


def test_a_payload_without_large_buffers_is_one_frame():
    assert len(frames_of({"ids": list(range(500)), "image": b"x" * (LARGE - 1)})) == 1


def test_a_large_array_has_a_frame_of_its_own_and_is_not_copied():
    pixels = np.arange(LARGE, dtype="<f4").reshape(2, -1)
    _header, frame = frames_of({"pixels": pixels})
    assert np.shares_memory(np.frombuffer(frame, "<f4"), pixels)


def test_a_decoded_array_lies_over_the_received_frame():
    frames = [bytes(frame) for frame in frames_of(np.arange(LARGE))]
    decoded = decoder.message(frames)
    assert decoded.ctypes.data == np.frombuffer(frames[1], "u1").ctypes.data
    assert not decoded.flags.writeable


@pytest.mark.parametrize("octets", [bytes, bytearray, memoryview])
def test_large_bytes_have_a_frame_of_their_own_and_are_not_copied(octets):
    given_octets = octets(b"x" * LARGE)
    _header, frame = frames_of({"images": [{"png": given_octets}]})
    assert frame is given_octets


def test_decoded_bytes_are_the_received_frame():
    frames = [bytes(frame) for frame in frames_of([b"x" * LARGE])]
    assert decoder.message(frames)[0] is frames[1]


def test_buffers_come_back_in_their_places():
    value = {"a": b"1" * LARGE, "b": [b"2" * LARGE, b"small"], "c": {"d": b"3" * LARGE}}
    assert there_and_back(value) == value


@pytest.mark.parametrize("dtype", ["|b1", "|i1", "|u1", "<i2", "<u4", ">i8", "<f2", "<f8", "<c16"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (40, 50, 3)])
def test_an_array_of_any_shape_and_kind_comes_back(dtype, shape):
    given_array = np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape)
    decoded = there_and_back(given_array)
    assert (decoded.dtype, decoded.shape) == (given_array.dtype, shape)
    assert np.array_equal(decoded, given_array)


def test_an_array_with_gaps_comes_back():
    grid = np.arange(4 * LARGE).reshape(4, -1)
    assert np.array_equal(there_and_back(grid[:, ::2]), grid[:, ::2])
    assert np.array_equal(there_and_back(grid.T), grid.T)


def test_bytes_with_gaps_come_back():
    every_second = memoryview(bytes(range(250)) * LARGE)[::2]
    assert there_and_back([every_second]) == [every_second.tobytes()]


def test_bytes_that_lie_too_deep_to_be_searched_for_come_back():
    deep = b"x" * LARGE
    for _ in range(12):
        deep = [deep]
    assert len(frames_of(deep)) == 1
    assert there_and_back(deep) == deep


def test_what_has_the_buffer_protocol_alone_is_an_array_too():
    numbers = array.array("d", range(LARGE))
    decoded = there_and_back(numbers)
    assert decoded.dtype == np.dtype("<f8")
    assert decoded.tolist() == numbers.tolist()


def test_a_view_of_numbers_keeps_its_shape():
    view = memoryview(bytes(2 * LARGE)).cast("H", (4, LARGE // 4))
    assert there_and_back(view).shape == (4, LARGE // 4)


def test_what_has_an_array_is_one():
    decoded = there_and_back([_Tensor(np.arange(6.0).reshape(2, 3))])
    assert decoded[0].tolist() == [[0, 1, 2], [3, 4, 5]]


class _Tensor:
    """Has an array, as a tensor on the CPU has."""

    def __init__(self, values):
        self.shape, self._values = values.shape, values

    def __array__(self, dtype=None, copy=None):
        return self._values


class Payload(msgspec.Struct):
    ids: list[int]
    embeds: np.ndarray | None = None


def test_a_payload_may_have_a_type_with_arrays_in_it():
    typed = PayloadDecoder(Request[Payload])
    embeds = np.ones((4, LARGE), dtype="<f4")
    frames = PayloadEncoder().frames(Request(7, Payload([1, 2], embeds)))
    request = typed.message([bytes(frame) for frame in frames])
    assert request.payload.ids == [1, 2]
    assert np.array_equal(request.payload.embeds, embeds)


def test_another_thing_where_an_array_should_be_is_malformed():
    class Strict(msgspec.Struct):
        embeds: np.ndarray

    with pytest.raises(Malformed, match="expected ndarray, got str"):
        PayloadDecoder(Strict).message([msgspec.msgpack.encode({"embeds": "x"})])


@pytest.mark.parametrize(
    "value, why",
    [
        (np.array([object()]), "object"),
        (np.array(["2026"], "M8[D]"), "datetime64"),
        (object(), "neither msgpack nor a buffer"),
        ({1 << 70: 1}, "64"),
    ],
    ids=["objects", "dates", "an object", "a number of 71 bits"],
)
def test_what_has_no_form_on_the_wire_is_refused(value, why):
    with pytest.raises(Unencodable, match=why):
        frames_of(value)


@pytest.mark.parametrize("code", [1, 2, 3])
def test_extension_values_that_would_be_taken_for_buffers_are_refused(code):
    encoder = PayloadEncoder()
    own = msgspec.msgpack.Ext(code, b"mine")
    for value in (own, {"a": own}, [[own]]):
        with pytest.raises(Unencodable, match=f"code {code}"):
            encoder.lift(value)
    other = msgspec.msgpack.Ext(code + 3, b"mine")
    assert PayloadDecoder(object).message(encoder.frames(encoder.lift([other]))) == [other]


def test_an_encoder_goes_on_after_a_value_that_it_refused():
    encoder = PayloadEncoder()
    with pytest.raises(Unencodable):
        encoder.frames([np.arange(LARGE), object()])
    with pytest.raises(Unencodable):
        encoder.frames([np.arange(LARGE), 1 << 70])
    assert len(encoder.frames([1])) == 1


def extension(code, *place):
    return msgspec.msgpack.encode(msgspec.msgpack.Ext(code, msgspec.msgpack.encode(place)))


@pytest.mark.parametrize(
    "frames, why",
    [
        ([extension(1, 1)], "0 buffers"),
        ([extension(1, 0), b"x"], "number 0"),
        ([extension(1, -1), b"x"], "number -1"),
        ([extension(2, "<f4", [2], 1), b"x" * 7], "no array of <f4 and shape .2,. has 7 octets"),
        ([extension(2, "<f4", [-1, -2], 1), b"x" * 8], "no array of <f4"),
        ([extension(2, "|O8", [1], 1), b"x" * 8], "no arrays of"),
        ([extension(2, "<f3", [1], 1), b"x" * 3], "f3"),
        ([extension(3, "<f4", [1], b"x")], "no array of <f4 and shape .1,. has 1 octet"),
        ([extension(2, "<f4")], "length 3"),
        ([extension(1)], "length 1"),
        ([b"\xc1"], "invalid"),
        ([b""], "truncated"),
    ],
)
def test_a_message_whose_buffers_do_not_fit_is_malformed(frames, why):
    with pytest.raises(Malformed, match=why):
        decoder.message(frames)


class Choosy(msgspec.Struct):
    """A type whose author did not think of everything."""

    name: str

    def __post_init__(self):
        {"known": 1}[self.name]


def test_what_a_type_of_the_users_raises_makes_the_message_malformed():
    with pytest.raises(Malformed, match="KeyError: 'unknown'"):
        PayloadDecoder(Choosy).message(PayloadEncoder().frames({"name": "unknown"}))


def test_an_extension_of_somebody_elses_is_passed_on():
    assert decoder.message([extension(9, "x")]) == msgspec.msgpack.Ext(9, b"\x91\xa1x")


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4))
def test_any_frames_are_a_message_or_malformed(frames):
    with contextlib.suppress(Malformed):
        decoder.message(frames)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_any_payload_comes_back(payload):
    encoder = PayloadEncoder(threshold=3)
    frames = encoder.frames(encoder.lift(payload))
    assert decoder.message([bytes(frame) for frame in frames]) == payload


def without_numpy(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)


def test_without_numpy_an_array_is_a_view_of_the_same_shape(monkeypatch):
    frames = [bytes(frame) for frame in frames_of(np.arange(LARGE, dtype="<i4").reshape(2, -1))]
    without_numpy(monkeypatch)
    decoded = decoder.message(frames)
    assert (decoded.format, decoded.shape) == ("i", (2, LARGE // 2))
    assert decoded[1, 0] == LARGE // 2
    assert decoded.obj is frames[1]


def test_without_numpy_there_are_empty_arrays_too(monkeypatch):
    without_numpy(monkeypatch)
    assert decoder.message([extension(3, "<f4", [0], b"")]).nbytes == 0


def test_without_numpy_an_array_in_another_order_is_malformed(monkeypatch):
    without_numpy(monkeypatch)
    with pytest.raises(Malformed, match="need numpy"):
        decoder.message([extension(3, ">f4", [1], b"xxxx")])


def test_without_numpy_the_buffer_protocol_is_enough_to_send(monkeypatch):
    without_numpy(monkeypatch)
    decoded = there_and_back(array.array("f", [1, 2]))
    assert decoded.tolist() == [1.0, 2.0]


def test_a_buffer_of_pointers_is_refused():
    pointers = memoryview(bytes(16)).cast("P")
    with pytest.raises(Unencodable, match="format 'P'"):
        PayloadEncoder().frames(PayloadEncoder(threshold=1).lift(pointers))


def test_numbers_of_numpy_are_numbers():
    given = {"a": np.int64(5), "b": np.float32(0.5), "c": np.bool_(True), "d": np.float64(2)}
    assert there_and_back(given) == {"a": 5, "b": 0.5, "c": True, "d": 2.0}


def test_a_header_over_the_limit_is_refused_by_whoever_sends_it():
    with pytest.raises(Unencodable, match="more than the limit"):
        PayloadEncoder().frames("x" * (MAX_OCTETS + 1))


class Unwilling:
    """As a tensor that needs its gradient: it has no array to give."""

    def __array__(self):
        raise RuntimeError("can't call numpy() on Tensor that requires grad")


def test_what_an_array_raises_is_told_and_leaves_nothing_for_the_next_message():
    encoder = PayloadEncoder()
    large = np.zeros(LARGE, dtype="<i4")
    with pytest.raises(Unencodable, match="requires grad"):
        encoder.frames([large, Unwilling()])
    assert len(encoder.frames("x")) == 1
