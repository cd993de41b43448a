"""The engine's side by hand: an API server that does not read, what it is owed, what is not its."""

import contextlib
import threading

import msgspec
import numpy as np
import pytest

import zerohop as zmq
from zerohop.serving import Delta, EngineServer, Unencodable
from zerohop.serving.engine.buffers import PayloadDecoder
from zerohop.serving.engine.handshake import Identity, Joined
from zerohop.serving.engine.messages import (
    PROTOCOL,
    SLOT_SHIFT,
    Abort,
    BeatSeen,
    Goodbye,
    Hello,
    Leaving,
    Outputs,
    Ready,
    Refusal,
    Request,
    Start,
    UtilityCall,
    Welcome,
)
from zerohop.serving.errors import ProtocolMismatch

pytestmark = pytest.mark.timeout(20)

encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(Outputs[list[int]] | Ready | Leaving).decode


class ApiServer:
    """One written by hand, blocking: it reads only when it is told to."""

    def __init__(self, directory, name, boot=100):
        self.boot, self._context = boot, zmq.Context()
        self.router = self._context.socket(zmq.ROUTER)
        self.router.router_mandatory = True
        self.pull = self._context.socket(zmq.PULL)
        self.pull.rcvhwm = 1
        self.pull.rcvbuf = 4096
        for socket in (self.router, self.pull):
            socket.linger, socket.rcvtimeo = 0, 10_000
        self.router.bind(f"ipc://{directory}/{name}")
        self.endpoint = self.router.last_endpoint.decode()
        self.pull.bind("tcp://127.0.0.1:*")

    def welcome(self, gone_after=60.0):
        """Shake hands with one engine, whose loop goes on elsewhere."""
        pulse, hello = self.router.recv_multipart()
        hello = msgspec.msgpack.decode(hello, type=Hello)
        outputs = self.pull.last_endpoint.decode()
        self.pulse, self.loop = pulse, Identity.of(pulse).routing_id(b"r")
        self.tell(Welcome(PROTOCOL, "api", self.boot, [], outputs, gone_after / 2, gone_after, 1))
        ready = None
        while ready is None:  # the engine's loop may not have heard of us yet
            with contextlib.suppress(zmq.ZMQError):
                self.order(Start(self.boot))
                ready = decode(self.pull.recv(timeout=0.05))
        assert ready == Ready(self.boot, hello.boot, ready.slot, 1)
        self.tell(BeatSeen(self.boot, True))
        self.slot = ready.slot
        return hello

    def tell(self, message):
        self.router.send_multipart([self.pulse, encode(message)])

    def order(self, message):
        self.router.send_multipart([self.loop, encode(message)])

    def number(self, count):
        return self.slot << SLOT_SHIFT | count

    def next(self):
        """The next outputs; a Start that was sent twice has a second answer."""
        while isinstance(message := decode(self.pull.recv()), Ready):
            pass
        return message

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._context.destroy(linger=0)


def joined(engine, *servers):
    """Let the engine's loop go on while the API servers shake hands."""
    for server in servers:
        thread = threading.Thread(target=server.welcome)
        thread.start()
        while thread.is_alive():
            engine.receive(0.005)


def received(engine, count):
    """Wait for some requests."""
    requests = []
    while len(requests) < count:
        requests += engine.receive(10).requests
    return requests


@pytest.fixture
def api(ipc_directory):
    with ApiServer(ipc_directory, "one") as server:
        yield server


@pytest.fixture
def other(ipc_directory):
    with ApiServer(ipc_directory, "two", boot=200) as server:
        yield server


LARGE = "x" * 100_000


def test_a_request_is_taken_and_its_outputs_are_one_message_a_step(api):
    with EngineServer(api.endpoint, engine="e0") as engine:
        joined(engine, api)
        for count in (1, 2):
            api.order(Request(api.number(count), {"ids": [count]}))
        assert [r.payload for r in received(engine, 2)] == [{"ids": [1]}, {"ids": [2]}]
        assert (engine.open, engine.servers) == (2, 1)
        deltas = [Delta(api.number(1), [5]), Delta(api.number(2), [6], "stop")]
        assert engine.send_step(deltas) == []
        assert api.next() == Outputs(api.boot, engine.boot, 1, 0, [api.number(1)], [5], [deltas[1]])
        assert engine.open == 1


