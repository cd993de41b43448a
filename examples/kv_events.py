"""An engine tells which KV blocks it has; a router, which comes late, has the same view of them."""

import multiprocessing

from zerohop.serving import (
    Applied,
    BlockRemoved,
    BlockStored,
    Health,
    HealthChanged,
    KvEventPublisher,
    PresentBlocks,
    SyncKvEventSubscriber,
)

BLOCK_SIZE = 16
STEPS = 1000
ROOM = 100  # blocks that the engine has room for


def route(endpoint: str, replay: str) -> None:
    """The router, a process of its own: follow the engine until all of it is there."""
    view, health, applied = PresentBlocks(), Health.CATCHING_UP, 0
    with SyncKvEventSubscriber(endpoint, replay) as subscriber:
        for delivery in subscriber:
            view.deliver(delivery)  # where the engine restarts, or something is lost: empties it
            match delivery:
                case Applied():
                    applied += 1
                case HealthChanged():
                    health = delivery.health
            if applied == STEPS and health is Health.LIVE:
                break
    print(f"{applied} batches, each once and in order; the view is {health.value}")
    print(f"{len(view)} blocks; block 42: {42 in view}, block 999: {999 in view}")


def main() -> None:
    """The engine: a new block in each step, and the oldest one goes where there is no room."""
    with KvEventPublisher(replay="tcp://127.0.0.1:*") as publisher:
        endpoints = [publisher.endpoint, publisher.replay_endpoint]
        router = multiprocessing.get_context("spawn").Process(target=route, args=endpoints)
        for step in range(STEPS):
            if step == STEPS // 2:
                router.start()  # half of it is said before the router is there, and is replayed
            stored = BlockStored([step], None, [step] * BLOCK_SIZE, BLOCK_SIZE)
            removed = [BlockRemoved([step - ROOM])] if step >= ROOM else []
            publisher.publish([stored, *removed])
        router.join()


if __name__ == "__main__":
    main()
