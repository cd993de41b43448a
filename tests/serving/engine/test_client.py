"""API servers and engines, over ipc and tcp: streams, aborts, deadlines, utilities, liveness.

All of it is so for both clients: the one on an event loop, and the one for threads.
"""

import asyncio
import gc
import logging
import signal
import socket
import subprocess
import sys
import threading

import msgspec
import numpy as np
import pytest

import zerohop as zmq
from tests.serving.engine.engines import (
    PATIENT,
    QUICK,
    engine_in_thread,
    engine_process,
    give_more_and_more,
    run,
    tokens_of,
    until,
)
from zerohop.serving import (
    DeadlineExceeded,
    Delta,
    EngineDead,
    EngineOverloaded,
    EngineServer,
    EngineState,
    RequestRefused,
    SlowConsumer,
    Unencodable,
    UtilityFailed,
    ipc_endpoint,
)
from zerohop.serving.engine.handshake import Identity
from zerohop.serving.engine.messages import PROTOCOL, FromServer, Hello
from zerohop.serving.errors import ProtocolMismatch

pytestmark = pytest.mark.timeout(30)


def test_a_request_streams_its_tokens_and_ends_with_its_finish(place):
    async def body():
        async with place.client(patience=PATIENT) as client:
            with engine_in_thread(client.endpoint, info={"model": "m"}):
                await client.wait_for_engines(timeout=10)
                status = client.engines["e0"]
                assert (status.state, status.info) == (EngineState.ALIVE, {"model": "m"})
                assert await tokens_of(client.generate({"tokens": 3})) == ([2, 1, 0], "length")
                assert client.engines["e0"].open == 0

    run(body())


def test_many_requests_at_once_each_have_their_own(ask):
    async def body(client, _):
        streams = [client.generate({"tokens": 1 + n % 7}) for n in range(100)]
        results = await asyncio.gather(*map(tokens_of, streams))
        assert results == [(list(range(n % 7, -1, -1)), "length") for n in range(100)]

    ask(body)


def test_an_engine_may_be_there_before_its_api_server(place, ipc_directory):
    async def body():
        endpoint = ipc_endpoint("later", ipc_directory)
        with engine_in_thread(endpoint) as engine:
            await until(lambda: hasattr(engine, "server"))
            async with place.client(endpoint, patience=PATIENT) as client:
                await client.wait_for_engines(timeout=10)
                assert await tokens_of(client.generate({"tokens": 1})) == ([0], "length")

    run(body())


def test_priority_and_deadline_are_carried_to_the_engine(ask):
    async def body(client, _):
        stream = client.generate({"echo": "x"}, priority=-3, deadline=7.5)
        assert [delta.extra async for delta in stream] == [["x", -3, 7.5]]

    ask(body)


def test_large_arrays_travel_both_ways(place):
    async def body():
        pixels = np.arange(300_000, dtype="<f4").reshape(300, -1)
        async with place.client(patience=PATIENT) as client:
            with engine_in_thread(client.endpoint):
                await client.wait_for_engines(timeout=10)
                value = {"pixels": pixels, "png": b"x" * 100_000}
                (delta,) = [d async for d in client.generate({"echo": value})]
                back = delta.extra[0]
                assert np.array_equal(back["pixels"], pixels)
                assert not back["pixels"].flags.owndata  # it lies over the frame
                assert back["png"] == value["png"]
                assert await client.call("length", b"y" * 100_000) == 100_000

    run(body())


def test_what_has_no_form_on_the_wire_is_refused_where_it_is_given(ask):
    async def body(client, _):
        with pytest.raises(Unencodable):
            client.generate({"x": object()})
        assert client.engines["e0"].open == 0

    ask(body)


async def aborted_by(client, leave):
    """Begin an endless request, leave it as told, and wait until the engine knows."""
    stream = client.generate({"tokens": None})
    number = stream.number
    await anext(stream)
    await leave(stream)
    del stream
    while number not in await client.call("aborted"):
        gc.collect()
        await asyncio.sleep(0.01)
    assert await client.call("open") == 0
    assert client.engines["e0"].open == 0


async def close(stream):
    await stream.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def leave_a_loop(stream):
    async for _ in stream:
        break


