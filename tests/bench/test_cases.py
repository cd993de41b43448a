"""The pure parts of the cases."""

from array import array
from collections import deque

import pytest

from bench.cases import all_cases, connections, find_case, forward, lowrate, reconnect
from bench.cases.pubsub import Delivery, pass_of, topics
from bench.cases.reqrep import agreed, percentile, timed
from bench.cases.router import WINDOW, Client, echoed, exchange, received
from bench.cases.ticker import Watch
from bench.clock import Clock, memory_now_kib, peak_memory_mib
from bench.stream import END, START, Account, StreamError, make_pass, receive_pass


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


def test_a_percentile_that_so_few_samples_cannot_tell_is_left_out():
    assert "p99.9 µs" not in timed(array("q", [1000] * 999))["detail"]
    assert timed(array("q", [1000] * 1000))["detail"]["p99.9 µs"] == 1.0


def test_with_sleep_between_them_round_trips_have_no_rate():
    assert set(timed(array("q", [1000]), idle_s=0.005)["detail"]) == {"p99 µs"}


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
    delivery.progress()  # the warm-up begins
    delivery.progress()  # and is over
    receive_passes(accounts[0], 2)
    receive_passes(accounts[1], 1)
    delivery.progress()  # changes nothing any more
    assert delivery.result()["messages"] == 24


def test_what_subscribers_lost_is_reported_and_does_not_fail_the_round():
    accounts = [Account(make_pass(64, messages=8)) for _ in range(2)]
    delivery = Delivery(accounts, warm_up_s=0.0)
    delivery.progress()
    delivery.progress()
    for account in accounts:
        account.sent = 5
    assert delivery.result()["lost"] == 10


def test_a_stream_that_ends_within_its_warm_up_gives_no_figure():
    delivery = Delivery([Account(make_pass(64, messages=8))], warm_up_s=60.0)
    delivery.progress()
    delivery.progress()
    with pytest.raises(StreamError, match="within its warm-up"):
        delivery.result()


def test_an_unknown_case_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="no case is called 'x'; there are: pushpull-16,"):
        find_case("x")


def test_a_clock_tells_seconds_processor_time_and_memory():
    used = Clock().stop()
    assert set(used) == {"seconds", "cpu_s", "memory_mib"}
    assert 1 < used["memory_mib"] <= peak_memory_mib() + 1


def test_memory_now_is_at_most_the_peak():
    assert 1024 < memory_now_kib() <= peak_memory_mib() * 1024 + 1024


def test_every_case_of_the_benchmark_s_brief_is_there():
    wanted = {
        *(f"pushpull-{size}" for size in ("16", "64", "128", "1k", "16k", "256k", "4m")),
        *("multipart", "reqrep-64", "reqrep-idle", "pubsub-1", "pubsub-8", "pubsub-64"),
        *("topics-1k", "topics-10k", "router-8", "router-500", "inproc-threads", "inproc-loop"),
        *("forward", "proxy", "lowrate-pull", "lowrate-rep"),
        *("connections", "reconnect", "import", "ticker", "crossed-pushpull-64"),
    }
    assert wanted <= set(all_cases())


class Orders:
    """What a role reads of its case."""

    def __init__(self, **case):
        self.case = case


def test_topics_have_one_length_and_come_in_an_order_of_their_own_that_both_sides_know():
    made = topics(Orders(topics=1000))
    assert made == topics(Orders(topics=1000)) != sorted(made)
    assert (len(set(made)), {len(topic) for topic in made}) == (1000, {11})


def test_there_is_a_message_for_each_topic():
    orders = Orders(size=64, topics=1000)
    messages = pass_of(orders)
    assert [message[:11] for message in messages] == topics(orders)
    assert {len(message) for message in messages} == {64}


def test_without_topics_messages_are_numbered():
    assert pass_of(Orders(size=64))[5][:8] == (5).to_bytes(8, "big")


class Echo:
    """A DEALER's socket, and the replies that come to it."""

    def __init__(self, replies=()):
        self.sent, self.replies = [], list(replies)

    def send(self, message):
        self.sent.append(message)

    def recv(self):
        return self.replies.pop(0)


REQUESTS = make_pass(16, messages=2 * WINDOW)


def client_of(*replies):
    return Client(Echo(replies), REQUESTS)


def exchanged(client):
    exchange(client)
    return client.socket.sent


def test_a_request_is_sent_for_each_reply_of_a_window_and_passes_follow_one_another():
    client = client_of(*REQUESTS, *REQUESTS)
    assert exchanged(client) == REQUESTS[:WINDOW]
    assert (client.account.received, client.asked) == (WINDOW, 2 * WINDOW)
    assert exchanged(client) == REQUESTS
    assert len(exchanged(client)) == 3 * WINDOW


