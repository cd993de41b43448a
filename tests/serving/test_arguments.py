"""What users give: each kind by itself, and that every part of serving looks at it."""

import math
from decimal import Decimal
from fractions import Fraction

import pytest

from tests.serving.control.running import run
from zerohop.serving import (
    BatchRecorder,
    BatchRecording,
    ControlClient,
    ControlServer,
    ControlWorker,
    EngineServer,
    KvEventSubscriber,
    LmcacheClient,
    MembershipOptions,
    Operation,
    Protocol,
    SyncControlClient,
    SyncControlServer,
    SyncControlWorker,
    SyncEngineClient,
    SyncKvEventSubscriber,
    SyncLmcacheClient,
    SyncLmcacheController,
    SyncLmcacheServer,
    SyncLmcacheWorker,
    ping,
    play_batches,
)
from zerohop.serving.arguments import number, octets, seconds, text, whole
from zerohop.serving.control.lmcache.messages import Register
from zerohop.serving.kv.publisher import KvEventPublisher
from zerohop.serving.kv.questions import OrderOptions

NOWHERE = "tcp://127.0.0.1:1"
A_YEAR = 366 * 86400.0


class TestNumbers:
    @pytest.mark.parametrize("given", [0, 2, 0.5, Fraction(1, 2), Decimal("0.25")])
    def test_a_time_is_any_number_that_is_not_negative(self, given):
        assert seconds("timeout", given) == given
        assert type(seconds("timeout", given)) is float

    @pytest.mark.parametrize("given", [math.inf, 1e300])
    def test_a_time_that_no_timer_takes_is_a_year(self, given):
        assert seconds("timeout", given) == A_YEAR
        assert number("at", given) == given

    @pytest.mark.parametrize("given", ["3", b"3", None, [3], 3j, True])
    @pytest.mark.parametrize("check", [seconds, number, whole])
    def test_what_is_no_number_is_told_with_the_arguments_name(self, check, given):
        with pytest.raises(TypeError, match=r"^timeout is a .*number.*, not ") as raised:
            check("timeout", given)
        assert repr(given) in str(raised.value)

    @pytest.mark.parametrize("given", [-1, -0.001, math.nan, -math.inf])
    def test_what_is_below_zero_is_no_time_nor_is_nan(self, given):
        with pytest.raises(ValueError, match="^timeout is a number of seconds, 0 or more: "):
            seconds("timeout", given)

    @pytest.mark.parametrize("given", [0, -1, math.nan])
    def test_some_have_to_be_above_zero(self, given):
        with pytest.raises(ValueError, match="^period is a number of seconds, above 0: "):
            seconds("period", given, above_zero=True)

    def test_a_whole_number_has_no_point_and_may_have_to_be_so_large(self):
        assert whole("hwm", 0) == 0
        with pytest.raises(TypeError, match=r"hwm is a whole number, not 1\.0"):
            whole("hwm", 1.0)
        with pytest.raises(ValueError, match="threads is a whole number, 1 or more: 0"):
            whole("threads", 0, least=1)

    def test_a_text_is_a_str_and_octets_are_bytes_or_like_them(self):
        assert text("topic", "kv") == "kv"
        assert octets("payload", b"kv") == b"kv"
        assert octets("payload", memoryview(b"kv")) == b"kv"
        with pytest.raises(TypeError, match="topic is a str, not b'kv'"):
            text("topic", b"kv")
        with pytest.raises(TypeError, match="payload is bytes, not 'kv'"):
            octets("payload", "kv")

    def test_of_what_was_given_no_more_is_shown_than_a_line_takes(self):
        with pytest.raises(TypeError) as raised:
            seconds("timeout", "x" * 10_000)
        assert len(str(raised.value)) < 120


WHO = {"pull": NOWHERE, "reply": NOWHERE, "register": Register("instance", 0, "127.0.0.1", 1)}
AT = {"endpoint": NOWHERE}
ENGINE = {"servers": NOWHERE, "engine": "e0"}
WORKER = {**AT, "worker": "w"}
PUBLISHER = {**AT, "replay": None, "topic": "", "dp_rank": 0, "patience": 1.0, "hwm": 1}

