import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.kit import calls_during
from zerohop.api.parts import to_message
from zerohop.api.receive import as_frame, as_frames, as_message, as_octets, as_octets_list


@given(st.lists(st.binary(max_size=8), min_size=1))
def test_parts_make_a_message_and_a_message_has_these_parts(parts):
    assert as_octets_list(to_message(list(parts))) == parts
    assert [frame.bytes for frame in as_frames(to_message(list(parts)))] == parts


@pytest.mark.parametrize(
    "message, given",
    [
        (b"a", b"a"),
        (memoryview(b"a"), b"a"),
        ([b"a", memoryview(b"b")], [b"a", b"b"]),
    ],
)
def test_iteration_gives_octets_or_a_list_of_them(message, given):
    got = as_message(message)
    assert got == given
    assert {type(part) for part in (got if type(got) is list else [got])} == {bytes}


def test_what_travelled_as_a_view_is_received_as_octets():
    assert as_octets_list(memoryview(b"abc")) == [b"abc"]
    assert type(as_octets(memoryview(b"abc"))) is bytes


def test_octets_are_not_copied():
    data = bytes(1000)
    assert as_octets(data) is as_octets_list(data)[0] is as_message(data) is as_frame(data).bytes


def test_the_list_is_the_callers_own():
    """PUB over inproc gives all its SUBs the same message."""
    for message in ([b"a", b"b"], [b"a", memoryview(b"b")]):
        received = as_octets_list(message)
        received.append(b"c")
        assert len(message) == 2


def test_a_part_that_is_octets_is_not_copied_where_another_is_not():
    data = bytes(1000)
    assert as_octets_list([memoryview(b"a"), data])[1] is data


def test_a_message_of_octets_is_received_without_a_call_a_part():
    assert calls_during(as_octets_list, [b"x"] * 50) == 1


def test_frames_know_whether_more_follow_and_are_done():
    first, last = as_frames([b"a", b"b"])
    assert (first.more, last.more) == (True, False)
    assert as_frame(b"a", more=True).more
    assert first.tracker.done
