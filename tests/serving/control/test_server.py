"""Control servers, workers and clients over real sockets, blocking and on an event loop."""

import asyncio
import itertools
import logging
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

import zerohop as zmq
from tests.serving.control.running import SECONDS, run, until, wait_for
from zerohop.serving import (
    CommandEnded,
    CommandLost,
    ControlClient,
    ControlServer,
    ControlWorker,
    MembershipOptions,
    MissingHandlers,
    NoAnswer,
    Operation,
    Protocol,
    ProtocolMismatch,
    RequestRefused,
    SyncControlClient,
    SyncControlServer,
    SyncControlWorker,
    Unencodable,
    WorkerGone,
    WorkerJoined,
    WorkerSynced,
)
from zerohop.serving.codec import pack, unpack

QUICK = MembershipOptions(period=0.1, timeout=5.0, spread=0.05, batch=100)
CACHE = Protocol("cache", (Operation("add", (int, int)), Operation("fail"), Operation("evict")))
_numbers = itertools.count()


def fail():
    raise LookupError("nothing there")


HANDLERS = {"add": lambda a, b: a + b, "fail": fail, "evict": lambda: None}


@pytest.fixture(params=["tcp", "ipc"])
def endpoint(request, tmp_path_factory):
    if request.param == "tcp":
        return "tcp://127.0.0.1:*"
    return f"ipc://{tmp_path_factory.mktemp('c')}/{next(_numbers)}"


def events_until(server, kind):
    """The events up to the first of a kind, which comes last."""
    events = []
    while not events or not isinstance(events[-1], kind):
        event = server.receive(SECONDS)
        assert event is not None, events
        events.append(event)
    return events


FAILURES = [SystemExit, GeneratorExit, asyncio.CancelledError, LookupError]


def raise_it(failure):
    raise failure


def end_threads(*names):
    """Those that were left to themselves end, for this test to leave none."""
    for thread in threading.enumerate():
        if thread.name in names:
            thread.join(SECONDS)


