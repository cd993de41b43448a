"""An API server's half of the channel, by the messages: what follows from what has come."""

import msgspec
import pytest

from zerohop.serving.engine.exchange import Exchange, OpenCall
from zerohop.serving.engine.handshake import Identity
from zerohop.serving.engine.liveness import Patience
from zerohop.serving.engine.messages import (
    PROTOCOL,
    SLOT_SHIFT,
    Beat,
    BeatSeen,
    Delta,
    Ended,
    Goodbye,
    Hello,
    HelloAgain,
    Leaving,
    Outputs,
    Ready,
    Refusal,
    Start,
    UtilityResult,
    Welcome,
)
from zerohop.serving.errors import DeadlineExceeded, EngineDead, RequestRefused

SERVER = 7
E0 = Identity("e0", 11)
PULSE, LOOP = E0.routing_id(b"p"), E0.routing_id(b"r")
SLOT = 3


def number(count):
    return SLOT << SLOT_SHIFT | count


def encoded(message):
    return msgspec.msgpack.encode(message)


def new_exchange(**options):
    options = {"stream_limit": 100, "end_hung": False, **options}
    return Exchange("api", SERVER, "ipc:///outputs", Patience(), **options)


def said(exchange):
    """What it has to say, and no more of it."""
    to_say, exchange.to_say = exchange.to_say, []
    return to_say


def joined(**options):
    """An exchange with an engine that is ready."""
    exchange = new_exchange(**options)
    exchange.take_control([PULSE, encoded(Hello(PROTOCOL, "e0", E0.boot))], 0)
    exchange.take_outputs([encoded(Ready(SERVER, E0.boot, SLOT, 1))], 0)
    said(exchange)
    exchange.has_joined = False
    return exchange


def opened(exchange, *counts, seconds=None):
    return [exchange.streams.open(number(n), "e0", E0.boot, 0, seconds) for n in counts]


def outputs(seq, *columns, **more):
    return [encoded(Outputs(SERVER, E0.boot, 1, seq, *(columns or ([], [])), **more))]


def test_an_engine_is_welcomed_started_and_ready():
    exchange = new_exchange()
    exchange.take_control([PULSE, encoded(Hello(PROTOCOL, "e0", E0.boot))], 0)
    ((to, welcome),) = said(exchange)
    assert (to, type(welcome), welcome.boot) == (PULSE, Welcome, SERVER)
    exchange.take_control([PULSE, encoded(Beat(SERVER, 1, 0, welcome.life))], 1)
    assert said(exchange) == [(PULSE, BeatSeen(SERVER, False)), (LOOP, Start(SERVER))]
    exchange.take_outputs([encoded(Ready(SERVER, E0.boot, SLOT, welcome.life))], 1)
    assert exchange.has_joined
    exchange.take_control([PULSE, encoded(Beat(SERVER, 2, 0, welcome.life))], 2)
    assert said(exchange) == [(PULSE, BeatSeen(SERVER, True))]


def test_steps_are_kept_until_they_are_given():
    exchange = joined()
    one, two = opened(exchange, 1, 2)
    for seq in range(3):
        exchange.take_outputs(outputs(seq, [number(1), number(2)], [seq, 10 + seq]), 1)
    assert exchange.woken == []
    exchange.give(1)
    assert exchange.woken == [one, two]
    assert (one.take(), two.take()) == (Delta(number(1), [0, 1, 2]), Delta(number(2), [10, 11, 12]))


def test_a_stream_that_is_left_is_aborted_once_and_a_finished_one_is_not():
    exchange = joined()
    left, finished = opened(exchange, 1, 2)
    exchange.take_outputs(outputs(0, deltas=[Delta(number(2), [5], "stop")]), 1)
    for stream in (left, left, finished):
        exchange.abandon(stream, 1)
    assert exchange.aborts == {LOOP: [number(1)]}
    assert left.ended
    assert finished.take() == Delta(number(2), [5], "stop")


