"""A controller's table: which worker has which chunks, and when that is known to be wrong."""

import pytest

from zerohop.serving.control.lmcache.messages import (
    Deregister,
    Failure,
    FullSync,
    Heartbeat,
    HeartbeatReply,
    Lookup,
    Operations,
    Register,
    RegisterReply,
    SyncBatch,
    SyncEnd,
    SyncStart,
    SyncStatus,
    WorkerOperation,
)
from zerohop.serving.control.lmcache.table import ControllerTable

WHO, URL = ("i", 0), "127.0.0.1:9"
REGISTER = Register(*WHO, "127.0.0.1", 1, "peer:1")
BEAT = Heartbeat(*WHO, "127.0.0.1", 1, "peer:1")


@pytest.fixture
def table():
    """With one worker that has nothing."""
    table = ControllerTable(URL, timeout=30.0, patience=10.0)
    assert table.receive(REGISTER, 0.0) == RegisterReply({"heartbeat_url": URL})
    return table


def admit(table, *keys, first=0, location="cpu", what="admit"):
    told = [WorkerOperation(what, key, first + n) for n, key in enumerate(keys)]
    assert table.receive(Operations(*WHO, location, told), 0.0) is None


def pass_time(table, until):
    """What a driver does: it looks whenever there is something to do."""
    while (due := table.next_deadline()) is not None and due <= until:
        table.handle_deadline(due)


def sync(table, batches, sync_id="s", now=0.0):
    """A full sync from its start to its end."""
    total = sum(map(len, batches))
    reply = table.receive(SyncStart(*WHO, "cpu", sync_id, total, len(batches)), now)
    assert reply.accepted
    for number, keys in enumerate(batches):
        if keys is not None:
            table.receive(SyncBatch(*WHO, "cpu", sync_id, number, keys), now)
    table.receive(SyncEnd(*WHO, "cpu", sync_id, total), now)


class TestOperations:
    def test_admit_and_evict(self, table):
        admit(table, 1, 2, 3)
        admit(table, 2, first=3, what="evict")
        assert table.keys(WHO, "cpu") == {1, 3}
        assert table.is_right(WHO)

    def test_are_numbered_for_each_location(self, table):
        admit(table, 1, 2)
        admit(table, 1, location="disk")
        assert table.is_right(WHO)

    def test_with_a_number_missing_make_the_worker_stale(self, table):
        admit(table, 1)
        admit(table, 3, first=2)
        assert not table.is_right(WHO)
        assert table.gaps == 1

    def test_of_a_worker_that_has_just_registered_begin_with_0(self, table):
        admit(table, 2, first=1)
        assert not table.is_right(WHO)

    def test_of_a_stranger_are_counted(self, table):
        table.receive(Operations("x", 1, "cpu", []), 0.0)
        assert (table.strangers, table.workers()) == (1, [WHO])


class TestHeartbeat:
    def test_of_one_that_is_right_has_no_command(self, table):
        assert table.receive(BEAT, 0.0) == HeartbeatReply()

    def test_of_a_stale_one_is_told_to_sync_once(self, table):
        admit(table, 3, first=2)
        assert table.receive(BEAT, 1.0) == HeartbeatReply([FullSync("sequence_gap")])
        assert table.receive(BEAT, 2.0) == HeartbeatReply()
        assert table.receive(BEAT, 11.0) == HeartbeatReply([FullSync("sequence_gap")])
        assert table.full_syncs == 2

    def test_of_a_stranger_registers_it_and_asks_for_what_it_has(self):
        table = ControllerTable(URL)
        assert table.receive(BEAT, 0.0) == HeartbeatReply([FullSync("worker_re_registered")])
        assert (table.workers(), table.is_right(WHO)) == ([WHO], False)
        sync(table, [[1, 2]])
        assert (table.is_right(WHO), table.keys(WHO, "cpu")) == (True, {1, 2})
        admit(table, 3, first=777)  # whatever it has come to meanwhile
        assert table.is_right(WHO)
        admit(table, 4, first=779)
        assert not table.is_right(WHO)

    def test_that_does_not_come_is_the_end(self, table):
        pass_time(table, 10.0)
        table.receive(BEAT, 10.0)
        pass_time(table, 39.9)
        assert (table.workers(), table.next_deadline()) == ([WHO], 40.0)
        table.handle_deadline(40.0)
        assert (table.workers(), table.next_deadline()) == ([], None)

    def test_that_is_yet_to_be_read_as_the_controller_stood_still_is_waited_for(self, table):
        table.handle_deadline(500.0)
        assert table.workers() == [WHO]
        pass_time(table, 501.0)
        assert table.workers() == []

    def test_is_not_waited_for_where_nobody_can_beat(self):
        table = ControllerTable(None, timeout=30.0)
        assert table.receive(REGISTER, 0.0) == RegisterReply()
        table.handle_deadline(1000.0)
        assert (table.workers(), table.next_deadline()) == ([WHO], None)


