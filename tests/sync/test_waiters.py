"""Who waits in a socket, and who is woken by what."""

import threading
from types import SimpleNamespace

import pytest

from zerohop.constants import Errno, Flag
from zerohop.errors import ZMQError
from zerohop.io import lookout
from zerohop.io.reactor import Reactor
from zerohop.io.seat import FOREVER, Waiter
from zerohop.sync.waiters import AT_ONCE, IN, NEWS, OUT, OVER, POLLER, Waiters


class Core:
    """A socket's readiness, as a test says it; whether it has connections; who has room again."""

    now = 0

    def __init__(self):
        self.links = SimpleNamespace(open_links={}, to_resume=[])
        self.context = SimpleNamespace(writable=[])
        self.driver = SimpleNamespace(go_on_soon=self.go_on_soon)
        self.told = 0

    def ready(self, wanted):
        if self.now is None:
            raise ZMQError(Errno.ENOTSOCK)
        return self.now & wanted

    def go_on_soon(self):
        self.told += 1


@pytest.fixture
def reactor():
    reactor = Reactor(threading.RLock())
    with reactor.lock:
        yield reactor
    reactor.stop()


@pytest.fixture
def core():
    return Core()


@pytest.fixture
def waiters(core, reactor):
    return Waiters(core, reactor)


def join(waiters, reactor, *masks):
    """Let calls wait for these masks, in this order."""
    made = [Waiter(reactor) for _ in masks]
    for waiter, mask in zip(made, masks, strict=True):
        waiters.add(waiter, mask)
    return made


def done(made):
    return [waiter.done for waiter in made]


def test_nobody_waits_at_first(waiters, reactor):
    assert not waiters.waiting
    join(waiters, reactor, IN)
    assert waiters.waiting


def test_nobody_is_woken_while_the_socket_is_not_ready(waiters, reactor):
    made = join(waiters, reactor, IN, OUT, IN | POLLER)
    waiters.wake()
    assert done(made) == [False] * 3


def test_one_receiver_and_one_sender_are_woken_and_all_who_only_look(waiters, reactor, core):
    made = join(waiters, reactor, IN, IN, OUT, OUT, IN | OUT | POLLER, OUT | POLLER)
    core.now = IN | OUT
    waiters.wake()
    assert done(made) == [True, False, True, False, True, True]


def test_who_leaves_something_wakes_the_next(waiters, reactor, core):
    made = join(waiters, reactor, IN, IN, IN)
    core.now = IN
    waiters.wake()
    waiters.remove(made[0])
    assert done(made) == [True, True, False]
    core.now = 0
    waiters.remove(made[1])
    assert done(made) == [True, True, False]


@pytest.mark.parametrize(
    "who", [lambda core: core.links.to_resume, lambda core: core.context.writable]
)
def test_who_has_got_room_by_it_that_somebody_looked_goes_on_soon(waiters, core, who):
    core.now = IN | OUT
    assert waiters.ready(OUT) == OUT
    assert core.told == 0
    who(core).append("a peer")
    assert waiters.ready(IN) == IN
    assert core.told == 1


def test_news_wake_who_waits_for_anything_at_all(waiters, reactor):
    made = join(waiters, reactor, NEWS, IN)
    waiters.wake()
    assert done(made) == [True, False]


def test_the_end_of_the_socket_wakes_everybody(waiters, reactor, core):
    made = join(waiters, reactor, IN, IN, OUT, IN | POLLER)
    core.now = None
    waiters.wake()
    assert done(made) == [True] * 4


@pytest.mark.parametrize(
    ("flags", "timeout", "option", "deadline"),
    [
        (0, None, None, FOREVER),
        (Flag.DONTWAIT, None, None, AT_ONCE),
        (Flag.DONTWAIT, 5, 5, AT_ONCE),
        (0, 0, None, AT_ONCE),
        (0, -1, None, AT_ONCE),
        (0, None, 0.0, AT_ONCE),
    ],
)
def test_when_a_call_gives_up(waiters, flags, timeout, option, deadline):
    assert waiters.deadline(flags, timeout, option) == deadline


def test_the_call_s_own_limit_goes_before_the_option(waiters, reactor):
    now = reactor.time()
    assert now + 2 <= waiters.deadline(0, 2, 100) < now + 100
    assert now + 100 <= waiters.deadline(0, None, 100)


def test_no_wait_does_the_io_that_can_be_done(waiters, reactor):
    seen = []
    reactor.call_soon(seen.append, 1)
    assert waiters.wait(IN, AT_ONCE) == OVER
    assert seen == [1]


def test_a_wait_that_is_over_leaves_nobody_behind(waiters, reactor, core):
    assert waiters.wait(IN, reactor.time() + 0.01) == OVER
    assert not waiters.waiting
    core.now = IN
    deadline = reactor.time() + 8
    reactor.call_soon(waiters.wake)  # by this very thread: it will ask for itself
    assert waiters.wait(IN, deadline) == deadline
    assert not waiters.waiting


@pytest.mark.parametrize(
    ("processors", "linked", "looks"), [(2, 1, True), (2, 0, False), (1, 1, False)]
)
def test_a_wait_looks_before_it_sleeps_if_the_network_may_have_an_answer(
    monkeypatch, core, processors, linked, looks
):
    """Over inproc the answer comes from a thread of ours, which would be kept from its work."""
    monkeypatch.setattr(lookout, "_processors", lambda: processors)
    reactor = Reactor(threading.RLock())
    core.links.open_links.update(dict.fromkeys(range(linked)))
    assert (Waiters(core, reactor).new().lookout is not None) is looks
    reactor.stop()