TEXTS = [
    (SyncControlServer, {}, "endpoint"),
    (SyncControlClient, AT, "endpoint"),
    (SyncControlWorker, WORKER, "endpoint"),
    (SyncControlWorker, WORKER, "worker"),
    (SyncLmcacheServer, {}, "endpoint"),
    (SyncKvEventSubscriber, AT, "endpoint"),
    (SyncKvEventSubscriber, AT, "replay"),
    (SyncKvEventSubscriber, AT, "worker"),
    (SyncKvEventSubscriber, AT, "topic"),
    (KvEventPublisher, PUBLISHER, "endpoint"),
    (KvEventPublisher, PUBLISHER, "replay"),
    (KvEventPublisher, PUBLISHER, "topic"),
    (Operation, {}, "name"),
    (Protocol, {}, "name"),
    (ping, AT, "endpoint"),
]
PLACES = [
    (SyncEngineClient, {}, "endpoint"),
    (SyncEngineClient, {}, "outputs"),
    (EngineServer, ENGINE, "servers"),
    (SyncControlServer, {}, "endpoint"),
    (SyncControlClient, AT, "endpoint"),
    (SyncControlWorker, WORKER, "endpoint"),
    (SyncLmcacheServer, {}, "endpoint"),
    (SyncKvEventSubscriber, AT, "endpoint"),
    (SyncKvEventSubscriber, AT, "replay"),
    (KvEventPublisher, PUBLISHER, "endpoint"),
    (KvEventPublisher, PUBLISHER, "replay"),
]
NUMBERS = [
    *((SyncEngineClient, {}, name) for name in ("default_deadline", "requests_limit")),
    (SyncEngineClient, {}, "stream_limit"),
    *((EngineServer, ENGINE, name) for name in ("max_requests", "outputs_limit")),
    (SyncControlServer, {}, "threads"),
    (SyncControlClient, AT, "timeout"),
    (SyncControlWorker, WORKER, "patience"),
    (SyncLmcacheClient, AT, "timeout"),
    (SyncLmcacheController, {}, "timeout"),
    (SyncLmcacheServer, {}, "threads"),
    (SyncLmcacheWorker, WHO, "period"),
    (SyncLmcacheWorker, WHO, "patience"),
    (SyncLmcacheWorker, WHO, "spread"),
    (SyncKvEventSubscriber, AT, "hwm"),
    (KvEventPublisher, PUBLISHER, "dp_rank"),
    (KvEventPublisher, PUBLISHER, "patience"),
    (KvEventPublisher, PUBLISHER, "hwm"),
    *((MembershipOptions, {}, name) for name in ("period", "timeout", "spread", "batch")),
    *((MembershipOptions, {}, name) for name in ("max_syncs", "max_workers", "max_events")),
    *((OrderOptions, {}, name) for name in ("silence", "attempts", "pause", "check")),
    *((OrderOptions, {}, name) for name in ("max_held", "max_held_octets", "first")),
    (Operation, {"name": "add"}, "optional"),
    (Operation, {"name": "add"}, "number"),
    (ping, AT, "timeout"),
]
ON_A_LOOP = [
    (ControlServer, {}, "endpoint", [3]),
    (ControlClient, AT, "timeout", "3"),
    (ControlWorker, WORKER, "patience", "3"),
    (ControlWorker, WORKER, "worker", [3]),
    (LmcacheClient, AT, "timeout", "3"),
    (KvEventSubscriber, AT, "topic", b"kv"),
    (KvEventSubscriber, AT, "hwm", "3"),
]


def named(value):
    return getattr(value, "__name__", None) or (value if isinstance(value, str) else "with")


@pytest.mark.parametrize(("kind", "others", "name"), TEXTS, ids=named)
def test_a_text_is_refused_that_is_none(kind, others, name):
    with pytest.raises(TypeError, match="is a str, not 3"):
        kind(**{**others, name: 3})


