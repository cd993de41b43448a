"""The pure parts of the cases."""

from array import array

import pytest

from bench.cases import find_case
from bench.cases.pubsub import Delivery
from bench.cases.reqrep import agreed, percentile, timed
from bench.cases.ticker import Watch
from bench.clock import Clock, peak_memory_mib
from bench.stream import END, Account, StreamError, make_pass, receive_pass


def receive_passes(account, times):
    for _ in range(times):
        assert receive_pass(iter(account.messages).__next__, account) == b""


@pytest.mark.parametrize(
    ("share", "value"), [(0.5, 50), (0.99, 99), (0.999, 100), (1.0, 100), (0.0, 1)]
)
def test_a_percentile_is_the_nearest_rank(share, value):
    assert percentile(array("q", range(1, 101)), share) == value


def test_the_median_of_one_sample_is_that_sample():
    assert percentile(array("q", [7]), 0.5) == 7


def test_round_trips_are_reported_in_microseconds():
    result = timed(array("q", [3000, 1000, 2000]))
    assert result["value"] == 2.0
    assert result["detail"]["p99 µs"] == 3.0
    assert result["detail"]["round trips/s"] == pytest.approx(500_000)


def test_the_replier_s_count_must_be_the_requester_s():
    assert agreed(5, END + b"5") == END + b"5"
    with pytest.raises(StreamError, match="6 requests were sent, 5 came"):
        agreed(5, END + b"6")


def test_a_watch_counts_only_after_it_began():
    watch = Watch()
    assert watch.tick() == 0.0
    assert watch.ticks == 0
    watch.begin()
    assert watch.tick() >= 0.0
    assert watch.ticks == 1


def test_delivery_counts_all_subs_from_the_end_of_the_warm_up():
    accounts = [Account(make_pass(64, messages=8)) for _ in range(2)]
    delivery = Delivery(accounts, warm_up_s=0.0)
    receive_passes(accounts[0], 1)
    delivery.pass_done()  # the warm-up begins
    delivery.pass_done()  # and is over
    receive_passes(accounts[0], 2)
    receive_passes(accounts[1], 1)
    delivery.pass_done()  # changes nothing any more
    assert delivery.result()["messages"] == 24


def test_what_subscribers_lost_is_reported_and_does_not_fail_the_round():
    accounts = [Account(make_pass(64, messages=8)) for _ in range(2)]
    delivery = Delivery(accounts, warm_up_s=0.0)
    delivery.pass_done()
    delivery.pass_done()
    for account in accounts:
        account.sent = 5
    assert delivery.result()["lost"] == 10


def test_a_stream_that_ends_within_its_warm_up_gives_no_figure():
    delivery = Delivery([Account(make_pass(64, messages=8))], warm_up_s=60.0)
    delivery.pass_done()
    delivery.pass_done()
    with pytest.raises(StreamError, match="within its warm-up"):
        delivery.result()


def test_an_unknown_case_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="no case is called 'x'; there are: pushpull-64,"):
        find_case("x")


def test_a_clock_tells_seconds_processor_time_and_memory():
    used = Clock().stop()
    assert set(used) == {"seconds", "cpu_s", "memory_mib"}
    assert 1 < used["memory_mib"] <= peak_memory_mib() + 1
