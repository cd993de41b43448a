"""One Context, used by blocking sockets in threads and by asyncio sockets on a loop."""

import asyncio
import contextlib

import pytest

import zerohop as zmq
import zerohop.asyncio as zmqa
from tests.stress.kit import TRANSPORTS, in_rounds, limited
from tests.stress.traffic import END, everything, identify, receive_until_end, send_all

pytestmark = [limited, pytest.mark.usefixtures("impatient")]


async def send(socket, name, count):
    for number in range(count):
        await socket.send(b"%d %d " % (name, number))
    await socket.send(END)


async def receive(socket):
    got = []
    while (message := await socket.recv_multipart()) != [END]:
        got.append(identify(message))
    return got


def send_and_end(socket, seed, name, count):
    send_all(socket, seed, name, count)
    socket.send(END)


@pytest.mark.parametrize("transport", TRANSPORTS)
@in_rounds(2)
def test_threads_and_tasks_send_to_each_other(new_context, bind, team, transport, random):
    context = new_context()
    sides = 3
    count = random.choice((50, 150))
    to_tasks = [context.socket(zmq.PUSH) for _ in range(sides)]
    to_threads = [context.socket(zmq.PULL) for _ in range(sides)]
    for socket in to_tasks + to_threads:
        socket.sndhwm = socket.rcvhwm = random.choice((1, 10, 1000))

    async def run():
        shadow = zmqa.Context.shadow(context)
        with contextlib.ExitStack() as closing:
            pulls = [shadow.socket(zmq.PULL) for _ in range(sides)]
            pushes = [shadow.socket(zmq.PUSH) for _ in range(sides)]
            for socket in pulls + pushes:
                closing.enter_context(socket)
            for push, pull in zip(to_tasks, pulls):
                push.connect(bind(pull, transport))
            for push, pull in zip(pushes, to_threads):
                push.linger = -1
                push.connect(bind(pull, transport))
            sending = [
                team.start(send_and_end, push, random.random(), name, count)
                for name, push in enumerate(to_tasks)
            ]
            receiving = [team.start(receive_until_end, pull, 1) for pull in to_threads]
            got = await asyncio.wait_for(
                asyncio.gather(
                    *(receive(pull) for pull in pulls),
                    *(send(push, name, count) for name, push in enumerate(pushes)),
                ),
                timeout=20,
            )
            by_threads = [await asyncio.to_thread(member.join) for member in receiving]
            for member in sending:
                await asyncio.to_thread(member.join)
        for parts in (got[:sides], by_threads):
            assert sorted(each for part in parts for each in part) == everything(sides, count)

    asyncio.run(run())


@in_rounds(2)
def test_a_blocking_proxy_between_asyncio_clients_and_asyncio_workers(
    new_context, bind, team, random
):
    """All on one loop, with a thread in the middle, and other threads that flood beside it."""
    context = new_context()
    front, back = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    doors = bind(front, random.choice(TRANSPORTS)), bind(back, random.choice(TRANSPORTS))
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    push.connect(bind(pull, "tcp"))

    async def ask(shadow, name):
        with shadow.socket(zmq.REQ) as req:
            req.connect(doors[0])
            for n in range(30):
                await req.send(b"%d %d" % (name, n))
                assert await req.recv() == b"re %d %d" % (name, n)

    async def work(shadow):
        with shadow.socket(zmq.REP) as rep:
            rep.connect(doors[1])
            while True:
                await rep.send(b"re " + await rep.recv())

    async def run():
        with zmqa.Context.shadow(context) as shadow:
            workers = [asyncio.create_task(work(shadow)) for _ in range(2)]
            async with asyncio.timeout(20):
                await asyncio.gather(*(ask(shadow, name) for name in range(5)))
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    def pass_on():
        with front, back:
            zmq.proxy(front, back)

    proxy = team.start(pass_on)
    receiving = team.start(receive_until_end, pull, 1)
    sending = team.start(send_all, push, 1, 0, 300)
    asyncio.run(run())
    sending.join()
    push.send(END)
    assert receiving.join() == everything(1, 300)
    push.close(), pull.close()
    context.term(timeout=8)
    with pytest.raises(zmq.ContextTerminated):
        proxy.join()
