"""LMCache's protocols over real sockets: our MP server, our controller, and who asks them."""

import asyncio
from contextlib import ExitStack

import pytest

import zerohop as zmq
from tests.serving.control.running import SECONDS, wait_for
from zerohop.serving import (
    LmcacheClient,
    LmcacheServer,
    MissingHandlers,
    NoAnswer,
    ProtocolMismatch,
    RequestRefused,
    SyncLmcacheClient,
    SyncLmcacheController,
    SyncLmcacheServer,
    SyncLmcacheWorker,
    Unencodable,
)
from zerohop.serving.control.lmcache.frames import PINGABLE, ping_request
from zerohop.serving.control.lmcache.messages import (
    Failure,
    Heartbeat,
    HeartbeatReply,
    Register,
    RegisterReply,
    decode_message,
    encode_message,
)

WHO = "instance", 0
LOCATION = "LocalCPUBackend"
CONTEXT = {"instance_id": 7, "model_name": "m", "world_size": 1}


def fail(force=False):
    raise LookupError("nothing there")


class TestMpServer:
    @pytest.mark.parametrize("release", PINGABLE)
    def test_answers_the_ping_of_its_release(self, release):
        with (
            SyncLmcacheServer(release=release) as server,
            SyncLmcacheClient(server.endpoint, release=release, timeout=SECONDS) as client,
        ):
            assert client.ping() is True
            assert client.ping(7) is True
            assert client.call("get_chunk_size") == 256
            assert client.call("noop") == "OK"

    def test_over_ipc(self, tmp_path):
        with (
            SyncLmcacheServer(f"ipc://{tmp_path}/mp", chunk_size=512) as server,
            SyncLmcacheClient(server.endpoint, timeout=SECONDS) as client,
        ):
            assert client.call("get_chunk_size") == 512

    def test_answers_octet_by_octet_as_the_real_one(self):
        with SyncLmcacheServer() as server, zmq.Context() as context:
            dealer = context.socket(zmq.DEALER)
            dealer.linger, dealer.rcvtimeo = 0, int(SECONDS * 1000)
            dealer.connect(server.endpoint)
            for question, answer in [
                (b"\x16 \xc0", b"\x16 \xc3"),
                (b"\x15", b"\x15 \xcd\x01\x00"),
                (b"\x18", b"\x18 \xa2OK"),
            ]:
                dealer.send_multipart([b"\x00", *question.split(b" ")])
                assert dealer.recv_multipart() == [b"\x00", *answer.split(b" ")]
            dealer.close()

    def test_does_not_start_without_a_handler_of_what_it_names(self):
        with pytest.raises(MissingHandlers, match=r"protocol LMCache 0\.5\.6 .*: store;"):
            SyncLmcacheServer(operations=["store", "clear"], handlers={"clear": fail})

    def test_knows_who_has_registered(self):
        with (
            SyncLmcacheServer() as server,
            SyncLmcacheClient(server.endpoint, timeout=SECONDS) as client,
        ):
            client.call("register_kv_cache", 5, [], "m", 1, 0, {}, [])
            pool = client.call("register_kv_cache_engine_driven_context", CONTEXT)
            assert pool == {"shm_name": "", "pool_size": 0}
            client.ping(7)
            known = {each.instance_id: each.has_pinged for each in server.instances}
            assert known == {5: False, 7: True}
            client.call("unregister_kv_cache", 5)
            assert [each.registration for each in server.instances] == [CONTEXT]

    def test_refuses_in_words(self):
        with (
            SyncLmcacheServer(handlers={"clear": fail}) as server,
            SyncLmcacheClient(server.endpoint, timeout=SECONDS) as client,
        ):
            with pytest.raises(RequestRefused, match="protocol LMCache .* no operation 9"):
                client.call("query_prefetch_status", "r")
            with pytest.raises(RequestRefused, match="has no operation 'nonsense'"):
                client.call("nonsense")
            with pytest.raises(RequestRefused, match="'ping' has 1 argument, not 0"):
                client.call("ping")
            with pytest.raises(RequestRefused, match="raised LookupError: nothing there"):
                client.call("clear")
            assert server.counts == {"unknown_operation": 2, "wrong_arguments": 1, "failed": 1}
            assert client.ping()

    def test_of_an_older_release_refuses_without_words_which_its_clients_could_not_read(self):
        with (
            SyncLmcacheServer(release="0.5.3", handlers={"clear": fail}) as server,
            SyncLmcacheClient(server.endpoint, release="0.5.3", timeout=SECONDS) as client,
        ):
            assert client.call("clear") is None
            assert server.counts == {"failed": 1}

    def test_of_another_release_is_found_out_by_its_reply(self):
        """0.4.7's PING is 0.5.0's question for the chunk size."""
        assert ping_request(1, "0.4.7")[1] == b"\x12"
        with (
            SyncLmcacheServer(release="0.5.0") as server,
            SyncLmcacheClient(server.endpoint, release="0.4.7", timeout=SECONDS) as client,
            pytest.raises(ProtocolMismatch, match=r"PING of 0\.4\.7 .* there 256"),
        ):
            client.ping()

    def test_of_an_older_release_takes_arguments_as_they_come(self):
        with (
            SyncLmcacheServer(
                release="0.5.3", handlers={"lookup": lambda *all: len(all)}
            ) as server,
            SyncLmcacheClient(server.endpoint, release="0.5.3", timeout=SECONDS) as client,
        ):
            assert client.call("lookup", "key", 1) == 2
            assert client.call("lookup") == 0

    def test_an_operation_that_a_release_does_not_have_is_not_asked_for(self):
        with SyncLmcacheClient("tcp://127.0.0.1:1", release="0.4.1") as client:
            with pytest.raises(ValueError, match=r"0\.4\.1 has no PING"):
                client.ping()
            with pytest.raises(ValueError, match=r"0\.4\.1 has no operation 'ping'"):
                client.call("ping")

    def test_that_is_silent_is_no_answer(self):
        with (
            SyncLmcacheClient("tcp://127.0.0.1:1", timeout=0.01) as client,
            pytest.raises(NoAnswer),
        ):
            client.ping()

    def test_of_a_release_that_nobody_knows_does_not_start(self):
        for start in (
            lambda: SyncLmcacheServer(release="9.9"),
            lambda: SyncLmcacheClient("tcp://127.0.0.1:1", release="9.9"),
        ):
            with pytest.raises(ValueError, match=r"no release '9\.9' of LMCache is known: 0\.3\.9"):
                start()

    def test_is_not_given_a_chunk_size_that_cannot_be_told(self):
        with pytest.raises(Unencodable):
            SyncLmcacheServer(chunk_size=2**64)

    def test_pings_in_the_users_way_and_knows_all_the_same_who_does(self):
        wells = iter([True, False])
        with (
            SyncLmcacheServer(handlers={"ping": lambda instance_id: next(wells)}) as server,
            SyncLmcacheClient(server.endpoint, timeout=SECONDS) as client,
        ):
            client.call("register_kv_cache_engine_driven_context", CONTEXT)
            assert [client.ping(7), client.ping(7)] == [True, False]
            assert [each.has_pinged for each in server.instances] == [True]

    def test_looks_at_the_arguments_of_the_users_ping(self):
        with pytest.raises(TypeError, match="the handler of 'ping' cannot take its 1 argument:"):
            SyncLmcacheServer(handlers={"ping": lambda: True})

    def test_is_served_on_an_event_loop_too(self):
        async def body():
            async def clear(force=False):
                raise LookupError(f"force={force}")

            async with (
                LmcacheServer(handlers={"clear": clear}) as server,
                LmcacheClient(server.endpoint, timeout=SECONDS) as client,
            ):
                await client.call("register_kv_cache_engine_driven_context", CONTEXT)
                pongs = await asyncio.gather(*(client.ping(7) for _ in range(20)))
                assert pongs == [True] * 20
                assert [each.instance_id for each in server.instances] == [7]
                with pytest.raises(RequestRefused, match="LookupError: force=True"):
                    await client.call("clear", True)
                assert server.counts == {"failed": 1}

        asyncio.run(body(), debug=True)


