"""Both kinds of actors: what they take, when they have a turn, and how they end."""

import asyncio
import contextlib
import threading
import time

import pytest

import zerohop as zmq
import zerohop.asyncio
from tests.serving.control.running import SECONDS, run, until
from zerohop.serving.actor import Actor, ActorThread, Waker, bound, milliseconds_until, waiting
from zerohop.serving.asyncio_actor import ActorTask
from zerohop.serving.asyncio_closing import AsyncClosing

ANYWHERE = "tcp://127.0.0.1:*"


class Recording(Actor):
    """An actor that answers what it takes, and keeps what happens to it."""

    _name = "recording"

    def __init__(self, endpoint=ANYWHERE, delays=(), fails=()):
        super().__init__()
        self.happened, self._delays, self._fails = [], list(delays), fails
        with self._starting():
            self._router = bound(self._context.socket(zmq.ROUTER), endpoint)
            self._router.linger = 5000
            self.endpoint = self._router.last_endpoint.decode()
            self._listen(self._router, self._take)

    def _take(self, frames, now):
        if "take" in self._fails:
            raise LookupError("it fails")
        self.happened.append(frames[-1].decode())
        self._send(self._router, frames)

    def _leave(self):
        self.happened.append("leave")

    def _turn(self, now):
        self.happened.append("turn")
        if "turn" in self._fails:
            raise LookupError("it fails")
        return now + self._delays.pop(0) if self._delays else None


class InAThread(Recording, ActorThread, AsyncClosing):
    async def ended(self):
        await asyncio.to_thread(self._wait_ended)

    def _wait_ended(self):
        with self._changed:
            assert self._changed.wait_for(lambda: self._is_closed, SECONDS)

    async def _close(self):
        await asyncio.to_thread(self.close)


class OnALoop(Recording, ActorTask):
    async def ended(self):
        await self._until(lambda: False)


@pytest.fixture(params=[InAThread, OnALoop], ids=["thread", "task"])
def kind(request):
    return request.param


async def ask(endpoint, *messages):
    """Send texts; return what comes back, one for each."""
    async with zerohop.asyncio.Context() as context:
        with context.socket(zmq.DEALER) as dealer:
            dealer.linger = 0
            dealer.connect(endpoint)
            for message in messages:
                await dealer.send_string(message)
            return [await dealer.recv_string() for _ in messages]


def test_it_has_a_turn_when_it_begins_and_none_without_a_reason(kind):
    async def body():
        async with kind() as actor:
            await until(lambda: actor.happened)
            assert await ask(actor.endpoint, "x") == ["x"]
            await until(lambda: actor.happened == ["turn", "x", "turn"])

    run(body())


def test_each_message_is_taken_before_the_turn_that_follows_it(kind):
    async def body():
        async with kind() as actor:
            sent = [str(n) for n in range(1000)]
            assert await ask(actor.endpoint, *sent) == sent
            await until(lambda: actor.happened[-1] == "turn")
            assert [each for each in actor.happened if each != "turn"] == sent

    run(body())


def test_it_has_another_turn_when_it_said_so(kind):
    async def body():
        async with kind(delays=[0.001, 0.0, -1.0]) as actor:
            await until(lambda: actor.happened == ["turn"] * 4)

    run(body())


def test_any_number_of_wakes_is_a_turn(kind):
    async def body():
        async with kind() as actor:
            await until(lambda: actor.happened)
            for _ in range(5000):
                actor._wake()
            await until(lambda: len(actor.happened) > 1)
        assert set(actor.happened) == {"turn", "leave"}

    run(body())


def test_a_wake_where_a_turn_is_due_makes_no_timer():
    async def body():
        async with OnALoop() as actor:
            due = actor._next_turn
            actor._wake()
            assert actor._next_turn is due

    run(body())


def test_the_last_turn_follows_the_farewell_and_then_its_sockets_are_closed(kind):
    async def body():
        actor = kind()
        await actor.aclose()
        await actor.aclose()
        assert actor.happened[-2:] == ["leave", "turn"]
        assert actor.happened.count("leave") == 1
        assert actor._router.closed
        actor._wake()
        async with zerohop.asyncio.Context() as context:
            with context.socket(zmq.ROUTER) as router:
                router.bind(actor.endpoint)

    run(body())


def test_of_an_actor_that_cannot_open_its_sockets_nothing_is_left(kind):
    async def body():
        async with kind() as actor:
            with pytest.raises(zmq.ZMQError):
                kind(actor.endpoint)
        assert "recording" not in {thread.name for thread in threading.enumerate()}

    run(body())


@pytest.mark.parametrize("where", ["take", "turn"])
def test_one_that_fails_says_so_and_ends_and_nobody_waits_for_it(kind, where, monkeypatch):
    complaints = []
    monkeypatch.setattr(threading, "excepthook", lambda it: complaints.append(it.exc_value))

    async def body():
        asyncio.get_running_loop().set_exception_handler(
            lambda _, it: complaints.append(it["exception"])
        )
        actor = kind(fails=[where])
        async with zerohop.asyncio.Context() as context:
            with context.socket(zmq.DEALER) as dealer:
                dealer.linger = 0
                dealer.connect(actor.endpoint)
                await dealer.send(b"x")
                await actor.ended()
        await until(lambda: actor._router.closed)
        await until(lambda: complaints)
        assert {str(each) for each in complaints} == {"it fails"}
        with contextlib.suppress(LookupError):  # a farewell is a turn, too
            await actor.aclose()

    run(body())


