"""The table of streams: each request ends once, for one reason, and nothing comes after it."""

import pytest

from zerohop.serving.engine.messages import Delta, Ended
from zerohop.serving.engine.streams import StreamTable
from zerohop.serving.errors import (
    DeadlineExceeded,
    EngineDead,
    EngineOverloaded,
    RequestRefused,
    SlowConsumer,
)

BOOT, OTHER = 11, 22


def opened(*numbers, boot=BOOT, seconds=None, limit=4):
    table = StreamTable(limit)
    return table, [table.open(n, "e0", boot, now=0, seconds=seconds) for n in numbers]


def deltas_of(table, *deltas, boot=BOOT):
    return table.deliver(boot, [], [], deltas)


def all_of(stream):
    return list(iter(stream.take, None))


def test_a_stream_is_found_by_its_number_while_it_is_open():
    table, (stream,) = opened(1)
    assert table.find(BOOT, 1) is stream
    assert table.find(BOOT, 2) is table.find(OTHER, 1) is None
    table.abort(stream)
    assert table.find(BOOT, 1) is None


def test_tokens_go_to_their_streams_in_order():
    table, (one, two) = opened(1, 2)
    assert table.deliver(BOOT, [1, 2], [[5, 6]]) == ([one, two], [])
    assert table.deliver(BOOT, [2, 1], [[7, 8]]) == ([], [])  # who has something was woken
    assert one.take() == Delta(1, [5, 8])
    assert two.take() == Delta(2, [6, 7])
    assert one.take() is None
    assert table.deliver(BOOT, [1], [[9]]) == ([one], [])


def test_tokens_of_several_steps_go_to_their_streams_in_the_order_of_the_steps():
    table, (one, two) = opened(1, 2)
    assert table.deliver(BOOT, [2, 1], [[5, 6], [7, 8]]) == ([two, one], [])
    assert one.take() == Delta(1, [6, 8])
    assert two.take() == Delta(2, [5, 7])


def test_of_several_steps_each_token_for_a_stream_that_has_ended_is_stale():
    table, (one,) = opened(1)
    table.deliver(BOOT, [1, 2], [[5, 6], [7, 8]])
    assert one.take() == Delta(1, [5, 7])
    assert table.stale == 2


def test_several_steps_at_once_end_a_stream_whose_reader_takes_nothing():
    table, (one,) = opened(1, limit=2)
    assert table.deliver(BOOT, [1], [[5], [6]])[1] == []
    assert table.deliver(BOOT, [1], [[7], [8]])[1] == [one]
    assert isinstance(one.error, SlowConsumer)
    assert one.error.__notes__ == ["it is the stream_limit of the client"]
    assert one.take() == Delta(1, [5, 6, 7, 8])


def test_deltas_go_to_their_streams_in_order():
    table, (one, two) = opened(1, 2)
    for step in range(2):
        woken, overflown = deltas_of(table, Delta(1, [5], None, step), Delta(2, [6]))
        assert (woken, overflown) == ([one, two], [])
    assert [d.extra for d in all_of(one)] == [0, 1]


def test_tokens_of_several_steps_that_were_not_read_are_one_delta():
    table, (one,) = opened(1)
    table.deliver(BOOT, [1], [[5]])
    deltas_of(table, Delta(1, [6, 7]))
    table.deliver(BOOT, [1], [[8]])
    deltas_of(table, Delta(1, [9], "stop"))
    assert all_of(one) == [Delta(1, [5, 6, 7, 8, 9], "stop")]
    assert one.ended


def test_a_delta_with_something_else_in_it_stays_a_delta_of_its_own():
    table, (one,) = opened(1)
    table.deliver(BOOT, [1], [[5]])
    deltas_of(table, Delta(1, [6], None, "x"))
    table.deliver(BOOT, [1], [[7]])
    table.deliver(BOOT, [1], [[8]])
    assert all_of(one) == [Delta(1, [5]), Delta(1, [6], None, "x"), Delta(1, [7, 8])]


def test_what_a_reader_has_taken_is_not_added_to():
    table, (one,) = opened(1)
    table.deliver(BOOT, [1], [[5]])
    taken = one.take()
    table.deliver(BOOT, [1], [[6]])
    assert taken == Delta(1, [5])


def test_a_delta_with_finish_ends_the_stream_without_error():
    table, (one,) = opened(1)
    deltas_of(table, Delta(1, [5], "stop"))
    assert one.ended
    assert one.error is None
    assert all_of(one) == [Delta(1, [5], "stop")]
    assert len(table) == table.load(BOOT) == 0


def test_what_comes_after_the_end_is_counted_and_thrown_away():
    table, (one,) = opened(1)
    deltas_of(table, Delta(1, [5], "stop"), Delta(1, [6]))
    table.deliver(BOOT, [1], [[7]])
    assert all_of(one) == [Delta(1, [5], "stop")]
    assert table.stale == 2