def test_who_is_late_is_aborted_and_woken():
    exchange = joined()
    (stream,) = opened(exchange, 1, seconds=2)
    assert exchange.next_deadline() == 2
    exchange.handle_deadline(2)
    assert (exchange.woken, exchange.aborts) == ([stream], {LOOP: [number(1)]})
    assert isinstance(stream.error, DeadlineExceeded)
    assert str(stream.error) == f"request e0/{number(1)} did not end within 2 s"


def test_what_an_engine_ends_wakes_its_reader():
    exchange = joined()
    (stream,) = opened(exchange, 1)
    exchange.take_outputs(outputs(0, ended=[Ended(number(1), "refused", "no")]), 1)
    assert exchange.woken == [stream]
    assert isinstance(stream.error, RequestRefused)


def test_a_call_ends_in_its_answer_or_with_its_engine():
    exchange = joined()
    answered, lost, others = (OpenCall(boot, name, None) for boot, name in zip((11, 11, 12), "abc"))
    exchange.calls = {number(1): answered, number(2): lost, number(3): others}
    exchange.take_outputs(
        outputs(0, results=[UtilityResult(number(n), None, 5) for n in (9, 1)]), 1
    )
    assert exchange.answered == [answered]
    assert answered.result.result == 5
    exchange.take_outputs([encoded(Leaving(SERVER, E0.boot, "bye"))], 1)
    assert exchange.answered == [answered, lost]
    assert str(lost.error) == "engine e0 is gone (bye; it was asked for 'b')"
    assert not others.ended
    assert exchange.remarks == [(False, "engine e0 is gone: bye")]


def test_an_engine_whose_connection_broke_gets_no_requests_and_is_lost_after_its_last_outputs():
    exchange = joined()
    (stream,) = opened(exchange, 1)
    exchange.broke(E0)
    assert exchange.roster.choose(exchange.streams.load) is None
    seen = exchange.lose(E0, None, has_more=False)
    exchange.take_outputs(outputs(0, [number(1)], [5]), 1)
    seen = exchange.lose(E0, seen, has_more=False)  # more may be on its way
    assert exchange.lose(E0, seen, has_more=True) == seen == 1
    assert not stream.ended
    assert exchange.lose(E0, seen, has_more=False) is None
    assert exchange.woken == [stream, stream]
    assert stream.take() == Delta(number(1), [5])
    assert isinstance(stream.error, EngineDead)
    assert exchange.remarks == [(True, "engine e0 is gone: its connection broke")]


def test_an_engine_that_goes_on_without_its_connection_is_given_up_all_the_same():
    exchange = joined()
    (stream,) = opened(exchange, 1)
    exchange.broke(E0)
    seen, looks = exchange.lose(E0, None, has_more=False), 1
    while seen is not None:
        exchange.take_outputs(outputs(seen, [number(1)], [5]), looks)
        seen, looks = exchange.lose(E0, seen, has_more=False), looks + 1
    assert looks == 51
    assert stream.take() == Delta(number(1), [5] * 50)
    assert isinstance(stream.error, EngineDead)


def test_of_an_engine_that_is_gone_already_nothing_breaks():
    exchange = new_exchange()
    exchange.broke(E0)
    assert exchange.lose(E0, None, has_more=False) is None


def test_who_leaves_says_goodbye_and_ends_what_is_open():
    exchange = joined()
    left, stream = opened(exchange, 1, 2)
    exchange.abandon(left, 1)
    exchange.leave()
    assert said(exchange) == [(PULSE, Goodbye("it was closed"))]
    assert (exchange.aborts, exchange.remarks, exchange.woken) == ({}, [], [stream])
    assert str(stream.error) == (
        f"engine e0 is gone (this API server was closed); request e0/{number(2)} is lost"
    )