def test_the_start_marker_comes_back_and_is_not_a_reply():
    client = client_of(REQUESTS[0], START, *REQUESTS[1 : WINDOW + 1])
    assert exchanged(client) == [REQUESTS[0]]
    assert exchanged(client) == REQUESTS[: WINDOW + 1]


def test_another_dealer_s_reply_is_refused():
    with pytest.raises(StreamError, match="never sent"):
        exchanged(client_of(make_pass(16, messages=40)[39]))


def test_router_s_count_must_be_the_dealers_and_replies_in_order():
    client = client_of(*REQUESTS)
    exchanged(client)
    client.account.sent = WINDOW + 1
    with pytest.raises(StreamError, match="8 replies came, 9 were sent"):
        echoed([client], WINDOW, {"seconds": 1.0})
    client.account.sent = WINDOW
    assert echoed([client], WINDOW, {"seconds": 2.0})["value"] == WINDOW / 2
    swapped = client_of(REQUESTS[1], REQUESTS[0])
    exchanged(swapped)
    exchanged(swapped)
    swapped.account.sent = received([swapped])
    with pytest.raises(StreamError, match="out of order"):
        echoed([swapped], 2, {"seconds": 1.0})


def test_a_thousand_numbers_from_a_thousand_peers_are_called_once():
    roll = connections.Roll(3)
    assert [roll.report([b"p%d" % n, b"%d" % n]) for n in (2, 0, 1)] == [False, False, True]


@pytest.mark.parametrize("second", [[b"p0", b"1"], [b"p1", b"0"], [b"p1", b"7"]])
def test_a_number_or_a_peer_that_comes_twice_is_refused(second):
    roll = connections.Roll(3)
    roll.report([b"p0", b"0"])
    with pytest.raises(StreamError, match="twice, or never sent"):
        roll.report(second)


def test_after_the_storm_a_message_of_each_client_is_wanted():
    roll = reconnect.Roll(2)
    roll.call()
    assert [roll.came(b"0 0"), roll.came(b"1 0")] == [False, True]
    roll.call()
    assert [roll.came(b"1 1"), roll.came(b"1 2"), roll.came(b"0 1")] == [False, False, True]
    assert roll.lost == 0


def test_messages_that_the_storm_took_are_counted():
    roll = reconnect.Roll(2)
    roll.call()
    assert [roll.came(b"0 0"), roll.came(b"0 3"), roll.came(b"1 2")] == [False, False, True]
    assert roll.lost == 4


def test_a_message_that_comes_twice_is_refused():
    roll = reconnect.Roll(1)
    roll.came(b"0 0")
    with pytest.raises(StreamError, match="message 1 of this client was due"):
        roll.came(b"0 0")


class Loop:
    """Both ends of a forwarder that keeps order; it notes how many messages are under way."""

    def __init__(self, *wrong):
        self.under_way, self.most, self.wrong = deque(), 0, list(wrong)

    def send(self, message):
        self.under_way.append(message)
        self.most = max(self.most, len(self.under_way))

    def recv(self):
        message = self.under_way.popleft()
        return self.wrong.pop() if self.wrong else message


def test_two_windows_are_under_way_through_a_forwarder_and_all_come_back():
    loop, account = Loop(), Account(make_pass(64, messages=2 * forward.WINDOW))
    for _ in range(2):
        forward.stream(loop, loop, account, seconds=0.0)
        assert not loop.under_way
    assert loop.most == 2 * forward.WINDOW
    assert account.received == 4 * forward.WINDOW
    account.must_be_whole()


def test_what_a_forwarder_makes_of_a_message_is_compared():
    loop, account = Loop(b"another"), Account(make_pass(64, messages=2 * forward.WINDOW))
    with pytest.raises(StreamError, match="never sent"):
        forward.stream(loop, loop, account, seconds=0.0)


class Given:
    """A role whose socket receives what it is given."""

    size = 64

    def __init__(self, *messages):
        self.messages = list(messages)
        self.library, self.case = self, {"size": self.size}

    def open(self, _kind):
        return self

    def bind(self, socket):
        return socket

    def recv(self):
        return self.messages.pop(0)


def stamped(number):
    return make_pass(Given.size - lowrate.STAMP)[number] + bytes(lowrate.STAMP)


def test_what_few_messages_cost_is_counted_from_the_end_of_the_warm_up():
    role = Given(stamped(0), START, stamped(1), stamped(2), END + b"3")
    result = lowrate.pull(role)
    assert result["messages"] == 2
    assert result["value"] == 1e6 * result["cpu_s"] / 2
    assert result["detail"][lowrate.P50] > 0


@pytest.mark.parametrize(
    ("messages", "text"),
    [((stamped(0), START, stamped(2)), "was due"), ((START, stamped(0), END + b"2"), "1 came")],
)
def test_few_messages_come_whole_and_in_order(messages, text):
    with pytest.raises(StreamError, match=text):
        lowrate.pull(Given(*messages))
