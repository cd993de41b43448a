"""The engines that an API server knows: lives, beats, outputs that count, who gets a request."""

import pytest

from zerohop.serving.engine.handshake import Identity
from zerohop.serving.engine.liveness import EngineState, Patience
from zerohop.serving.engine.messages import (
    PROTOCOL,
    SLOT_SHIFT,
    Beat,
    BeatSeen,
    Hello,
    HelloAgain,
    Outputs,
    Ready,
    Refusal,
    Welcome,
)
from zerohop.serving.engine.roster import Departure, EngineStatus, Roster
from zerohop.serving.errors import Unencodable

API = 100
E0, E1 = Identity("e0", 10), Identity("e1", 11)
E0_ANEW = Identity("e0", 12)
PATIENCE = Patience(beat_every=1, gone_after=5, hung_after=10)


def hello(identity, protocol=PROTOCOL, **fields):
    return Hello(protocol, identity.engine, identity.boot, **fields)


def roster_with(*identities, now=0.0):
    roster = Roster("api", API, "ipc:///outputs", PATIENCE)
    for slot, identity in enumerate(identities):
        roster.hello(identity, hello(identity), now)
        roster.ready(Ready(API, identity.boot, slot, slot + 1), now)
    return roster


def states(roster):
    return {m.identity.engine: m.liveness.state for m in roster.members()}


def test_an_engine_is_welcome_and_told_where_outputs_go():
    roster = roster_with()
    answer, departure = roster.hello(E0, hello(E0, info={"model": "m"}), now=0)
    assert isinstance(answer, Welcome)
    assert (answer.boot, answer.outputs, answer.beat_every) == (API, "ipc:///outputs", 1)
    assert departure is None
    assert roster.member("e0").info == {"model": "m"}
    assert states(roster) == {"e0": EngineState.STARTING}


def test_an_engine_of_another_version_is_refused_and_not_known():
    roster = roster_with()
    answer, _ = roster.hello(E0, hello(E0, protocol=9), now=0)
    assert answer == Refusal("protocol version", PROTOCOL, 9)
    assert roster.members() == []
    assert roster.unwelcome == 1


def test_an_engine_that_calls_itself_otherwise_than_its_routing_id_is_refused():
    answer, _ = roster_with().hello(E0, hello(E1), now=0)
    assert answer == Refusal("the engine's id", "e0", "e1")


def test_an_engine_that_has_restarted_ends_its_old_life():
    roster = roster_with(E0)
    _, departure = roster.hello(E0_ANEW, hello(E0_ANEW), now=1)
    assert departure == Departure(E0, "it has restarted")
    assert roster.of(E0.boot) is None
    assert states(roster) == {"e0": EngineState.STARTING}


def test_a_process_whose_id_another_has_taken_is_refused():
    roster = roster_with(E0)
    roster.hello(E0_ANEW, hello(E0_ANEW), now=1)
    refusal = Refusal("the process of engine e0", E0_ANEW.boot, E0.boot)
    assert roster.beat(E0, Beat(API, 0, 0, 1), now=2) == (refusal, None)
    assert roster.hello(E0, hello(E0), now=2) == (refusal, None)


def test_a_process_that_was_refused_is_welcome_when_the_other_is_gone():
    roster = roster_with(E0)
    roster.hello(E0_ANEW, hello(E0_ANEW), now=1)
    roster.leave(E0_ANEW, "bye")
    assert roster.beat(E0, Beat(API, 0, 0, 1), now=2) == (HelloAgain(), None)
    answer, _ = roster.hello(E0, hello(E0), now=3)
    assert isinstance(answer, Welcome)
    _, departure = roster.hello(E0_ANEW, hello(E0_ANEW), now=4)  # which came last after all
    assert departure == Departure(E0, "it has restarted")


def test_a_process_that_was_taken_for_gone_does_not_take_the_place_of_the_one_that_followed():
    roster = roster_with(E0)
    roster.handle_deadline(5)
    roster.hello(E0_ANEW, hello(E0_ANEW), now=6)
    answer, departure = roster.hello(E0, hello(E0), now=7)
    assert answer == Refusal("the process of engine e0", E0_ANEW.boot, E0.boot)
    assert departure is None


