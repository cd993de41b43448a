"""What happens to a socket's connections, read as records."""

import threading

import pytest

import zerohop as zmq
from tests.kit.net import free_port


@pytest.fixture
def endpoint():
    return f"tcp://127.0.0.1:{free_port()}"


def test_records_tell_the_life_of_a_connection(context, endpoint):
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    with pull.records() as records:
        pull.bind(endpoint)
        push.connect(endpoint)
        seen = [records.next(8) for _ in range(3)]
        push.close()
        seen.append(records.next(8))
    assert [record.event for record in seen] == [
        zmq.EVENT_LISTENING,
        zmq.EVENT_ACCEPTED,
        zmq.EVENT_HANDSHAKE_SUCCEEDED,
        zmq.EVENT_DISCONNECTED,
    ]
    assert all(record.endpoint == endpoint for record in seen)
    assert seen[1].remote.startswith("tcp://127.0.0.1:")


def test_only_the_events_that_were_asked_for(context, endpoint):
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    records = push.records(zmq.EVENT_HANDSHAKE_SUCCEEDED)
    pull.bind(endpoint)
    push.connect(endpoint)
    assert records.next(8).event == zmq.EVENT_HANDSHAKE_SUCCEEDED
    with pytest.raises(zmq.Again):
        records.next(0)
    with pytest.raises(zmq.Again):
        records.next(0.02)


def test_what_was_closed_keeps_no_records(context, endpoint):
    pull = context.socket(zmq.PULL)
    records = pull.records()
    records.close()
    records.close()
    pull.bind(endpoint)
    with pytest.raises(zmq.Again):
        records.next(0)


def test_iteration_waits_and_ends_with_the_socket(context, endpoint):
    pull = context.socket(zmq.PULL)
    records = pull.records(zmq.EVENT_LISTENING | zmq.EVENT_CLOSED)
    seen = []
    reading = threading.Thread(target=lambda: seen.extend(record.event for record in records))
    reading.start()
    pull.bind(endpoint)
    pull.unbind(endpoint)
    pull.bind(endpoint)
    pull.close()
    reading.join(8)
    assert not reading.is_alive()
    assert seen == [zmq.EVENT_LISTENING, zmq.EVENT_CLOSED] * 2


def test_who_does_not_read_loses_the_oldest(context):
    pull = context.socket(zmq.PULL)
    records = pull.records(zmq.EVENT_LISTENING)
    for _ in range(1010):
        pull.bind("tcp://127.0.0.1:*")
        pull.unbind(pull.last_endpoint.decode())
    assert records.dropped == 10


def test_a_closed_socket_has_no_records(context):
    pull = context.socket(zmq.PULL)
    pull.close()
    with pytest.raises(zmq.ZMQError):
        pull.records()
