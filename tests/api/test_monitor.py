import pytest

from tests.api.plain import PlainContext, PlainSocket
from zerohop import constants as zmq
from zerohop.api.feed import _LIMIT
from zerohop.constants import Event
from zerohop.core.monitor import parse
from zerohop.errors import Again, ZMQError


def next_event(monitor):
    return parse(monitor.recv_multipart())


def test_a_monitor_socket_receives_what_happens(context):
    s = context.socket(zmq.REP)
    monitor = s.get_monitor_socket()
    port = s.bind_to_random_port("tcp://127.0.0.1")
    endpoint = f"tcp://127.0.0.1:{port}".encode()
    assert monitor.type == zmq.PAIR
    seen = next_event(monitor)
    assert (seen["event"], seen["endpoint"]) == (Event.LISTENING, endpoint)
    s.unbind(endpoint.decode())
    assert next_event(monitor)["event"] == Event.CLOSED
    with pytest.raises(Again):
        monitor.recv()


def test_there_is_one_monitor_socket_until_it_is_disabled(context):
    s = context.socket(zmq.REP)
    first = s.get_monitor_socket()
    assert s.get_monitor_socket() is first
    s.disable_monitor()
    assert next_event(first)["event"] == Event.MONITOR_STOPPED
    assert not first.closed
    s.bind("tcp://127.0.0.1:*")
    second = s.get_monitor_socket()
    assert second is not first
    s.unbind(s.last_endpoint.decode())
    assert next_event(second)["event"] == Event.CLOSED
    with pytest.raises(Again):
        first.recv()


def test_only_events_that_were_asked_for_are_reported(context):
    s = context.socket(zmq.REP)
    monitor = s.get_monitor_socket(Event.CLOSED, "inproc://mine")
    assert monitor.last_endpoint == b"inproc://mine"
    s.bind("tcp://127.0.0.1:*")
    s.unbind(s.last_endpoint.decode())
    assert next_event(monitor)["event"] == Event.CLOSED


def test_a_monitor_may_be_read_by_a_pair_of_ones_own(context):
    s, pair = context.socket(zmq.REP), context.socket(zmq.PAIR)
    s.monitor(b"inproc://own")
    s.bind("tcp://127.0.0.1:*")  # nobody there yet: not kept, as with libzmq
    pair.connect("inproc://own")
    s.bind("tcp://127.0.0.1:*")
    assert next_event(pair)["endpoint"] == s.last_endpoint
    s.monitor(None)
    assert next_event(pair)["event"] == Event.MONITOR_STOPPED


def test_another_monitor_takes_the_place_of_the_first(context):
    s = context.socket(zmq.REP)
    first = s.get_monitor_socket(addr="inproc://first")
    s.monitor("inproc://second")
    assert next_event(first)["event"] == Event.MONITOR_STOPPED
    s.monitor("inproc://second")  # its own name is free again


def test_a_name_that_is_taken_is_no_endpoint_for_a_monitor(context):
    s, other = context.socket(zmq.REP), context.socket(zmq.PAIR)
    other.bind("inproc://taken")
    with pytest.raises(ZMQError) as raised:
        s.monitor("inproc://taken")
    assert raised.value.errno == zmq.EADDRINUSE
    assert len(context._io.drivers) == 2


def test_a_failed_bind_is_reported(context):
    taken, s = context.socket(zmq.REP), context.socket(zmq.REP)
    port = taken.bind_to_random_port("tcp://127.0.0.1")
    monitor = s.get_monitor_socket()
    with pytest.raises(ZMQError):
        s.bind(f"tcp://127.0.0.1:{port}")
    seen = next_event(monitor)
    assert (seen["event"], seen["value"]) == (Event.BIND_FAILED, zmq.EADDRINUSE)


def test_a_monitor_that_nobody_reads_keeps_the_newest_and_blocks_nothing(context):
    s = context.socket(zmq.REP)
    monitor = s.get_monitor_socket()
    with s._driver.lock:
        for n in range(_LIMIT + 10):
            s._core.links.records.add(Event.CONNECT_RETRIED, n, "tcp://127.0.0.1:9")
        s._driver.pump()
    s.bind("inproc://still-works")
    assert next_event(monitor)["value"] == 10
    assert s._feed.dropped == 10


def test_a_monitor_socket_that_was_closed_costs_nothing(context):
    s = context.socket(zmq.REP)
    s.get_monitor_socket().close()
    s.bind("tcp://127.0.0.1:*")
    assert not s.get_monitor_socket().closed


def test_closing_the_socket_ends_its_monitor(context):
    s = context.socket(zmq.REP)
    s.bind("tcp://127.0.0.1:*")
    monitor = s.get_monitor_socket()
    s.close()
    assert [next_event(monitor)["event"] for _ in range(2)] == [
        Event.CLOSED, Event.MONITOR_STOPPED,
    ]  # fmt: skip
    monitor.close()
    assert not context._io.drivers


@pytest.mark.parametrize("closed", ["the shadow", "the original"])
def test_a_monitor_made_through_a_shadow_ends_with_the_socket(closed):
    context = PlainContext()
    s = context.socket(zmq.REP)
    shadow = PlainSocket.shadow(s)
    monitor = shadow.get_monitor_socket()
    (shadow if closed == "the shadow" else s).close()
    assert next_event(monitor)["event"] == Event.MONITOR_STOPPED
    monitor.close()
    context.term(timeout=0)  # nothing holds it


def test_a_shadow_has_the_monitor_of_its_socket(context):
    s = context.socket(zmq.REP)
    shadow = PlainSocket.shadow(s)
    monitor = s.get_monitor_socket()
    assert shadow.get_monitor_socket() is monitor
    shadow.disable_monitor()
    assert next_event(monitor)["event"] == Event.MONITOR_STOPPED
    assert s.get_monitor_socket() is not monitor