def test_what_is_remembered_of_processes_is_bounded():
    roster = roster_with(E0)
    for boot in range(1000, 2000):
        roster.hello(Identity("e", boot), hello(Identity("e", boot)), now=1)
    assert len(roster._first) == 256
    assert roster.hello(E0, hello(E0), now=1)[1] == Departure(E0, "it joined anew")


def test_a_hello_that_was_said_twice_before_anybody_was_there_is_no_end_of_anything():
    roster = roster_with()
    roster.hello(E0, hello(E0), now=0)
    answer, departure = roster.hello(E0, hello(E0), now=0)
    assert departure is None
    assert answer.life == 2


def test_engines_wait_longer_for_an_api_server_than_it_waits_for_them():
    answer, _ = roster_with().hello(E0, hello(E0), now=0)
    assert answer.gone_after == 30


def test_a_name_that_cannot_be_sent_is_told_who_gives_it():
    with pytest.raises(Unencodable):
        Roster("caf\udce9", API, "ipc:///outputs", PATIENCE)


def test_a_hello_of_the_same_life_begins_another_too():
    roster = roster_with(E0)
    _, departure = roster.hello(E0, hello(E0), now=1)
    assert departure == Departure(E0, "it joined anew")
    assert roster.member("e0").slot is None


def test_an_engine_is_started_at_each_beat_until_its_loop_answers():
    roster = roster_with()
    roster.hello(E0, hello(E0), now=0)
    seen, to_start = roster.beat(E0, Beat(API, 0, 0, 1), now=1)
    assert seen == BeatSeen(API, False)
    assert to_start.takes == E0.routing_id(b"r")
    assert roster.ready(Ready(API, E0.boot, 3, 1), now=1).slot == 3
    assert roster.beat(E0, Beat(API, 0, 5, 1), now=2) == (BeatSeen(API, True), None)
    assert roster.member("e0").work == 5


def test_a_second_answer_of_the_loop_changes_nothing():
    roster = roster_with(E0)
    assert roster.ready(Ready(API, E0.boot, 9, 1), now=1) is None
    assert roster.member("e0").slot == 0


def test_users_see_how_an_engine_is():
    roster = roster_with()
    roster.hello(E0, hello(E0, info={"model": "m"}), now=0)
    roster.beat(E0, Beat(API, 0, 3, 1), now=0)
    status = roster.member("e0").status({E0.boot: 2}.get)
    assert status == EngineStatus("e0", EngineState.STARTING, {"model": "m"}, 2, 3)


def test_who_is_not_known_is_asked_to_say_hello_again():
    roster = roster_with(E0)
    assert roster.beat(E1, Beat(API, 0, 0, 1), now=1) == (HelloAgain(), None)
    assert roster.beat(E0, Beat(API + 1, 0, 0, 1), now=1) == (HelloAgain(), None)


def test_answers_to_another_api_server_do_not_count():
    roster = roster_with()
    roster.hello(E0, hello(E0), now=0)
    assert roster.ready(Ready(API + 1, E0.boot, 0, 1), now=0) is None
    assert roster.ready(Ready(API, E1.boot, 0, 1), now=0) is None


def test_an_answer_of_a_life_that_is_over_makes_the_next_one_not_ready():
    roster = roster_with()
    roster.hello(E0, hello(E0), now=0)
    answer, _ = roster.hello(E0, hello(E0), now=1)
    assert roster.ready(Ready(API, E0.boot, slot=0, life=1), now=1) is None
    assert roster.member("e0").slot is None
    assert roster.ready(Ready(API, E0.boot, slot=1, life=answer.life), now=1).slot == 1


def test_who_has_not_heard_of_his_new_life_is_told_of_it():
    roster = roster_with(E0)
    answer, _ = roster.hello(E0, hello(E0), now=1)
    assert answer.life == 2
    assert roster.beat(E0, Beat(API, 0, 0, life=1), now=1) == (answer, None)
    seen, to_start = roster.beat(E0, Beat(API, 0, 0, life=2), now=1)
    assert seen == BeatSeen(API, False)
    assert to_start.identity == E0


def outputs(seq, identity=E0, server=API, life=1):
    return Outputs(server, identity.boot, life, seq, [], [])


