"""A receive that is cancelled loses nothing: its message stays the next one in the queue."""

import asyncio

import zerohop as zmq
import zerohop.asyncio

COUNT = 10
CANCELLATIONS = 20


async def main() -> None:
    """Cancel twice between every two messages, at the very moment one may be arriving."""
    received, cancelled = [], 0
    async with zmq.asyncio.Context() as context:
        pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        pull.bind("inproc://numbers")
        push.connect("inproc://numbers")
        for number in range(COUNT):
            for _ in range(CANCELLATIONS // COUNT):
                receive = asyncio.ensure_future(pull.recv())
                await asyncio.sleep(0)  # it waits
                receive.cancel()
                cancelled += 1
            await push.send(b"%d" % number)
            received.append(int(await pull.recv()))
        push.close()
        pull.close()
    assert received == list(range(COUNT))
    print(f"cancelled {cancelled} times, received 0..{received[-1]} in order")


asyncio.run(main())