def test_who_waits_for_some_time_gets_all_that_has_come(api):
    with EngineServer(api.endpoint, engine="e0") as engine:
        joined(engine, api)
        most, count = 0, 0
        while most < 2:
            assert count < 1000
            for _ in range(20):
                count += 1
                api.order(Request(api.number(count), None))
            while engine.open < count:
                most = max(most, len(engine.receive(10).requests))


def test_an_api_server_that_does_not_read_holds_up_neither_the_engine_nor_others(api, other):
    with EngineServer([api.endpoint, other.endpoint], engine="e0", outputs_limit=20) as engine:
        joined(engine, api, other)
        api.order(Request(api.number(1), None))
        other.order(Request(other.number(1), None))
        received(engine, 2)
        lost, steps = [], 0
        while not lost:  # the network has room for some
            lost = engine.send_step(
                [Delta(api.number(1), [steps], None, LARGE), Delta(other.number(1), [steps])]
            )
            assert other.next().tokens == [steps]
            steps += 1
        assert lost == [api.number(1)]
        assert engine.open == 1
        assert engine.send_step([Delta(other.number(1), [steps])]) == []
        assert other.next().tokens == [steps]


def test_an_api_server_that_reads_again_is_told_which_streams_were_ended(api):
    with EngineServer(api.endpoint, engine="e0", outputs_limit=20) as engine:
        joined(engine, api)
        for count in (1, 2):
            api.order(Request(api.number(count), None))
        received(engine, 2)
        steps = 0
        while not engine.send_step([Delta(api.number(1), [steps], None, LARGE)]):
            steps += 1
        for _ in range(3):
            engine.receive(0)  # there is no room yet, and the loop goes on
        tokens, last = [], None
        while last is None or not last.ended:
            last = api.next()
            tokens += [delta.token_ids[0] for delta in last.deltas]
            engine.receive(0)
        assert tokens == list(range(steps))  # without a gap, and nothing after it
        assert [(each.number, each.kind, each.limit) for each in last.ended] == [
            (api.number(1), "slow", 20),
            (api.number(2), "slow", 20),
        ]
        api.order(Request(api.number(3), None))
        received(engine, 1)
        engine.send_step([Delta(api.number(3), [7], "stop")])
        assert api.next().deltas == [Delta(api.number(3), [7], "stop")]


def test_aborted_requests_are_told_once_and_their_deltas_are_not_sent(api):
    with EngineServer(api.endpoint, engine="e0") as engine:
        joined(engine, api)
        for count in (1, 2):
            api.order(Request(api.number(count), None))
        received(engine, 2)
        api.order(Abort([api.number(1), api.number(9)]))
        api.order(Abort([api.number(1)]))
        assert engine.receive(10).aborted == [api.number(1)]
        assert not engine.receive(0.05)
        engine.send_step([Delta(api.number(1), [5]), Delta(api.number(2), [6])])
        outputs = api.next()
        assert (outputs.numbers, outputs.tokens) == ([api.number(2)], [6])


def test_requests_of_nobody_are_counted_and_not_taken(api):
    with EngineServer(api.endpoint, engine="e0") as engine:
        joined(engine, api)
        foreign = 77 << SLOT_SHIFT | 1
        for stray in (Request(foreign, None), UtilityCall(foreign, "x", []), Abort([foreign])):
            api.order(stray)
        api.order(Request(api.number(1), None))
        assert [r.number for r in received(engine, 1)] == [api.number(1)]
        assert engine.strays == 2
        assert engine.send_step([Delta(foreign, [1])]) == []


def test_octets_that_are_no_message_do_not_end_the_engine(api):
    with EngineServer(api.endpoint, engine="e0") as engine:
        joined(engine, api)
        api.router.send_multipart([api.loop, b"\xc1"])
        api.router.send_multipart([api.pulse, b"\xc1"])
        api.order(Request(api.number(1), None))
        received(engine, 1)
        assert engine.malformed == 1
        assert engine.last_malformed.data == b"\xc1"


def nested(depth):
    """A payload that is deeper than whoever reads it can go."""
    return b"\x91" * depth + b"\x01"


