import threading

import pytest

from zerohop.api.frame import Frame
from zerohop.api.tracker import MessageTracker
from zerohop.errors import NotDone

BIG = bytes(70_000)


def test_a_tracker_of_nothing_is_done():
    tracker = MessageTracker()
    assert tracker.done
    tracker.wait()


def test_a_tracker_is_done_when_every_frame_it_watches_is_gone():
    first, second = Frame(BIG, track=True), Frame(BIG, track=True)
    tracker = MessageTracker(first, second.tracker)
    assert not tracker.done
    del first
    assert not tracker.done
    del second
    assert tracker.done
    tracker.wait(0)


def test_waiting_in_vain_raises_notdone():
    view = memoryview(BIG)
    tracker = MessageTracker(view)
    with pytest.raises(NotDone):
        tracker.wait(0)
    with pytest.raises(NotDone):
        tracker.wait(0.01)
    assert len(view) == len(BIG)


@pytest.mark.parametrize("timeout", [-1, None, 10])
def test_wait_returns_when_another_thread_lets_go(timeout):
    views = [memoryview(BIG)]
    tracker = MessageTracker(*views)
    waiting = threading.Thread(target=tracker.wait, args=(timeout,))
    waiting.start()
    assert waiting.is_alive()
    views.clear()
    waiting.join(10)
    assert not waiting.is_alive()


def test_an_event_can_be_watched():
    event = threading.Event()
    tracker = MessageTracker(event)
    with pytest.raises(NotDone):
        tracker.wait(0)
    event.set()
    assert tracker.done
    tracker.wait()


def test_a_frame_that_is_not_tracked_cannot_be_watched():
    with pytest.raises(ValueError, match=r"^Not a tracked message$"):
        MessageTracker(Frame(b"abc"))


def test_other_objects_cannot_be_watched():
    with pytest.raises(TypeError, match=r"^Require Events or Message Frames, not <class 'int'>$"):
        MessageTracker(5)
