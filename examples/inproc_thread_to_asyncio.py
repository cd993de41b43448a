"""A blocking thread and an asyncio loop of one process talk over inproc: no codec, no kernel."""

import asyncio
import threading

import zerohop as zmq
import zerohop.asyncio


def square(context: zmq.Context) -> None:
    """The thread: blocking sockets, ordinary code, until the empty message."""
    with context.socket(zmq.PAIR) as pair:
        pair.connect("inproc://squares")
        while number := pair.recv():
            pair.send(b"%d" % int(number) ** 2)


async def main() -> None:
    """The loop: asyncio sockets of the same Context."""
    context = zmq.Context()
    async with zmq.asyncio.Context.shadow(context).socket(zmq.PAIR) as pair:
        pair.bind("inproc://squares")
        thread = threading.Thread(target=square, args=[context])
        thread.start()
        results = []
        for number in range(5):
            await pair.send(b"%d" % number)
            results.append(int(await pair.recv()))
        await pair.send(b"")
    thread.join()
    context.term()
    print(f"the thread computed {results}")


asyncio.run(main())
