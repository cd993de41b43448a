"""What happened to a socket's connections: records, libzmq's encoding, a log that cannot block.

    message  = frame 1, frame 2                      (zmq_socket_monitor(3), version 1)
    frame 1  = event (2 octets) value (4 octets)     unsigned, native byte order, no padding
    frame 2  = endpoint                              UTF-8, may be empty

    event                                                   value
    CONNECTED, ACCEPTED, LISTENING, DISCONNECTED            file descriptor
    CLOSED                                                  errno; 0: the end of a listener
    BIND_FAILED, ACCEPT_FAILED, CLOSE_FAILED                errno
    CONNECT_DELAYED                                         errno (EINPROGRESS)
    CONNECT_RETRIED                                         pause in milliseconds
    HANDSHAKE_FAILED_NO_DETAIL                              errno
    HANDSHAKE_FAILED_PROTOCOL                               Event.PROTOCOL_ERROR_...
    HANDSHAKE_FAILED_AUTH                                   the authenticator's 300, 400 or 500
    HANDSHAKE_SUCCEEDED, MONITOR_STOPPED                    0

libzmq tells nobody who the peer is, and blocks all I/O when a monitor is not read. Our records
carry the peer's address, its identity and the reason in words, and a full log drops its oldest.
"""

from __future__ import annotations

import struct
from collections import deque

from zerohop.constants import Event
from zerohop.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypedDict
else:
    TypedDict = dict

__all__ = ["MonitorLog", "MonitorMessage", "MonitorRecord", "encode", "parse"]

_HEAD = struct.Struct("=HI")
_LIMIT = 1000  # as many as libzmq's monitor sockets queue (their default SNDHWM)


class MonitorRecord(Value):
    """One thing that happened.

    Attributes:
        event: what; one bit of :class:`~zerohop.constants.Event`.
        value: see the module.
        endpoint: ours: the address that was bound or dialled.
        remote: the peer's address, or ``""``.
        routing_id: the peer's identity, or ``b""``.
        reason: why, in words, or ``""``.
    """

    event: Event
    value: int
    endpoint: str
    remote: str = ""
    routing_id: bytes = b""
    reason: str = ""


class MonitorMessage(TypedDict):
    """What pyzmq's ``recv_monitor_message`` returns. ``value`` is an int that prints as flags."""

    event: Event
    value: Event
    endpoint: bytes


def encode(record: MonitorRecord) -> list[bytes]:
    """Return the two frames of a monitor message. Only the low 32 bits of the value fit."""
    head = _HEAD.pack(record.event & 0xFFFF, record.value & 0xFFFFFFFF)
    return [head, record.endpoint.encode()]


def parse(frames: Sequence[bytes]) -> MonitorMessage:
    """Return what two frames say, in pyzmq's form.

    Raises:
        RuntimeError: these are not the frames of a monitor message, with pyzmq's words.
    """
    if len(frames) != 2 or len(frames[0]) != _HEAD.size:
        raise RuntimeError(f"Invalid event message format: {frames}")
    event, value = _HEAD.unpack(frames[0])
    return {"event": Event(event), "value": Event(value), "endpoint": frames[1]}


class MonitorLog:
    """Records for one reader, oldest first, at most ``limit``; one more drops the oldest.

    Args:
        events: the bits that the reader wants; others are not kept.
        limit: records at most, 1 or more.

    Attributes:
        dropped: records thrown away because nobody read them in time.
    """

    __slots__ = ("_events", "_records", "dropped")

    def __init__(self, events: int = Event.ALL, *, limit: int = _LIMIT) -> None:
        self._events = int(events)
        self._records: deque[MonitorRecord] = deque(maxlen=limit)
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._records)

    def append(self, record: MonitorRecord) -> None:
        """Keep a record, if its event is wanted."""
        if record.event & self._events:
            if len(self._records) == self._records.maxlen:
                self.dropped += 1
            self._records.append(record)

    def pop(self) -> MonitorRecord:
        """Take the oldest record.

        Raises:
            IndexError: there is none.
        """
        return self._records.popleft()
