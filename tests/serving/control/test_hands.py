"""Threads that carry out what users give: in order, no more than are needed, and left when hung."""

import threading

import pytest

from zerohop.serving.control.hands import Hands, call_in_thread

SECONDS = 20.0


async def later():
    return 3


def test_what_is_given_is_carried_out_in_order():
    done, ended = [], threading.Event()
    hands = Hands(1, "hands")
    for number in range(100):
        hands.give(lambda number=number: done.append(number))
    hands.give(ended.set)
    assert ended.wait(SECONDS)
    hands.close(SECONDS)
    assert done == list(range(100))


def test_as_many_work_side_by_side_as_there_are_hands():
    both = threading.Barrier(2)
    hands = Hands(2, "hands")
    met = []
    for _ in range(2):
        hands.give(lambda: met.append(both.wait(SECONDS)))
    hands.close(None)
    assert sorted(met) == [0, 1]


def test_there_is_no_thread_before_there_is_work():
    before = threading.active_count()
    hands = Hands(8, "hands")
    assert threading.active_count() == before
    hands.close(SECONDS)


def test_what_hangs_is_left_to_itself_and_what_waits_is_not_begun(caplog):
    begun, may_end, done = threading.Event(), threading.Event(), []
    hands = Hands(1, "hands")
    hands.give(lambda: begun.set() or may_end.wait(SECONDS))
    hands.give(lambda: done.append(1))
    assert begun.wait(SECONDS)
    hands.close(0.0)
    [thread] = [each for each in threading.enumerate() if each.name == "hands-0"]
    assert thread.daemon  # the interpreter does not wait for it
    may_end.set()
    thread.join(SECONDS)
    assert done == []
    assert "hands-0 is still at work and is left to itself" in caplog.text


@pytest.mark.parametrize("timeout", [20.0, None])
def test_what_is_at_work_is_waited_for_as_long_as_it_may_take(timeout):
    class AtWork:
        name = "hands-0"
        waited = ()

        def join(self, seconds):
            self.waited = (*self.waited, seconds)

        def is_alive(self):
            return False

    hands, thread = Hands(1, "hands"), AtWork()
    hands._threads.append(thread)
    hands.close(timeout)
    [waited] = thread.waited
    assert waited is None if timeout is None else 0 < waited <= 20.0


def test_what_is_carried_out_may_close_them():
    closed = threading.Event()
    hands = Hands(1, "hands")
    hands.give(lambda: hands.close(None) or closed.set())
    assert closed.wait(SECONDS)


def test_what_is_given_to_who_has_closed_is_not_carried_out():
    done = []
    hands = Hands(1, "hands")
    hands.close(SECONDS)
    hands.close(SECONDS)
    before = threading.active_count()
    hands.give(lambda: done.append(1))
    assert (done, threading.active_count()) == ([], before)


def test_a_function_is_called_with_its_arguments():
    assert call_in_thread(max, [2, 3]) == 3


def test_a_coroutine_function_is_an_error_and_its_coroutine_is_ended():
    with pytest.raises(TypeError, match="is a coroutine function, and there is no event loop"):
        call_in_thread(later, [])
