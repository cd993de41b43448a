"""A server without its socket: what is carried out at once, what is handed over, what is sent."""

import asyncio

import pytest

from zerohop.serving.codec import pack, unpack
from zerohop.serving.control.exchange import Exchange
from zerohop.serving.control.frames import encode_call, parse_reply
from zerohop.serving.control.membership import Membership, MembershipOptions
from zerohop.serving.control.protocol import Operation, Protocol
from zerohop.serving.errors import RequestRefused

ROUTE = b"route"
CACHE = Protocol("cache", (Operation("count"),))
REGISTER = encode_call(1, "register", {"worker": "w", "boot": b"boot"})


class Silent(BaseException):
    def __str__(self):
        raise SystemExit


def exchange(count=lambda: 3, **others):
    return Exchange(CACHE, {"count": count, **others}, Membership(b"server"))


def reply(to):
    [[route, *frames]] = to.data_to_send()
    assert route == ROUTE
    return parse_reply(frames)


def test_the_channels_own_operations_are_carried_out_at_once():
    ours = exchange()
    assert ours.receive([ROUTE, *REGISTER], 0.0) is None
    assert reply(ours).result["server"] == b"server"
    assert ours.membership.workers() == ["w"]


@pytest.mark.parametrize("name", ["register", "beat", "sync", "leave"])
def test_the_channels_own_operations_have_no_handler_of_the_user(name):
    with pytest.raises(ValueError, match=f"{name}: of the control channel itself"):
        exchange(**{name: lambda message: None})


def test_a_registration_that_is_refused_is_so_in_words_and_no_fault():
    ours = exchange()
    ours.receive(
        [ROUTE, *encode_call(1, "register", {"worker": "w", "boot": b"", "version": 9})], 0.0
    )
    assert reply(ours).operation.startswith("refused: this server speaks version 1")
    assert ours.counts == {}
    assert ours.lines_to_log() == []


def test_the_users_operations_are_handed_over_and_answered_later():
    ours = exchange()
    route, call = ours.receive([ROUTE, *encode_call(1, "count")], 0.0)
    assert ours.data_to_send() == []
    ours.answer(route, call, call.handler(), 0.0)
    assert reply(ours).result == 3


def test_a_handler_that_raises_is_counted_and_told_to_the_log_once():
    ours = exchange()
    for second in range(50):
        route, call = ours.receive([ROUTE, *encode_call(1, "count")], float(second))
        ours.fail(route, call, LookupError("no"), float(second))
    assert ours.counts == {"failed": 50}
    assert ours.lines_to_log() == ["cache: refused: the handler of 'count' raised LookupError: no"]


def test_a_handler_that_declines_is_no_fault():
    ours = exchange()
    route, call = ours.receive([ROUTE, *encode_call(1, "count")], 0.0)
    ours.fail(route, call, RequestRefused("count", "not today"), 0.0)
    assert reply(ours).operation == "refused: not today"
    assert ours.counts == {}


def test_a_result_without_a_form_is_a_fault():
    ours = exchange()
    route, call = ours.receive([ROUTE, *encode_call(1, "count")], 0.0)
    ours.answer(route, call, object(), 0.0)
    assert reply(ours).operation.startswith("refused: the handler of 'count' raised Unencodable")
    assert ours.counts == {"failed": 1}


def test_a_thousand_calls_may_be_under_way_and_a_ping_is_answered_all_the_same():
    ours = exchange()
    calls = [ours.receive([ROUTE, *encode_call(n, "count")], 0.0) for n in range(1001)]
    assert calls[1000] is None
    assert reply(ours).operation == "refused: 1000 calls are under way"
    ours.receive([ROUTE, *encode_call(1, "ping")], 0.0)
    assert reply(ours).result["protocol"] == "cache"
    ours.answer(*calls[0], 3, 0.0)
    assert ours.receive([ROUTE, *encode_call(1, "count")], 0.0) is not None


def test_a_ping_of_the_users_that_raises_is_refused():
    def ping():
        raise LookupError("no")

    ours = Exchange(Protocol("cache", (Operation("ping"),)), {"ping": ping})
    assert ours.receive([ROUTE, *encode_call(1, "ping")], 0.0) is None
    assert "raised LookupError: no" in reply(ours).operation
    assert ours.counts == {"failed": 1}


