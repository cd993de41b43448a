"""The server's table of workers: who is here, how far each table is, which commands are open."""

import contextlib

import pytest

from zerohop.serving.control.events import (
    CommandEnded,
    CommandLost,
    WorkerChanged,
    WorkerGone,
    WorkerJoined,
    WorkerSynced,
)
from zerohop.serving.control.membership import Membership, MembershipOptions
from zerohop.serving.control.messages import Batch, Beat, Farewell, Outcome, Registration
from zerohop.serving.control.values import MAX_VALUE
from zerohop.serving.errors import RequestRefused, Unencodable

ROUTE, BOOT = b"route", b"boot"


def membership(**options):
    return Membership(b"server", MembershipOptions(period=1.0, timeout=5.0, **options))


def join(members, worker="w", boot=BOOT, now=0.0, attempt=0):
    registration = Registration(worker, boot, offers={"n": 1}, attempt=attempt)
    return members.register(registration, ROUTE, now)


def batch(welcome, number=0, put=(), removed=(), complete=False, worker="w", boot=BOOT):
    place = worker, boot, welcome.server, welcome.stream
    return Batch(*place, number, list(put), list(removed), complete)


def beat(welcome, *outcomes, worker="w", boot=BOOT):
    return Beat(worker, boot, welcome.server, welcome.stream, list(outcomes))


def pass_time(members, until):
    """What a driver does: it looks whenever there is something to do."""
    while (due := members.next_deadline()) is not None and due <= until:
        members.handle_deadline(due)
    members.handle_deadline(until)


def events(members):
    return list(iter(members.next_event, None))


def test_a_timeout_of_less_than_three_periods_is_a_mistake():
    with pytest.raises(ValueError, match=r"timeout=2 is less than three times period=1"):
        MembershipOptions(period=1.0, timeout=2.0)
    MembershipOptions(period=1.0, timeout=3.0)


@pytest.mark.parametrize("options", [{"period": 86401.0}, {"spread": 86401.0}])
def test_no_period_or_spread_is_longer_than_workers_take(options):
    with pytest.raises(ValueError, match="workers take 86400 s at most"):
        MembershipOptions(**{"timeout": 1e6, **options})
    MembershipOptions(period=86400.0, timeout=float("inf"), spread=86400.0)


@pytest.mark.parametrize("name", ["batch", "max_syncs", "max_workers"])
def test_a_limit_that_lets_nobody_in_is_a_mistake(name):
    with pytest.raises(ValueError, match=f"{name} is a whole number, 1 or more: 0"):
        MembershipOptions(**{name: 0})


def test_what_is_announced_has_a_form_on_the_wire():
    class Numpys(float):
        """As numpy's numbers: msgpack has no form for them."""

    with pytest.raises(Unencodable):
        MembershipOptions(period=Numpys(2.0))