async def leave_a_block(stream):
    async with stream:
        await anext(stream)


async def cancel(stream):
    async def read():
        async for _ in stream:
            pass

    task = asyncio.create_task(read())
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


@pytest.mark.parametrize("leave", [close, leave_a_loop, leave_a_block, cancel])
def test_who_leaves_a_stream_aborts_it_in_the_engine(ask, leave):
    async def body(client, _):
        await aborted_by(client, leave)

    ask(body)


def test_a_call_does_not_overtake_the_abort_of_a_stream_that_was_left_before_it(ask):
    async def body(client, _):
        for _ in range(5):
            streams = [client.generate({"tokens": None}) for _ in range(2)]
            await anext(streams[0])
            for stream in streams:
                await stream.aclose()
            assert await client.call("open") == 0

    ask(body)


def test_all_that_is_made_keeps_its_order_for_readers_that_fall_behind(place):
    begun, sent, ended = threading.Event(), threading.Event(), threading.Event()

    def loop(endpoint):
        with EngineServer(endpoint, engine="e0") as server:
            numbers = []
            while len(numbers) < 2 and not ended.is_set():
                numbers += [request.number for request in server.receive(0.1).requests]
            begun.set()
            for step in range(100 if len(numbers) == 2 else 0):
                finish = "stop" if step == 99 else None
                extra = None if step % 7 else step
                server.send_step(
                    [Delta(numbers[0], [step], finish), Delta(numbers[1], [step], finish, extra)]
                )
            sent.set()
            while not ended.is_set():
                server.receive(0.05)

    async def read(stream):
        tokens, extras = [], []
        async for delta in stream:
            tokens += delta.token_ids
            extras += [] if delta.extra is None else [(delta.token_ids[0], delta.extra)]
        return tokens, extras

    async def body():
        async with place.client(patience=PATIENT) as client:
            engine = threading.Thread(target=loop, args=(client.endpoint,))
            engine.start()
            try:
                await client.wait_for_engines(timeout=10)
                streams = [client.generate(None) for _ in range(2)]
                await until(begun.is_set)
                assert sent.wait(10)  # the loop stands still meanwhile
                one, two = await asyncio.gather(*map(read, streams))
            finally:
                ended.set()
                await asyncio.to_thread(engine.join)
            assert one == (list(range(100)), [])
            assert two == (list(range(100)), [(step, step) for step in range(0, 100, 7)])

    run(body())


def test_a_deadline_ends_a_request_here_and_in_the_engine(ask):
    async def body(client, engine):
        stream = client.generate({"tokens": None}, deadline=0.1)
        with pytest.raises(DeadlineExceeded, match=r"did not end within 0\.1 s"):
            await tokens_of(stream)
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        await until(lambda: stream.number in engine.aborted)

    ask(body)


def test_the_engine_may_refuse_a_request_and_says_why(ask):
    async def body(client, _):
        with pytest.raises(RequestRefused, match="prompt too long"):
            await tokens_of(client.generate({"refuse": "prompt too long"}))

    ask(body)


def test_an_engine_with_too_many_requests_takes_no_more(ask):
    async def body(client, _):
        held = [client.generate({"tokens": None}) for _ in range(2)]
        with pytest.raises(EngineOverloaded) as caught:
            await tokens_of(client.generate({"tokens": 1}))
        assert (caught.value.engine, caught.value.limit) == ("e0", 2)
        for stream in held:
            await stream.aclose()

    ask(body, engine={"max_requests": 2})


def test_a_payload_of_another_type_than_the_engines_is_refused(ask):
    async def body(client, _):
        with pytest.raises(RequestRefused, match="its payload can't be read"):
            await tokens_of(client.generate({"tokens": "three"}))
        assert await tokens_of(client.generate({"tokens": 1})) == ([0], "length")

    ask(body, engine={"payload": dict[str, int]})


