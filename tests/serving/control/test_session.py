"""A worker's side: when it registers, beats, and sends which batch."""

from itertools import repeat

import msgspec
import pytest

from zerohop.serving.codec import pack, unpack
from zerohop.serving.control.messages import (
    Command,
    Pulse,
    Receipt,
    Registration,
    Welcome,
)
from zerohop.serving.control.session import COMMAND, WorkerSession
from zerohop.serving.control.values import MAX_VALUE
from zerohop.serving.errors import Unencodable

WELCOME = Welcome(b"server", 1, 0, period=2.0, timeout=10.0, spread=4.0, batch=3)


class Server:
    """Reads what a session sends, and answers as it is told."""

    def __init__(self, jitter=0.5, patience=1.0):
        self.session = WorkerSession(Registration("w", b"boot"), repeat(jitter), patience)
        self.now = 0.0
        self.uid = None

    def at(self, now):
        """Let it ask what is due; return the operations and what was said."""
        self.now = now
        self.session.handle_deadline(now)
        asked = []
        for uid, operation, argument in self.session.data_to_send():
            self.uid = uid
            asked.append((unpack(operation), unpack(argument)))
        return asked

    def operations(self, now):
        return [operation for operation, _ in self.at(now)]

    def answer(self, result, uid=None):
        frames = [uid or self.uid, pack("whatever"), msgspec.msgpack.encode(result)]
        self.session.receive(frames, self.now)

    def refuse(self, reason):
        self.session.receive([self.uid, pack(f"refused: {reason}")], self.now)

    def welcome(self, now=0.0, **others):
        assert self.operations(now) == ["register"]
        self.answer(msgspec.structs.replace(WELCOME, **others))

    def settle(self, now=0.0):
        """Welcome it, and take an empty table."""
        self.welcome(now)
        assert self.operations(now) == ["sync"]
        self.answer(Receipt(True, 1))
        assert self.session.is_settled


@pytest.fixture
def server():
    return Server()


class TestRegistration:
    def test_is_asked_at_once_with_who_it_is(self, server):
        [(operation, said)] = server.at(0.0)
        assert operation == "register"
        assert (said["worker"], said["boot"], said["version"]) == ("w", b"boot", 1)
        assert server.session.state == "registering"

    def test_is_asked_again_ever_more_seldom(self, server):
        asked = [tenth / 10 for tenth in range(3000) if server.at(tenth / 10)]
        gaps = [round(b - a, 1) for a, b in zip(asked, asked[1:], strict=False)]
        assert gaps[:7] == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0]
        assert set(gaps[7:]) == {60.0}

    def test_that_was_refused_is_asked_again_once_a_minute(self, server):
        server.at(0.0)
        server.refuse("too many")
        assert server.session.refused_because == "too many"
        assert server.operations(59.9) == []
        assert server.operations(60.0) == ["register"]
        server.answer(WELCOME)
        assert server.session.refused_because is None

    def test_is_answered_by_the_last_question_only(self, server):
        server.at(0.0)
        first = server.uid
        server.at(1.0)
        server.answer(WELCOME, uid=first)
        assert server.session.state == "registering"
        server.answer(WELCOME)
        assert (server.session.state, server.session.registrations) == ("syncing", 1)


class TestHeartbeat:
    def test_comes_every_period(self, server):
        server.settle()
        assert server.operations(1.9) == []
        assert server.operations(2.0) == ["beat"]
        server.answer(Pulse(True))
        assert server.operations(3.9) == []
        assert server.operations(4.0) == ["beat"]

    def test_without_a_reply_comes_again_and_nothing_is_registered(self, server):
        server.settle()
        assert [server.operations(2.0 * n) for n in range(1, 100)] == [["beat"]] * 99
        assert server.session.state == "right"

    def test_of_who_is_not_known_leads_to_one_registration_at_a_time_of_its_own(self, server):
        server.settle()
        server.at(2.0)
        server.answer(Pulse(known=False))
        assert server.session.state == "registering"
        assert server.operations(3.9) == []  # half of the spread, by the jitter
        [(operation, said)] = server.at(4.0)
        assert (operation, said["attempt"]) == ("register", 1)

    def test_that_is_refused_changes_nothing(self, server):
        server.settle()
        server.at(2.0)
        server.refuse("out of order")
        assert server.session.state == "right"
        assert server.operations(4.0) == ["beat"]


