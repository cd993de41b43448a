"""How both sides find each other: the engine's side over a chosen clock, and what fits together."""

import pytest

from zerohop.serving.engine.handshake import (
    FEATURES,
    Identity,
    Joined,
    Left,
    Refused,
    ServerLink,
    find_mismatch,
    mismatch,
)
from zerohop.serving.engine.messages import (
    PROTOCOL,
    Beat,
    BeatSeen,
    Goodbye,
    Hello,
    HelloAgain,
    Refusal,
    Welcome,
)

HELLO = Hello(PROTOCOL, "e0", 7, list(FEATURES))
API, RESTARTED = 100, 200


def welcome(boot=API, protocol=PROTOCOL, life=1):
    return Welcome(protocol, "api", boot, list(FEATURES), "ipc:///outputs", 1.0, 5.0, life)


def said(link):
    messages = list(link.to_send)
    link.to_send.clear()
    return messages


def joined_at(now, *, ready=True):
    link = ServerLink(HELLO, now)
    assert link.receive(welcome(), now) == [Joined(API, welcome())]
    link.handle_deadline(now, 0, 0)
    if ready:
        link.receive(BeatSeen(API, True), now)
    link.to_send.clear()
    return link


def test_a_routing_id_tells_who_it_is():
    identity = Identity("engine-0", 2**63 - 1)
    assert identity.routing_id(b"p") == b"p\x7f" + b"\xff" * 7 + b"engine-0"
    assert (
        Identity.of(identity.routing_id(b"p")) == Identity.of(identity.routing_id(b"r")) == identity
    )


@pytest.mark.parametrize(
    "foreign", [b"", b"p", b"p" + b"\0" * 8, b"x" + b"\0" * 8 + b"e", b"p" + b"\0" * 8 + b"\xff"]
)
def test_a_routing_id_of_somebody_else_is_nobodys(foreign):
    assert Identity.of(foreign) is None


@pytest.mark.parametrize("engine", ["", "e" * 201])
def test_an_engines_id_must_fit_into_a_routing_id(engine):
    with pytest.raises(ValueError, match="1 to 200 octets"):
        Identity(engine, 1)


def test_what_is_of_the_same_version_fits():
    assert find_mismatch(HELLO) is None


def test_another_version_of_the_protocol_does_not_fit():
    refusal = find_mismatch(Hello(PROTOCOL + 1, "e0", 7))
    assert refusal == Refusal("protocol version", PROTOCOL, PROTOCOL + 1)
    error = mismatch(refusal, engine=True)
    assert (error.ours, error.theirs) == (PROTOCOL + 1, PROTOCOL)
    assert str(error) == "protocol version differs: here 2, there 1"
    error = mismatch(refusal, engine=False)
    assert (error.ours, error.theirs) == (PROTOCOL, PROTOCOL + 1)


def test_features_that_are_offered_need_not_be_known_but_those_that_are_required():
    assert find_mismatch(Hello(PROTOCOL, "e0", 7, ["later"])) is None
    refusal = find_mismatch(Hello(PROTOCOL, "e0", 7, [], ["later", "buffers"]))
    assert refusal == Refusal("features that the engine requires", sorted(FEATURES), ["later"])


def test_an_engine_says_hello_at_once_and_every_second_until_it_is_welcome():
    link = ServerLink(HELLO, now=10)
    assert link.next_deadline() == 10
    link.handle_deadline(10, 0, 0)
    assert said(link) == [HELLO]
    link.handle_deadline(10.5, 0, 0)
    assert said(link) == []
    link.handle_deadline(link.next_deadline(), 0, 0)
    assert said(link) == [HELLO]


def test_a_welcome_is_answered_with_a_beat_at_once():
    link = ServerLink(HELLO, now=0)
    assert link.receive(welcome(), now=1) == [Joined(API, welcome())]
    assert link.welcome == welcome()
    assert link.next_deadline() == 1
    link.handle_deadline(1, progress=4, work=2)
    assert said(link) == [Beat(API, 4, 2, 1)]


def test_nothing_is_said_before_its_time():
    link = joined_at(0)
    assert link.handle_deadline(0.9, 0, 0) == []
    assert said(link) == []


