import array

import numpy as np
import pytest

from tests.wire.kit import calls_during
from zerohop.api.frame import Frame
from zerohop.api.parts import (
    check_buffer,
    check_parts,
    copy_into,
    make_message,
    make_part,
    plain_message,
    refuse_draft_arguments,
    to_message,
    to_part,
)

BIG = bytes(70_000)
THRESHOLD = 65_536


def made(data, *, copy=False, track=False):
    return make_part(data, copy=copy, track=track, copy_threshold=THRESHOLD)


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize(
    "data",
    [
        b"abcd",
        bytearray(b"abcd"),
        memoryview(b"abcd"),
        array.array("H", b"abcd"),
        np.frombuffer(b"abcd", dtype=">u2"),
        Frame(b"abcd"),
    ],
    ids=["bytes", "bytearray", "memoryview", "array", "numpy", "Frame"],
)
def test_a_part_is_the_octets_of_whatever_has_any(data, copy):
    assert bytes(to_part(data, copy=copy)) == b"abcd"


def test_bytes_and_a_frames_part_pass_through():
    frame = Frame(bytearray(BIG), copy=False)
    assert to_part(BIG) is BIG
    assert to_part(BIG, copy=False) is BIG
    assert to_part(frame) is frame.part


class Labelled(bytes):
    pass


def test_a_subclass_of_bytes_travels_as_bytes():
    assert type(to_part(Labelled(b"abc"))) is bytes


@pytest.mark.parametrize(
    "array_", [np.zeros((0, 3)), np.array(5, dtype="u1"), np.zeros((2, 2), dtype="f2")],
    ids=["empty", "no dimension", "half floats"],
)  # fmt: skip
def test_arrays_of_any_shape_have_octets(array_):
    assert bytes(to_part(array_, copy=False)) == array_.tobytes()


def test_a_copied_part_does_not_change_with_its_buffer_and_a_lent_one_does():
    data = bytearray(BIG)
    copied, lent = to_part(data), to_part(data, copy=False)
    data[0] = 1
    assert (copied[0], lent[0]) == (0, 1)


@pytest.mark.parametrize(
    "data, error, text",
    [
        ("x", TypeError, "unicode not allowed, use send_string"),
        (None, TypeError, "a bytes-like object is required, not 'NoneType'"),
        (5, TypeError, "a bytes-like object is required, not 'int'"),
        ({}, TypeError, "a bytes-like object is required, not 'dict'"),
        (memoryview(b"abcd")[::2], BufferError, "memoryview: underlying buffer is not contiguous"),
        (np.zeros(8)[::2], BufferError, "memoryview: underlying buffer is not contiguous"),
    ],
)
@pytest.mark.parametrize("copy", [True, False])
def test_what_cannot_be_sent_is_refused_in_pyzmqs_words(data, error, text, copy):
    with pytest.raises(error) as raised:
        to_part(data, copy=copy)
    assert str(raised.value) == text


def test_a_copy_is_not_tracked():
    assert made(bytearray(BIG), copy=True, track=True)[1] is None
    assert made(b"abc", copy=True, track=True) == (b"abc", None)


def test_small_data_is_copied_and_therefore_done():
    data = bytearray(b"abc")
    part, tracker = made(data, track=True)
    assert (type(part), tracker.done) == (bytes, True)
    assert made(data)[1].done  # pyzmq returns it unasked


@pytest.mark.parametrize("data", [bytearray(BIG), BIG], ids=["bytearray", "bytes"])
def test_large_data_is_tracked_when_asked(data):
    assert made(data)[1] is None
    part, tracker = made(data, track=True)
    assert not tracker.done
    assert bytes(part) == BIG
    del part
    assert tracker.done


def test_a_frame_brings_its_own_tracker():
    tracked, untracked = Frame(BIG, track=True), Frame(BIG)
    assert made(tracked, copy=True) == (tracked.part, tracked.tracker)
    assert made(untracked) == (BIG, None)
    with pytest.raises(ValueError, match=r"^Not a tracked message$"):
        made(untracked, track=True)


@pytest.mark.parametrize(
    "parts, text",
    [
        (["x"], "Frame 0 ('x') does not support the buffer interface."),
        (b"abc", "Frame 0 (97) does not support the buffer interface."),
        ([b"a", None], "Frame 1 (None) does not support the buffer interface."),
        (
            [b"a", "x" * 40],
            f"Frame 1 ('{'x' * 31}...) does not support the buffer interface.",
        ),
        (5, "'int' object is not iterable"),
    ],
)
def test_a_wrong_part_is_named_before_anything_is_sent(parts, text):
    with pytest.raises(TypeError) as raised:
        check_parts(parts)
    assert str(raised.value) == text


