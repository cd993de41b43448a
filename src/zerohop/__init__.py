"""ZeroMQ in pure Python: ``import zerohop as zmq``.

The blocking API, with pyzmq's names. The same sockets on an event loop are in ``zerohop.asyncio``.

    context = zmq.Context.instance()
    socket = context.socket(zmq.REQ)
    socket.connect("tcp://127.0.0.1:5555")
    socket.send(b"hello")
    reply = socket.recv()
"""

from zerohop import constants
from zerohop.constants import *  # noqa: F403 - their __all__ is tested against pyzmq's, name by name
from zerohop.errors import (
    Again,
    ContextTerminated,
    DraftFDWarning,
    EndpointError,
    HandshakeError,
    InterruptedSystemCall,
    NotDone,
    ProtocolError,
    UsageError,
    ZMQBaseError,
    ZMQBindError,
    ZMQError,
    ZMQVersionError,
    strerror,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop import decorators as decorators
    from zerohop import devices as devices
    from zerohop import error as error
    from zerohop import sugar as sugar
    from zerohop import utils as utils
    from zerohop._version import __version__
    from zerohop.api.about import (
        get_includes,
        get_library_dirs,
        has,
        pyzmq_version,
        pyzmq_version_info,
        zmq_errno,
        zmq_version,
        zmq_version_info,
    )
    from zerohop.api.frame import COPY_THRESHOLD, Frame, Message
    from zerohop.api.stopwatch import Stopwatch
    from zerohop.api.tracker import MessageTracker
    from zerohop.core.endpoint import IPC_PATH_MAX_LEN
    from zerohop.devices import device, proxy, proxy_steerable
    from zerohop.sync.context import Context
    from zerohop.sync.context import Context as SyncContext
    from zerohop.sync.poller import Poller, select, zmq_poll
    from zerohop.sync.socket import Socket
    from zerohop.sync.socket import Socket as SyncSocket

DRAFT_API = False

# Each of these is imported when it is first asked for. ``zerohop.asyncio`` comes through here too,
# and needs no blocking socket; and no program needs all of the rest.
_IMPORTED_LATER = {
    "zerohop._version": ("__version__",),
    "zerohop.api.about": (
        "get_includes",
        "get_library_dirs",
        "has",
        "pyzmq_version",
        "pyzmq_version_info",
        "zmq_errno",
        "zmq_version",
        "zmq_version_info",
    ),
    "zerohop.api.frame": ("COPY_THRESHOLD", "Frame", "Message"),
    "zerohop.api.stopwatch": ("Stopwatch",),
    "zerohop.api.tracker": ("MessageTracker",),
    "zerohop.core.endpoint": ("IPC_PATH_MAX_LEN",),
    "zerohop.devices": ("device", "proxy", "proxy_steerable"),
    "zerohop.sync.context": ("Context", "SyncContext"),
    "zerohop.sync.poller": ("Poller", "select", "zmq_poll"),
    "zerohop.sync.socket": ("Socket", "SyncSocket"),
}
# Programs say zmq.utils after `import zmq` alone.
_MODULES = ("asyncio", "decorators", "devices", "error", "sugar", "utils")

__all__ = [
    *constants.__all__,
    "COPY_THRESHOLD",
    "DRAFT_API",
    "IPC_PATH_MAX_LEN",
    "Again",
    "Context",
    "ContextTerminated",
    "DraftFDWarning",
    "EndpointError",
    "Frame",
    "HandshakeError",
    "InterruptedSystemCall",
    "Message",
    "MessageTracker",
    "NotDone",
    "Poller",
    "ProtocolError",
    "Socket",
    "Stopwatch",
    "SyncContext",
    "SyncSocket",
    "UsageError",
    "ZMQBaseError",
    "ZMQBindError",
    "ZMQError",
    "ZMQVersionError",
    "__version__",
    "device",
    "get_includes",
    "get_library_dirs",
    "has",
    "proxy",
    "proxy_steerable",
    "pyzmq_version",
    "pyzmq_version_info",
    "select",
    "strerror",
    "zmq_errno",
    "zmq_poll",
    "zmq_version",
    "zmq_version_info",
]


if not TYPE_CHECKING:  # or every name would be one, to a type checker

    def __getattr__(name: str) -> object:
        for module, names in _IMPORTED_LATER.items():
            if name in names:
                place = __import__(module, fromlist=names)
                found = globals()[name] = getattr(place, name.removeprefix("Sync"))
                return found
        if name in _MODULES:
            return __import__(f"{__name__}.{name}", fromlist=("",))
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__, *_MODULES})
