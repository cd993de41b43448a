"""PUSH and PULL on one asyncio loop: a pipeline of a thousand numbers."""

import asyncio

import zerohop as zmq
import zerohop.asyncio

COUNT = 1000


async def produce(context: zmq.asyncio.Context, endpoint: str) -> None:
    """Send the numbers; `send` waits only while the queue is full."""
    async with context.socket(zmq.PUSH) as push:
        push.connect(endpoint)
        for number in range(COUNT):
            await push.send(b"%d" % number)


async def main() -> None:
    """Bind where the messages end, connect where they begin."""
    async with zmq.asyncio.Context() as context, context.socket(zmq.PULL) as pull:
        pull.bind("tcp://127.0.0.1:*")
        producer = asyncio.create_task(produce(context, pull.last_endpoint.decode()))
        total = received = 0
        async for message in pull:
            total += int(message)
            received += 1
            if received == COUNT:
                break
        await producer
    print(f"received {received} numbers, their sum is {total}")


asyncio.run(main())