class TestFullSync:
    def test_replaces_what_was_known(self, table):
        admit(table, 1, 2)
        sync(table, [[2, 3], [4]])
        assert (table.is_right(WHO), table.keys(WHO, "cpu")) == (True, {2, 3, 4})

    def test_is_not_right_before_all_is_there(self, table):
        table.receive(SyncStart(*WHO, "cpu", "s", 2, 2), 0.0)
        assert not table.is_right(WHO)
        table.receive(SyncBatch(*WHO, "cpu", "s", 0, [1]), 0.0)
        status = table.receive(SyncStatus(*WHO, "s"), 0.0)
        assert (status.global_progress, status.can_exit_freeze) == (0.5, False)
        assert status.missing_batches == []  # it is not over yet
        assert table.receive(BEAT, 0.0) == HeartbeatReply()

    def test_says_which_batches_are_missing(self, table):
        table.receive(SyncStart(*WHO, "cpu", "s", 3, 3), 0.0)
        table.receive(SyncBatch(*WHO, "cpu", "s", 1, [1]), 0.0)
        table.receive(SyncBatch(*WHO, "cpu", "s", 7, [1]), 0.0)
        table.receive(SyncEnd(*WHO, "cpu", "s", 3), 0.0)
        assert table.receive(SyncStatus(*WHO, "s"), 0.0).missing_batches == [0, 2]
        for number in (0, 2):
            table.receive(SyncBatch(*WHO, "cpu", "s", number, [10 + number]), 0.0)
        status = table.receive(SyncStatus(*WHO, "s"), 0.0)
        assert (status.is_complete, status.can_exit_freeze) == (True, True)
        assert table.keys(WHO, "cpu") == {1, 10, 12}

    def test_takes_no_operation_meanwhile(self, table):
        table.receive(SyncStart(*WHO, "cpu", "s", 1, 1), 0.0)
        admit(table, 9)
        assert table.keys(WHO, "cpu") == set()

    def test_that_begins_anew_forgets_the_other(self, table):
        table.receive(SyncStart(*WHO, "cpu", "old", 2, 2), 0.0)
        table.receive(SyncBatch(*WHO, "cpu", "old", 0, [1]), 0.0)
        table.receive(SyncStart(*WHO, "cpu", "new", 1, 1), 0.0)
        table.receive(SyncBatch(*WHO, "cpu", "old", 1, [2]), 0.0)
        assert table.keys(WHO, "cpu") == set()
        assert table.receive(SyncStatus(*WHO, "old"), 0.0).can_exit_freeze

    def test_asked_for_twice_goes_on(self, table):
        table.receive(SyncStart(*WHO, "cpu", "s", 2, 2), 0.0)
        table.receive(SyncBatch(*WHO, "cpu", "s", 0, [1]), 0.0)
        table.receive(SyncStart(*WHO, "cpu", "s", 2, 2), 0.0)
        assert table.keys(WHO, "cpu") == {1}

    @pytest.mark.parametrize("count", [-1, 10**9])
    def test_of_too_many_batches_is_not_accepted(self, table, count):
        reply = table.receive(SyncStart(*WHO, "cpu", "s", 1, count), 0.0)
        assert (reply.accepted, table.is_right(WHO)) == (False, True)

    def test_of_a_stranger_is_not_accepted_and_lets_it_go_on(self, table):
        start = table.receive(SyncStart("x", 1, "cpu", "s", 1, 1), 0.0)
        assert (start.accepted, start.error_msg) == (False, "register first")
        assert table.receive(SyncStatus("x", 1, "s"), 0.0).can_exit_freeze


class TestLookup:
    def test_finds_who_else_has_the_longest_beginning(self, table):
        admit(table, 1, 2, 4)
        asked = Lookup([1, 2, 3, 4], "other", 0)
        assert table.receive(asked, 0.0).layout_info == [("i", "cpu", 2, "peer:1")]

    @pytest.mark.parametrize("asked", [Lookup([9], "other", 0), Lookup([1], "i", 1)])
    def test_finds_nobody(self, table, asked):
        admit(table, 1)
        assert table.receive(asked, 0.0).layout_info == [("", "", 0, "")]

    def test_does_not_tell_of_a_worker_that_is_stale(self, table):
        admit(table, 1, first=5)
        assert table.receive(Lookup([1], "other", 0), 0.0).layout_info == [("", "", 0, "")]


def test_a_worker_that_goes_is_gone(table):
    table.receive(Deregister(*WHO, "127.0.0.1", 1), 0.0)
    assert table.workers() == []
    assert table.keys(WHO, "cpu") == frozenset()


def test_a_beat_that_a_farewell_has_overtaken_brings_nobody_back(table):
    table.receive(Deregister(*WHO, "127.0.0.1", 1), 10.0)
    assert table.receive(BEAT, 10.1) == HeartbeatReply()
    assert table.workers() == []


def test_whoever_still_beats_long_after_a_farewell_is_here(table):
    table.receive(Deregister(*WHO, "127.0.0.1", 1), 10.0)
    reply = HeartbeatReply([FullSync("worker_re_registered")])
    assert table.receive(BEAT, 15.1) == reply
    assert table.workers() == [WHO]


def test_a_worker_that_registers_after_its_farewell_is_here_at_once(table):
    table.receive(Deregister(*WHO, "127.0.0.1", 1), 10.0)
    table.receive(REGISTER, 10.1)
    table.receive(BEAT, 10.2)
    assert table.workers() == [WHO]
    table.handle_deadline(39.0)
    assert table.workers() == [WHO]


def test_of_farewells_only_the_latest_are_kept(table):
    for n in range(1000):
        table.receive(Register(f"i{n}", 0, "127.0.0.1", 1, None), float(n))
        table.receive(Deregister(f"i{n}", 0, "127.0.0.1", 1), float(n))
        table.receive(Deregister(f"stranger {n}", 0, "127.0.0.1", 1), float(n))
    assert len(table._left) == 5


def test_a_worker_that_registers_again_has_nothing(table):
    admit(table, 1)
    table.receive(REGISTER, 0.0)
    assert (table.keys(WHO, "cpu"), table.is_right(WHO)) == (frozenset(), True)


def test_what_only_a_controller_says_is_a_failure(table):
    assert isinstance(table.receive(HeartbeatReply(), 0.0), Failure)
