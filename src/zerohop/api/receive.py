"""What a caller gets of a received part or message: octets or Frames, and nothing lent by others.

Parts are ``bytes``, except over ``inproc``, where a part may be the ``memoryview`` that the sender
was lent: it is copied here, and the sender's tracker is done.
"""

from __future__ import annotations

from zerohop.api.frame import Frame
from zerohop.api.tracker import DONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from zerohop.patterns.pipe import Message, Part

__all__ = ["as_frame", "as_frames", "as_message", "as_octets", "as_octets_list"]


def as_octets(part: Part) -> bytes:
    """What ``recv()`` returns."""
    return part if type(part) is bytes else bytes(part)


def as_octets_list(message: Message) -> list[bytes]:
    """What ``recv_multipart()`` returns: a list of the caller's own (others may have the message).

    Hot: nothing is called where all parts are octets.
    """
    if type(message) is list:
        for part in message:
            if type(part) is not bytes:
                return [bytes(part) for part in message]  # the same object where it is bytes
        return [*message]  # type: ignore[list-item] # all are bytes
    return [message if type(message) is bytes else bytes(message)]  # type: ignore[arg-type]


def as_message(message: Message) -> bytes | list[bytes]:
    """What iteration over a socket gives: the part of a message of one, else the list of parts."""
    if type(message) is bytes:
        return message
    return as_octets_list(message) if isinstance(message, list) else bytes(message)


def as_frame(part: Part, *, more: bool = False) -> Frame:
    """What ``recv(copy=False)`` returns."""
    frame = Frame(as_octets(part), more=more)
    frame.tracker = DONE
    return frame


def as_frames(message: Message) -> list[Frame]:
    """What ``recv_multipart(copy=False)`` returns."""
    parts = as_octets_list(message)
    last = len(parts) - 1
    return [as_frame(part, more=index < last) for index, part in enumerate(parts)]
