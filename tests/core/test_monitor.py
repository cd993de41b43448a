"""Monitor records: their form on the monitor socket, and a log that never blocks."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zmq.utils import monitor as reference

from zerohop.constants import Event
from zerohop.core.monitor import MonitorLog, MonitorRecord, encode, parse

BITS = [e for e in Event if e <= 0xFFFF]


def record(number, event=Event.CONNECTED):
    return MonitorRecord(event, number, "tcp://127.0.0.1:5555")


def test_a_message_is_event_and_value_in_native_order_then_the_endpoint():
    frames = encode(MonitorRecord(Event.HANDSHAKE_FAILED_AUTH, 400, "tcp://127.0.0.1:5555"))
    head = (0x4000).to_bytes(2, sys.byteorder) + (400).to_bytes(4, sys.byteorder)
    assert frames == [head, b"tcp://127.0.0.1:5555"]


@pytest.mark.parametrize("event", BITS)
@pytest.mark.parametrize("value", [0, 7, 115, Event.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH])
def test_pyzmq_reads_our_messages_and_we_read_them_alike(event, value):
    frames = encode(MonitorRecord(event, value, "ipc:///tmp/é"))
    ours, theirs = parse(frames), reference.parse_monitor_message(frames)
    assert ours == theirs
    assert repr(ours["value"]) == repr(theirs["value"])


@pytest.mark.parametrize(
    "frames", [[], [b"abcdef"], [b"abc", b"x"], [b"abcdefg", b"x"], [b"abcdef", b"x", b"y"]]
)
def test_other_frames_are_refused_with_pyzmqs_words(frames):
    with pytest.raises(RuntimeError) as caught:
        parse(frames)
    assert str(caught.value) == f"Invalid event message format: {frames}"


@given(
    event=st.sampled_from(BITS),
    value=st.integers(-(2**31), 2**32 - 1),
    endpoint=st.text(st.characters(exclude_categories=["Cs"]), max_size=50),
)
def test_round_trip(event, value, endpoint):
    message = parse(encode(MonitorRecord(event, value, endpoint)))
    assert message["event"] == event
    assert int(message["value"]) == value % 2**32
    assert message["endpoint"].decode() == endpoint


@given(head=st.binary(max_size=8), endpoint=st.binary(max_size=8))
def test_any_frames_parse_or_are_refused(head, endpoint):
    try:
        message = parse([head, endpoint])
    except RuntimeError:
        assert len(head) != 6
        return
    assert message["endpoint"] == endpoint


def test_a_record_says_more_than_libzmq_can():
    told = MonitorRecord(
        Event.DISCONNECTED, 5, "tcp://*:1", "tcp://10.0.0.7:9", b"worker-3", "closed by the peer"
    )
    assert (told.remote, told.routing_id) == ("tcp://10.0.0.7:9", b"worker-3")
    assert told.reason == "closed by the peer"


def test_a_log_gives_records_in_order():
    log = MonitorLog()
    for number in range(3):
        log.append(record(number))
    assert len(log) == 3
    assert [log.pop().value for _ in range(3)] == [0, 1, 2]
    assert len(log) == 0
    with pytest.raises(IndexError):
        log.pop()


def test_a_full_log_drops_its_oldest_and_counts_it():
    log = MonitorLog(limit=2)
    for number in range(5):
        log.append(record(number))
    assert log.dropped == 3
    assert [log.pop().value for _ in range(len(log))] == [3, 4]


def test_a_log_keeps_only_the_events_that_are_wanted():
    log = MonitorLog(Event.DISCONNECTED | Event.LISTENING)
    log.append(record(1, Event.CONNECTED))
    log.append(record(2, Event.DISCONNECTED))
    assert log.pop().value == 2
    assert len(log) == 0
    assert log.dropped == 0