def test_who_asked_is_told_that_it_could_not_be_read_whatever_is_wrong_with_it(api):
    with EngineServer(api.endpoint, engine="e0") as engine:
        joined(engine, api)
        for tag, count in ((9, 1), (11, 2)):
            head = b"\x95" + encode(tag) + encode(api.number(count))
            api.router.send_multipart([api.loop, head + nested(5000)])
        while engine.malformed < 2:
            engine.receive(0.01)
        (ended,) = api.next().ended
        assert (ended.number, ended.kind) == (api.number(1), "refused")
        assert ended.text == "its payload can't be read: it is nested too deeply"
        (result,) = api.next().results
        assert result.number == api.number(2)
        assert result.failure.startswith("its arguments can't be read")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"servers": 3}, "servers is a list of str, not 3"),
        ({"servers": b"ipc://x"}, "servers is a list of str, not b'ipc://x'"),
        ({"servers": ["ipc://x", None]}, "each of servers is a str, not None"),
        ({"engine": 3}, "engine is a str, not 3"),
        ({"info": "m"}, "info is a dict of what API servers are told, not 'm'"),
        ({"max_requests": 1.5}, "max_requests is a whole number, not 1.5"),
        ({"outputs_limit": "many"}, "outputs_limit is a whole number, not 'many'"),
        ({"requires": "buffers"}, "requires is a list of str, not 'buffers'"),
        ({"requires": [1]}, "each of requires is a str, not 1"),
    ],
)
def test_an_argument_of_another_kind_is_told_with_what_is_wanted(wrong, why):
    with pytest.raises(TypeError) as caught:
        EngineServer(**{"servers": "ipc://nobody", "engine": "e0"} | wrong)
    assert str(caught.value) == why


@pytest.mark.parametrize(
    ("use", "why"),
    [
        (lambda server: server.utility(5, len), "name is a str, not 5"),
        (lambda server: server.utility("x", 5), "a utility is a function, not 5"),
        (lambda server: server.receive("1"), "timeout is a number of seconds, not '1'"),
        (lambda server: server.send_step(5), "a step is a list of Delta, not 5"),
        (lambda server: server.send_step([5]), "a step is made of Delta, not 5"),
        (lambda server: server.refuse("5", "no"), "number is a whole number, not '5'"),
    ],
)
def test_so_is_one_of_a_call(api, use, why):
    with EngineServer(api.endpoint, engine="e0") as engine:
        joined(engine, api)
        with pytest.raises(TypeError) as caught:
            use(engine)
        assert str(caught.value) == why


@pytest.mark.parametrize("timeout", [-1, float("nan")])
def test_a_time_to_wait_is_not_below_zero(api, timeout):
    with EngineServer(api.endpoint, engine="e0") as engine, pytest.raises(ValueError, match="time"):
        engine.receive(timeout)


def test_an_api_server_that_is_gone_loses_its_requests(api):
    with EngineServer(api.endpoint, engine="e0") as engine:
        joined(engine, api)
        api.order(Request(api.number(1), None))
        received(engine, 1)
        api.tell(Goodbye("it was closed"))
        assert engine.receive(10).aborted == [api.number(1)]
        assert engine.servers == 0
        assert engine.send_step([Delta(api.number(1), [5])]) == []


def test_an_api_server_that_is_silent_loses_its_requests(api):
    with EngineServer(api.endpoint, engine="e0") as engine:
        thread = threading.Thread(target=api.welcome, kwargs={"gone_after": 0.5})
        thread.start()
        while thread.is_alive():
            engine.receive(0.005)
        api.order(Request(api.number(1), None))
        received(engine, 1)
        assert engine.receive(10).aborted == [api.number(1)]
        assert engine.servers == 0


def test_a_request_may_be_refused(api):
    with EngineServer(api.endpoint, engine="e0") as engine:
        joined(engine, api)
        api.order(Request(api.number(1), None))
        received(engine, 1)
        engine.refuse(api.number(1), "too long")
        (ended,) = api.next().ended
        assert (ended.number, ended.kind, ended.text) == (api.number(1), "refused", "too long")
        assert engine.open == 0
        engine.refuse(77 << SLOT_SHIFT, "of nobody")


class Unspeakable:
    """What can't be encoded, and not even be shown in the error that says so."""

    def __repr__(self):
        raise RuntimeError("no words for it")


def released():
    view = memoryview(bytes(10_000))
    view.release()
    return view


