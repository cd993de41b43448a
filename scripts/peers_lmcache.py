"""LMCache's MP server and controller against our clients, and its clients against our servers.

No GPU: nothing of a KV cache is moved. What is tried is what every worker does before and besides:
PING, questions, registration, heartbeats, operations, and the full sync after a restart or a gap.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
import sys
import tempfile
import threading
import time
from importlib import import_module
from importlib.metadata import version
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from scripts.peers_kit import free_port, say, say_versions
from zerohop.serving.control.lmcache.client import LmcacheClient, SyncLmcacheClient
from zerohop.serving.control.lmcache.controller import SyncLmcacheController, SyncLmcacheWorker
from zerohop.serving.control.lmcache.messages import Register
from zerohop.serving.control.lmcache.server import SyncLmcacheServer
from zerohop.serving.errors import NoAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE = 60.0  # seconds until a peer must have done what it was asked for
LOCATION = "LocalCPUBackend"
WHO = "instance", 0
CONTEXT = {
    "instance_id": 7,
    "model_name": "tiny",
    "world_size": 1,
    "block_size": 16,
    "num_layers": 2,
    "hidden_dim_size": 256,
    "dtype_str": "float16",
    "use_mla": False,
}


def main() -> int:
    """Run all four meetings."""
    logging.disable(logging.WARNING)
    say_versions(f"lmcache {version('lmcache')}", f"pyzmq {version('pyzmq')}")
    ask_their_server()
    asyncio.run(ask_ours())
    register_with_their_controller()
    take_their_worker()
    return 0


def ask_their_server() -> None:
    """Our clients, their MP server."""
    with their_server() as endpoint, SyncLmcacheClient(endpoint, timeout=2.0) as client:
        pongs = [client.ping(), client.ping(7)]
        say("its MP server: our PING, of nobody and of an instance", f"{pongs}", all(pongs))
        told = [client.call(name) for name in ("get_chunk_size", "noop", "get_experimental")]
        say("its chunk size, NOOP, experimental features", f"{told}", told == [256, "OK", []])
        pool = client.call("register_kv_cache_engine_driven_context", CONTEXT)
        client.ping(7)
        client.call("unregister_kv_cache_engine_driven_context", 7)
        say("registration of an engine, and its end", f"{sorted(pool)}", "shm_name" in pool)
        try:
            client.call("nonsense")
        except NoAnswer:
            answer = "no reply, as `NoAnswer` after 2 s"
        else:
            answer = "a reply"
        say("an operation that it lacks", answer, client.ping())
        several = asyncio.run(ask_at_once(endpoint))
        say("100 questions at once, on an event loop", f"{several} answered", several == 100)


async def ask_at_once(endpoint: str) -> int:
    """Return how many of 100 pings were answered."""
    async with LmcacheClient(endpoint, timeout=10.0) as client:
        return sum(await asyncio.gather(*(client.ping() for _ in range(100))))


@contextlib.contextmanager
def their_server() -> Iterator[str]:
    """Their MP server, as a process, until the block ends."""
    port = free_port()
    command = [sys.executable, "-m", "lmcache.v1.multiprocess.server", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--l1-size-gb", "1", "--eviction-policy", "LRU"]
    command += ["--supported-transfer-mode", "engine_driven", "--disable-observability"]
    endpoint = f"tcp://127.0.0.1:{port}"
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            with SyncLmcacheClient(endpoint, timeout=PATIENCE) as client:
                client.ping()
            yield endpoint
        finally:
            process.terminate()
            process.wait()


async def ask_ours() -> None:
    """Their MP client, our server."""
    zmq, theirs = import_module("zmq"), "lmcache.v1.multiprocess"
    payload = import_module(f"{theirs}.custom_types").RegisterEngineDrivenContextPayload
    wrap = import_module(f"{theirs}.transport.zmq_impl.client").ZmqMultiprocessClient
    connect = import_module(f"{theirs}.transport.zmq_impl.mq").MessageQueueClient
    with SyncLmcacheServer(chunk_size=512, handlers={"clear": forbid}) as server:
        context = zmq.Context()
        client = wrap(connect(server.endpoint, context))
        told = [
            question.result(timeout=10)
            for question in (client.ping(None), client.get_chunk_size(), client.noop())
        ]
        say("our MP server: its PING, chunk size, NOOP", f"{told}", told == [True, 512, "OK"])
        client.register_kv_cache_engine_driven_context(payload(**CONTEXT)).result(timeout=10)
        healthy = client.ping(7).result(timeout=10)
        known = [each.instance_id for each in server.instances]
        client.unregister_kv_cache_engine_driven_context(7).result(timeout=10)
        ok = bool(healthy) and known == [7] and server.instances == []
        say("its registration, PING of the instance, and its end", f"known in between: {known}", ok)
        questions: list[tuple[str, Callable[[], Any]]] = [
            ("an operation that we lack", lambda: client.query_prefetch_status("r")),
            ("a handler that raises", lambda: client.clear(False)),
        ]
        for what, question in questions:
            begun = time.monotonic()
            try:
                question().result(timeout=10)
                answer, ok = "no error", False
            except ValueError as error:
                answer, ok = f"its client raises at once: {error}", "refused: " in str(error)
            say(what, answer.replace("\n", " "), ok and time.monotonic() - begun < 1)
        client.close()
        context.term()


def forbid(force: bool = False) -> None:
    """A handler that raises."""
    raise PermissionError(f"clear(force={force}) is not for workers")


def register_with_their_controller() -> None:
    """Our worker, their controller, which is restarted."""
    ports = {"pull": free_port(), "reply": free_port(), "heartbeat": free_port()}
    who = Register(*WHO, "127.0.0.1", free_port())
    wanted = set(range(100, 10_100))
    with SyncLmcacheWorker(
        f"tcp://127.0.0.1:{ports['pull']}",
        f"tcp://127.0.0.1:{ports['reply']}",
        who,
        location=LOCATION,
        period=0.5,
        spread=0.1,
        patience=2.0,
    ) as worker:
        with their_controller(ports) as controller:
            worker.admit(*range(10_100))
            worker.evict(*range(100))
            ok = eventually(lambda: their_keys(controller) == wanted)
            say(
                "its controller: our registration, 10,100 admits, 100 evicts",
                f"{len(their_keys(controller))} keys",
                ok,
            )
            before = worker.full_syncs
        with their_controller(ports) as controller:
            ok = eventually(lambda: their_keys(controller) == wanted)
            eventually(lambda: worker.full_syncs > before)
            syncs = worker.full_syncs - before
            say(
                "it restarts: our heartbeat, its command, our full sync in 5 batches",
                f"{len(their_keys(controller))} keys after {syncs} full sync",
                ok and syncs == 1,
            )


@contextlib.contextmanager
def their_controller(ports: dict[str, int]) -> Iterator[Any]:
    """Their controller, in a thread with a loop, until the block ends."""
    manager_of = import_module("lmcache.v1.cache_controller.controller_manager")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def make() -> Any:
        urls = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
        made = manager_of.LMCacheControllerManager(urls, 0, 300)
        made.task = asyncio.ensure_future(made.start_all())
        return made

    async def end() -> None:
        manager.task.cancel()
        await asyncio.gather(manager.task, return_exceptions=True)
        sockets = (
            manager.controller_pull_socket,
            manager.controller_reply_socket,
            manager.controller_heartbeat_socket,
        )
        for socket in sockets:
            socket.close(linger=0)

    manager = asyncio.run_coroutine_threadsafe(make(), loop).result(PATIENCE)
    try:
        yield manager
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result(PATIENCE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def their_keys(manager: Any) -> set[int]:
    """What their controller says that our worker has."""
    found: set[int] = manager.reg_controller.registry.get_worker_kv_keys(*WHO, LOCATION)
    return set(found)


def take_their_worker() -> None:
    """Their worker, with an engine that only says which chunks it has, and our controller."""
    module: Any = import_module("lmcache.v1.cache_controller.worker")
    settings = import_module("lmcache.v1.config").LMCacheEngineConfig
    backend = import_module("lmcache.v1.storage_backend.batched_message_sender")
    open_socket = module.get_zmq_socket

    def on_the_loopback(context: Any, url: str, **how: Any) -> Any:
        return open_socket(context, url.replace("*:", "127.0.0.1:"), **how)

    module.get_zmq_socket = on_the_loopback
    module.get_ip = lambda: "127.0.0.1"
    engine = Engine()
    with SyncLmcacheController() as controller:
        config = settings.from_defaults(
            enable_controller=True,
            lmcache_instance_id=WHO[0],
            controller_pull_url=controller.pull_endpoint.removeprefix("tcp://"),
            controller_reply_url=controller.reply_endpoint.removeprefix("tcp://"),
            lmcache_worker_ports=[free_port()],
            lmcache_worker_heartbeat_delay_time=0,
            lmcache_worker_heartbeat_time=1,
            extra_config={
                "full_sync_startup_delay_s": 0.1,
                "full_sync_status_poll_interval_s": 0.2,
            },
        )
        metadata = SimpleNamespace(
            worker_id=WHO[1],
            use_mla=False,
            world_size=1,
            model_name="tiny",
            served_model_name="tiny",
            role="worker",
        )
        worker = module.LMCacheWorker(config, metadata, engine)
        known = eventually(lambda: controller.workers() == [WHO])
        say("our controller: its worker registers", f"{controller.workers()}", known)
        sender = backend.BatchedMessageSender(metadata, config, LOCATION, worker)
        engine.change(sender, range(5000))
        ok = eventually(lambda: controller.keys(WHO, LOCATION) == engine.keys)
        found = len(controller.keys(WHO, LOCATION))
        say("its worker admits 5,000 chunks", f"{found} keys", ok and controller.is_right(WHO))
        sender.sequence_number += 3  # as if three had been lost on the way
        engine.change(sender, range(5000, 5010))
        eventually(lambda: controller.gaps == 1)
        ok = eventually(lambda: controller.is_right(WHO) and controller.full_syncs == 1)
        ok = ok and controller.keys(WHO, LOCATION) == engine.keys
        found = len(controller.keys(WHO, LOCATION))
        say(
            "three of its messages are missing: our command, its full sync",
            f"{controller.gaps} gap, {controller.full_syncs} full sync, {found} keys",
            ok,
        )
        sender.running = False
        worker.close()


class Engine:
    """As much of LMCache's engine as its worker asks for a full sync."""

    def __init__(self) -> None:
        self.keys: set[int] = set()
        self.storage_manager = SimpleNamespace(local_cpu_backend=self)

    def __str__(self) -> str:
        return LOCATION

    def get_keys(self) -> list[Any]:
        """Return what is in the cache."""
        return [SimpleNamespace(chunk_hash=key) for key in self.keys]

    def freeze(self, is_frozen: bool) -> None:
        """Stand still, or go on; nothing moves here."""

    def change(self, sender: Any, keys: range) -> None:
        """Put chunks into the cache, and tell the controller."""
        admit = import_module("lmcache.v1.cache_controller.message").OpType.ADMIT
        self.keys.update(keys)
        for key in keys:
            sender.add_kv_op(admit, key)


def eventually(condition: Callable[[], bool]) -> bool:
    """Wait until it is so; return whether it is."""
    give_up = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > give_up:
            return False
        time.sleep(0.05)
    return True


if __name__ == "__main__":
    sys.exit(main())
