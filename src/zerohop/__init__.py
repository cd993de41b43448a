"""ZeroMQ in pure Python: ``import zerohop as zmq``.

The blocking API, with pyzmq's names. The same sockets on an event loop are in ``zerohop.asyncio``.

    context = zmq.Context.instance()
    socket = context.socket(zmq.REQ)
    socket.connect("tcp://127.0.0.1:5555")
    socket.send(b"hello")
    reply = socket.recv()
"""

from typing import TYPE_CHECKING, Any

from zerohop import constants
from zerohop._version import __version__
from zerohop.api.about import (
    has,
    pyzmq_version,
    pyzmq_version_info,
    zmq_version,
    zmq_version_info,
)
from zerohop.api.frame import COPY_THRESHOLD, Frame, Message
from zerohop.api.tracker import MessageTracker
from zerohop.constants import *  # noqa: F403 - their __all__ is tested against pyzmq's, name by name
from zerohop.core.endpoint import IPC_PATH_MAX_LEN
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
from zerohop.sync.context import Context
from zerohop.sync.poller import Poller, select, zmq_poll
from zerohop.sync.socket import Socket

if TYPE_CHECKING:
    from zerohop.devices import device, proxy, proxy_steerable

DRAFT_API = False
SyncContext = Context
SyncSocket = Socket

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
    "SyncContext",
    "SyncSocket",
    "UsageError",
    "ZMQBaseError",
    "ZMQBindError",
    "ZMQError",
    "ZMQVersionError",
    "__version__",
    "device",
    "has",
    "proxy",
    "proxy_steerable",
    "pyzmq_version",
    "pyzmq_version_info",
    "select",
    "strerror",
    "zmq_poll",
    "zmq_version",
    "zmq_version_info",
]


def __getattr__(name: str) -> Any:
    """Import the proxies when one of them is asked for: few programs have any."""
    if name in {"device", "proxy", "proxy_steerable"}:
        from zerohop import devices

        return getattr(devices, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