class TestRegistration:
    def test_announces_how_they_go_on(self):
        welcome = join(membership(spread=3.0, batch=7))
        assert (welcome.server, welcome.stream, welcome.next) == (b"server", 1, 0)
        assert (welcome.period, welcome.timeout, welcome.spread) == (1.0, 5.0, 3.0)
        assert welcome.batch == 7

    def test_asked_twice_is_the_same_and_the_stream_goes_on(self):
        members = membership()
        first = join(members)
        members.sync(batch(first, 0, [(1, 2)]), ROUTE, 1.0)
        again = join(members)
        assert (again.stream, again.next) == (first.stream, 1)
        assert members.registrations == 1
        assert members.view("w").table == {1: 2}

    def test_with_another_boot_token_makes_void_what_was_known(self):
        members = membership()
        first = join(members)
        members.sync(batch(first, 0, [(1, 2)], complete=True), ROUTE, 1.0)
        assert join(members, boot=b"new").stream == 2
        assert members.view("w").table == {}
        assert events(members)[-2:] == [
            WorkerGone("w", "replaced"),
            WorkerJoined("w", b"new", {"n": 1}),
        ]

    def test_that_is_repeated_is_a_sign_of_life_and_says_where_commands_go(self):
        members = membership()
        welcome = join(members)
        again = members.register(Registration("w", BOOT, offers={"n": 1}), b"elsewhere", 4.0)
        assert (again.stream, members.registrations) == (welcome.stream, 1)
        pass_time(members, 8.9)
        members.command("w", "flush", [])
        assert [route for route, _ in members.pushes()] == [b"elsewhere"]
        pass_time(members, 9.0)
        assert members.workers() == []

    def test_with_a_further_attempt_begins_anew(self):
        members = membership()
        join(members)
        assert join(members, attempt=1).stream == 2
        assert join(members, attempt=0).stream == 2  # late

    def test_of_one_that_was_replaced_is_refused_while_its_successor_is_here(self):
        members = membership()
        join(members, boot=b"old")
        join(members, boot=b"middle")
        join(members, boot=b"new")
        for boot in (b"old", b"middle"):
            with pytest.raises(RequestRefused, match="was replaced by a newer process"):
                join(members, boot=boot)
        members.leave(Farewell("w", b"new"))
        assert join(members, boot=b"old").stream == 4

    def test_of_another_version_is_refused(self):
        registration = Registration("w", BOOT, version=9)
        with pytest.raises(RequestRefused, match="speaks version 1 of the control channel, not 9"):
            membership().register(registration, ROUTE, 0.0)

    def test_of_one_too_many_is_refused(self):
        members = membership(max_workers=1)
        join(members)
        with pytest.raises(RequestRefused, match="the limit of 1 worker is reached"):
            join(members, "v")
        join(members, boot=b"new")  # in the place of the other


class TestSilence:
    def test_of_the_timeout_is_the_end(self):
        members = membership()
        welcome = join(members)
        pass_time(members, 3.0)
        assert members.beat(beat(welcome), ROUTE, 3.0).known
        pass_time(members, 7.9)
        assert (members.workers(), members.next_deadline()) == (["w"], 8.0)
        members.handle_deadline(8.0)
        assert (members.workers(), members.next_deadline()) == ([], None)
        assert events(members)[-1] == WorkerGone("w", "silent")
        assert not members.beat(beat(welcome), ROUTE, 8.1).known

    def test_is_judged_for_each(self):
        members = membership()
        join(members, "a", now=0.0)
        join(members, "b", now=2.0)
        pass_time(members, 6.0)
        assert members.workers() == ["b"]

    def test_is_broken_by_a_batch_too(self):
        members = membership()
        welcome = join(members)
        pass_time(members, 4.0)
        members.sync(batch(welcome), ROUTE, 4.0)
        pass_time(members, 6.0)
        assert members.workers() == ["w"]

    def test_while_the_server_stood_still_proves_nothing(self):
        """Its heartbeats wait to be read; they are read within a period, or there were none."""
        members = membership()
        welcome = join(members)
        join(members, "dead")
        pass_time(members, 1.0)
        members.handle_deadline(60.0)
        assert members.workers() == ["w", "dead"]
        members.beat(beat(welcome), ROUTE, 60.5)
        pass_time(members, 61.0)
        assert (members.workers(), events(members)[-1]) == (["w"], WorkerGone("dead", "silent"))

    def test_is_not_proved_by_the_first_message_after_a_standstill_either(self):
        members = membership()
        welcome = join(members)
        join(members, "v")
        members.beat(beat(welcome), ROUTE, 60.0)
        members.handle_deadline(60.0)
        assert sorted(members.workers()) == ["v", "w"]


class TestFarewell:
    def test_is_taken_from_the_one_that_is_here_only(self):
        members = membership()
        join(members)
        members.leave(Farewell("w", b"old"))
        members.leave(Farewell("v", BOOT))
        assert members.workers() == ["w"]
        members.leave(Farewell("w", BOOT))
        assert members.workers() == []