def test_utilities_answer_or_say_how_they_failed(ask):
    async def body(client, _):
        assert await client.call("add", 1, 2) == 3
        with pytest.raises(UtilityFailed, match="ZeroDivisionError: division by zero"):
            await client.call("divide", 1, 0)
        with pytest.raises(UtilityFailed, match="no such utility .there are: aborted, add"):
            await client.call("nonsense")
        with pytest.raises(UtilityFailed, match="has no form on the wire"):
            await client.call("object")
        assert await client.call("add", "a", "b", engine="e0") == "ab"

    ask(body)


def test_a_utility_that_does_not_answer_ends_in_its_time(ask):
    async def body(client, _):
        with pytest.raises(DeadlineExceeded, match="utility 'hang'"):
            await client.call("hang", timeout=0.1)

    ask(body)


def test_without_engines_a_request_is_refused_at_once(place):
    async def body():
        async with place.client() as client:
            with pytest.raises(RequestRefused, match="no engine is ready"):
                client.generate({"tokens": 1})
            with pytest.raises(DeadlineExceeded, match="waiting for 2 engines") as late:
                await client.wait_for_engines(2, timeout=0.05)
            assert late.value.__notes__ == [f"engines connect to {client.endpoint}"]
            with pytest.raises(DeadlineExceeded, match="waiting for 1 engine did not end"):
                await client.wait_for_engines(1, timeout=0.05)

    run(body())


def test_requests_go_to_the_engine_with_the_fewest_or_to_the_one_that_is_named(place):
    async def body():
        async with place.client(patience=PATIENT) as client:
            with engine_in_thread(client.endpoint, "e0"), engine_in_thread(client.endpoint, "e1"):
                await client.wait_for_engines(2, timeout=10)
                held = [client.generate({"tokens": None}) for _ in range(4)]
                assert sorted(stream.engine for stream in held) == ["e0", "e0", "e1", "e1"]
                assert client.generate({"tokens": 1}, engine="e1").engine == "e1"
                with pytest.raises(RequestRefused, match=r"e7 is not ready \(ready: e0, e1\)"):
                    client.generate({"tokens": 1}, engine="e7")
                with pytest.raises(RequestRefused, match="^request to call 'add' was refused: "):
                    await client.call("add", 1, 2)
                with pytest.raises(RequestRefused, match="^request to call 'add' was refused: e"):
                    await client.call("add", 1, 2, engine="e7")
                assert await client.call("add", 1, 2, engine="e1") == 3
                for stream in held:
                    await stream.aclose()

    run(body())


def test_an_engine_whose_connection_has_just_broken_gets_no_requests(ask):
    async def body(client, _):
        exchange = client._channel.exchange
        (member,) = exchange.roster.members()
        exchange.broke(member.identity)
        with pytest.raises(EngineDead, match="its connection broke"):
            client.generate({"tokens": 1}, engine="e0")
        with pytest.raises(RequestRefused, match="no engine is ready"):
            client.generate({"tokens": 1})
        with pytest.raises(DeadlineExceeded):
            await client.wait_for_engines(timeout=0.01)

    ask(body)


def test_an_engine_that_says_goodbye_ends_what_it_had(place):
    async def body():
        async with place.client(patience=PATIENT) as client:
            with engine_in_thread(client.endpoint):
                await client.wait_for_engines(timeout=10)
                stream = client.generate({"tokens": None})
                await anext(stream)
            with pytest.raises(EngineDead, match="it was closed"):
                await tokens_of(stream)
            assert client.engines == {}

    run(body())


def test_what_an_engine_has_made_is_read_before_that_it_is_gone(place):
    begun, gone = threading.Event(), threading.Event()

    def loop(endpoint):
        with EngineServer(endpoint, engine="e0") as server:
            requests = server.receive(10).requests
            begun.set()
            for step in range(100 if requests else 0):
                server.send_step([Delta(requests[0].number, [step])])
        gone.set()

    async def read_into(tokens, stream):
        async for delta in stream:
            tokens += delta.token_ids

    async def body():
        async with place.client(patience=PATIENT) as client:
            engine = threading.Thread(target=loop, args=(client.endpoint,))
            engine.start()
            try:
                await client.wait_for_engines(timeout=10)
                stream, tokens = client.generate(None), []
                await until(begun.is_set)
                assert gone.wait(10)  # the loop stands still meanwhile
                with pytest.raises(EngineDead, match="it was closed"):
                    await read_into(tokens, stream)
            finally:
                await asyncio.to_thread(engine.join)
            assert tokens == list(range(100))

    run(body())