class TestSync:
    def test_sends_the_table_in_batches_each_after_the_one_before(self, server):
        for key in range(7):
            server.session.put(key, str(key))
        server.welcome()
        sizes = []
        for number in range(3):
            [(operation, said)] = server.at(0.0)
            assert (operation, said["number"], said["stream"]) == ("sync", number, 1)
            sizes.append((len(said["put"]), said["complete"]))
            assert server.at(0.0) == []
            server.answer(Receipt(True, number + 1))
        assert sizes == [(3, False), (3, False), (1, True)]
        assert server.session.is_settled

    def test_sends_what_changes_meanwhile_afterwards_the_last_value_of_each_key(self, server):
        for key in range(4):
            server.session.put(key, "old")
        server.welcome()
        server.at(0.0)
        server.session.put(0, "new")
        server.session.put(3, "newer")
        server.session.put(3, "newest")
        server.session.remove(1)
        server.answer(Receipt(True, 1))
        [(_, second)] = server.at(0.0)
        assert (second["put"], second["complete"]) == ([[3, "old"]], True)
        server.answer(Receipt(True, 2))
        assert server.session.state == "right"
        [(_, third)] = server.at(0.0)
        assert (third["put"], third["removed"]) == ([[0, "new"], [3, "newest"]], [1])

    def test_sends_a_change_at_once(self, server):
        server.settle()
        server.session.put("k", 1)
        assert not server.session.is_settled
        assert server.session.next_deadline() <= 0.5
        assert server.operations(0.5) == ["sync"]

    def test_of_a_key_that_is_not_there_is_nothing(self, server):
        server.settle()
        server.session.remove("k")
        assert server.session.is_settled

    def test_sends_a_batch_again_without_a_receipt(self, server):
        server.session.put("k", 1)
        server.welcome()
        [first] = server.at(0.0)
        assert server.at(0.9) == []
        assert server.at(1.0) == [first]

    def test_waits_when_it_is_told_to(self, server):
        server.welcome()
        [first] = server.at(0.0)
        server.answer(Receipt(True, 0, later=1.5))
        assert server.at(1.4) == []
        assert server.at(1.5) == [first]

    @pytest.mark.parametrize("receipt", [Receipt(known=False), Receipt(True, 7)])
    def test_that_does_not_fit_is_a_reason_to_register(self, server, receipt):
        server.welcome()
        server.at(0.0)
        server.answer(receipt)
        assert server.session.state == "registering"

    def test_begins_anew_with_a_new_registration(self, server):
        server.session.put("k", 1)
        server.welcome()
        server.at(0.0)
        server.answer(Receipt(known=False))
        server.session.put("j", 2)
        assert server.operations(2.0) == ["register"]
        server.answer(msgspec.structs.replace(WELCOME, stream=2))
        [(_, said)] = server.at(2.0)
        assert (said["stream"], said["number"]) == (2, 0)
        assert said["put"] == [["k", 1], ["j", 2]]

    def test_tells_who_gives_what_has_no_form_and_goes_on(self, server):
        server.settle()
        with pytest.raises(Unencodable):
            server.session.put("k", object())
        for key in (True, 1.5, b"k", None):
            with pytest.raises(TypeError, match="a key is an int or a str"):
                server.session.put(key, 1)
        with pytest.raises(Unencodable):
            server.session.put("\udc80", 1)
        assert server.session.table == {}
        assert server.operations(0.5) == []

    def test_has_what_was_given_and_not_what_became_of_it(self, server):
        server.settle()
        value = [1]
        server.session.put("k", value)
        value.append(object())
        [(_, said)] = server.at(0.5)
        assert said["put"] == [["k", [1]]]

    @pytest.mark.parametrize("is_whole", [True, False])
    def test_of_large_values_are_small_enough_to_be_read(self, is_whole):
        server, large = Server(), b"x" * (MAX_VALUE // 2 - 100)
        values = {f"k{n}": large for n in range(5)}
        if not is_whole:
            server.settle()
        for key, value in values.items():
            server.session.put(key, value)
        if is_whole:
            server.welcome(batch=1000)
        came, sizes = {}, []
        while not server.session.is_settled:
            [(operation, said)] = server.at(0.5)
            assert operation == "sync"
            came |= dict(said["put"])
            sizes.append(len(said["put"]))
            server.answer(Receipt(True, said["number"] + 1))
        assert came == values
        assert sizes == [2, 2, 1]


class TestCommands:
    def push(self, server, number, stream=1):
        command = Command(stream, number, "flush")
        server.session.receive([*COMMAND, msgspec.msgpack.encode(command)], server.now)

    def test_come_once_though_they_are_pushed_and_in_a_pulse(self, server):
        server.settle()
        self.push(server, 1)
        server.at(2.0)
        server.answer(Pulse(True, [Command(1, 1, "flush"), Command(1, 2, "flush")]))
        assert [each.id for each in server.session.commands()] == [1, 2]
        assert server.session.commands() == []

    def test_come_in_order(self, server):
        server.settle()
        self.push(server, 2)
        assert server.session.commands() == []
        server.at(2.0)
        server.answer(Pulse(True, [Command(1, 1, "flush"), Command(1, 2, "flush")]))
        assert [each.id for each in server.session.commands()] == [1, 2]

    def test_of_another_registration_are_nobodys(self, server):
        server.settle()
        self.push(server, 1, stream=9)
        assert server.session.commands() == []

    def test_end_in_a_heartbeat_that_comes_at_once_and_until_it_is_heard(self, server):
        server.settle()
        self.push(server, 1)
        [command] = server.session.commands()
        server.session.end(command, result="done")
        [(operation, said)] = server.at(0.1)
        assert (operation, said["outcomes"][0]["result"]) == ("beat", "done")
        server.answer(Pulse(True, heard=0))
        assert server.at(2.0) == []  # a server that never hears it is told once a period
        [(_, said)] = server.at(2.1)
        assert len(said["outcomes"]) == 1
        server.answer(Pulse(True, heard=1))
        [(_, said)] = server.at(4.1)
        assert said["outcomes"] == []

    def test_that_end_while_a_heartbeat_is_under_way_end_in_the_next_which_comes_at_once(
        self, server
    ):
        server.settle()
        for number in (1, 2):
            self.push(server, number)
        first, second = server.session.commands()
        server.session.end(first)
        server.at(0.1)
        server.session.end(second)
        server.answer(Pulse(True, heard=1))
        [(_, said)] = server.at(0.1)
        assert [each["id"] for each in said["outcomes"]] == [2]

    def test_that_say_what_has_no_form_end_with_that_in_other_words(self, server):
        class Speechless:
            def __repr__(self):
                raise LookupError

        server.settle()
        for number in (1, 2):
            self.push(server, number)
        first, second = server.session.commands()
        server.session.end(first, error="caf\udce9")
        server.session.end(second, Speechless())
        [(_, said)] = server.at(0.1)
        words = [each["error"] for each in said["outcomes"]]
        assert words[0] == "caf\\udce9"
        assert words[1].startswith("its result has no form on the wire: ")

    @pytest.mark.parametrize("result", [object(), "\udc80", b"x" * MAX_VALUE])
    def test_whose_result_has_no_form_end_with_that_error(self, server, result):
        server.settle()
        self.push(server, 1)
        [command] = server.session.commands()
        server.session.end(command, result)
        [(_, said)] = server.at(0.1)
        [outcome] = said["outcomes"]
        assert outcome["result"] is None
        assert outcome["error"].startswith("its result has no form on the wire: ")

    def test_of_large_results_end_with_several_heartbeats(self, server):
        server.settle()
        self.push(server, 1)
        self.push(server, 2)
        for command in server.session.commands():
            server.session.end(command, b"x" * (MAX_VALUE - 10))
        [(_, said)] = server.at(0.1)
        assert [each["id"] for each in said["outcomes"]] == [1]
        server.answer(Pulse(True, heard=1))
        [(_, said)] = server.at(0.2)
        assert [each["id"] for each in said["outcomes"]] == [2]

    def test_that_end_after_a_new_registration_are_lost(self, server):
        server.settle()
        self.push(server, 1)
        [command] = server.session.commands()
        server.at(2.0)
        server.answer(Pulse(known=False))
        server.session.end(command)
        server.welcome(4.0, stream=2)
        server.session.end(command)
        assert server.operations(4.0) == ["sync"]


class TestFarewell:
    def test_is_said_to_who_knows_it_and_is_the_end(self, server):
        server.settle()
        server.session.leave()
        [(operation, said)] = server.at(1.0)
        assert (operation, said) == ("leave", {"worker": "w", "boot": b"boot"})
        assert (server.session.state, server.session.next_deadline()) == ("ended", None)
        server.session.leave()
        assert server.at(2.0) == []

    def test_is_not_said_to_who_does_not(self, server):
        server.session.leave()
        assert server.at(0.0) == []


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [b"x"],
        [b"\x01", b"\xc1"],
        [*COMMAND, b"\xc1"],
        [*COMMAND, pack({"id": "x"})],
    ],
)
def test_what_cannot_be_read_is_counted_and_changes_nothing(server, frames):
    server.settle()
    server.session.receive(frames, 0.0)
    assert (server.session.malformed, server.session.state) == (1, "right")