def test_a_ping_of_the_users_may_be_a_coroutine_function():
    async def ping():
        return "well"

    ours = exchange(ping=lambda *_: ping())
    route, call = ours.receive([ROUTE, *encode_call(1, "ping")], 0.0)
    with pytest.raises(StopIteration) as returned:
        call.handler().send(None)
    ours.answer(route, call, returned.value.value, 0.0)
    assert reply(ours).result == "well"


@pytest.mark.parametrize(
    "failure",
    [SystemExit(), GeneratorExit(), asyncio.CancelledError(), KeyboardInterrupt(), Silent()],
)
def test_whatever_a_ping_of_the_users_raises_is_refused(failure):
    def ping(*_):
        raise failure

    ours = exchange(ping=ping)
    assert ours.receive([ROUTE, *encode_call(1, "ping")], 0.0) is None
    assert f"raised {type(failure).__name__}" in reply(ours).operation


class Raises:
    """What msgpack has no form for, nor itself a text."""

    def __repr__(self):
        raise LookupError("no text")


@pytest.mark.parametrize("result", [Raises(), {"a": "\udc80"}, {"deep": [object()]}])
def test_whatever_a_result_is_its_asker_has_a_reply(result):
    ours = exchange(ping=lambda *_: result)
    ours.receive([ROUTE, *encode_call(1, "ping")], 0.0)
    assert reply(ours).operation.startswith("refused: the handler of 'ping' raised ")
    route, call = ours.receive([ROUTE, *encode_call(1, "count")], 0.0)
    ours.answer(route, call, result, 0.0)
    assert reply(ours).operation.startswith("refused: the handler of 'count' raised ")
    assert ours.counts == {"failed": 2}


@pytest.mark.parametrize(
    ("words", "reason"), [("caf\udce9", "caf\\udce9"), (Raises(), "(its text raised LookupError)")]
)
def test_whatever_a_handler_declines_with_is_said(words, reason):
    ours = exchange()
    route, call = ours.receive([ROUTE, *encode_call(1, "count")], 0.0)
    failure = RequestRefused("count", "")
    failure.reason = words
    ours.fail(route, call, failure, 0.0)
    assert reply(ours).operation == f"refused: {reason}"


def test_credit_for_a_stream_is_nobodys():
    ours = exchange()
    assert ours.receive([ROUTE, pack(1), b"", b"ack"], 0.0) is None
    assert ours.data_to_send() == []


def test_a_command_is_pushed_to_where_its_worker_was_heard_of_last():
    ours = exchange()
    ours.receive([b"elsewhere", *REGISTER], 0.0)
    ours.receive([ROUTE, *REGISTER], 0.0)
    ours.data_to_send()
    ours.membership.command("w", "flush", [1])
    [[route, uid, operation, command]] = ours.data_to_send()
    assert (route, unpack(uid), unpack(operation)) == (ROUTE, None, "command")
    assert unpack(command) == {"stream": 1, "id": 1, "name": "flush", "arguments": [1]}


def test_events_that_nobody_reads_are_told_to_the_log():
    membership = Membership(b"server", MembershipOptions(max_events=1))
    ours = Exchange(CACHE, {"count": lambda: 3}, membership)
    ours.receive([ROUTE, *REGISTER], 0.0)
    stream = reply(ours).result["stream"]
    batch = {"worker": "w", "boot": b"boot", "server": b"server", "stream": stream, "number": 0}
    for second in range(10):
        ours.receive([ROUTE, *encode_call(2, "sync", batch)], float(second))
        assert reply(ours).result["next"] == 0
    assert ours.counts == {"held_back": 10}
    assert ours.lines_to_log() == [
        "cache: the events are not read (waiting: 1); the workers' batches are held back"
    ]
    ours.membership.next_event()
    ours.receive([ROUTE, *encode_call(2, "sync", batch)], 10.0)
    assert reply(ours).result["next"] == 1
    assert ours.counts == {"held_back": 10}  # what was held back before is no news
