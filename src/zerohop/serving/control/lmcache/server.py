"""A server that real LMCache workers can ping, query and register with.

What LMCache's own does with KV caches is not in here: operations that move blocks are the user's
to handle. What every worker asks before is: PING, NOOP, the chunk size, and registration.
"""

from __future__ import annotations

import time
from functools import wraps

from zerohop.serving.actor import Actor
from zerohop.serving.control.asyncio_server import RouterTask
from zerohop.serving.control.exchange import Exchange
from zerohop.serving.control.lmcache.instances import Instances
from zerohop.serving.control.lmcache.operations import lmcache_protocol
from zerohop.serving.control.lmcache.releases import LATEST, OPERATIONS, check_release
from zerohop.serving.control.server import RouterThread
from zerohop.serving.control.values import encoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from zerohop.serving.control.lmcache.instances import Instance

__all__ = ["LmcacheServer", "SyncLmcacheServer"]


class _Serving(Actor):
    """What both servers are: the exchange of a release, and who is registered."""

    _instances: Instances

    def _exchange_for(
        self,
        operations: Iterable[str],
        handlers: Mapping[str, Callable[..., Any]] | None,
        release: str,
        chunk_size: int,
    ) -> Exchange:
        self._instances = Instances()
        own: dict[str, Callable[..., Any]] = {
            "noop": lambda: "OK",
            "get_chunk_size": lambda: chunk_size,
            "get_experimental": list,
            "register_kv_cache": self._register,
            "unregister_kv_cache": self._unregister,
            "register_kv_cache_engine_driven_context": self._register_context,
            "unregister_kv_cache_engine_driven_context": self._unregister,
            "report_block_allocation": lambda *_: None,
            "end_session": lambda *_: None,
        }
        encoded(chunk_size)  # it is told to who asks
        names = OPERATIONS[check_release(release)]
        have = {name: each for name, each in own.items() if name in names}
        have["ping"] = self._ping
        have.update(handlers or {})
        if have["ping"] != self._ping:
            have["ping"] = self._noting(have["ping"])
        protocol = lmcache_protocol([*have, *operations], release)
        return Exchange(protocol, have, says_why=release == LATEST)  # who can read it

    @property
    def instances(self) -> list[Instance]:
        """The workers that are registered and not silent."""
        with self._lock:
            self._instances.reap(time.monotonic())
            return list(self._instances.present.values())

    def _ping(self, instance_id: int | None = None) -> bool:
        return self._instances.ping(instance_id, time.monotonic())

    def _noting(self, ping: Callable[..., Any]) -> Callable[..., Any]:
        """The user's PING. Who is alive is still known by who pings."""

        @wraps(ping)
        def note_and_ping(*arguments: Any) -> Any:
            self._ping(*arguments)
            return ping(*arguments)

        return note_and_ping

    def _register(self, *arguments: Any) -> None:
        with self._lock:
            self._instances.register(arguments[0], arguments[1:], time.monotonic())

    def _register_context(self, context: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self._instances.register(context["instance_id"], context, time.monotonic())
        return {"shm_name": "", "pool_size": 0}  # the data come in messages

    def _unregister(self, *arguments: Any) -> None:
        with self._lock:
            self._instances.unregister(arguments[0])


class SyncLmcacheServer(_Serving, RouterThread):
    """Serves LMCache workers, in threads.

    Args:
        endpoint: to bind; the default is a free port of the loopback.
        operations: what it does besides, by LMCache's names in small letters.
        handlers: for each of these; and in the place of its own. An argument is what msgpack made
            of it. They are called in threads of their own.
        release: of the workers.
        chunk_size: in tokens.
        threads: how many carry out the handlers.

    Attributes:
        endpoint: where it is bound.

    Raises:
        MissingHandlers: an operation has no handler.
        ValueError: the release is not known, or does not have an operation.
        Unencodable: the chunk size has no form on the wire.
        TypeError: a handler cannot take the arguments of its operation.
        ZMQError: the endpoint can't be bound.
    """

    def __init__(
        self,
        endpoint: str = "tcp://127.0.0.1:*",
        *,
        operations: Iterable[str] = (),
        handlers: Mapping[str, Callable[..., Any]] | None = None,
        release: str = LATEST,
        chunk_size: int = 256,
        threads: int = 1,
    ) -> None:
        exchange = self._exchange_for(operations, handlers, release, chunk_size)
        super().__init__(endpoint, exchange, threads)


class LmcacheServer(_Serving, RouterTask):
    """Serves LMCache workers, on the running event loop.

    Args:
        endpoint: to bind; the default is a free port of the loopback.
        operations: what it does besides, by LMCache's names in small letters.
        handlers: for each of these; and in the place of its own. An argument is what msgpack made
            of it. They may be coroutine functions.
        release: of the workers.
        chunk_size: in tokens.

    Attributes:
        endpoint: where it is bound.

    Raises:
        MissingHandlers: an operation has no handler.
        ValueError: the release is not known, or does not have an operation.
        Unencodable: the chunk size has no form on the wire.
        TypeError: a handler cannot take the arguments of its operation.
        ZMQError: the endpoint can't be bound.
    """

    def __init__(
        self,
        endpoint: str = "tcp://127.0.0.1:*",
        *,
        operations: Iterable[str] = (),
        handlers: Mapping[str, Callable[..., Any]] | None = None,
        release: str = LATEST,
        chunk_size: int = 256,
    ) -> None:
        super().__init__(endpoint, self._exchange_for(operations, handlers, release, chunk_size))
