import array
import copy
import sys

import numpy as np
import pytest

from zerohop.api.frame import Frame, Message
from zerohop.api.tracker import MessageTracker
from zerohop.constants import Errno, MessageOption
from zerohop.errors import ZMQError

BIG = bytes(70_000)


def test_a_frame_of_nothing_is_empty():
    frame = Frame()
    assert (frame.bytes, len(frame), bool(frame), frame.more, frame.tracker) == (
        b"", 0, False, False, None,
    )  # fmt: skip


@pytest.mark.parametrize(
    "data",
    [
        b"abcdefgh",
        bytearray(b"abcdefgh"),
        memoryview(b"abcdefgh"),
        array.array("B", b"abcdefgh"),
        np.frombuffer(b"abcdefgh", dtype="<i4"),
        np.frombuffer(b"abcdefgh", dtype=">i4"),
        np.frombuffer(b"abcdefgh", dtype="i1,i1,i2").reshape(2, 1),
    ],
    ids=["bytes", "bytearray", "memoryview", "array", "int32", "big-endian", "structured"],
)
@pytest.mark.parametrize("copied", [None, True, False])
def test_a_frame_holds_the_octets_of_any_buffer(data, copied):
    frame = Frame(data, copy=copied)
    assert frame.bytes == bytes(frame) == bytes(frame.buffer) == b"abcdefgh"
    assert len(frame) == 8


def test_an_array_in_fortran_order_gives_its_memory_as_it_lies():
    columns = np.arange(6, dtype="u1").reshape(2, 3).T
    assert Frame(columns).bytes == Frame(columns, copy=False).bytes == bytes(range(6))


def test_small_data_is_copied_unless_asked_not_to():
    data = bytearray(b"abc")
    copied, lent = Frame(data), Frame(data, copy=False)
    data[0] = ord("x")
    assert (copied.bytes, lent.bytes) == (b"abc", b"xbc")


def test_large_data_is_not_copied_unless_asked_to():
    data = bytearray(BIG)
    lent, copied, above = Frame(data), Frame(data, copy=True), Frame(data, copy_threshold=80_000)
    data[0] = 1
    assert [f.bytes[0] for f in (lent, copied, above)] == [1, 0, 0]


def test_bytes_are_never_copied():
    assert Frame(BIG).bytes is BIG
    assert Frame(BIG, copy=True).bytes is BIG


@pytest.mark.parametrize(
    "data, error, text",
    [
        ("x", TypeError, "Str objects not allowed. Only: bytes, buffer interfaces."),
        (5, TypeError, "a bytes-like object is required, not 'int'"),
        ([1], TypeError, "a bytes-like object is required, not 'list'"),
        (memoryview(b"abcd")[::2], BufferError, "memoryview: underlying buffer is not contiguous"),
    ],
)
def test_what_is_no_buffer_is_refused_in_pyzmqs_words(data, error, text):
    with pytest.raises(error) as raised:
        Frame(data)
    assert str(raised.value) == text


@pytest.mark.parametrize(
    "size, shown",
    [
        (0, "b''"),
        (16, f"b'{'a' * 16}'"),
        (17, "b'aaaaaaaaaaaa'...17B"),
        (1999, "b'aaaaaaaaaaaa'...1kB"),
        (2_000_000, "b'aaaaaaaaaaaa'...2MB"),
    ],
)
def test_repr_shows_the_beginning_and_the_size(size, shown):
    assert repr(Frame(b"a" * size)) == f"<zerohop.Frame({shown})>"


def test_frames_are_equal_only_to_themselves():
    frame = Frame(b"abc")
    assert frame == frame
    assert frame != Frame(b"abc")
    assert len({frame, Frame(b"abc")}) == 2


def test_a_copy_shares_the_part_and_the_tracker():
    frame = Frame(bytearray(BIG), track=True, more=True)
    copied = copy.copy(frame)
    assert copied.part is frame.part
    assert (copied.tracker, copied.more) == (frame.tracker, True)


def test_message_is_the_older_name():
    assert Message is Frame


def test_numbers_are_properties_by_option_by_item_and_by_attribute():
    frame = Frame(b"", more=True)
    assert frame.get(MessageOption.MORE) == frame[1] == frame.MORE == 1
    assert frame.get(MessageOption.SHARED) == frame.shared == 0


def test_texts_are_properties_by_name():
    frame = Frame(b"", properties={"User-Id": "ann"})
    assert frame["User-Id"] == frame.get("User-Id") == frame[b"User-Id"] == "ann"


@pytest.mark.parametrize("option", ["User-Id", MessageOption.SRCFD, 77])
def test_an_unknown_property_is_einval(option):
    with pytest.raises(ZMQError) as raised:
        Frame(b"").get(option)
    assert raised.value.errno == Errno.EINVAL


def test_a_property_has_a_number_or_a_name():
    with pytest.raises(TypeError, match="expected str, got: None"):
        Frame(b"").get(None)


def test_no_property_can_be_set():
    with pytest.raises(ZMQError) as raised:
        Frame(b"").set(MessageOption.MORE, 1)
    assert raised.value.errno == Errno.EINVAL
    with pytest.raises(TypeError, match="an integer is required"):
        Frame(b"").set("User-Id", "ann")


def test_an_unknown_attribute_is_no_option():
    with pytest.raises(AttributeError, match=r"^Frame has no such option: NOSUCH$"):
        _ = Frame(b"").nosuch
    assert not hasattr(Frame(b""), "nosuch")
    with pytest.raises(AttributeError):
        Frame(b"").nosuch = 1


@pytest.mark.parametrize("name, api", [("routing_id", "CLIENT-SERVER"), ("group", "RADIO-DISH")])
def test_what_only_drafts_have_is_refused_as_by_pyzmq_without_them(name, api):
    text = f"libzmq and pyzmq must be built with draft support for {api}"
    with pytest.raises(RuntimeError, match=text):
        getattr(Frame(b""), name)
    with pytest.raises(RuntimeError, match=text):
        Frame(b"").set(name, 1)


def test_more_may_be_set_by_the_application():
    frame = Frame(b"")
    frame.more = True
    assert frame.get(MessageOption.MORE) == 1


def test_a_frame_of_a_frame_has_its_octets():
    assert Frame(Frame(b"abc")).bytes == b"abc"


def test_only_a_frame_made_to_be_tracked_has_a_tracker():
    assert Frame(BIG).tracker is None
    assert isinstance(Frame(BIG, track=True).tracker, MessageTracker)
    assert Frame(track=True).tracker.done
    assert Frame(b"small", track=True).tracker.done


@pytest.mark.parametrize("data", [bytearray(BIG), BIG], ids=["bytearray", "bytes"])
def test_the_tracker_is_done_when_the_frame_is_gone(data):
    frame = Frame(data, track=True)
    tracker = frame.tracker
    assert not tracker.done
    assert len(frame.buffer) == len(BIG)  # looking at it changes nothing
    del frame
    assert tracker.done


def test_from_python_3_12_on_a_frame_is_a_buffer():
    if sys.version_info >= (3, 12):
        assert bytes(memoryview(Frame(b"abc"))) == b"abc"
    else:
        assert bytes(Frame(b"abc").buffer) == b"abc"