class TestSync:
    def test_is_right_once_the_whole_table_is_there(self):
        members = membership()
        welcome = join(members)
        assert members.sync(batch(welcome, 0, [(1, "a"), (2, "b")]), ROUTE, 0.0).next == 1
        assert not members.view("w").is_right
        assert members.sync(batch(welcome, 1, [(3, "c")], complete=True), ROUTE, 0.0).next == 2
        assert members.view("w").is_right
        members.sync(batch(welcome, 2, [(1, "d")], [2, 9]), ROUTE, 0.0)
        assert members.view("w").table == {1: "d", 3: "c"}
        assert events(members)[1:] == [
            WorkerChanged("w", [(1, "a"), (2, "b")], []),
            WorkerChanged("w", [(3, "c")], []),
            WorkerSynced("w"),
            WorkerChanged("w", [(1, "d")], [2, 9]),
        ]

    def test_of_an_empty_table_is_one_batch(self):
        members = membership()
        members.sync(batch(join(members), complete=True), ROUTE, 0.0)
        assert (members.view("w").is_right, members.syncs) == (True, 1)

    def test_takes_a_batch_once(self):
        members = membership()
        welcome = join(members)
        for _ in range(2):
            assert members.sync(batch(welcome, 0, [(1, 2)]), ROUTE, 0.0).next == 1
        assert events(members)[1:] == [WorkerChanged("w", [(1, 2)], [])]

    def test_takes_no_batch_out_of_turn(self):
        members = membership()
        welcome = join(members)
        assert members.sync(batch(welcome, 1, [(1, 2)]), ROUTE, 0.0).next == 0
        assert members.view("w").table == {}

    @pytest.mark.parametrize("field", ["server", "stream", "boot", "worker"])
    def test_takes_no_batch_of_another_life(self, field):
        members = membership()
        values = {"worker": "w", "boot": BOOT, "server": b"server", "stream": 1}
        values[field] = {"worker": "v", "stream": 9}.get(field, b"other")
        join(members)
        assert not members.sync(Batch(**values, number=0), ROUTE, 0.0).known

    def test_of_too_many_at_a_time_waits(self):
        members = membership(max_syncs=1)
        first, second = join(members, "a"), join(members, "b")
        assert members.sync(batch(first, worker="a"), ROUTE, 0.0).next == 1
        waits = members.sync(batch(second, worker="b", complete=True), ROUTE, 0.0)
        assert (waits.known, waits.next, waits.later) == (True, 0, 1.0)
        members.sync(batch(first, 1, worker="a", complete=True), ROUTE, 0.0)
        assert members.sync(batch(second, worker="b", complete=True), ROUTE, 0.0).next == 1

    def test_of_one_that_has_gone_makes_room(self):
        members = membership(max_syncs=1)
        members.sync(batch(join(members, "a"), worker="a"), ROUTE, 0.0)
        second = join(members, "b", now=1.0)
        pass_time(members, 5.0)
        assert members.sync(batch(second, worker="b"), ROUTE, 5.0).next == 1

    def test_is_held_back_while_nobody_reads_the_events(self):
        members = membership(max_events=2)
        welcome = join(members)
        assert members.sync(batch(welcome, 0, [(1, 2)]), ROUTE, 0.0).next == 1
        assert members.sync(batch(welcome, 1, [(3, 4)]), ROUTE, 0.0).next == 1
        events(members)
        assert members.sync(batch(welcome, 1, [(3, 4)]), ROUTE, 0.0).next == 2

    def test_is_not_held_back_by_events_that_are_not_wanted(self):
        members = membership(max_events=0)
        welcome = join(members)
        for number in range(3):
            members.sync(batch(welcome, number, [(number, 1)]), ROUTE, 0.0)
        members.leave(Farewell("v", BOOT))
        assert len(members.view("w").table) == 3
        assert (events(members), members.held_back) == ([], 0)


class TestEvents:
    def test_that_nobody_reads_are_no_more_than_the_limits_allow(self):
        """A peer that registers anew and anew is refused, and those who are here go on."""
        members = membership(max_events=4, max_workers=2)
        join(members, boot=b"first")
        for number in range(100):
            with contextlib.suppress(RequestRefused):
                join(members, boot=b"%d" % number)
        held_back = members.held_back
        with pytest.raises(RequestRefused, match=r"are not read \(waiting: 7\); come later"):
            join(members, boot=b"one more")
        assert members.held_back == held_back + 1
        assert members.held_back >= 90
        assert len(events(members)) < 4 + 2 + 3
        join(members, boot=b"one more")


