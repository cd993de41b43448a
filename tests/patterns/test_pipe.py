"""The queue between a socket and a peer: limits, the low-water mark, and the notes it leaves."""

import pytest

from tests.patterns.world import EmptiedWhenFull
from zerohop.patterns.pipe import Pipe


def make_pipe(hwm=0, *, conflate=False):
    pipe = Pipe(hwm, conflate=conflate)
    pipe.reader, pipe.writer = "the reader", "the writer"
    return pipe


def fill(pipe, count):
    for number in range(count):
        pipe.push(b"%d" % number)


def test_first_in_is_first_out():
    pipe = make_pipe()
    fill(pipe, 3)
    assert [pipe.pop(), pipe.pop(), pipe.pop()] == [b"0", b"1", b"2"]


def test_an_empty_pipe_has_nothing_to_pop():
    with pytest.raises(IndexError):
        make_pipe().pop()


def test_a_pipe_is_full_at_its_high_water_mark():
    pipe = make_pipe(hwm=3)
    fill(pipe, 2)
    assert not pipe.full
    pipe.push(b"third")
    assert pipe.full


def test_a_pipe_without_high_water_mark_is_never_full():
    pipe = make_pipe(hwm=0)
    fill(pipe, 10_000)
    assert not pipe.full


@pytest.mark.parametrize(("hwm", "left_when_it_resumes"), [(1, 0), (2, 1), (3, 1), (10, 5)])
def test_a_full_pipe_resumes_when_half_is_drained(hwm, left_when_it_resumes):
    pipe = make_pipe(hwm=hwm)
    fill(pipe, hwm)
    while pipe.full:
        pipe.pop()
    assert len(pipe) == left_when_it_resumes
    assert pipe.writer_signals == ["the writer"]


def test_the_writer_gets_one_note_for_a_whole_drain():
    pipe = make_pipe(hwm=4)
    fill(pipe, 4)
    for _ in range(4):
        pipe.pop()
    assert pipe.writer_signals == ["the writer"]


def test_a_writer_that_was_never_stopped_gets_no_note():
    pipe = make_pipe(hwm=4)
    fill(pipe, 3)
    pipe.pop()
    assert pipe.writer_signals == []


def test_messages_taken_past_pop_are_reported_by_drained():
    pipe = make_pipe(hwm=2)
    fill(pipe, 2)
    pipe.drained()
    assert pipe.full
    pipe.messages.popleft()
    pipe.drained()
    assert not pipe.full
    assert pipe.writer_signals == ["the writer"]


def test_only_the_first_push_wakes_a_sleeping_reader():
    pipe = make_pipe()
    fill(pipe, 3)
    assert pipe.reader_signals == ["the reader"]


def test_a_reader_that_found_nothing_sleeps_and_is_woken_again():
    pipe = make_pipe()
    pipe.push(b"a")
    pipe.pop()
    assert pipe.sleep()
    pipe.push(b"b")
    assert pipe.reader_signals == ["the reader", "the reader"]


def test_a_reader_may_not_sleep_on_a_message():
    pipe = make_pipe()
    pipe.push(b"a")
    assert not pipe.sleep()
    assert not pipe.asleep


def test_a_batch_is_queued_whole_even_over_the_high_water_mark():
    pipe = make_pipe(hwm=2)
    pipe.extend([b"a", b"b", b"c"])
    assert list(pipe.messages) == [b"a", b"b", b"c"]
    assert pipe.full
    assert pipe.reader_signals == ["the reader"]


def test_an_empty_batch_wakes_nobody():
    pipe = make_pipe()
    pipe.extend([])
    assert pipe.asleep
    assert pipe.reader_signals == []


def test_a_batch_to_a_reader_awake_leaves_no_note():
    pipe = make_pipe()
    pipe.extend([b"a"])
    pipe.extend([b"b"])
    assert pipe.reader_signals == ["the reader"]


def test_a_message_can_be_put_before_all_others():
    pipe = make_pipe(hwm=2)
    pipe.push(b"second")
    pipe.push_first(b"first")
    assert list(pipe.messages) == [b"first", b"second"]
    assert pipe.full


def test_the_first_message_wakes_the_reader_too():
    pipe = make_pipe()
    pipe.push_first(b"first")
    assert pipe.reader_signals == ["the reader"]
    assert not pipe.full


def test_conflate_keeps_the_last_message_only_and_is_never_full():
    pipe = make_pipe(hwm=1, conflate=True)
    pipe.push([b"old", b"parts"])
    pipe.push([b"new", b"parts"])
    assert list(pipe.messages) == [[b"new", b"parts"]]
    assert not pipe.full


def test_raising_the_high_water_mark_of_a_full_pipe_resumes_its_writer():
    pipe = make_pipe(hwm=2)
    fill(pipe, 2)
    pipe.set_hwm(3)
    assert not pipe.full
    assert pipe.writer_signals == ["the writer"]


def test_taking_the_high_water_mark_away_resumes_the_writer():
    pipe = make_pipe(hwm=2)
    fill(pipe, 2)
    pipe.set_hwm(0)
    assert pipe.writer_signals == ["the writer"]


def test_lowering_the_high_water_mark_under_what_is_queued_stops_the_writer():
    pipe = make_pipe(hwm=5)
    fill(pipe, 3)
    pipe.set_hwm(2)
    assert pipe.full
    assert len(pipe) == 3


def test_changing_the_high_water_mark_of_a_pipe_with_room_changes_nothing_else():
    pipe = make_pipe(hwm=5)
    fill(pipe, 1)
    pipe.set_hwm(4)
    assert not pipe.full
    assert pipe.writer_signals == []


@pytest.mark.parametrize(
    "write",
    [
        lambda pipe: pipe.push(b"2"),
        lambda pipe: pipe.push_first(b"2"),
        lambda pipe: pipe.extend([b"2", b"3"]),
        lambda pipe: pipe.messages.append(b"2") or pipe.set_hwm(2),
    ],
    ids=["push", "push_first", "extend", "set_hwm"],
)
def test_a_pipe_that_was_emptied_before_it_was_marked_full_is_not_full(write):
    """Its reader left no note, because nobody had stopped: the writer would wait for ever."""
    pipe = make_pipe(hwm=2)
    pipe.messages = EmptiedWhenFull(hwm=2)
    pipe.push(b"1")
    write(pipe)
    assert not pipe.full


def test_a_pipe_is_marked_full_only_while_it_is_over_half_full():
    pipe = make_pipe(hwm=2)
    fill(pipe, 1)
    pipe.mark_full()
    assert not pipe.full
    fill(pipe, 1)
    pipe.mark_full()
    assert pipe.full