def register_raw(dealer, controller):
    """What a worker is told when it registers."""
    dealer.linger, dealer.rcvtimeo = 0, int(SECONDS * 1000)
    dealer.connect(controller.reply_endpoint)
    dealer.send(encode_message(Register(*WHO, "127.0.0.1", 1)))
    return decode_message(dealer.recv_multipart()[1]).extra_config


def heartbeats_of(controller):
    """The list that its heartbeats are put into from now on."""
    beats, table = [], controller._exchange.table
    receive = table.receive

    def listen(message, now):
        if isinstance(message, Heartbeat):
            beats.append(message)
        return receive(message, now)

    with controller._lock:
        table.receive = listen
    return beats


@pytest.fixture
def controller():
    with SyncLmcacheController() as controller:
        yield controller


def start_worker(controller, **options):
    return SyncLmcacheWorker(
        controller.pull_endpoint,
        controller.reply_endpoint,
        Register(*WHO, "127.0.0.1", 1),
        **{"period": 0.1, "spread": 0.05, "patience": 0.5, **options},
    )


def is_right_with(controller, keys):
    return controller.is_right(WHO) and controller.keys(WHO, LOCATION) == keys


class TestController:
    def test_has_what_a_worker_has(self, controller):
        with start_worker(controller) as worker:
            worker.admit(*range(5000))
            worker.evict(*range(10), 9999)
            wait_for(lambda: is_right_with(controller, frozenset(range(10, 5000))))
            assert worker.is_registered
            assert (controller.gaps, controller.full_syncs) == (0, 0)
        wait_for(lambda: controller.workers() == [])

    def test_that_restarts_asks_for_one_full_sync(self):
        with SyncLmcacheController() as first:
            places = first.pull_endpoint, first.reply_endpoint, first.heartbeat_endpoint
            worker = start_worker(first)
            worker.admit(*range(5000))
            wait_for(lambda: is_right_with(first, frozenset(range(5000))))
        with SyncLmcacheController(*places) as second, worker:
            wait_for(lambda: is_right_with(second, frozenset(range(5000))))
            wait_for(lambda: worker.full_syncs == 1)
            assert second.full_syncs == 1
            worker.admit(7777)
            wait_for(lambda: is_right_with(second, frozenset([*range(5000), 7777])))

    def test_asks_for_a_full_sync_where_a_message_is_missing(self, controller):
        with start_worker(controller) as worker:
            worker.admit(1)
            wait_for(lambda: is_right_with(controller, {1}))
            with worker._lock:
                worker._reporter._operate("admit", 99)
                worker._reporter._pending.clear()  # it got lost
            worker.admit(2)
            wait_for(lambda: controller.full_syncs == 1)
            wait_for(lambda: is_right_with(controller, {1, 2}))
            assert controller.gaps == 1

    def test_is_not_ended_by_what_it_cannot_read(self, controller, caplog):
        """LMCache's own takes no operation any more after one of these."""
        with zmq.Context() as context, start_worker(controller) as worker:
            push, dealer = context.socket(zmq.PUSH), context.socket(zmq.DEALER)
            push.linger = dealer.linger = 0
            dealer.rcvtimeo = int(SECONDS * 1000)
            push.connect(controller.pull_endpoint)
            dealer.connect(controller.reply_endpoint)
            for _ in range(100):
                push.send(b"\xc1")
            for frames in ([b"x"], [b"", b"\xc1"], [b"", b"", b""], [b""]):
                dealer.send_multipart(frames)
                empty, answer = dealer.recv_multipart()
                assert empty == b""
                assert isinstance(decode_message(answer), Failure)
            wait_for(lambda: controller.malformed == 104)
            worker.admit(1)
            wait_for(lambda: is_right_with(controller, {1}))
            push.close()
            dealer.close()
        assert len(caplog.records) == 1

    def test_says_where_to_beat_by_a_host_that_can_be_reached(self):
        everywhere = "tcp://*:*"
        with pytest.raises(ValueError, match=r"tcp://0\.0\.0\.0:.* name the host by which workers"):
            SyncLmcacheController(heartbeat=everywhere)
        with SyncLmcacheController(heartbeat=everywhere, heartbeat_host="localhost") as controller:
            port = controller.heartbeat_endpoint.rpartition(":")[2]
            with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
                assert register_raw(dealer, controller) == {"heartbeat_url": f"localhost:{port}"}

    def test_is_beaten_over_ipc(self, tmp_path):
        with (
            SyncLmcacheController(heartbeat=f"ipc://{tmp_path}/beats") as controller,
            start_worker(controller) as worker,
        ):
            beats = heartbeats_of(controller)
            worker.admit(1)
            wait_for(lambda: is_right_with(controller, {1}))
            wait_for(lambda: len(beats) > 2)

    def test_understands_json_and_requests_without_a_delimiter(self, controller):
        with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
            dealer.linger, dealer.rcvtimeo = 0, int(SECONDS * 1000)
            dealer.connect(controller.reply_endpoint)
            dealer.send(
                b'{"type":"RegisterMsg","instance_id":"j","worker_id":3,"ip":"127.0.0.1","port":1}'
            )
            _, answer = dealer.recv_multipart()
            url = controller.heartbeat_endpoint.removeprefix("tcp://")
            assert decode_message(answer).extra_config == {"heartbeat_url": url}
            dealer.send(encode_message(Register(*WHO, "127.0.0.1", 1)))
            dealer.recv_multipart()
            assert controller.workers() == [("j", 3), WHO]


