"""What happens on a socket's connections, as an asynchronous iterator of records."""

import asyncio

import zerohop as zmq
import zerohop.asyncio


async def main() -> None:
    """Watch a connection being made, used and closed by the other side."""
    async with zmq.asyncio.Context() as context, context.socket(zmq.PUSH) as push:
        pull = context.socket(zmq.PULL)
        pull.bind("tcp://127.0.0.1:*")
        async with push.monitor_records() as records:
            push.connect(pull.last_endpoint)
            async for record in records:
                print(record.event.name)
                if record.event is zmq.Event.HANDSHAKE_SUCCEEDED:
                    pull.close()
                if record.event is zmq.Event.DISCONNECTED:
                    break


asyncio.run(main())