def test_beats_come_quickly_until_the_engine_is_ready_and_then_as_announced():
    link = joined_at(0, ready=False)
    assert link.next_deadline() == 0.05
    link.receive(BeatSeen(API, False), 0.04)
    assert link.next_deadline() == 0.05
    link.receive(BeatSeen(API, True), 0.05)
    assert link.next_deadline() == 1.0
    link.handle_deadline(1.0, 1, 0)
    assert said(link) == [Beat(API, 1, 0, 1)]


def test_a_welcome_that_comes_twice_changes_nothing():
    link = joined_at(0)
    assert link.receive(welcome(), 0.5) == []


def test_a_welcome_to_another_life_begins_that():
    link = joined_at(0)
    again = welcome(life=2)
    assert link.receive(again, 0.5) == [
        Left(API, "it has taken the engine anew"),
        Joined(API, again),
    ]
    link.handle_deadline(0.5, progress=4, work=2)
    assert said(link) == [Beat(API, 4, 2, life=2)]


def test_an_api_server_that_is_silent_is_left_and_greeted_anew():
    link = joined_at(0)
    for now in range(1, 5):
        assert link.handle_deadline(now, 0, 0) == []
    said(link)
    assert link.handle_deadline(5, 0, 0) == [Left(API, "nothing was heard of it for 5 s")]
    assert said(link) == [HELLO]
    assert link.welcome is None


def test_an_api_server_that_sees_the_beats_is_not_left():
    link = joined_at(0)
    for now in range(1, 50):
        link.receive(BeatSeen(API, True), now)
        assert link.handle_deadline(now, 0, 0) == []


def test_an_api_server_that_has_restarted_takes_the_place_of_the_old_one():
    link = joined_at(0)
    events = link.receive(welcome(RESTARTED), 1)
    assert events == [
        Left(API, "it has taken the engine anew"),
        Joined(RESTARTED, welcome(RESTARTED)),
    ]


@pytest.mark.parametrize("message", [HelloAgain(), BeatSeen(RESTARTED, True)])
def test_an_api_server_that_does_not_know_the_engine_is_left_and_greeted_anew(message):
    link = joined_at(0)
    assert link.receive(message, 1) == [Left(API, "it does not know the engine any more")]
    assert said(link) == [HELLO]


def test_one_hello_is_enough_where_several_beats_were_not_known():
    link = joined_at(0)
    link.receive(HelloAgain(), 1)
    link.receive(HelloAgain(), 1)
    assert said(link) == [HELLO]


def test_an_api_server_that_says_goodbye_is_left_and_greeted_later():
    link = joined_at(0)
    assert link.receive(Goodbye("closed"), 3) == [Left(API, "it said goodbye: closed")]
    assert said(link) == []
    assert link.next_deadline() == 4


def test_a_refusal_is_told_and_the_engine_asks_again_later():
    link = ServerLink(HELLO, now=0)
    (event,) = link.receive(Refusal("protocol version", 2, 1), 0.5)
    assert isinstance(event, Refused)
    assert (event.error.ours, event.error.theirs) == (1, 2)
    assert link.next_deadline() == 1.5


def test_a_welcome_in_another_version_is_a_refusal():
    link = ServerLink(HELLO, now=0)
    (event,) = link.receive(welcome(protocol=PROTOCOL + 1), 0.5)
    assert isinstance(event, Refused)
    assert link.welcome is None


def test_a_refusal_after_a_welcome_is_the_end_of_it():
    link = joined_at(0)
    left, refused = link.receive(Refusal("protocol version", 2, 1), 1)
    assert left == Left(API, "it refused the engine")
    assert isinstance(refused, Refused)


def test_a_broken_connection_is_the_end_of_it_and_hello_is_said_a_little_later():
    link = joined_at(0)
    assert link.broke(3) == [Left(API, "its connection broke")]
    assert said(link) == []
    assert link.next_deadline() == 4
    assert link.broke(3.5) == []


def test_what_an_engine_is_told_that_it_lacks_is_bounded():
    refusal = find_mismatch(Hello(PROTOCOL, "e0", 7, [], [f"{n:0200}" for n in range(1000)]))
    assert len(refusal.engine) == 100
    assert {len(each) for each in refusal.engine} == {100}


def test_an_engine_that_takes_long_to_become_ready_beats_ever_more_slowly():
    link = joined_at(0, ready=False)
    times, now = [], 0.0
    while now < 100:
        now = link.next_deadline()
        link.handle_deadline(now, 0, 0)
        link.receive(BeatSeen(API, False), now)
        times.append(now)
    assert len(times) < 140
    assert times[-1] - times[-2] == pytest.approx(1.0)