def test_a_client_that_closes_ends_its_streams_and_calls_and_the_engine_lets_go(ask):
    async def body(client, engine):
        stream = client.generate({"tokens": None})
        call = asyncio.ensure_future(client.call("hang"))
        await until(engine.hanging.is_set)
        await client.aclose()
        with pytest.raises(EngineDead, match="this API server was closed"):
            await tokens_of(stream)
        with pytest.raises(EngineDead, match="it was asked for 'hang'"):
            await call
        engine.hanging.clear()
        await until(lambda: engine.aborted == [stream.number])

    ask(body)


def test_a_stream_is_for_one_reader(ask):
    async def body(client, engine):
        call = asyncio.ensure_future(client.call("hang"))
        await until(engine.hanging.is_set)
        stream = client.generate({"tokens": 1})
        first = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="waits for this stream already"):
            await anext(stream)
        engine.hanging.clear()
        assert (await first).token_ids == [0]
        await call

    ask(body)


def test_a_stream_that_nobody_reads_ends_and_others_do_not(ask):
    async def body(client, engine):
        slow, other = client.generate({"tokens": None}), client.generate({"tokens": 40})
        await until(lambda: engine.aborted == [slow.number])
        tokens, _ = await tokens_of(other)
        assert len(tokens) == 40
        with pytest.raises(SlowConsumer, match="more than 50 messages behind"):
            await tokens_of(slow)

    ask(body, stream_limit=50)


# Liveness


def test_an_engine_whose_loop_stands_still_is_hung_and_comes_back(ask):
    async def body(client, engine):
        call = asyncio.ensure_future(client.call("hang"))
        await until(engine.hanging.is_set)
        stream = client.generate({"tokens": 1})
        await until(lambda: client.health == {"e0": EngineState.HUNG})
        engine.hanging.clear()
        assert await tokens_of(stream) == ([0], "length")
        assert client.health == {"e0": EngineState.ALIVE}
        await call

    ask(body, patience=QUICK)


def test_a_hung_engine_may_be_taken_for_gone(ask):
    async def body(client, engine):
        call = asyncio.ensure_future(client.call("hang"))
        await until(engine.hanging.is_set)
        with pytest.raises(EngineDead, match="no progress for"):
            await tokens_of(client.generate({"tokens": 1}))
        with pytest.raises(EngineDead):
            await call

    ask(body, patience=QUICK, end_hung=True)


def test_an_engine_that_is_killed_ends_its_requests_at_once(place):
    async def body():
        async with place.client(patience=PATIENT) as client:
            with engine_process(client.endpoint) as process:
                await client.wait_for_engines(timeout=20)
                streams = [client.generate({"tokens": None}) for _ in range(5)]
                for stream in streams:
                    await anext(stream)
                process.kill()
                for stream in streams:
                    async with asyncio.timeout(5):  # well below gone_after
                        with pytest.raises(EngineDead, match="its connection broke"):
                            await tokens_of(stream)
                assert client.engines == {}

    run(body())


LONG = "x" * 200_000


def test_an_engine_that_takes_nothing_is_overloaded_at_last_and_nothing_is_lost(place):
    async def body():
        async with place.client(patience=PATIENT, requests_limit=20) as client:
            with engine_process(client.endpoint) as process:
                await client.wait_for_engines(timeout=20)
                process.send_signal(signal.SIGSTOP)
                unwanted, streams = client.generate({"tokens": None}), []
                with pytest.raises(EngineOverloaded) as caught:
                    await give_more_and_more(client, streams, {"tokens": 1, "prompt": LONG})
                assert caught.value.limit == 20
                await unwanted.aclose()  # for which there is no room now
                await asyncio.sleep(0.01)
                process.send_signal(signal.SIGCONT)
                results = await asyncio.gather(*map(tokens_of, streams))
                assert results == [([0], "length")] * len(streams)
                while await client.call("open"):  # noqa: ASYNC110 - of another process
                    await asyncio.sleep(0.01)

    run(body())