def test_outputs_of_another_life_find_nothing():
    table, (one,) = opened(1)
    assert table.deliver(OTHER, [1], [[5]], [Delta(1, [5])]) == ([], [])
    assert table.end(OTHER, [Ended(1, "refused")]) == []
    assert one.take() is None
    assert not one.ended
    assert table.stale == 3


@pytest.mark.parametrize(
    "ended, error, said",
    [
        (Ended(1, "refused", "too long"), RequestRefused, "too long"),
        (Ended(1, "overloaded", limit=8), EngineOverloaded, "8"),
        (Ended(1, "slow", limit=9), SlowConsumer, "9"),
        (Ended(1, "of a later version", "x"), RequestRefused, "x"),
    ],
)
def test_the_engine_may_end_a_request_and_says_why(ended, error, said):
    table, (one,) = opened(1)
    assert table.end(BOOT, [ended]) == [one]
    assert one.ended
    assert isinstance(one.error, error)
    assert said in str(one.error)


@pytest.mark.parametrize("kind, limit", [("overloaded", "max_requests"), ("slow", "outputs_limit")])
def test_where_the_engine_has_a_limit_the_error_names_it(kind, limit):
    table, (one,) = opened(1)
    table.end(BOOT, [Ended(1, kind, limit=2)])
    assert one.error.__notes__ == [f"it is the {limit} of the engine"]


def test_a_gone_engine_takes_its_streams_with_it_and_no_others():
    table, (one, two) = opened(1, 2)
    third = table.open(3, "e1", OTHER, now=0)
    assert table.engine_gone(BOOT, "it was killed") == [one, two]
    assert isinstance(one.error, EngineDead)
    assert (one.error.engine, one.error.reason) == ("e0", "it was killed")
    assert not third.ended
    assert table.engine_gone(BOOT, "again") == []


def test_a_deadline_ends_a_stream_in_its_time():
    table, (one,) = opened(1, seconds=5)
    assert table.next_deadline() == 5
    assert table.handle_deadline(4.9) == []
    assert table.handle_deadline(5) == [one]
    assert isinstance(one.error, DeadlineExceeded)
    assert one.error.seconds == 5
    assert table.next_deadline() is None


def test_deadlines_are_kept_in_their_order():
    table = StreamTable()
    later = table.open(1, "e0", BOOT, now=0, seconds=9)
    sooner = table.open(2, "e0", BOOT, now=0, seconds=3)
    table.open(3, "e0", BOOT, now=0)
    assert table.next_deadline() == 3
    assert table.handle_deadline(10) == [sooner, later]


def test_a_stream_that_has_ended_has_no_deadline_any_more():
    table, (one,) = opened(1, seconds=5)
    deltas_of(table, Delta(1, [], "stop"))
    assert table.next_deadline() is None
    assert table.handle_deadline(6) == []
    assert one.error is None


def test_deadlines_of_streams_that_have_ended_do_not_pile_up():
    table = StreamTable()
    table.open(0, "e0", BOOT, now=0, seconds=1)  # the first, so that none leaves at the head
    for number in range(1, 1000):
        table.open(number, "e0", BOOT, now=0, seconds=600)
        deltas_of(table, Delta(number, [], "stop"))
    assert len(table._deadlines) < 100


def test_a_reader_that_takes_nothing_loses_its_stream_and_the_engine_is_to_be_told():
    table, (one, two) = opened(1, 2, limit=2)
    for token in range(2):
        assert table.deliver(BOOT, [1, 2], [[token, token]])[1] == []
        two.take()
    woken, overflown = table.deliver(BOOT, [1, 2], [[2, 2]])
    assert overflown == [one]
    assert woken == [two]
    assert isinstance(one.error, SlowConsumer)
    assert not two.ended


@pytest.mark.parametrize("extra", [None, "x"])
def test_deltas_that_nobody_takes_end_their_stream_too(extra):
    table, (one,) = opened(1, limit=2)
    for _ in range(2):
        assert deltas_of(table, Delta(1, [5], None, extra))[1] == []
    assert deltas_of(table, Delta(1, [5], None, extra))[1] == [one]
    assert isinstance(one.error, SlowConsumer)


def test_an_abort_ends_a_stream_once_and_drops_what_was_not_read():
    table, (one,) = opened(1)
    deltas_of(table, Delta(1, [5], None, "x"), Delta(1, [6]))
    assert table.abort(one)
    assert not table.abort(one)
    assert one.ended
    assert one.take() is None
    assert table.load(BOOT) == 0


def test_nothing_is_to_be_aborted_of_a_stream_that_has_ended():
    table, (one,) = opened(1)
    deltas_of(table, Delta(1, [5], "stop"))
    assert not table.abort(one)


def test_what_the_engine_says_of_a_stream_that_has_ended_is_stale():
    table, (one,) = opened(1)
    table.abort(one)
    assert table.end(BOOT, [Ended(1, "refused")]) == []
    assert table.stale == 1
    assert one.error is None
