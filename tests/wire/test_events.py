"""What comes out of a connection besides messages is plain, unchangeable data."""

from dataclasses import FrozenInstanceError

import pytest

from zerohop.wire.events import ErrorReceived, Handshaken, SubscriptionReceived


def test_a_handshake_without_metadata_is_one_of_3_1_and_null():
    assert Handshaken({}) == Handshaken({}, 1, "NULL")


@pytest.mark.parametrize(
    ("event", "field"),
    [
        (Handshaken({}), "minor"),
        (SubscriptionReceived(b"", subscribe=True), "topic"),
        (ErrorReceived("400"), "reason"),
    ],
)
def test_an_event_does_not_change(event, field):
    with pytest.raises(FrozenInstanceError):
        setattr(event, field, None)


def test_events_are_matched_by_what_they_are():
    match SubscriptionReceived(b"kv", subscribe=False):
        case SubscriptionReceived(topic, subscribe):
            assert (topic, subscribe) == (b"kv", False)
