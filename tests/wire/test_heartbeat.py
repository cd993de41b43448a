"""RFC 37, "Connection Heartbeating": two clocks over ``now``."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zerohop.constants import Errno
from zerohop.errors import ProtocolError
from zerohop.wire.heartbeat import Heartbeat, HeartbeatOptions

pytestmark = pytest.mark.rfc(37, "Connection Heartbeating")


def is_given_up(heartbeat: Heartbeat, *, last_heard: float, now: float) -> bool:
    try:
        heartbeat.check(last_heard, now)
    except ProtocolError:
        return True
    return False


def test_without_options_nothing_is_ever_due():
    heartbeat = Heartbeat(HeartbeatOptions(), now=100)
    assert heartbeat.next_deadline(100) == inf
    assert not heartbeat.is_ping_due(100, 1e9)
    assert not is_given_up(heartbeat, last_heard=100, now=1e9)


def test_a_ping_is_due_every_interval():
    heartbeat = Heartbeat(HeartbeatOptions(interval=5), now=100)
    assert heartbeat.next_deadline(100) == 105
    assert not heartbeat.is_ping_due(100, 104.9)
    assert heartbeat.is_ping_due(100, 105)
    assert heartbeat.next_deadline(100) == 110
    assert not heartbeat.is_ping_due(100, 105)


def test_traffic_does_not_put_a_ping_off():
    """libzmq pings at intervals whatever else is said."""
    heartbeat = Heartbeat(HeartbeatOptions(interval=5), now=100)
    assert heartbeat.next_deadline(104) == 105


def test_after_a_long_pause_one_ping_is_enough():
    heartbeat = Heartbeat(HeartbeatOptions(interval=5), now=100)
    assert heartbeat.is_ping_due(100, 1000)
    assert not heartbeat.is_ping_due(100, 1004)
    assert heartbeat.next_deadline(1000) == 1005


class TestTimeout:
    OPTIONS = HeartbeatOptions(interval=5, timeout=8)

    def pinged(self) -> Heartbeat:
        heartbeat = Heartbeat(self.OPTIONS, now=100)
        assert heartbeat.is_ping_due(100, 105)
        return heartbeat

    def test_silence_after_a_ping_is_the_end(self):
        heartbeat = self.pinged()
        assert not is_given_up(heartbeat, last_heard=100, now=112.9)
        assert is_given_up(heartbeat, last_heard=100, now=113)

    def test_silence_before_a_ping_means_nothing(self):
        heartbeat = Heartbeat(self.OPTIONS, now=100)
        assert not is_given_up(heartbeat, last_heard=1, now=104)

    def test_any_octet_after_the_ping_is_life(self):
        heartbeat = self.pinged()
        assert not is_given_up(heartbeat, last_heard=105.1, now=1000)
        assert heartbeat.next_deadline(105.1) == 110

    def test_so_is_one_of_the_same_instant_for_clocks_are_coarse(self):
        assert not is_given_up(self.pinged(), last_heard=105, now=1000)

    def test_the_first_ping_that_was_not_answered_counts(self):
        heartbeat = self.pinged()
        assert heartbeat.is_ping_due(100, 110)
        assert heartbeat.next_deadline(100) == 113
        assert is_given_up(heartbeat, last_heard=100, now=113)

    def test_an_answer_starts_it_anew_with_the_next_ping(self):
        heartbeat = self.pinged()
        assert heartbeat.is_ping_due(106, 110)
        assert not is_given_up(heartbeat, last_heard=106, now=117.9)
        assert is_given_up(heartbeat, last_heard=106, now=118)

    def test_the_error_says_how_long_and_what_to_set(self):
        with pytest.raises(ProtocolError, match=r"silent for 13\.0 s") as caught:
            self.pinged().check(100, 113)
        assert caught.value.errno == Errno.ETIMEDOUT
        assert "HEARTBEAT_TIMEOUT" in caught.value.__notes__[0]


class TestTimeToLiveOfThePeer:
    def test_silence_for_so_long_is_the_end(self):
        heartbeat = Heartbeat(HeartbeatOptions(), now=100)
        heartbeat.ping_received(20)
        assert heartbeat.next_deadline(100) == 102
        assert not is_given_up(heartbeat, last_heard=100, now=101.9)
        assert is_given_up(heartbeat, last_heard=100, now=102)

    def test_any_octet_puts_it_off(self):
        heartbeat = Heartbeat(HeartbeatOptions(), now=100)
        heartbeat.ping_received(20)
        assert heartbeat.next_deadline(101.5) == 103.5

    def test_zero_ends_it(self):
        heartbeat = Heartbeat(HeartbeatOptions(), now=100)
        heartbeat.ping_received(20)
        heartbeat.ping_received(0)
        assert heartbeat.next_deadline(100) == inf

    def test_whichever_comes_first(self):
        heartbeat = Heartbeat(HeartbeatOptions(interval=1, timeout=1), now=100)
        assert heartbeat.is_ping_due(100, 101)
        heartbeat.ping_received(15)
        assert is_given_up(heartbeat, last_heard=100, now=101.6)
        heartbeat.ping_received(600)
        assert is_given_up(heartbeat, last_heard=100, now=102)


@pytest.mark.parametrize(
    ("interval", "ttl_ds", "on_the_wire"),
    [
        pytest.param(5, 0, 0, id="none"),
        pytest.param(5, 1, 1, id="smallest"),
        pytest.param(5, 655, 655, id="largest that libzmq takes"),
        pytest.param(5, 656, 655, id="libzmq would overflow 16 bits"),
        pytest.param(5, 65535, 655, id="largest of the protocol"),
        pytest.param(70, 700, 0, id="shorter than the interval: none rather than a false end"),
        pytest.param(None, 700, 655, id="no interval"),
    ],
)
def test_the_ttl_that_is_sent(interval, ttl_ds, on_the_wire):
    assert HeartbeatOptions(interval, ttl_ds).ttl_on_the_wire == on_the_wire


times = st.lists(st.floats(0.01, 20), min_size=1, max_size=40)


@given(steps=times, heard=st.data())
def test_what_is_due_was_announced(steps, heard):
    """Asked before its deadline it has nothing to say; asked at it, it has."""
    heartbeat = Heartbeat(HeartbeatOptions(interval=5, timeout=8), now=0)
    now = last_heard = 0.0
    for step in steps:
        deadline = heartbeat.next_deadline(last_heard)
        now += step
        ended = is_given_up(heartbeat, last_heard=last_heard, now=now)
        pinged = heartbeat.is_ping_due(last_heard, now)
        assert (ended or pinged) == (now >= deadline)
        if ended:
            return
        if heard.draw(st.booleans()):
            last_heard = now