def test_an_engine_that_is_stopped_is_gone_in_its_time(place):
    async def body():
        async with place.client(patience=QUICK) as client:
            with engine_process(client.endpoint) as process:
                await client.wait_for_engines(timeout=20)
                stream = client.generate({"tokens": None})
                await anext(stream)
                process.send_signal(signal.SIGSTOP)
                with pytest.raises(EngineDead, match="nothing was heard of it for 1 s"):
                    await tokens_of(stream)
                process.send_signal(signal.SIGCONT)
                await client.wait_for_engines(timeout=10)
                assert await tokens_of(client.generate({"tokens": 1})) == ([0], "length")
                assert await client.call("open") == 0

    run(body())


def test_an_engine_that_restarts_is_another_one(place):
    async def body():
        async with place.client(patience=PATIENT) as client:
            with engine_process(client.endpoint) as first:
                await client.wait_for_engines(timeout=20)
                old_pid = client.engines["e0"].info["pid"]
                stream = client.generate({"tokens": None})
                await anext(stream)
                with engine_process(client.endpoint):  # the old one is still there
                    with pytest.raises(EngineDead, match="it has restarted"):
                        await tokens_of(stream)
                    await client.wait_for_engines(timeout=20)
                    assert client.engines["e0"].info["pid"] != old_pid
                    first.kill()
                    first.wait(10)
                    assert await tokens_of(client.generate({"tokens": 2})) == ([1, 0], "length")

    run(body())


def test_an_api_server_that_restarts_finds_the_engine_and_no_old_requests(place):
    async def body():
        async with place.client(patience=PATIENT) as old:
            endpoint = old.endpoint
            with engine_in_thread(endpoint) as engine:
                await old.wait_for_engines(timeout=10)
                stream = old.generate({"tokens": None})
                await anext(stream)
                await old.aclose()
                async with place.client(endpoint, patience=PATIENT) as new:
                    await new.wait_for_engines(timeout=10)
                    await until(lambda: stream.number in engine.aborted)
                    assert await new.call("open") == 0
                    assert await tokens_of(new.generate({"tokens": 1})) == ([0], "length")

    run(body())


API_SERVER = """
import asyncio, sys
from zerohop.serving import EngineClient, Patience

async def main():
    async with EngineClient(sys.argv[1], patience=Patience(0.1, 1, 1)) as client:
        await client.wait_for_engines(timeout=20)
        async for delta in client.generate({"tokens": None}):
            print(delta.number, flush=True)

asyncio.run(main())
"""


def test_an_api_server_that_is_killed_loses_its_requests_in_the_engine(place, ipc_directory):
    endpoint = ipc_endpoint("to be killed", ipc_directory)
    with engine_in_thread(endpoint) as engine:
        command = [sys.executable, "-c", API_SERVER, endpoint]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            number = int(process.stdout.readline())
            process.kill()
        asyncio.run(until(lambda: engine.aborted == [number]))

        async def body():
            async with place.client(endpoint, patience=PATIENT) as client:
                await client.wait_for_engines(timeout=10)
                assert await client.call("open") == 0

        run(body())


def test_two_api_servers_share_an_engine_and_each_has_its_own(place):
    async def body():
        async with (
            place.client(patience=PATIENT) as one,
            place.client(patience=PATIENT) as two,
        ):
            with engine_in_thread([one.endpoint, two.endpoint]):
                await one.wait_for_engines(timeout=10)
                await two.wait_for_engines(timeout=10)
                streams = [c.generate({"tokens": 20}) for c in (one, two, one, two)]
                results = await asyncio.gather(*map(tokens_of, streams))
                assert results == [(list(range(19, -1, -1)), "length")] * 4
                assert one.stale == two.stale == 0

    run(body())


# What others send


