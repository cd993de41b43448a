"""What happens on a socket's connections: its monitor, read as an asynchronous iterator."""

import asyncio

import zerohop as zmq
import zerohop.asyncio
from zerohop.utils.monitor import parse_monitor_message


async def main() -> None:
    """Watch a connection being made, used and closed by the other side."""
    async with zmq.asyncio.Context() as context, context.socket(zmq.PUSH) as push:
        pull = context.socket(zmq.PULL)
        pull.bind("tcp://127.0.0.1:*")
        monitor = push.get_monitor_socket()
        push.connect(pull.last_endpoint)
        async for frames in monitor:
            event = parse_monitor_message(frames)["event"]
            print(event.name)
            if event is zmq.Event.HANDSHAKE_SUCCEEDED:
                pull.close()
            if event is zmq.Event.DISCONNECTED:
                break
        push.disable_monitor()
        monitor.close()


asyncio.run(main())