def test_a_message_has_a_part():
    with pytest.raises(IndexError, match=r"^list index out of range$"):
        check_parts([])


def test_parts_may_come_from_any_iterable():
    assert check_parts(part for part in (b"a", b"b")) == [b"a", b"b"]


@pytest.mark.parametrize(
    "parts, message",
    [
        ([b"a", b"b"], [b"a", b"b"]),
        ((b"a", b"b"), [b"a", b"b"]),
        ([b"a"], b"a"),
        ((b"",), b""),
        ([], None),
        ((), None),
        (b"ab", None),
        (iter([b"a"]), None),
        ([b"a", "b"], None),
        ([bytearray(b"a"), b"b"], None),
        ([b"a", Labelled(b"b")], None),
        ([b"a", Frame(b"b")], None),
        ([b"a", memoryview(b"b")], None),
    ],
)
def test_octets_alone_need_no_close_look(parts, message):
    assert plain_message(parts) == message


def test_what_is_done_to_a_list_after_it_was_sent_is_not_seen():
    parts = [b"a", b"b"]
    plain, (careful, _) = plain_message(parts), made_of(parts)
    parts.append(b"c")
    assert plain == careful == [b"a", b"b"]


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("track", [True, False])
def test_octets_alone_are_not_lent_unless_tracked(copy, track):
    message, tracker = made_of([b"a", BIG], copy=copy, track=track)
    assert [type(part) for part in message] == [bytes, memoryview if track and not copy else bytes]
    assert (tracker is None) == copy


def made_of(parts, *, copy=True, track=False):
    return make_message(parts, copy=copy, track=track, copy_threshold=THRESHOLD)


def test_a_message_of_octets_costs_no_call_a_part():
    """A call for itself and one for the number of parts."""
    assert calls_during(plain_message, [b"x"] * 50) <= 2
    assert calls_during(made_of, [b"x"] * 50) <= 4


def test_one_tracker_watches_every_part():
    message, tracker = make_message(
        [BIG, b"small", bytearray(BIG)], copy=False, track=True, copy_threshold=THRESHOLD
    )
    first, small, last = message
    assert small == b"small"
    del message, first
    assert not tracker.done
    del last
    assert tracker.done


@pytest.mark.parametrize(
    "parts, message", [([b"a"], b"a"), ([b"a", b"b"], [b"a", b"b"]), ([b"", b""], [b"", b""])]
)
def test_a_message_of_one_part_travels_bare(parts, message):
    assert to_message(parts) == message
    assert make_message(parts, copy=True, track=False, copy_threshold=0) == (message, None)


@pytest.mark.parametrize(
    "size, nbytes, filled",
    [(2, 0, b"ab"), (5, 0, b"abc\0\0"), (5, 1, b"a\0\0\0\0"), (3, 3, b"abc")],
)
def test_copying_into_a_buffer_tells_the_size_of_the_part(size, nbytes, filled):
    buffer = bytearray(size)
    assert copy_into(b"abc", buffer, nbytes) == 3
    assert buffer == filled


def test_any_writable_buffer_can_be_copied_into():
    numbers = array.array("H", [0, 0])
    assert copy_into(memoryview(b"abcd"), numbers) == 4
    assert numbers.tobytes() == b"abcd"


@pytest.mark.parametrize(
    "buffer, nbytes, error, text",
    [
        (b"ro", 0, BufferError, "memoryview: underlying buffer is not writable"),
        (memoryview(bytearray(4))[::2], 0, BufferError,
         "memoryview: underlying buffer is not contiguous"),
        (5, 0, TypeError, "memoryview: a bytes-like object is required, not 'int'"),
        (bytearray(5), 9, ValueError, "nbytes=9 too big for memoryview of 5B"),
        (bytearray(5), -1, ValueError, "nbytes=-1 too big for memoryview of 5B"),
    ],
)  # fmt: skip
def test_a_buffer_that_cannot_be_filled_is_refused(buffer, nbytes, error, text):
    with pytest.raises(error) as raised:
        check_buffer(buffer, nbytes)
    assert str(raised.value) == text


def test_draft_arguments_are_refused_as_by_pyzmq_without_drafts():
    refuse_draft_arguments(None, None)
    with pytest.raises(RuntimeError, match=r"draft support for CLIENT-SERVER$"):
        refuse_draft_arguments(1, None)
    with pytest.raises(RuntimeError, match=r"draft support for RADIO-DISH$"):
        refuse_draft_arguments(None, "group")