@pytest.mark.parametrize(("kind", "others", "name"), PLACES, ids=named)
def test_an_endpoint_is_refused_where_nobody_else_can_be(kind, others, name):
    with pytest.raises(ValueError, match=f"{name} is inproc://a, where nobody else is"):
        kind(**{**others, name: "inproc://a"})


@pytest.mark.parametrize(("kind", "others", "name"), NUMBERS, ids=named)
def test_a_number_is_refused_that_is_none_or_below_zero(kind, others, name):
    for wrong in ("3", True):
        with pytest.raises(TypeError, match=f"{name} is a .*number.*, not {wrong!r}"):
            kind(**{**others, name: wrong})
    with pytest.raises(ValueError, match=f"{name} is a .*number.*: -1"):
        kind(**{**others, name: -1})


def test_a_stream_of_which_nothing_may_wait_is_none():
    with pytest.raises(ValueError, match="stream_limit is a whole number, 1 or more: 0"):
        SyncEngineClient(stream_limit=0)


@pytest.mark.parametrize(("kind", "others", "name", "wrong"), ON_A_LOOP, ids=named)
def test_on_a_loop_it_is_refused_likewise(kind, others, name, wrong):
    async def body():
        with pytest.raises(TypeError, match=r"is a .*, not "):
            kind(**{**others, name: wrong})

    run(body())


@pytest.mark.parametrize("wrong", ["3", True, -1, math.nan])
def test_a_time_to_wait_is_refused_that_is_none_and_nothing_has_happened(wrong):
    with (
        SyncControlServer() as server,
        SyncControlWorker(server.endpoint, "w") as worker,
        SyncControlClient(server.endpoint) as client,
        SyncKvEventSubscriber(NOWHERE) as subscriber,
    ):
        waits = [
            lambda: server.receive(timeout=wrong),
            lambda: server.close(timeout=wrong),
            lambda: worker.wait_settled(wrong),
            lambda: worker.close(timeout=wrong),
            lambda: client.call("ping", timeout=wrong),
            lambda: subscriber.receive(timeout=wrong),
        ]
        for wait in waits:
            with pytest.raises((TypeError, ValueError), match="^timeout is a number of seconds"):
                wait()
        assert client.call("ping")["protocol"] == "zerohop-control"
        assert worker.wait_settled(20.0)


def test_a_time_to_wait_is_refused_that_is_none_on_a_loop():
    async def body():
        async with ControlServer() as server, ControlClient(server.endpoint) as client:
            with pytest.raises(TypeError, match="^timeout is a number of seconds, not '3'"):
                await client.call("ping", timeout="3")

    run(body())


def test_who_waits_without_end_may_say_so_with_a_number():
    with SyncControlServer() as server, SyncControlClient(server.endpoint) as client:
        assert client.call("ping", timeout=math.inf)["protocol"] == "zerohop-control"
        server.close(timeout=math.inf)
        assert server.receive(timeout=math.inf) is None


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"seq": "3"}, "seq is a whole number, not '3'"),
        ({"seq": -1}, "seq is a whole number, 0 or more: -1"),
        ({"payload": "kv"}, "payload is bytes, not 'kv'"),
        ({"topic": "kv"}, "topic is bytes, not 'kv'"),
        ({"at": "3"}, "at is a number, not '3'"),
        ({"at": -1.0}, "at is a number, 0 or more: -1"),
        ({"at": 1.7e9}, r"at=1.7e\+09: it is counted from when the recording began"),
    ],
)
def test_what_nobody_could_read_again_is_not_recorded(record, message, tmp_path):
    with BatchRecorder(tmp_path / "file") as recorder:
        with pytest.raises((TypeError, ValueError), match=message):
            recorder.record(**{"seq": 0, "payload": b"", **record})
        recorder.record(1, b"x")
    assert [each.seq for each in BatchRecording(tmp_path / "file")] == [1]
    assert recorder.count == 1


@pytest.mark.parametrize("speed", ["2", True])
def test_a_speed_is_refused_that_is_no_number(speed, tmp_path):
    with BatchRecorder(tmp_path / "file"):
        pass
    with pytest.raises(TypeError, match="speed is a number, not "):
        play_batches(BatchRecording(tmp_path / "file"), print, speed)