def test_what_nobody_is_there_to_hear_is_not_waited_for(kind):
    async def body():
        async with kind() as actor:
            push = actor._context.socket(zmq.PUSH)
            for _ in range(10):
                actor._send(push, [b"x"])
        assert push.closed

    run(body())


def test_a_thread_that_is_at_work_is_waited_for_no_longer_than_it_may_be_and_ends_all_the_same():
    at_work, may_end = threading.Event(), threading.Event()

    class AtWork(InAThread):
        def _turn(self, now):
            at_work.set()
            may_end.wait(SECONDS)

    actor = AtWork()
    assert at_work.wait(SECONDS)
    actor.close(timeout=0.01)
    assert not actor._router.closed
    may_end.set()
    actor.close()
    assert actor._router.closed


def test_a_thread_may_end_itself_while_it_takes_a_message():
    class EndsItself(InAThread):
        def _take(self, frames, now):
            super()._take(frames, now)
            self.close()

    async def body():
        actor = EndsItself()
        assert await ask(actor.endpoint, "x") == ["x"]
        await until(lambda: actor._router.closed)
        assert actor.happened[-3:] == ["turn", "leave", "turn"]

    run(body())


def test_who_is_cancelled_while_an_actor_ends_does_not_stop_it_from_ending():
    async def body():
        may_end = asyncio.Event()

        async def work():
            try:
                await asyncio.Event().wait()
            finally:
                await may_end.wait()

        actor = OnALoop()
        actor._spawn(work())
        await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(actor.aclose(), 0.01)
        assert not actor._router.closed
        may_end.set()
        await actor.aclose()
        assert actor.happened[-2:] == ["leave", "turn"]
        assert actor._router.closed

    run(body())


def test_what_is_at_work_on_a_loop_ends_with_the_actor():
    async def body():
        ended = []

        async def work():
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("work")

        async with OnALoop() as actor:
            actor._spawn(work())
            await asyncio.sleep(0)
        assert ended == ["work"]

    run(body())


def test_what_the_last_turn_begins_on_a_loop_ends_with_the_actor():
    class ListensLate(OnALoop):
        def _leave(self):
            self.late = self._context.socket(zmq.PULL)
            self._listen(self.late, self._take)

    async def body():
        complaints = []
        asyncio.get_running_loop().set_exception_handler(lambda _, it: complaints.append(it))
        actor = ListensLate()
        await actor.aclose()
        await until(lambda: asyncio.all_tasks() == {asyncio.current_task()})
        assert actor.late.closed
        assert complaints == []

    run(body())


def test_what_is_at_work_on_a_loop_may_end_its_actor_and_ends_after_it():
    async def body():
        ended = []

        async def work():
            await actor.aclose()
            ended.append("actor")
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("work")

        actor = OnALoop()
        actor._spawn(work())
        await until(lambda: ended == ["actor", "work"])
        assert actor._router.closed

    run(body())


def test_who_waits_for_something_after_a_turn_is_told_of_it_or_of_the_end():
    async def body():
        async with OnALoop() as actor:
            heard = asyncio.ensure_future(actor._until(lambda: "x" in actor.happened))
            for_ever = asyncio.ensure_future(actor._until(lambda: None))
            await ask(actor.endpoint, "x")
            assert await heard is True
            assert not for_ever.done()
        assert await for_ever is None

    run(body())


def test_an_actor_task_wants_a_loop_that_runs():
    with pytest.raises(RuntimeError, match="no running event loop"):
        OnALoop()


def test_a_waker_wakes_who_polls_from_another_thread():
    with zmq.Context() as context:
        waker, poller = Waker(context), zmq.Poller()
        poller.register(waker.receiver, zmq.POLLIN)
        thread = threading.Thread(target=waker.wake)
        thread.start()
        assert poller.poll(SECONDS * 1000) == [(waker.receiver, zmq.POLLIN)]
        thread.join()
        assert list(waiting(waker.receiver)) == [[b""]]
        context.destroy()
        waker.wake()


def test_what_waits_is_received_and_not_too_much_of_it():
    with zmq.Context() as context:
        waker = Waker(context)
        for _ in range(5):
            waker.wake()
        assert [len(list(waiting(waker.receiver, 3))) for _ in range(3)] == [3, 2, 0]
        context.destroy()


def test_how_long_to_poll_ends_after_the_deadline_never_before():
    assert milliseconds_until(None) is None
    assert milliseconds_until(0.0) == 0.0
    assert 900_000 < milliseconds_until(time.monotonic() + 1000.0) <= 1_000_001


def test_what_is_closed_on_a_loop_is_closed_at_the_end_of_a_with_whatever_happens():
    class Thing(AsyncClosing):
        is_closed = False

        async def _close(self):
            self.is_closed = True

    async def body():
        with pytest.raises(LookupError):
            async with Thing() as thing:
                raise LookupError
        assert thing.is_closed

    run(body())