def test_octets_that_are_no_message_hurt_nobody_and_are_told(place, caplog):
    async def body():
        async with place.client(patience=PATIENT) as client:
            with engine_in_thread(client.endpoint), zmq.Context() as context:
                await client.wait_for_engines(timeout=10)
                push, dealer = context.socket(zmq.PUSH), context.socket(zmq.DEALER)
                push.linger = dealer.linger = 0
                push.connect(client.outputs_endpoint)
                dealer.connect(client.endpoint)
                for stray in ([b""], [b"\xc1"], [b"ENGINE_CORE_DEAD"], [b"", b"x"], [b"\x92\x15"]):
                    push.send_multipart(stray)
                    dealer.send_multipart(stray)
                dealer.send(b"\x93\x01\x01\xa1x")
                await until(lambda: client.malformed == 11)
                assert client.last_malformed is not None
                assert await tokens_of(client.generate({"tokens": 1})) == ([0], "length")
                push.close()
                dealer.close()

    with caplog.at_level(logging.WARNING):
        run(body())
    # The log has a line for the first, the second, the fourth and the eighth of them.
    assert sum("that can't be read" in record.message for record in caplog.records) == 4


def test_outputs_that_were_lost_end_the_engine(ask):
    async def body(client, engine):
        stream = client.generate({"tokens": None})
        await anext(stream)
        (joined,) = engine.server._servers.values()
        joined.outbox.seq += 1
        with pytest.raises(EngineDead, match="are lost"):
            await tokens_of(stream)
        await client.wait_for_engines(timeout=10)  # it joins anew
        assert await client.call("open") == 0

    ask(body)


def test_an_engine_that_was_cut_off_is_heard_before_its_old_connection_is_known_to_be_broken(place):
    async def body():
        async with place.client(patience=PATIENT) as client:
            with zmq.Context() as before, zmq.Context() as after:
                dealers = [each.socket(zmq.DEALER) for each in (before, after)]
                for dealer in dealers:  # of one process, of which the first is not heard any more
                    dealer.routing_id, dealer.linger = Identity("e0", 7).routing_id(b"p"), 0
                    dealer.connect(client.endpoint)
                    dealer.send(msgspec.msgpack.encode(Hello(PROTOCOL, "e0", 7)))
                    welcome = await asyncio.to_thread(dealer.recv, timeout=10)
                    assert msgspec.msgpack.decode(welcome, type=FromServer).boot == client.boot
                for dealer in dealers:
                    dealer.close()

    run(body())


def test_engines_that_come_and_go_in_good_order_are_no_warning(place, ipc_directory, caplog):
    async def body():
        endpoint = ipc_endpoint("later", ipc_directory)
        with engine_in_thread(endpoint) as engine:
            await until(lambda: hasattr(engine, "server"))
            async with place.client(endpoint, patience=PATIENT) as client:
                await client.wait_for_engines(timeout=10)
                with engine_in_thread(endpoint, engine="e1"):
                    await client.wait_for_engines(2, timeout=10)
                await until(lambda: "e1" not in client.engines)

    with caplog.at_level(logging.WARNING):
        run(body())
    assert not any("is gone" in record.message for record in caplog.records)


@pytest.mark.parametrize("columns", [["no numbers", [5]], [["1"], [5]], [[1], [5, 6]], [[1]]])
def test_outputs_that_cannot_be_read_end_the_engine(place, columns):
    async def body():
        async with place.client(patience=PATIENT) as client:
            with engine_in_thread(client.endpoint) as engine, zmq.Context() as context:
                await client.wait_for_engines(timeout=10)
                call = asyncio.ensure_future(client.call("hang"))
                await until(engine.hanging.is_set)
                stream = client.generate({"tokens": 1})
                (member,) = client._channel.exchange.roster.members()
                broken = [21, client.boot, member.identity.boot, member.life, 0, *columns]
                push = context.socket(zmq.PUSH)
                push.connect(client.outputs_endpoint)
                push.send(msgspec.msgpack.encode(broken))
                with pytest.raises(EngineDead, match="outputs 0 can't be read"):
                    await tokens_of(stream)
                with pytest.raises(EngineDead):
                    await call
                assert client.malformed == 1
                push.close()

    run(body())


def test_versions_that_do_not_fit_say_so_on_both_sides(place, monkeypatch):
    async def body():
        async with place.client(patience=PATIENT) as client:
            with engine_in_thread(client.endpoint, requires=["teleport"]) as engine:
                await until(lambda: engine.error is not None)
                assert isinstance(engine.error, ProtocolMismatch)
                assert engine.error.ours == ["teleport"]
                assert isinstance(client.refusals["e0"], ProtocolMismatch)
                assert client.refusals["e0"].theirs == ["teleport"]
                with pytest.raises(RequestRefused) as caught:
                    client.generate({"tokens": 1})
                assert "engine e0 was not taken" in caught.value.__notes__[0]

    run(body())


