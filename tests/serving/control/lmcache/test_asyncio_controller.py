"""A controller and its workers on an event loop, over real sockets."""

import asyncio

import pytest

import zerohop as zmq
import zerohop.asyncio
from tests.serving.control.running import run, until
from zerohop.serving import (
    LmcacheController,
    LmcacheWorker,
    SyncLmcacheController,
    SyncLmcacheWorker,
    Unencodable,
)
from zerohop.serving.control.lmcache.messages import (
    Failure,
    Register,
    RegisterReply,
    decode_message,
    encode_message,
)

WHO, LOCATION = ("instance", 0), "LocalCPUBackend"
REGISTER = Register(*WHO, "127.0.0.1", 1)
QUICK = {"period": 0.1, "spread": 0.05, "patience": 0.5}


def work_for(controller, kind=LmcacheWorker, **options):
    places = controller.pull_endpoint, controller.reply_endpoint
    return kind(*places, REGISTER, **{**QUICK, **options})


def is_right_with(controller, keys):
    return controller.is_right(WHO) and controller.keys(WHO, LOCATION) == keys


def test_a_controller_has_what_a_worker_has():
    async def body():
        async with LmcacheController() as controller:
            async with work_for(controller) as worker:
                worker.admit(*range(5000))
                worker.evict(*range(10), 9999)
                await until(lambda: is_right_with(controller, frozenset(range(10, 5000))))
                assert (worker.is_registered, worker.malformed) == (True, 0)
                assert (controller.gaps, controller.full_syncs, controller.malformed) == (0, 0, 0)
            await until(lambda: controller.workers() == [])
            await worker.aclose()

    run(body())


def test_blocking_workers_and_controllers_are_understood():
    async def body():
        with SyncLmcacheController() as controller:
            async with work_for(controller) as worker:
                worker.admit(1)
                await until(lambda: is_right_with(controller, {1}))
        async with LmcacheController() as controller:
            worker = work_for(controller, SyncLmcacheWorker)
            worker.admit(1)
            await until(lambda: is_right_with(controller, {1}))
            await asyncio.to_thread(worker.close)

    run(body())


def test_a_controller_that_restarts_asks_for_one_full_sync():
    async def body():
        async with LmcacheController() as first:
            places = first.pull_endpoint, first.reply_endpoint, first.heartbeat_endpoint
            worker = work_for(first)
            worker.admit(*range(5000))
            await until(lambda: is_right_with(first, frozenset(range(5000))))
        async with LmcacheController(*places) as second, worker:
            await until(lambda: is_right_with(second, frozenset(range(5000))))
            await until(lambda: worker.full_syncs == 1)
            assert second.full_syncs == 1

    run(body())


def test_a_worker_that_falls_silent_is_gone():
    async def body():
        async with LmcacheController(timeout=0.3) as controller:
            with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
                dealer.linger = 0
                dealer.connect(controller.reply_endpoint)
                dealer.send(encode_message(REGISTER))
                await until(lambda: controller.workers() == [WHO])
                await until(lambda: controller.workers() == [])

    run(body())


def test_a_controller_is_not_ended_by_what_it_cannot_read(caplog):
    async def body():
        async with (
            LmcacheController() as controller,
            work_for(controller) as worker,
            zerohop.asyncio.Context() as context,
        ):
            push, dealer = context.socket(zmq.PUSH), context.socket(zmq.DEALER)
            push.connect(controller.pull_endpoint)
            dealer.connect(controller.reply_endpoint)
            await push.send(b"\xc1")
            await dealer.send_multipart([b"", b"\xc1"])
            _, answer = await dealer.recv_multipart()
            assert isinstance(decode_message(answer), Failure)
            await until(lambda: controller.malformed == 2)
            worker.admit(1)
            await until(lambda: is_right_with(controller, {1}))

    run(body())
    assert len(caplog.records) == 1


def test_a_worker_is_not_ended_by_what_it_is_told_or_cannot_read(caplog):
    async def body():
        async with zerohop.asyncio.Context() as context:
            pull, router = context.socket(zmq.PULL), context.socket(zmq.ROUTER)
            pull.bind("tcp://127.0.0.1:*")
            router.bind("tcp://127.0.0.1:*")
            places = pull.last_endpoint.decode(), router.last_endpoint.decode()
            async with LmcacheWorker(*places, REGISTER, **QUICK) as worker:
                route, *_ = await router.recv_multipart()
                welcome = encode_message(RegisterReply({"heartbeat_url": "nowhere"}))
                await router.send_multipart([route, b"\xc1"])
                await router.send_multipart([route, b"", welcome])
                await until(lambda: worker.malformed == 2)
                worker.admit(1)
                assert decode_message(await pull.recv()).operations[0].key == 1

    run(body())
    assert len(caplog.records) == 1


def test_what_has_no_form_is_told_to_who_gives_it_and_nothing_is_left_of_it():
    async def body():
        async with LmcacheController() as controller:
            places = controller.pull_endpoint, controller.reply_endpoint
            with pytest.raises(Unencodable):
                LmcacheWorker(*places, Register("caf\udce9", 0, "127.0.0.1", 1))
            with pytest.raises(ValueError, match="name the host by which workers reach it"):
                LmcacheController(heartbeat="tcp://*:*")
            async with work_for(controller) as worker:
                with pytest.raises(Unencodable):
                    worker.admit(1, 2**64)
                await until(lambda: is_right_with(controller, {1}))

    run(body())
