"""What an LMCache worker tells a controller, and when."""

from itertools import repeat

import pytest

from zerohop.serving.control.lmcache.messages import (
    Deregister,
    FullSync,
    Heartbeat,
    HeartbeatReply,
    Operations,
    Register,
    RegisterReply,
    SyncBatch,
    SyncEnd,
    SyncStart,
    SyncStartReply,
    SyncStatus,
    SyncStatusReply,
)
from zerohop.serving.control.lmcache.reporter import LmcacheReporter
from zerohop.serving.errors import Unencodable

WHO = Register("i", 0, "127.0.0.1", 1)
WELCOME = RegisterReply({"heartbeat_url": "127.0.0.1:9"})
SYNC = HeartbeatReply([FullSync("sequence_gap")])


def make():
    return LmcacheReporter(WHO, "cpu", repeat(0.5), period=10.0, patience=4.0, spread=2.0)


@pytest.fixture
def reporter():
    """One that is registered."""
    reporter = make()
    at(reporter, 0.0)
    reporter.receive(WELCOME, 0.0)
    assert kinds(at(reporter, 0.0)) == [Heartbeat]
    return reporter


def at(reporter, now):
    reporter.handle_deadline(now)
    return reporter.messages_to_send()


def kinds(sent):
    return [type(message) for _, message in sent]


def start_sync(reporter, now=1.0):
    """A full sync is commanded, and its start has been asked."""
    reporter.receive(SYNC, now)
    sent = at(reporter, now + 1.0)
    assert kinds(sent) == [SyncStart]
    return sent[0][1]


class TestRegistration:
    def test_is_asked_again_until_there_is_a_reply(self):
        reporter = make()
        assert at(reporter, 0.0) == [("reply", WHO)]
        assert at(reporter, 3.9) == []
        assert at(reporter, 4.0) == [("reply", WHO)]

    def test_that_was_asked_twice_is_not_over_before_both_are_answered(self):
        """The second makes the controller forget what came between."""
        reporter = make()
        at(reporter, 0.0)
        at(reporter, 4.0)
        reporter.admit(1)
        reporter.receive(WELCOME, 5.0)
        assert at(reporter, 5.0) == []
        reporter.receive(WELCOME, 5.0)
        assert Operations in kinds(at(reporter, 5.0))

    def test_of_which_a_reply_is_lost_is_over_after_some_time(self):
        reporter = make()
        at(reporter, 0.0)
        at(reporter, 4.0)
        reporter.receive(WELCOME, 5.0)
        assert kinds(at(reporter, 8.0)) == []
        assert reporter.is_registered
        assert kinds(at(reporter, 8.0)) == [Heartbeat]

    def test_without_somewhere_to_beat_has_no_heartbeat(self):
        reporter = make()
        at(reporter, 0.0)
        reporter.receive(RegisterReply(), 0.0)
        assert (at(reporter, 100.0), reporter.next_deadline()) == ([], None)

    def test_ends_with_a_farewell(self, reporter):
        reporter.leave()
        assert at(reporter, 100.0) == [("push", Deregister("i", 0, "127.0.0.1", 1))]

    @pytest.mark.parametrize("message", [WELCOME, SYNC, SyncStatusReply("i_0_1", True, 1.0, True)])
    def test_that_ends_before_a_reply_ends_all_the_same(self, message):
        """It is closed soon after its start, or while it syncs: what is under way arrives."""
        reporter = make()
        at(reporter, 0.0)
        reporter.admit(1)
        reporter.leave()
        reporter.receive(message, 0.0)
        reporter.admit(2)
        assert kinds(at(reporter, 100.0)) == [Deregister]
        assert reporter.next_deadline() is None

    @pytest.mark.parametrize(
        ("who", "location"),
        [
            (Register("caf\udce9", 0, "127.0.0.1", 1), "cpu"),
            (Register("i", 2**64, "", 1), "cpu"),
            (WHO, "\udce9"),
        ],
    )
    def test_that_has_no_form_is_told_to_who_gives_it(self, who, location):
        with pytest.raises(Unencodable):
            LmcacheReporter(who, location, repeat(0.5))