def test_who_does_not_know_what_has_come_has_all_engines_join_anew():
    exchange = joined()
    (stream,) = opened(exchange, 1)
    exchange.begin_anew("it is not known")
    assert said(exchange) == [(PULSE, HelloAgain())]
    assert (exchange.woken, exchange.roster.members()) == ([stream], [])
    assert isinstance(stream.error, EngineDead)


def test_a_hung_engine_departs_where_that_is_wanted():
    exchange = joined(end_hung=True)
    (stream,) = opened(exchange, 1)
    exchange.roster.has_work(E0.boot, True, 0)
    exchange.take_control([PULSE, encoded(Beat(SERVER, 1, 1, 1))], 0)
    for now in range(1, 11):
        exchange.take_control([PULSE, encoded(Beat(SERVER, 1, 1, 1))], now)
    exchange.handle_deadline(10)
    assert exchange.woken == [stream]


def test_a_reader_that_falls_too_far_behind_is_aborted():
    exchange = joined(stream_limit=2)
    (stream,) = opened(exchange, 1)
    for seq in range(3):
        exchange.take_outputs(outputs(seq, [number(1)], [5]), 1)
    exchange.give(1)
    assert (exchange.woken, exchange.aborts) == ([stream], {LOOP: [number(1)]})


def test_what_comes_for_another_life_is_counted():
    exchange = joined()
    stray = Outputs(SERVER, E0.boot, 9, 0, [1, 2], [5, 6], [Delta(3, [7])])
    exchange.take_outputs([encoded(stray)], 1)
    assert exchange.streams.stale == 3


def test_what_is_said_again_or_to_another_changes_nothing():
    exchange = joined()
    exchange.take_outputs([encoded(Ready(SERVER, E0.boot, SLOT, 1))], 1)
    exchange.take_outputs([encoded(Leaving(SERVER + 1, E0.boot, "bye"))], 1)
    assert (exchange.has_joined, exchange.remarks) == (False, [])
    assert len(exchange.roster.members()) == 1


def test_outputs_that_are_missing_end_their_engine():
    exchange = joined()
    exchange.take_outputs(outputs(1, [1], [5]), 1)
    assert exchange.remarks == [(True, "engine e0 is gone: outputs 0 of it are lost")]
    assert exchange.streams.stale == 0


@pytest.mark.parametrize("columns", [(["1"], [5]), ([1], [5, 6]), ("no numbers", [5]), ([1], None)])
def test_outputs_that_cannot_be_read_end_their_engine(columns):
    exchange = joined()
    exchange.take_outputs(outputs(0, *columns), 1)
    assert exchange.malformed == 1
    assert exchange.remarks[-1] == (True, "engine e0 is gone: outputs 0 can't be read")


def test_octets_that_are_nobodys_hurt_nobody():
    exchange = joined()
    exchange.take_outputs([b"\xc1"], 1)
    exchange.take_outputs([encoded([21, SERVER, E0.boot + 1, 1, 0, [], None])], 1)
    exchange.take_control([PULSE, b"\xc1"], 1)
    exchange.take_control([b"x", encoded(Beat(SERVER, 1, 0, 1))], 1)
    assert exchange.malformed == 4
    assert exchange.last_malformed.reason == "it is no routing id of an engine"
    assert [text.split(" that")[0] for _, text in exchange.remarks] == [
        "message 1", "message 2", "message 4",
    ]  # fmt: skip
    assert len(exchange.roster.members()) == 1


def test_what_is_kept_of_engines_that_are_refused_is_bounded_and_so_is_what_is_told_of_them():
    exchange = new_exchange()
    for boot in range(300):
        who = Identity(f"e{boot}", boot)
        exchange.take_control(
            [who.routing_id(b"p"), encoded(Hello(PROTOCOL + 1, who.engine, boot))], 0
        )
    assert len(exchange.refusals) == len(exchange.remarks) == 256
    assert "e299" in exchange.refusals
    assert {type(answer) for _, answer in said(exchange)} == {Refusal}
