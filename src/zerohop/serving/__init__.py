"""What LLM servers build by hand on ZeroMQ: the engine channel, KV events, the control channel.

Knows: the public names of ``zerohop`` and ``zerohop.asyncio``, and msgpack. Does not know: how the
sockets work, or anything of a model. Each part has pure files, which decide (no socket, clock,
thread, randomness or logging; ``now`` is an argument), and files that act.

    pip install ".[serving]"  # in a clone

Each name is imported when it is first asked for: who reads KV events needs no engine channel.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.serving.addresses import ipc_endpoint
    from zerohop.serving.control.asyncio_client import ControlClient, ControlWorker
    from zerohop.serving.control.asyncio_server import ControlServer
    from zerohop.serving.control.client import SyncControlClient, SyncControlWorker
    from zerohop.serving.control.events import (
        CommandEnded,
        CommandLost,
        WorkerChanged,
        WorkerGone,
        WorkerJoined,
        WorkerSynced,
        WorkerView,
    )
    from zerohop.serving.control.findings import Finding
    from zerohop.serving.control.lmcache.asyncio_controller import LmcacheController, LmcacheWorker
    from zerohop.serving.control.lmcache.client import LmcacheClient, SyncLmcacheClient
    from zerohop.serving.control.lmcache.controller import SyncLmcacheController, SyncLmcacheWorker
    from zerohop.serving.control.lmcache.server import LmcacheServer, SyncLmcacheServer
    from zerohop.serving.control.membership import MembershipOptions
    from zerohop.serving.control.probe import ping
    from zerohop.serving.control.protocol import Operation, Protocol
    from zerohop.serving.control.server import SyncControlServer
    from zerohop.serving.engine.asyncio_client import EngineClient, RequestStream
    from zerohop.serving.engine.client import SyncEngineClient, SyncRequestStream
    from zerohop.serving.engine.liveness import EngineState, Patience
    from zerohop.serving.engine.messages import Delta, Request
    from zerohop.serving.engine.roster import EngineStatus
    from zerohop.serving.engine.server import EngineServer, News
    from zerohop.serving.errors import (
        DeadlineExceeded,
        EngineDead,
        EngineOverloaded,
        Malformed,
        MissingHandlers,
        NoAnswer,
        ProtocolMismatch,
        RequestRefused,
        ServingError,
        SlowConsumer,
        Unencodable,
        UtilityFailed,
    )
    from zerohop.serving.kv.asyncio_subscriber import KvEventSubscriber
    from zerohop.serving.kv.blocks import PresentBlocks
    from zerohop.serving.kv.deliveries import (
        Applied,
        Health,
        HealthChanged,
        Lost,
        Restarted,
        Snapshot,
        Undecodable,
    )
    from zerohop.serving.kv.events import (
        AllBlocksCleared,
        BlockRemoved,
        BlockStored,
        EventBatch,
        UnknownEvent,
    )
    from zerohop.serving.kv.publisher import KvEventPublisher
    from zerohop.serving.kv.questions import OrderOptions
    from zerohop.serving.kv.recording import (
        BatchRecorder,
        BatchRecording,
        Recorded,
        play_batches,
    )
    from zerohop.serving.kv.subscriber import SyncKvEventSubscriber

_IMPORTED_LATER = {
    "zerohop.serving.control.asyncio_client": (
        "ControlClient",
        "ControlWorker",
    ),
    "zerohop.serving.control.asyncio_server": ("ControlServer",),
    "zerohop.serving.control.client": (
        "SyncControlClient",
        "SyncControlWorker",
    ),
    "zerohop.serving.control.lmcache.asyncio_controller": (
        "LmcacheController",
        "LmcacheWorker",
    ),
    "zerohop.serving.control.lmcache.client": (
        "LmcacheClient",
        "SyncLmcacheClient",
    ),
    "zerohop.serving.control.lmcache.controller": (
        "SyncLmcacheController",
        "SyncLmcacheWorker",
    ),
    "zerohop.serving.control.lmcache.server": (
        "LmcacheServer",
        "SyncLmcacheServer",
    ),
    "zerohop.serving.control.membership": ("MembershipOptions",),
    "zerohop.serving.control.events": (
        "CommandEnded",
        "CommandLost",
        "WorkerChanged",
        "WorkerGone",
        "WorkerJoined",
        "WorkerSynced",
        "WorkerView",
    ),
    "zerohop.serving.control.protocol": (
        "Operation",
        "Protocol",
    ),
    "zerohop.serving.control.server": ("SyncControlServer",),
    "zerohop.serving.addresses": ("ipc_endpoint",),
    "zerohop.serving.control.findings": ("Finding",),
    "zerohop.serving.control.probe": ("ping",),
    "zerohop.serving.engine.asyncio_client": ("EngineClient", "RequestStream"),
    "zerohop.serving.engine.client": ("SyncEngineClient", "SyncRequestStream"),
    "zerohop.serving.engine.liveness": ("EngineState", "Patience"),
    "zerohop.serving.engine.messages": ("Delta", "Request"),
    "zerohop.serving.engine.roster": ("EngineStatus",),
    "zerohop.serving.engine.server": ("EngineServer", "News"),
    "zerohop.serving.errors": (
        "DeadlineExceeded",
        "EngineDead",
        "EngineOverloaded",
        "Malformed",
        "MissingHandlers",
        "NoAnswer",
        "ProtocolMismatch",
        "RequestRefused",
        "ServingError",
        "SlowConsumer",
        "Unencodable",
        "UtilityFailed",
    ),
    "zerohop.serving.kv.blocks": ("PresentBlocks",),
    "zerohop.serving.kv.deliveries": (
        "Applied",
        "Health",
        "HealthChanged",
        "Lost",
        "Restarted",
        "Snapshot",
        "Undecodable",
    ),
    "zerohop.serving.kv.events": (
        "AllBlocksCleared",
        "BlockRemoved",
        "BlockStored",
        "EventBatch",
        "UnknownEvent",
    ),
    "zerohop.serving.kv.publisher": ("KvEventPublisher",),
    "zerohop.serving.kv.questions": ("OrderOptions",),
    "zerohop.serving.kv.recording": (
        "BatchRecorder",
        "BatchRecording",
        "Recorded",
        "play_batches",
    ),
    "zerohop.serving.kv.subscriber": ("SyncKvEventSubscriber",),
    "zerohop.serving.kv.asyncio_subscriber": ("KvEventSubscriber",),
}

__all__ = [
    "AllBlocksCleared",
    "Applied",
    "BatchRecorder",
    "BatchRecording",
    "BlockRemoved",
    "BlockStored",
    "CommandEnded",
    "CommandLost",
    "ControlClient",
    "ControlServer",
    "ControlWorker",
    "DeadlineExceeded",
    "Delta",
    "EngineClient",
    "EngineDead",
    "EngineOverloaded",
    "EngineServer",
    "EngineState",
    "EngineStatus",
    "EventBatch",
    "Finding",
    "Health",
    "HealthChanged",
    "KvEventPublisher",
    "KvEventSubscriber",
    "LmcacheClient",
    "LmcacheController",
    "LmcacheServer",
    "LmcacheWorker",
    "Lost",
    "Malformed",
    "MembershipOptions",
    "MissingHandlers",
    "News",
    "NoAnswer",
    "Operation",
    "OrderOptions",
    "Patience",
    "PresentBlocks",
    "Protocol",
    "ProtocolMismatch",
    "Recorded",
    "Request",
    "RequestRefused",
    "RequestStream",
    "Restarted",
    "ServingError",
    "SlowConsumer",
    "Snapshot",
    "SyncControlClient",
    "SyncControlServer",
    "SyncControlWorker",
    "SyncEngineClient",
    "SyncKvEventSubscriber",
    "SyncLmcacheClient",
    "SyncLmcacheController",
    "SyncLmcacheServer",
    "SyncLmcacheWorker",
    "SyncRequestStream",
    "Undecodable",
    "Unencodable",
    "UnknownEvent",
    "UtilityFailed",
    "WorkerChanged",
    "WorkerGone",
    "WorkerJoined",
    "WorkerSynced",
    "WorkerView",
    "ipc_endpoint",
    "ping",
    "play_batches",
]


if not TYPE_CHECKING:  # or every name would be one, to a type checker

    def __getattr__(name: str) -> object:
        for module, names in _IMPORTED_LATER.items():
            if name in names:
                try:
                    found = globals()[name] = getattr(__import__(module, fromlist=names), name)
                except ModuleNotFoundError as error:
                    error.add_note("in a clone of zerohop: pip install '.[serving]'")
                    raise
                return found
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