def test_outputs_of_a_life_that_is_over_do_not_end_the_next_one():
    roster = roster_with(E0)
    roster.outputs(outputs(0), now=0)
    roster.hello(E0, hello(E0), now=1)
    roster.ready(Ready(API, E0.boot, slot=1, life=2), now=1)
    assert roster.outputs(outputs(1), now=1) == (False, None)
    assert roster.outputs(outputs(0, life=2), now=1) == (True, None)


def test_outputs_in_order_count():
    roster = roster_with(E0)
    assert [roster.outputs(outputs(seq), now=0) for seq in range(3)] == [(True, None)] * 3


def test_outputs_that_are_lost_end_the_engine():
    roster = roster_with(E0)
    roster.outputs(outputs(0), now=0)
    counts, departure = roster.outputs(outputs(3), now=0)
    assert not counts
    assert departure == Departure(E0, "outputs 1 to 2 of it are lost")
    assert roster.members() == []


def test_outputs_of_another_life_or_for_another_api_server_do_not_count():
    roster = roster_with(E0)
    roster.hello(E1, hello(E1), now=0)  # which has not said that it is ready
    assert roster.outputs(outputs(0, E0_ANEW), now=0) == (False, None)
    assert roster.outputs(outputs(0, server=API + 1), now=0) == (False, None)
    assert roster.outputs(outputs(0, E1, life=2), now=0) == (False, None)


def test_an_engine_that_leaves_leaves_once():
    roster = roster_with(E0)
    assert roster.leave(E0, "bye") == Departure(E0, "bye")
    assert roster.leave(E0, "bye") is None


def test_a_connection_of_an_old_life_that_breaks_does_not_end_the_new_one():
    roster = roster_with(E0)
    roster.hello(E0_ANEW, hello(E0_ANEW), now=1)
    assert roster.leave(E0, "its connection broke") is None
    assert states(roster) == {"e0": EngineState.STARTING}


def test_silence_ends_an_engine_and_no_other():
    roster = roster_with(E0, E1)
    roster.beat(E1, Beat(API, 1, 0, 2), now=3)
    assert roster.next_deadline() == 5
    assert roster.handle_deadline(5) == [Departure(E0, "nothing was heard of it for 5 s")]
    assert list(states(roster)) == ["e1"]
    assert roster.next_deadline() == 8


def test_without_engines_there_is_no_deadline():
    assert roster_with().next_deadline() is None


def hang(roster, identity):
    roster.has_work(identity.boot, True, now=0)
    roster.beat(identity, Beat(API, 0, 1, 1), now=0)
    roster.beat(identity, Beat(API, 0, 1, 1), now=9)


def test_a_hung_engine_is_shown_and_stays():
    roster = roster_with(E0)
    hang(roster, E0)
    assert roster.handle_deadline(10) == []
    assert states(roster) == {"e0": EngineState.HUNG}


def test_a_hung_engine_may_be_taken_for_gone():
    roster = roster_with(E0)
    hang(roster, E0)
    assert roster.handle_deadline(10, end_hung=True) == [
        Departure(E0, "it made no progress for 10 s")
    ]


def test_work_of_an_engine_that_is_gone_is_no_matter():
    roster_with().has_work(E0.boot, True, now=0)


def test_the_engine_with_the_fewest_open_requests_gets_the_next():
    roster = roster_with(E0, E1)
    assert roster.choose({E0.boot: 2, E1.boot: 1}.get).identity == E1
    assert roster.choose({E0.boot: 1, E1.boot: 1}.get).identity == E0


def test_a_hung_engine_gets_a_request_only_where_there_is_no_other():
    roster = roster_with(E0, E1)
    hang(roster, E0)
    roster.beat(E1, Beat(API, 1, 0, 2), now=9)
    roster.handle_deadline(10)
    assert roster.choose({E0.boot: 0, E1.boot: 99}.get).identity == E1
    roster.leave(E1, "bye")
    assert roster.choose({E0.boot: 0}.get).identity == E0


def test_an_engine_that_is_not_ready_gets_none():
    roster = roster_with()
    roster.hello(E0, hello(E0), now=0)
    assert roster.choose(lambda boot: 0) is None


def test_a_number_is_of_the_engines_slot():
    roster = roster_with(E0, E1)
    assert roster.number(roster.member("e1"), 5) == 1 << SLOT_SHIFT | 5
