"""pyzmq's name for :mod:`zerohop.errors`, where the exceptions are."""

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

__all__ = [
    "Again",
    "ContextTerminated",
    "DraftFDWarning",
    "EndpointError",
    "HandshakeError",
    "InterruptedSystemCall",
    "NotDone",
    "ProtocolError",
    "UsageError",
    "ZMQBaseError",
    "ZMQBindError",
    "ZMQError",
    "ZMQVersionError",
    "strerror",
]
