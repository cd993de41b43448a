"""What happens on a socket's connections, as an asynchronous iterator of records."""

import asyncio

import zerohop as zmq
import zerohop.asyncio


async def main() -> None:
    """Watch a connection being made, used and closed by the other side."""
    async with zmq.asyncio.Context() as context, context.socket(zmq.PUSH) as push:
        pull = context.socket(zmq.PULL)
        pull.bind("tcp://127.0.0.1:*")
        monitor = push.get_monitor_socket()
        push.connect(pull.last_endpoint)
        async for event in monitor:
            print(event.event.name)
            if event.event is zmq.Event.HANDSHAKE_SUCCEEDED:
                pull.close()
            if event.event is zmq.Event.DISCONNECTED:
                break
        push.disable_monitor()


asyncio.run(main())