@pytest.mark.parametrize(
    "wrong",
    [
        {"extra": object()},
        {"extra": Unspeakable()},
        {"extra": released()},
        {"token_ids": None},
        {"token_ids": [1.5]},
        {"token_ids": [2**70]},
        {"token_ids": "x", "finish": "stop"},
        {"token_ids": {0: 5}},
        {"token_ids": {"a": 5}},
        {"token_ids": {5}},
        {"finish": 3},
        {"extra": ["x" * (40 << 20)]},
    ],
    ids=lambda wrong: "-".join(wrong),
)
def test_a_delta_without_a_form_on_the_wire_ends_its_request_and_no_other(api, wrong):
    with EngineServer(api.endpoint, engine="e0") as engine:
        joined(engine, api)
        for count in (1, 2, 3):
            api.order(Request(api.number(count), None))
        received(engine, 3)
        bad = Delta(**{"number": api.number(1), "token_ids": [5]} | wrong)
        others = [Delta(api.number(2), [6]), Delta(api.number(3), [7], "stop")]
        assert engine.send_step([bad, *others]) == [api.number(1)]
        made, ended = [], []
        while len(made) < 2 or not ended:
            outputs = api.next()
            made += outputs.deltas
            ended += outputs.ended
        assert made == others
        (end,) = ended
        assert (end.number, end.kind) == (api.number(1), "refused")
        assert "no form on the wire" in end.text
        assert (engine.open, engine.unencodable) == (1, 1)


def test_numbers_of_numpy_are_numbers(api):
    with EngineServer(api.endpoint, engine="e0") as engine:
        joined(engine, api)
        api.order(Request(api.number(1), None))
        received(engine, 1)
        extra = {"logprob": np.float32(-0.5), "is_greedy": np.bool_(True)}
        engine.send_step([Delta(api.number(1), [np.int64(5)])])
        engine.send_step([Delta(api.number(1), np.array([6, 7]), "stop", extra)])
        plain = {"logprob": -0.5, "is_greedy": True}
        assert [api.next().deltas for _ in range(2)] == [
            [Delta(api.number(1), [5])],
            [Delta(api.number(1), [6, 7], "stop", plain)],
        ]


def test_large_bytes_of_a_delta_are_frames_of_their_own(api):
    with EngineServer(api.endpoint, engine="e0") as engine:
        joined(engine, api)
        api.order(Request(api.number(1), None))
        received(engine, 1)
        engine.send_step([Delta(api.number(1), [5], None, {"image": b"x" * (40 << 20)})])
        frames = api.pull.recv_multipart()
        while len(frames) == 1:  # the answer to a Start that was sent twice
            frames = api.pull.recv_multipart()
        assert [len(frame) for frame in frames[1:]] == [40 << 20]
        message = PayloadDecoder(Outputs[list[int]]).message(frames)
        assert message.deltas[0].extra["image"] == b"x" * (40 << 20)


@pytest.mark.parametrize(
    "result, failure",
    [("x" * (20 << 20), None), ("x" * (40 << 20), "no form on the wire"), (object(), "no form")],
)
def test_results_are_sent_one_by_one_and_none_is_too_large(api, result, failure):
    with EngineServer(api.endpoint, engine="e0") as engine:
        engine.utility("large", lambda: result)
        joined(engine, api)
        for count in (1, 2):
            api.order(UtilityCall(api.number(count), "large", []))
        found = []
        reader = threading.Thread(target=lambda: found.extend(api.next() for _ in range(2)))
        reader.start()
        while reader.is_alive():
            engine.receive(0.005)
        assert [outputs.results[0].number for outputs in found] == [api.number(1), api.number(2)]
        for outputs in found:
            (each,) = outputs.results
            assert each.failure is None if failure is None else failure in each.failure
            assert each.result == (result if failure is None else None)


def test_words_that_are_no_unicode_are_told_as_far_as_they_can_be(api):
    def fail():
        raise ValueError("caf\udce9")

    with EngineServer(api.endpoint, engine="e0") as engine:
        engine.utility("fail", fail)
        joined(engine, api)
        api.order(Request(api.number(1), None))
        api.order(UtilityCall(api.number(2), "fail", []))
        received(engine, 1)
        engine.refuse(api.number(1), "caf\udce9 " * 10_000)
        while engine.receive(0.01):
            pass
        told = [api.next(), api.next()]
        (text,) = [ended.text for outputs in told for ended in outputs.ended]
        (failure,) = [result.failure for outputs in told for result in outputs.results]
        assert text.startswith("caf\\udce9 caf")
        assert len(text) < 50_000
        assert failure == "ValueError: caf\\udce9"


def test_a_request_that_cannot_be_read_is_refused_by_its_number(api):
    with EngineServer(api.endpoint, engine="e0", payload=dict) as engine:
        joined(engine, api)
        for wrong in (Request(api.number(1), 5), Request(api.number(2), {}, 1.5)):
            api.order(wrong)
            while not engine.malformed or engine.receive(0.01):
                engine.receive(0.01)
            (ended,) = api.next().ended
            assert (ended.number, ended.kind) == (wrong.number, "refused")


