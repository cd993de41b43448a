"""PUB and SUB without the slow joiner: publish when the subscribers are there, not after a nap."""

import asyncio

import zerohop as zmq
import zerohop.asyncio


async def watch(context: zmq.asyncio.Context, endpoint: str, topic: str) -> str:
    """Subscribe to one prefix and return the first message that has it."""
    async with context.socket(zmq.SUB) as sub:
        sub.subscribe(topic)
        sub.connect(endpoint)
        return str(await sub.recv(), "utf-8")


async def main() -> None:
    """Publish two towns' weather once both watchers have subscribed."""
    async with zmq.asyncio.Context() as context, context.socket(zmq.PUB) as pub:
        pub.bind("tcp://127.0.0.1:*")
        endpoint = pub.last_endpoint.decode()
        basel = asyncio.create_task(watch(context, endpoint, "weather.basel"))
        genova = asyncio.create_task(watch(context, endpoint, "weather.genova"))
        await pub.wait_for_subscribers(b"weather.basel", 1, timeout=5)
        await pub.wait_for_subscribers(b"weather.genova", 1, timeout=5)
        await pub.send(b"weather.basel: sunny")
        await pub.send(b"weather.genova: sea breeze")
        print(await basel)
        print(await genova)


asyncio.run(main())