class TestCommands:
    def test_are_pushed_once_and_come_with_each_pulse_until_they_end(self):
        members = membership()
        welcome = join(members)
        assert members.command("w", "flush", [1]) == 1
        [(route, command)] = members.pushes()
        assert (route, command.stream, command.name) == (ROUTE, welcome.stream, "flush")
        assert members.pushes() == []
        for _ in range(2):
            pulse = members.beat(beat(welcome), ROUTE, 0.0)
            assert (pulse.commands, pulse.heard) == ([command], 0)
        pulse = members.beat(beat(welcome, Outcome(1, "done")), ROUTE, 0.0)
        assert (pulse.commands, pulse.heard) == ([], 1)
        members.beat(beat(welcome, Outcome(1, "done")), ROUTE, 0.0)
        assert events(members)[1:] == [CommandEnded("w", 1, "done", None)]

    def test_end_in_order(self):
        members = membership()
        welcome = join(members)
        for number in range(3):
            members.command("w", "flush", [number])
        members.beat(beat(welcome, Outcome(1), Outcome(2, error="no")), ROUTE, 0.0)
        assert events(members)[1:] == [
            CommandEnded("w", 1, None, None),
            CommandEnded("w", 2, None, "no"),
        ]

    def test_that_were_passed_over_end_and_keep_nobody(self):
        members = membership()
        welcome = join(members)
        for number in range(3):
            members.command("w", "flush", [number])
        pulse = members.beat(beat(welcome, Outcome(2, "done")), ROUTE, 0.0)
        assert (pulse.heard, [each.id for each in pulse.commands]) == (2, [3])
        assert events(members)[1:] == [
            CommandEnded("w", 1, None, "its worker said nothing of it"),
            CommandEnded("w", 2, "done", None),
        ]

    def test_that_nobody_gave_end_nothing(self):
        members = membership()
        welcome = join(members)
        members.command("w", "flush", [])
        assert members.beat(beat(welcome, Outcome(2)), ROUTE, 0.0).heard == 0
        assert events(members)[1:] == []

    def test_are_lost_with_their_worker(self):
        members = membership()
        join(members)
        members.command("w", "flush", [])
        join(members, boot=b"new")
        assert events(members)[1:3] == [CommandLost("w", 1), WorkerGone("w", "replaced")]

    def test_are_given_a_hundred_at_a_time(self):
        members = membership()
        welcome = join(members)
        for _ in range(150):
            members.command("w", "flush", [])
        assert len(members.beat(beat(welcome), ROUTE, 0.0).commands) == 100

    def test_are_given_with_as_many_octets_as_can_be_read(self):
        members = membership()
        welcome = join(members)
        for _ in range(3):
            members.command("w", "load", [b"x" * (MAX_VALUE - 10)])
        assert [each.id for each in members.beat(beat(welcome), ROUTE, 0.0).commands] == [1]
        pulse = members.beat(beat(welcome, Outcome(1)), ROUTE, 0.0)
        assert [each.id for each in pulse.commands] == [2]

    @pytest.mark.parametrize(
        ("name", "arguments", "error"),
        [
            ("flush", [object()], Unencodable),
            ("flush", [b"x" * MAX_VALUE], Unencodable),
            ("\udc80", [], Unencodable),
            (5, [], TypeError),
        ],
    )
    def test_that_have_no_form_are_told_to_who_gives_them_and_nobody_else(
        self, name, arguments, error
    ):
        members = membership()
        welcome = join(members)
        with pytest.raises(error):
            members.command("w", name, arguments)
        assert members.pushes() == members.beat(beat(welcome), ROUTE, 0.0).commands == []
        assert members.command("w", "flush", []) == 1

    def test_are_for_who_is_here(self):
        with pytest.raises(KeyError):
            membership().command("w", "flush", [])