class Scripted:
    """A controller that says what it is told to."""

    def __init__(self, stack, heartbeat):
        context = stack.enter_context(zmq.Context())
        self.pull, self.reply, self.heartbeats = (
            stack.enter_context(context.socket(kind)) for kind in (zmq.PULL, zmq.ROUTER, zmq.ROUTER)
        )
        for socket in (self.pull, self.reply, self.heartbeats):
            socket.linger, socket.rcvtimeo = 0, int(SECONDS * 1000)
            socket.bind("tcp://127.0.0.1:*")
        self.worker = stack.enter_context(
            SyncLmcacheWorker(
                self.pull.last_endpoint.decode(),
                self.reply.last_endpoint.decode(),
                Register(*WHO, "127.0.0.1", 1),
                period=0.1,
            )
        )
        self.route, *_ = self.reply.recv_multipart()
        port = self.heartbeats.last_endpoint.decode().rpartition(":")[2]
        self.welcome = RegisterReply({"heartbeat_url": heartbeat.format(port=port)})

    def say(self, *frames):
        self.reply.send_multipart([self.route, *frames])


class TestWorker:
    @pytest.mark.parametrize("url", ["0.0.0.0:{port}", "tcp://0.0.0.0:{port}", "127.0.0.1:{port}"])
    def test_beats_at_the_host_that_it_reaches_the_controller_by(self, url):
        with ExitStack() as stack:
            controller = Scripted(stack, url)
            controller.say(b"", encode_message(controller.welcome))
            for _ in range(2):
                route, empty, beat = controller.heartbeats.recv_multipart()
                assert isinstance(decode_message(beat), Heartbeat)
                reply = encode_message(HeartbeatReply())
                controller.heartbeats.send_multipart([route, empty, reply])

    @pytest.mark.parametrize("url", ["nowhere", "ipc://", "tcp://127.0.0.1:99999", ""])
    def test_is_not_ended_by_what_it_is_told_or_cannot_read(self, url, caplog):
        with ExitStack() as stack:
            controller = Scripted(stack, url)
            controller.say(b"\xc1")
            controller.say(b"", b"", b"")
            controller.say(b"", encode_message(controller.welcome))
            wait_for(lambda: controller.worker.malformed == 3)
            controller.worker.admit(1)
            assert decode_message(controller.pull.recv()).operations[0].key == 1
        assert len(caplog.records) == 1

    @pytest.mark.parametrize(("key", "error"), [(2**64, Unencodable), ("abc", TypeError)])
    def test_says_of_a_key_without_a_form_to_who_gives_it_and_goes_on(self, controller, key, error):
        with start_worker(controller) as worker:
            with pytest.raises(error):
                worker.admit(1, key)
            worker.evict(key)
            worker.admit(2)
            wait_for(lambda: is_right_with(controller, {1, 2}))

    def test_of_a_name_without_a_form_does_not_start(self, controller):
        with pytest.raises(Unencodable):
            SyncLmcacheWorker(
                controller.pull_endpoint,
                controller.reply_endpoint,
                Register("caf\udce9", 0, "127.0.0.1", 1),
            )