def ask_raw(endpoint, *messages):
    """Send messages as they are; return what comes back, one for each."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
        dealer.linger, dealer.rcvtimeo = 0, int(SECONDS * 1000)
        dealer.connect(endpoint)
        for frames in messages:
            dealer.send_multipart(frames)
        return [dealer.recv_multipart() for _ in messages]


class TestTheStoryOfThePing:
    def test_a_server_without_a_handler_does_not_start(self):
        with pytest.raises(MissingHandlers, match="protocol cache .*: evict;"):
            SyncControlServer(protocol=CACHE, handlers={"add": max, "fail": fail})

    def test_nothing_is_left_of_a_server_that_does_not_start(self, endpoint):
        with pytest.raises(MissingHandlers):
            SyncControlServer(endpoint, protocol=CACHE)
        with SyncControlServer(endpoint):
            pass

    def test_whoever_starts_answers_a_ping(self, endpoint):
        with (
            SyncControlServer(endpoint, protocol=CACHE, handlers=HANDLERS) as server,
            SyncControlClient(server.endpoint, timeout=SECONDS) as client,
        ):
            presence = {"protocol": "cache", "version": 1, "boot": server.boot}
            assert client.call("ping") == presence
            assert client.call("ping", None) == presence

    def test_a_ping_is_answered_while_all_handlers_are_at_work(self, endpoint):
        at_work, may_end = threading.Event(), threading.Event()

        def evict():
            at_work.set()
            may_end.wait(SECONDS)

        handlers = {**HANDLERS, "evict": evict}
        with ExitStack() as stack:
            server = stack.enter_context(
                SyncControlServer(endpoint, protocol=CACHE, handlers=handlers)
            )
            stack.callback(may_end.set)
            client = stack.enter_context(SyncControlClient(server.endpoint, timeout=SECONDS))
            client.call("ping")  # now it is connected, and what it says is heard
            with pytest.raises(NoAnswer):
                client.call("evict", timeout=0.01)
            assert at_work.wait(SECONDS)
            assert client.call("ping")["protocol"] == "cache"

    def test_what_a_handler_replies_while_the_server_closes_is_sent(self, endpoint):
        at_work, may_end = threading.Event(), threading.Event()

        def add(a, b):
            at_work.set()
            may_end.wait(SECONDS)
            return a + b

        with ExitStack() as stack:
            server = SyncControlServer(endpoint, protocol=CACHE, handlers={**HANDLERS, "add": add})
            client = stack.enter_context(SyncControlClient(server.endpoint, timeout=SECONDS))
            asking = stack.enter_context(ThreadPoolExecutor(1))
            asked = asking.submit(client.call, "add", 1, 2)
            assert at_work.wait(SECONDS)
            closing = threading.Thread(target=server.close, args=[SECONDS])
            closing.start()
            may_end.set()
            assert asked.result(SECONDS) == 3
            closing.join()

    def test_whatever_comes_has_a_reply_and_the_server_lives_on(self, endpoint, caplog):
        with SyncControlServer(endpoint, protocol=CACHE, handlers=HANDLERS) as server:
            replies = ask_raw(
                server.endpoint,
                [b"x"],
                [pack(1), pack("stroe")],
                [pack(2), pack("add"), pack(1)],
                [pack(3), pack("add"), pack(1), pack("b")],
                [pack(4), b"\xc1"],
                [pack(5), pack("fail")],
            )
            counts = server.counts
            with SyncControlClient(server.endpoint, timeout=SECONDS) as client:
                assert client.call("add", 2, 3) == 5
        assert sorted(unpack(uid) or 0 for uid, _ in replies) == [0, 1, 2, 3, 4, 5]
        assert all(unpack(refusal).startswith("refused: ") for _, refusal in replies)
        assert counts == {
            "malformed": 2,
            "unknown_operation": 1,
            "wrong_arguments": 2,
            "failed": 1,
        }
        assert "the handler of 'fail' raised LookupError: nothing there" in caplog.text

    def test_a_thousand_of_a_kind_are_one_line_in_the_log(self, endpoint, caplog):
        caplog.set_level(logging.DEBUG)
        with SyncControlServer(endpoint, protocol=CACHE, handlers=HANDLERS) as server:
            ask_raw(server.endpoint, *([[pack(n), pack("stroe")] for n in range(1000)]))
            assert server.counts == {"unknown_operation": 1000}
        assert len(caplog.records) == 1


class TestClient:
    def test_a_refusal_is_raised_in_the_servers_words(self, endpoint):
        with (
            SyncControlServer(endpoint, protocol=CACHE, handlers=HANDLERS) as server,
            SyncControlClient(server.endpoint, timeout=SECONDS) as client,
            pytest.raises(RequestRefused, match="raised LookupError: nothing there"),
        ):
            client.call("fail")

    def test_silence_is_no_answer(self):
        with (
            SyncControlClient("tcp://127.0.0.1:1") as client,
            pytest.raises(NoAnswer, match=r"did not answer add within 0\.01 s"),
        ):
            client.call("add", 1, 2, timeout=0.01)

    def test_what_nobody_heard_is_not_carried_out_by_who_starts_later(self, endpoint):
        with SyncControlServer(endpoint) as server:
            place = server.endpoint
        done = []
        handlers = {**HANDLERS, "evict": lambda: done.append("evict")}
        with SyncControlClient(place, timeout=SECONDS) as client:
            for _ in range(3):
                with pytest.raises(NoAnswer):
                    client.call("evict", timeout=0.01)
            with SyncControlServer(place, protocol=CACHE, handlers=handlers):
                assert client.call("add", 1, 2) == 3  # after all that was said before
        assert done == []

    def test_no_number_of_calls_without_an_answer_is_too_many(self):
        with SyncControlClient("tcp://127.0.0.1:1") as client:
            for _ in range(1100):  # more than the DEALER would keep
                with pytest.raises(NoAnswer):
                    client.call("add", timeout=0.0)

    def test_a_call_waits_for_others_no_longer_than_it_may(self, endpoint):
        may_end, at_work = threading.Event(), threading.Event()
        handlers = {**HANDLERS, "evict": lambda: at_work.set() or (may_end.wait(SECONDS) and None)}
        with ExitStack() as stack:
            server = stack.enter_context(
                SyncControlServer(endpoint, protocol=CACHE, handlers=handlers)
            )
            client = stack.enter_context(SyncControlClient(server.endpoint, timeout=SECONDS))
            asking = threading.Thread(target=client.call, args=["evict"])
            asking.start()
            stack.callback(asking.join)
            stack.callback(may_end.set)
            assert at_work.wait(SECONDS)
            with pytest.raises(NoAnswer):
                client.call("ping", timeout=0.01)

    def test_a_late_reply_is_not_taken_for_another(self, endpoint):
        may_end = threading.Event()

        def add(a, b):
            may_end.wait(SECONDS)
            return a + b

        handlers = {**HANDLERS, "add": add}
        with (
            SyncControlServer(endpoint, protocol=CACHE, handlers=handlers) as server,
            SyncControlClient(server.endpoint, timeout=SECONDS) as client,
        ):
            with pytest.raises(NoAnswer):
                client.call("add", 1, 1, timeout=0.01)
            may_end.set()
            assert client.call("add", 2, 2) == 4

    def test_a_reply_of_another_operation_is_a_mismatch(self):
        with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
            router.linger, router.rcvtimeo = 0, int(SECONDS * 1000)
            router.bind("tcp://127.0.0.1:*")
            endpoint = router.last_endpoint.decode()
            with SyncControlClient(endpoint, timeout=SECONDS) as client:

                def answer():
                    route, uid, _ = router.recv_multipart()
                    router.send_multipart([route, b"\xc1"])
                    router.send_multipart([route, uid, pack("clear")])

                thread = threading.Thread(target=answer)
                thread.start()
                with pytest.raises(ProtocolMismatch, match="here 'count', there 'clear'"):
                    client.call("count")
                thread.join()


class TestWorkers:
    def test_a_table_arrives_in_batches_and_its_changes_after_it(self, endpoint):
        with ExitStack() as stack:
            server = stack.enter_context(SyncControlServer(endpoint, options=QUICK))
            worker = stack.enter_context(
                SyncControlWorker(server.endpoint, "w", offers={"slots": 8})
            )
            for key in range(1000):
                worker.put(key, "v")
            assert worker.wait_settled(SECONDS)
            worker.remove(999)
            worker.put("a", {"b": 1})
            assert worker.wait_settled(SECONDS)
            view = server.view("w")
            assert (view.is_right, view.offers, view.boot) == (True, {"slots": 8}, worker.boot)
            assert view.table == dict.fromkeys(range(999), "v") | {"a": {"b": 1}}
            assert events_until(server, WorkerSynced)[0] == WorkerJoined(
                "w", worker.boot, {"slots": 8}
            )
        assert worker.state == "ended"

    def test_one_that_leaves_is_gone_at_once(self, endpoint):
        with SyncControlServer(endpoint, options=QUICK) as server:
            with SyncControlWorker(server.endpoint, "w") as worker:
                assert worker.wait_settled(SECONDS)
            assert events_until(server, WorkerGone)[-1] == WorkerGone("w", "left")
            assert server.workers() == []
            assert server.view("w") is None

    def test_one_that_falls_silent_is_gone_after_the_timeout(self, endpoint):
        options = MembershipOptions(period=0.05, timeout=0.2)
        register = [pack(1), pack("register"), pack({"worker": "w", "boot": b"1"})]
        with SyncControlServer(endpoint, options=options) as server:
            ask_raw(server.endpoint, register)
            assert events_until(server, WorkerGone)[-1] == WorkerGone("w", "silent")

    def test_a_server_that_restarts_costs_one_registration_and_one_resync(self, endpoint):
        with ExitStack() as workers, ExitStack() as servers:
            server = servers.enter_context(SyncControlServer(endpoint, options=QUICK))
            place = server.endpoint
            names = ["a", "b", "c"]
            started = [
                workers.enter_context(SyncControlWorker(place, name, patience=0.2))
                for name in names
            ]
            for worker in started:
                for key in range(250):
                    worker.put(key, key)
                assert worker.wait_settled(SECONDS)
            servers.close()
            started[0].put("while nobody was there", 1)
            server = workers.enter_context(SyncControlServer(place, options=QUICK))
            wait_for(lambda: all(each.registrations == 2 for each in started))
            assert all(worker.wait_settled(SECONDS) for worker in started)
            tables = [server.view(name).table for name in names]
            assert [len(table) for table in tables] == [251, 250, 250]
            joined = [events_until(server, WorkerSynced) for _ in names]
            kinds = [type(event) for events in joined for event in events]
            assert kinds.count(WorkerJoined) == 3
            assert [each.registrations for each in started] == [2, 2, 2]

    def test_a_worker_that_restarts_is_another_in_the_place_of_the_first(self, endpoint):
        with ExitStack() as stack:
            server = stack.enter_context(SyncControlServer(endpoint, options=QUICK))
            first = stack.enter_context(SyncControlWorker(server.endpoint, "w"))
            first.put("k", 1)
            assert first.wait_settled(SECONDS)
            second = stack.enter_context(SyncControlWorker(server.endpoint, "w"))
            assert second.wait_settled(SECONDS)
            assert (server.view("w").boot, server.view("w").table) == (second.boot, {})
            wait_for(lambda: first.refused_because is not None)
            with pytest.raises(RequestRefused, match="worker w was replaced by a newer process"):
                first.wait_settled(SECONDS)

    def test_commands_are_pushed_carried_out_once_and_end(self, endpoint):
        done = []
        commands = {"flush": lambda n: done.append(n) or n, "fail": fail}
        with ExitStack() as stack:
            server = stack.enter_context(SyncControlServer(endpoint, options=QUICK))
            worker = stack.enter_context(SyncControlWorker(server.endpoint, "w", commands=commands))
            assert worker.wait_settled(SECONDS)
            sent = [server.command("w", "flush", n) for n in range(50)]
            server.command("w", "fail")
            server.command("w", "explode")
            ended = [events_until(server, CommandEnded)[-1] for _ in range(52)]
        assert sent == list(range(1, 51))
        assert ended[:50] == [CommandEnded("w", n + 1, n, None) for n in range(50)]
        assert ended[50].error == "LookupError: nothing there"
        assert ended[51].error == "this worker has no command 'explode'; it has: fail, flush"
        assert done == list(range(50))

    def test_what_has_no_form_on_the_wire_ends_nobody(self, endpoint):
        """Neither the server's thread nor the worker's: each says so to who gave it."""
        commands = {"object": object, "exit": sys.exit, "flush": lambda: 7}
        with ExitStack() as stack:
            server = stack.enter_context(SyncControlServer(endpoint, options=QUICK))
            worker = stack.enter_context(SyncControlWorker(server.endpoint, "w", commands=commands))
            with pytest.raises(Unencodable):
                worker.put("key", object())
            assert worker.wait_settled(SECONDS)
            with pytest.raises(Unencodable):
                server.command("w", "flush", object())
            for name in commands:
                server.command("w", name)
            ended = [events_until(server, CommandEnded)[-1] for _ in range(3)]
            worker.put("key", 1)
            assert worker.wait_settled(SECONDS)
            assert server.view("w").table == {"key": 1}
        assert ended[0].error.startswith("its result has no form on the wire: cannot encode <obj")
        assert ended[1:] == [
            CommandEnded("w", 2, None, "SystemExit"),
            CommandEnded("w", 3, 7, None),
        ]

    def test_a_handler_that_ends_the_program_or_says_what_has_no_form_is_refused(self, endpoint):
        def complain():
            raise LookupError("\udc80")

        protocol = Protocol("odd", (Operation("exit"), Operation("complain")))
        handlers = {"exit": sys.exit, "complain": complain}
        with SyncControlServer(endpoint, protocol=protocol, handlers=handlers) as server:
            with SyncControlClient(server.endpoint, timeout=SECONDS) as client:
                with pytest.raises(RequestRefused, match="raised SystemExit"):
                    client.call("exit")
                with pytest.raises(RequestRefused, match=r"raised LookupError: .udc80"):
                    client.call("complain")
                assert client.call("ping")
            assert server.counts["failed"] == 2

    def test_coroutine_functions_are_refused_where_there_is_no_event_loop(self, endpoint):
        async def later():
            return 3

        protocol = Protocol("odd", (Operation("later"),))
        commands = {"later": later}
        with ExitStack() as stack:
            server = stack.enter_context(
                SyncControlServer(endpoint, protocol=protocol, handlers=commands, options=QUICK)
            )
            worker = stack.enter_context(SyncControlWorker(server.endpoint, "w", commands=commands))
            client = stack.enter_context(SyncControlClient(server.endpoint, timeout=SECONDS))
            with pytest.raises(RequestRefused, match="it is a coroutine function"):
                client.call("later")
            assert worker.wait_settled(SECONDS)
            server.command("w", "later")
            assert "it is a coroutine function" in events_until(server, CommandEnded)[-1].error

    @pytest.mark.parametrize("failure", FAILURES)
    def test_whatever_a_handler_or_a_command_raises_is_its_own_end_alone(self, failure):
        protocol = Protocol("odd", (Operation("end"),))
        commands = {"end": lambda: raise_it(failure), "flush": lambda: 7}
        handlers = {"end": commands["end"], "ping": lambda *_: raise_it(failure)}
        with ExitStack() as stack:
            server = stack.enter_context(
                SyncControlServer(protocol=protocol, handlers=handlers, options=QUICK)
            )
            worker = stack.enter_context(SyncControlWorker(server.endpoint, "w", commands=commands))
            client = stack.enter_context(SyncControlClient(server.endpoint, timeout=SECONDS))
            for operation in ("end", "ping") * 2:
                with pytest.raises(RequestRefused, match=f"raised {failure.__name__}"):
                    client.call(operation)
            assert worker.wait_settled(SECONDS)
            server.command("w", "end")
            server.command("w", "flush")
            ended = [events_until(server, CommandEnded)[-1] for _ in range(2)]
        assert ended == [
            CommandEnded("w", 1, None, failure.__name__),
            CommandEnded("w", 2, 7, None),
        ]

    def test_a_handler_that_hangs_does_not_hold_up_the_close(self, endpoint, caplog):
        at_work, may_end = threading.Semaphore(0), threading.Event()

        def hang():
            at_work.release()
            may_end.wait(SECONDS)

        protocol = Protocol("odd", (Operation("hang"),))
        with ExitStack() as stack:
            stack.callback(end_threads, "zerohop-handlers-0", "zerohop-commands-0")
            stack.callback(may_end.set)
            server = SyncControlServer(endpoint, protocol=protocol, handlers={"hang": hang})
            worker = SyncControlWorker(server.endpoint, "w", commands={"hang": hang})
            assert worker.wait_settled(SECONDS)
            server.command("w", "hang")
            with SyncControlClient(server.endpoint) as client:
                client.call("ping")  # now it is connected, and what it says is heard
                with pytest.raises(NoAnswer):
                    client.call("hang", timeout=0.01)
            for _ in range(2):
                assert at_work.acquire(timeout=SECONDS)
            worker.close(timeout=0.01)
            server.close(timeout=0.01)
        assert caplog.text.count("is still at work and is left to itself") == 2

    def test_a_command_may_end_its_worker(self, endpoint):
        with SyncControlServer(endpoint, options=QUICK) as server:
            workers = []
            commands = {"stop": lambda: workers[0].close()}
            workers.append(SyncControlWorker(server.endpoint, "w", commands=commands))
            assert workers[0].wait_settled(SECONDS)
            server.command("w", "stop")
            assert events_until(server, WorkerGone)[-1] == WorkerGone("w", "left")
            end_threads("zerohop-commands-0")

    def test_a_command_ends_with_its_worker(self, endpoint):
        register = [pack(1), pack("register"), pack({"worker": "w", "boot": b"1"})]
        leave = [pack(2), pack("leave"), pack({"worker": "w", "boot": b"1"})]
        with SyncControlServer(endpoint) as server:
            ask_raw(server.endpoint, register)
            command = server.command("w", "flush")
            ask_raw(server.endpoint, leave)
            assert events_until(server, CommandLost)[-1] == CommandLost("w", command)

    def test_nobody_commands_who_is_not_here(self):
        with SyncControlServer() as server, pytest.raises(KeyError):
            server.command("w", "flush")

    def test_waiting_for_an_event_ends_with_the_server(self):
        server = SyncControlServer()
        heard = []
        thread = threading.Thread(target=lambda: heard.append(server.receive()))
        thread.start()
        server.close()
        server.close()
        thread.join()
        assert heard == [None]

    def test_nothing_happens_within_a_timeout(self):
        with SyncControlServer() as server:
            assert server.receive(0.01) is None


class TestOnAnEventLoop:
    def test_a_server_without_a_handler_does_not_start(self):
        async def body():
            with pytest.raises(MissingHandlers):
                ControlServer(protocol=CACHE, handlers={"add": max})

        run(body())

    def test_operations_are_carried_out_side_by_side(self, endpoint, caplog):
        async def body():
            both = asyncio.Barrier(2)

            async def add(a, b):
                await both.wait()
                return a + b

            handlers = {**HANDLERS, "add": add}
            async with (
                ControlServer(endpoint, protocol=CACHE, handlers=handlers) as server,
                ControlClient(server.endpoint, timeout=SECONDS) as client,
            ):
                sums = await asyncio.gather(client.call("add", 1, 2), client.call("add", 3, 4))
                assert sums == [3, 7]
                with pytest.raises(RequestRefused, match="nothing there"):
                    await client.call("fail")
                with pytest.raises(NoAnswer):
                    await client.call("add", 1, 1, timeout=0.01)
                assert (await client.call("ping"))["boot"] == server.boot
                assert server.counts == {"failed": 1}

        run(body())
        assert "nothing there" in caplog.text

    def test_workers_of_both_kinds_are_right_and_gone(self, endpoint):
        async def body():
            async with ControlServer(endpoint, options=QUICK) as server:
                async with ControlWorker(server.endpoint, "w", offers={"n": 1}) as worker:
                    for key in range(250):
                        worker.put(key, key)
                    await worker.wait_settled()
                    worker.remove(7)
                    await worker.wait_settled()
                    view = server.view("w")
                    assert (view.is_right, view.offers, len(view.table)) == (True, {"n": 1}, 249)
                    assert server.workers() == ["w"]
                    assert (worker.state, worker.registrations) == ("right", 1)
                kinds = []
                async for event in server:
                    kinds.append(type(event))
                    if isinstance(event, WorkerGone):
                        break
                assert (kinds[0], event.reason) == (WorkerJoined, "left")

        run(body())

    def test_a_server_that_restarts_has_the_table_again(self, endpoint):
        async def body():
            async with ControlServer(endpoint, options=QUICK) as server:
                place = server.endpoint
                worker = ControlWorker(place, "w", patience=0.2)
                worker.put("k", 1)
                await worker.wait_settled()
            async with ControlServer(place, options=QUICK) as server:
                await until(lambda: server.view("w") is not None)
                await worker.wait_settled()
                assert server.view("w").table == {"k": 1}
                assert worker.registrations == 2
                await worker.aclose()
                await worker.aclose()

        run(body())

    def test_commands_may_be_coroutines(self, endpoint):
        async def flush(n):
            await asyncio.sleep(0)
            return n

        async def fail_later():
            raise LookupError("later")

        async def body():
            commands = {"flush": flush, "fail": fail_later}
            async with (
                ControlServer(endpoint, options=QUICK) as server,
                ControlWorker(server.endpoint, "w", commands=commands) as worker,
            ):
                await worker.wait_settled()
                await server.command("w", "flush", 3)
                await server.command("w", "fail")
                ended = []
                async for event in server:
                    if isinstance(event, CommandEnded):
                        ended.append(event)
                    if len(ended) == 2:
                        break
                assert ended == [
                    CommandEnded("w", 1, 3, None),
                    CommandEnded("w", 2, None, "LookupError: later"),
                ]

        run(body())

    def test_a_command_may_end_its_worker(self, endpoint):
        async def body():
            async with ControlServer(endpoint, options=QUICK) as server:
                worker = ControlWorker(
                    server.endpoint, "w", commands={"stop": lambda: worker.aclose()}
                )
                await worker.wait_settled()
                await server.command("w", "stop")
                async for event in server:
                    if isinstance(event, WorkerGone):
                        break
                assert event.reason == "left"
                assert worker.state == "ended"

        run(body())

    @pytest.mark.parametrize("failure", FAILURES)
    def test_whatever_a_handler_or_a_command_raises_is_its_own_end_alone(self, failure):
        async def end_later(*_):
            await asyncio.sleep(0)
            raise failure

        async def body():
            protocol = Protocol("odd", (Operation("end"), Operation("end_later")))
            ends = {"end": lambda: raise_it(failure), "end_later": end_later}
            async with (
                ControlServer(
                    protocol=protocol, handlers={**ends, "ping": end_later}, options=QUICK
                ) as server,
                ControlWorker(
                    server.endpoint, "w", commands={**ends, "flush": lambda: 7}
                ) as worker,
                ControlClient(server.endpoint, timeout=SECONDS) as client,
            ):
                for operation in ("end", "end_later", "ping") * 2:
                    with pytest.raises(RequestRefused, match=f"raised {failure.__name__}"):
                        await client.call(operation)
                await worker.wait_settled()
                for name in ("end", "end_later", "flush"):
                    await server.command("w", name)
                ended = []
                async for event in server:
                    if isinstance(event, CommandEnded):
                        ended.append((event.result, event.error))
                    if len(ended) == 3:
                        break
                assert ended == [(None, failure.__name__)] * 2 + [(7, None)]

        run(body())

    def test_a_ping_of_the_users_may_be_a_coroutine_function(self, endpoint):
        async def ping(*_):
            await asyncio.sleep(0)
            return "well"

        async def body():
            async with (
                ControlServer(endpoint, handlers={"ping": ping}) as server,
                ControlClient(server.endpoint, timeout=SECONDS) as client,
            ):
                assert await client.call("ping") == "well"

        run(body())

    def test_handlers_that_are_at_work_end_with_the_server(self, endpoint, caplog):
        async def body():
            at_work = asyncio.Event()

            async def hang():
                at_work.set()
                await asyncio.Event().wait()

            protocol = Protocol("odd", (Operation("hang"),))
            async with ControlServer(
                endpoint, protocol=protocol, handlers={"hang": hang}
            ) as server:
                worker = ControlWorker(server.endpoint, "w", commands={"hang": hang})
                await worker.wait_settled()
                await server.command("w", "hang")
                await at_work.wait()
                at_work.clear()
                await worker.aclose()
                async with ControlClient(server.endpoint) as client:
                    asking = asyncio.ensure_future(client.call("hang", timeout=SECONDS))
                    await at_work.wait()
                    asking.cancel()
                    await asyncio.wait([asking])

        run(body())
        assert caplog.text == ""

    def test_a_command_is_on_its_way_before_anybody_can_be_cancelled(self):
        async def body():
            async with (
                ControlServer(options=QUICK) as server,
                ControlWorker(server.endpoint, "w") as worker,
            ):
                await worker.wait_settled()
                with pytest.raises(StopIteration) as returned:  # nothing was awaited
                    server.command("w", "flush").send(None)
                assert returned.value.value == 1

        run(body())

    def test_a_worker_that_was_given_something_just_now_can_be_closed(self):
        async def body():
            async with ControlServer(options=QUICK) as server:
                worker = ControlWorker(server.endpoint, "w")
                await worker.wait_settled()
                worker.put("k", 1)
                await worker.aclose()

        run(body())

    def test_what_nobody_heard_is_not_carried_out_by_who_starts_later(self, endpoint):
        async def body():
            done = []
            handlers = {**HANDLERS, "evict": lambda: done.append("evict")}
            async with ControlServer(endpoint) as server:
                place = server.endpoint
            async with ControlClient(place, timeout=SECONDS) as client:
                for _ in range(3):
                    with pytest.raises(NoAnswer):
                        await client.call("evict", timeout=0.01)
                async with ControlServer(place, protocol=CACHE, handlers=handlers):
                    assert await client.call("add", 1, 2) == 3
            assert done == []

        run(body())

    def test_one_that_falls_silent_is_gone_after_the_timeout(self, endpoint):
        async def body():
            options = MembershipOptions(period=0.05, timeout=0.2)
            async with (
                ControlServer(endpoint, options=options) as server,
                ControlClient(server.endpoint, timeout=SECONDS) as client,
            ):
                await client.call("register", {"worker": "w", "boot": b"1"})
                async for event in server:
                    if event == WorkerGone("w", "silent"):
                        break

        run(body())

    def test_one_that_is_refused_is_told_why(self, endpoint):
        async def body():
            options = MembershipOptions(max_workers=1)
            async with (
                ControlServer(endpoint, options=options) as server,
                ControlClient(server.endpoint, timeout=SECONDS) as client,
            ):
                await client.call("register", {"worker": "first", "boot": b"1"})
                async with ControlWorker(server.endpoint, "w") as worker:
                    with pytest.raises(RequestRefused, match="the limit of 1 worker is reached"):
                        await worker.wait_settled()
                    assert (worker.state, worker.registrations) == ("registering", 0)
                    assert worker.refused_because == "the limit of 1 worker is reached"

        run(body())

    def test_the_events_end_with_the_server(self):
        async def body():
            server = ControlServer()
            reading = asyncio.ensure_future(anext(server, "no more"))
            await asyncio.sleep(0)
            await server.aclose()
            await server.aclose()
            assert await reading == "no more"

        run(body())
