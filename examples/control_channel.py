"""A server has a copy of a worker's table, asks it to evict a block, and sees the copy follow."""

import asyncio
import multiprocessing
import threading

from zerohop import serving

CACHE = serving.Protocol("cache", (serving.Operation("blocks_of", (str,)),))  # and PING, always


def work(endpoint: str) -> None:
    """The worker, a process of its own: it has four blocks, and does what it is told."""
    leave = threading.Event()

    def evict(block: str) -> None:
        worker.remove(block)

    with serving.SyncControlWorker(
        endpoint, "w-0", offers={"slots": 8}, commands={"evict": evict, "leave": leave.set}
    ) as worker:
        for number in range(4):
            worker.put(f"block-{number}", {"tokens": 16})
        leave.wait()


async def main() -> None:
    """The server: it does not start unless each operation of its protocol has a handler."""

    def blocks_of(name: str) -> int | None:
        view = server.view(name)
        return len(view.table) if view and view.is_right else None

    async with (
        serving.ControlServer(protocol=CACHE, handlers={"blocks_of": blocks_of}) as server,
        serving.ControlClient(server.endpoint) as client,
    ):
        worker = multiprocessing.get_context("spawn").Process(target=work, args=[server.endpoint])
        worker.start()
        async for event in server:
            match event:
                case serving.WorkerJoined():
                    print(f"{event.worker} is here and offers {event.offers}")
                case serving.WorkerSynced():
                    print("blocks of w-0:", await client.call("blocks_of", "w-0"))
                    await server.command("w-0", "evict", "block-2")
                case serving.WorkerChanged(removed=[block]):
                    print(f"{block} is gone; blocks:", await client.call("blocks_of", "w-0"))
                    await server.command("w-0", "leave")
                case serving.WorkerGone():
                    print(f"{event.worker} has {event.reason}")
                    break
        await asyncio.to_thread(worker.join)


if __name__ == "__main__":
    asyncio.run(main())