def test_a_refusal_is_told_once_after_what_has_ended_by_it(api, caplog):
    with EngineServer(api.endpoint, engine="e0") as engine:
        joined(engine, api)
        api.order(Request(api.number(1), None))
        received(engine, 1)
        for _ in range(3):
            api.tell(Refusal("the process of engine e0", 1, 2))
        assert engine.receive(10).aborted == [api.number(1)]
        with pytest.raises(ProtocolMismatch):
            engine.receive(10)
        assert not engine.receive(0.1)
    assert caplog.text.count("does not take this engine") == 1


def test_waiting_ends_in_its_time(api):
    with EngineServer(api.endpoint, engine="e0") as engine:
        assert not engine.receive(0)
        assert not engine.receive(0.02)


def test_an_api_server_whose_connection_breaks_loses_its_requests_at_once(api):
    with EngineServer(api.endpoint, engine="e0") as engine:
        joined(engine, api)  # with a minute's patience
        api.order(Request(api.number(1), None))
        received(engine, 1)
        api.router.close()
        assert engine.receive(10).aborted == [api.number(1)]
        assert engine.servers == 0


def test_what_cannot_be_told_to_api_servers_is_told_who_gives_it(api):
    with pytest.raises(Unencodable):
        EngineServer(api.endpoint, engine="e0", info={"blocks": object()})


def test_an_api_server_that_says_nonsense_again_and_again_fills_no_log(api, caplog):
    with EngineServer(api.endpoint, engine="e0") as engine:
        joined(engine, api)
        for _ in range(9):
            api.router.send_multipart([api.pulse, b"\xc1"])
        api.tell(Goodbye("it was closed"))
        while engine.servers:
            engine.receive(0.01)
        assert engine._pulse.malformed == 9
    assert len(caplog.records) == 4


def test_an_engine_needs_an_api_server():
    with pytest.raises(ValueError, match="one API server at least"):
        EngineServer([], engine="e0")


def test_an_api_server_that_is_named_twice_counts_once(api):
    with EngineServer([api.endpoint, api.endpoint], engine="e0") as engine:
        assert engine._endpoints == [api.endpoint]


def test_an_api_server_under_two_names_is_told(api, caplog):
    alias = api.endpoint.replace("ipc:///", "ipc:////")
    with EngineServer([api.endpoint, alias], engine="e0") as engine:
        joined(engine, api)
        outputs = api.pull.last_endpoint.decode()
        for endpoint in (api.endpoint, alias):
            news = Welcome(PROTOCOL, "api", api.boot, [], outputs, 1, 2, 2)
            engine._pulse.events.append((endpoint, Joined(api.boot, news)))
            engine.receive(0)
    told = [each for each in caplog.messages if "name it once" in each]
    assert told == [f"{api.endpoint} and {alias} are one API server: name it once"]


def test_an_engine_that_is_interrupted_says_so_without_more(api):
    with contextlib.suppress(KeyboardInterrupt), EngineServer(api.endpoint, engine="e0") as engine:
        joined(engine, api)
        raise KeyboardInterrupt
    assert api.next().reason == "KeyboardInterrupt"


def test_an_engine_needs_an_id(api):
    with pytest.raises(ValueError, match="1 to 200 octets"):
        EngineServer(api.endpoint, engine="")


def test_an_endpoint_that_is_none_leaves_nothing_open():
    with pytest.raises(zmq.ZMQError):
        EngineServer("smoke://signals", engine="e0")


def test_outputs_that_go_nowhere_are_told_and_the_engine_goes_on(api, caplog):
    with EngineServer(api.endpoint, engine="e0") as engine:
        pulse, _ = api.router.recv_multipart()
        api.pulse = pulse
        api.tell(Welcome(PROTOCOL, "api", api.boot, [], "smoke://signals", 1.0, 60.0, 1))
        while not caplog.records:
            engine.receive(0.01)
        assert engine.servers == 0
    assert "its outputs go to smoke://signals" in caplog.text


def test_closing_twice_is_closing_once(api):
    engine = EngineServer(api.endpoint, engine="e0")
    engine.close()
    engine.close()


def test_a_server_that_is_closed_says_so(api):
    with EngineServer(api.endpoint, engine="e0") as engine:
        pass
    for use in (engine.__enter__, engine.receive, lambda: engine.send_step([])):
        with pytest.raises(RuntimeError, match="this EngineServer is closed; make another one"):
            use()
