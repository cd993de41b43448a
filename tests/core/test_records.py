"""What monitors and the log hear of a socket's connections."""

import errno

import pytest

from zerohop.constants import Event, SocketType
from zerohop.core.link import Link, Listener, open_connection
from zerohop.core.monitor import MonitorLog, MonitorRecord
from zerohop.core.options import SocketOptions
from zerohop.core.records import Records
from zerohop.errors import HandshakeError, ProtocolError
from zerohop.patterns.pattern import Peer
from zerohop.patterns.pipe import Pipe


@pytest.fixture
def records():
    """Records with one monitor."""
    made = Records(SocketType.PULL)
    made.monitors.append(MonitorLog())
    return made


def told(records):
    """What the monitor heard."""
    (log,) = records.monitors
    return [log.pop() for _ in range(len(log))]


def listener():
    return Listener("tcp://*:5555", SocketOptions().frozen())


def link():
    connection = open_connection(SocketType.PULL, SocketOptions().frozen(), 0.0)
    return Link(listener(), connection, "tcp://*:5555", "tcp://there:9", fd=7)


def test_every_monitor_gets_the_record(records):
    records.monitors.append(MonitorLog())
    records.add(Event.LISTENING, 3, "tcp://*:5555")
    expected = MonitorRecord(Event.LISTENING, 3, "tcp://*:5555")
    assert [monitor.pop() for monitor in records.monitors] == [expected, expected]


def test_without_monitors_nothing_is_kept():
    records = Records(SocketType.PULL)
    records.add(Event.LISTENING, 3, "tcp://*:5555")
    records.of_link(Event.ACCEPTED, link(), 7)
    late = MonitorLog()
    records.monitors.append(late)
    assert len(late) == 0


def test_a_record_of_a_link_says_who_is_at_its_other_end(records):
    stranger, known = link(), link()
    known.peer = Peer(Pipe(0), Pipe(0))
    known.peer.routing_id = b"name"
    records.of_link(Event.ACCEPTED, stranger, 7)
    records.of_link(Event.HANDSHAKE_SUCCEEDED, known, 0)
    assert told(records) == [
        MonitorRecord(Event.ACCEPTED, 7, "tcp://*:5555", remote="tcp://there:9"),
        MonitorRecord(
            Event.HANDSHAKE_SUCCEEDED,
            0,
            "tcp://*:5555",
            remote="tcp://there:9",
            routing_id=b"name",
        ),
    ]


def test_the_end_of_a_link_in_traffic_is_a_disconnection_with_its_reason(records):
    ended = link()
    ended.handshaken = True
    error = OSError(errno.ECONNRESET, "reset")
    records.end_of(ended, error)
    (record,) = told(records)
    assert (record.event, record.value) == (Event.DISCONNECTED, 7)
    assert record.reason == str(error)


def test_what_does_not_fit_is_a_failed_handshake_with_its_code(records):
    ended = link()
    ended.failure = HandshakeError(
        "peer offers CURVE", source="RFC", code=Event.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH
    )
    ended.closing = True
    records.end_of(ended, None)
    failed, disconnected = told(records)
    assert failed.event == Event.HANDSHAKE_FAILED_PROTOCOL
    assert failed.value == Event.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH
    assert failed.reason == disconnected.reason == "peer offers CURVE (RFC)"
    assert disconnected.event == Event.DISCONNECTED


@pytest.mark.parametrize(
    "error, number",
    [
        (None, errno.EPIPE),
        (OSError(errno.ECONNRESET, "reset"), errno.ECONNRESET),
        (OSError("without a number"), errno.EPIPE),
        (RuntimeError("something else"), errno.EPIPE),
    ],
)
def test_a_handshake_that_was_cut_short_has_an_error_number_for_a_detail(records, error, number):
    records.end_of(link(), error)
    failed, disconnected = told(records)
    assert (failed.event, failed.value) == (Event.HANDSHAKE_FAILED_NO_DETAIL, number)
    assert disconnected.event == Event.DISCONNECTED


def test_a_handshake_that_we_cut_short_has_not_failed(records):
    ended = link()
    ended.closing = True
    records.end_of(ended, None)
    assert [record.event for record in told(records)] == [Event.DISCONNECTED]


# -- the log


def test_a_trouble_is_reported_once_at_an_endpoint(records):
    first, second = listener(), listener()
    for source in (first, first, second):
        records.report(source, source.endpoint, "something is wrong")
    assert records.reports == ["PULL tcp://*:5555: something is wrong"] * 2


def test_each_cause_is_reported(records):
    source = listener()
    code = Event.PROTOCOL_ERROR_ZMTP_INVALID_METADATA
    for trouble in (
        "a",
        "b",
        OSError(errno.EHOSTUNREACH, "no route"),
        OSError(errno.ETIMEDOUT, "timed out"),
        ProtocolError("broken", source="RFC"),
        ProtocolError("broken metadata", source="RFC", code=code),
        HandshakeError("does not fit", source="RFC"),
    ):
        records.report(source, "here", trouble)
    assert len(records.reports) == 7
    assert records.reports[-1] == "PULL here: does not fit (RFC)"


def test_the_same_cause_in_other_words_is_not_reported_again(records):
    source = listener()
    for n in range(10):
        records.report(source, "here", ProtocolError(f"peer sent {n}", source="RFC"))
        records.report(source, "here", OSError(errno.ETIMEDOUT, f"{n}"))
    first = OSError(errno.ETIMEDOUT, "0")
    assert records.reports == ["PULL here: peer sent 0 (RFC)", f"PULL here: {first}"]


def test_peers_cannot_fill_the_log_with_ever_new_causes(records):
    source = listener()
    for n in range(1000):
        records.report(source, "here", f"identity {n} is taken")
    assert len(records.reports) == 100