@pytest.mark.parametrize(
    "numbers",
    [
        {"period": 0.0},
        {"period": float("nan")},
        {"period": float("inf")},
        {"spread": -1.0},
        {"spread": float("nan")},
    ],
)
def test_a_welcome_with_times_that_are_none_is_not_taken(server, numbers):
    server.at(0.0)
    server.answer(msgspec.structs.replace(WELCOME, **numbers))
    assert (server.session.malformed, server.session.state) == (1, "registering")
    assert server.operations(10.0) == ["register"]


@pytest.mark.parametrize("later", [float("nan"), float("inf"), -1.0])
def test_a_batch_that_is_to_come_at_no_time_comes_within_minutes(server, later):
    server.welcome()
    server.at(0.0)
    server.answer(Receipt(True, 0, later))
    assert "sync" in server.operations(120.0)


@pytest.mark.parametrize(
    ("registration", "error"),
    [
        (Registration("caf\udce9", b"boot"), Unencodable),
        (Registration(7, b"boot"), TypeError),
        (Registration("w", b"boot", offers=[1]), TypeError),
        (Registration("w", b"boot", offers={"n": object()}), Unencodable),
    ],
)
def test_a_registration_that_could_not_be_sent_or_read_is_told_to_who_gives_it(registration, error):
    with pytest.raises(error):
        WorkerSession(registration, repeat(0.5))


def test_a_reply_without_its_result_is_counted(server):
    server.at(0.0)
    server.session.receive([server.uid, pack("register")], 0.0)
    assert (server.session.malformed, server.session.state) == (1, "registering")