class TestOperations:
    @pytest.mark.parametrize(
        ("key", "error"), [(2**64, Unencodable), (-(2**63) - 1, Unencodable), (True, TypeError)]
    )
    def test_of_a_key_without_a_form_are_told_to_who_gives_it(self, reporter, key, error):
        with pytest.raises(error):
            reporter.admit(key)
        reporter.admit(5)
        [(_, message)] = at(reporter, 0.0)
        assert [each.key for each in message.operations] == [5]

    def test_are_numbered_in_order_and_sent_together(self, reporter):
        reporter.admit(5)
        reporter.admit(5)
        reporter.evict(5)
        reporter.evict(6)
        [(place, message)] = at(reporter, 0.0)
        told = [(each.op_type, each.key, each.seq_num) for each in message.operations]
        assert (place, told) == ("push", [("admit", 5, 0), ("evict", 5, 1)])
        reporter.admit(6)
        [(_, message)] = at(reporter, 0.0)
        assert message.operations[0].seq_num == 2

    def test_wait_for_the_registration(self):
        reporter = make()
        reporter.admit(5)
        assert kinds(at(reporter, 0.0)) == [Register]
        reporter.receive(WELCOME, 0.0)
        assert kinds(at(reporter, 0.0)) == [Heartbeat, Operations]


class TestFullSync:
    def test_begins_at_a_time_of_its_own(self, reporter):
        reporter.receive(SYNC, 1.0)
        assert at(reporter, 1.9) == []
        [(place, start)] = at(reporter, 2.0)
        assert (place, start.total_keys, start.batch_count) == ("reply", 0, 1)

    def test_sends_all_keys_in_batches_and_asks_whether_they_are_there(self, reporter):
        for key in range(4500):
            reporter.admit(key)
        at(reporter, 0.0)
        start = start_sync(reporter)
        assert (start.total_keys, start.batch_count) == (4500, 3)
        reporter.receive(SyncStartReply(start.sync_id, accepted=True), 2.0)
        *batches, end = [message for _, message in at(reporter, 2.0)]
        assert [(each.batch_id, len(each.keys)) for each in batches] == [
            (0, 2000),
            (1, 2000),
            (2, 500),
        ]
        assert (type(end), end.actual_total_keys) == (SyncEnd, 4500)
        assert kinds(at(reporter, 3.0)) == [SyncStatus]
        missing = SyncStatusReply(start.sync_id, False, 0.5, False, [1, 9])
        reporter.receive(missing, 3.0)
        again, _ = at(reporter, 3.0)
        assert (type(again[1]), again[1].batch_id) == (SyncBatch, 1)
        reporter.receive(SyncStatusReply(start.sync_id, False, 0.9, False), 3.0)
        assert kinds(at(reporter, 4.0)) == [SyncStatus]
        reporter.receive(SyncStatusReply(start.sync_id, True, 1.0, True), 4.0)
        assert (reporter.full_syncs, reporter.is_syncing) == (1, False)

    def test_holds_back_what_happens_meanwhile(self, reporter):
        reporter.admit(1)
        at(reporter, 0.0)
        start = start_sync(reporter)
        reporter.admit(2)
        reporter.receive(SyncStartReply(start.sync_id, accepted=True), 2.0)
        batch, _ = at(reporter, 2.0)
        assert batch[1].keys == [1]
        reporter.receive(SyncStatusReply(start.sync_id, True, 1.0, True), 3.0)
        [(_, message)] = at(reporter, 2.5)
        assert [each.key for each in message.operations] == [2]

    def test_is_asked_for_again_without_a_reply(self, reporter):
        start = start_sync(reporter)
        assert at(reporter, 5.9) == []
        assert at(reporter, 6.0) == [("reply", start)]
        reporter.receive(SyncStartReply(start.sync_id, accepted=True), 6.0)
        assert kinds(at(reporter, 6.0)) == [SyncBatch, SyncEnd]
        reporter.receive(SyncStartReply(start.sync_id, accepted=True), 6.0)
        assert at(reporter, 6.0) == []

    def test_that_is_not_accepted_is_over_until_it_is_commanded_again(self, reporter):
        start = start_sync(reporter)
        reporter.receive(SyncStartReply(start.sync_id, accepted=False), 2.0)
        assert not reporter.is_syncing
        assert start_sync(reporter, 5.0).sync_id != start.sync_id

    def test_commanded_twice_is_one(self, reporter):
        reporter.receive(SYNC, 1.0)
        reporter.receive(SYNC, 1.5)
        assert kinds(at(reporter, 2.0)) == [SyncStart]
        reporter.receive(SYNC, 2.0)
        assert at(reporter, 3.0) == []

    def test_of_which_a_controller_that_has_restarted_knows_nothing_begins_anew(self, reporter):
        start = start_sync(reporter)
        reporter.receive(SyncStartReply(start.sync_id, accepted=True), 2.0)
        at(reporter, 2.0)
        reporter.receive(SYNC, 2.5)  # the reply to a heartbeat that was sent before
        assert SyncStart not in kinds(at(reporter, 9.0))
        assert Heartbeat in kinds(at(reporter, 10.0))
        reporter.receive(SYNC, 10.0)
        [(_, second)] = at(reporter, 11.0)
        assert (type(second), second.sync_id != start.sync_id) == (SyncStart, True)