def test_an_api_server_takes_listeners_that_it_has_inherited(place, ipc_directory):
    async def body():
        with socket.socket() as requests, socket.socket() as outputs:
            for each in (requests, outputs):
                each.bind(("127.0.0.1", 0))
                each.listen()
            port = requests.getsockname()[1]
            async with place.client(
                f"tcp://127.0.0.1:{port}",
                outputs=f"tcp://127.0.0.1:{outputs.getsockname()[1]}",
                requests_fd=requests.fileno(),
                outputs_fd=outputs.fileno(),
                patience=PATIENT,
            ) as client:
                assert client.endpoint == f"tcp://127.0.0.1:{port}"
                with engine_in_thread(client.endpoint):
                    await client.wait_for_engines(timeout=10)
                    assert await tokens_of(client.generate({"tokens": 1})) == ([0], "length")

    run(body())


def test_what_is_no_priority_or_deadline_is_told_before_anything_is_sent(ask):
    async def body(client, _):
        for wrong, why in (
            ({"priority": 1.5}, "priority is a whole number, not 1.5"),
            ({"deadline": "3"}, "deadline is a number of seconds, not '3'"),
            ({"deadline": []}, "deadline is a number of seconds, not []"),
            ({"deadline": True}, "deadline is a number of seconds, not True"),
            ({"engine": 0}, "engine is a str, not 0"),
        ):
            with pytest.raises(TypeError) as caught:
                client.generate({"tokens": None}, **wrong)
            assert str(caught.value) == why
        for wrong in ({"deadline": float("nan")}, {"deadline": -1}, {"priority": -(1 << 64)}):
            with pytest.raises(ValueError, match=r"is a (whole )?number"):
                client.generate({"tokens": None}, **wrong)
        for wrong in (("open", {"timeout": "3"}), (5, {}), ("open", {"engine": 0})):
            with pytest.raises(TypeError):
                await client.call(wrong[0], **wrong[1])
        for wrong in ({"count": "1"}, {"timeout": "1"}):
            with pytest.raises(TypeError):
                await client.wait_for_engines(**wrong)
        assert await client.call("open") == 0
        stream = client.generate({"echo": "x"}, priority=np.int64(2), deadline=np.float32(8))
        assert [delta.extra async for delta in stream] == [["x", 2, 8.0]]
        stream = client.generate({"echo": "x"}, deadline=float("inf"))
        assert [delta.extra async for delta in stream] == [["x", 0, 366 * 24 * 3600]]

    ask(body)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"endpoint": 3}, "endpoint is a str, not 3"),
        ({"outputs": b"ipc://x"}, "outputs is a str, not b'ipc://x'"),
        ({"name": 3}, "name is a str, not 3"),
        ({"patience": 3}, "patience is a Patience, not 3"),
        ({"default_deadline": "3"}, "default_deadline is a number of seconds, not '3'"),
        ({"requests_limit": "3"}, "requests_limit is a whole number, not '3'"),
        ({"stream_limit": None}, "stream_limit is a whole number, not None"),
        ({"requests_fd": "3"}, "requests_fd is a whole number, not '3'"),
    ],
)
def test_an_argument_of_another_kind_is_told_with_what_is_wanted(place, wrong, why):
    with pytest.raises(TypeError) as caught:
        place.client(**wrong)
    assert str(caught.value) == why


def test_a_payload_that_is_too_large_for_a_message_is_told_at_once(ask):
    async def body(client, _):
        with pytest.raises(Unencodable, match="more than the limit"):
            client.generate({"prompt": "x" * (33 << 20)})
        assert await client.call("open") == 0

    ask(body)


def test_an_endpoint_that_cannot_be_bound_leaves_nothing_open(place):
    with pytest.raises(zmq.ZMQError):
        place.client("ipc:///nowhere/at/all")
