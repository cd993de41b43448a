"""From what the user gives to parts and messages, and back.

A part is ``bytes``, or a ``memoryview`` of octets that the caller lends (``copy=False``). A message
of one part travels bare, of more as a list. Error texts are pyzmq's, which programs and their
tests compare.
"""

from __future__ import annotations

from zerohop.api.frame import Frame, contiguous
from zerohop.api.tracker import DONE, MessageTracker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from zerohop.patterns.pipe import Message, Part

__all__ = [
    "check_buffer",
    "check_parts",
    "copy_into",
    "make_message",
    "make_part",
    "plain_message",
    "refuse_draft_arguments",
    "to_message",
    "to_part",
]

_SHOWN = 32  # characters of a wrong part's repr


def to_part(data: Any, *, copy: bool = True, track: bool = False, copy_threshold: int = 0) -> Part:
    """Return the part for what was given to ``send``.

    Args:
        data: ``bytes`` pass through; a Frame gives its own part; anything else by the buffer
            protocol, as one run of octets in the order they have in memory.
        copy: False: a view instead of a copy, if there are ``copy_threshold`` octets or more.
        track: with ``copy=False``: a view even of ``bytes``, so that it can be watched.
        copy_threshold: as above; smaller parts are cheaper to copy than to keep track of.

    Raises:
        TypeError: a ``str``, or no buffer at all.
        BufferError: a view with gaps (``data[::2]``).
    """
    if type(data) is bytes and not track:
        return data
    if isinstance(data, Frame):
        return data.part
    if isinstance(data, str):
        raise TypeError("unicode not allowed, use send_string")
    return contiguous(data, copy=copy, copy_threshold=copy_threshold)


def make_part(
    data: Any, *, copy: bool, track: bool, copy_threshold: int
) -> tuple[Part, MessageTracker | None]:
    """Return the part of ``send(data)``, and what ``send`` returns.

    Returns:
        The part, and: a Frame's own tracker; None where the data was copied because ``copy`` says
        so; a tracker that is done where it was copied because it is small; a tracker of the view if
        ``track``, else None.

    Raises:
        ValueError: ``track`` asks for the tracker of a Frame that has none.
        TypeError, BufferError: as :func:`to_part`.
    """
    if isinstance(data, Frame):
        if track and data.tracker is None:
            raise ValueError("Not a tracked message")
        return data.part, data.tracker
    part = to_part(data, copy=copy, track=track and not copy, copy_threshold=copy_threshold)
    if copy:
        return part, None
    if len(part) < copy_threshold:
        return part, DONE
    if not track:
        return part, None
    return part, MessageTracker(part) if isinstance(part, memoryview) else DONE


def plain_message(msg_parts: Any) -> Message | None:
    """Return the message of a list or tuple of nothing but ``bytes``, without a call a part.

    That is what nearly all are; None: :func:`check_parts` and :func:`make_message` have to look
    closely. The message is the caller's no more: it may change its list at once.
    """
    kind = type(msg_parts)
    if kind is not list and kind is not tuple:
        return None
    for part in msg_parts:  # for some parts quicker than anything that C has to offer
        if type(part) is not bytes:
            return None
    if len(msg_parts) > 1:
        return [*msg_parts]
    return msg_parts[0] if msg_parts else None


def check_parts(msg_parts: Iterable[Any]) -> list[Any]:
    """Return the parts of ``send_multipart`` as a list, if every one of them can be sent.

    Raises:
        TypeError: one cannot; the text says which. Nothing has been sent.
        IndexError: there are none.
    """
    parts = msg_parts if type(msg_parts) is list else list(msg_parts)
    for index, part in enumerate(parts):
        if isinstance(part, bytes | Frame):
            continue
        try:
            memoryview(part)
        except (TypeError, ValueError) as error:  # numpy: ValueError for a dtype without a buffer
            shown = repr(part)
            if len(shown) > _SHOWN:
                shown = shown[:_SHOWN] + "..."
            raise TypeError(
                f"Frame {index} ({shown}) does not support the buffer interface."
            ) from error
    if not parts:
        raise IndexError("list index out of range")  # a message has at least one frame
    return parts


def make_message(
    parts: list[Any], *, copy: bool, track: bool, copy_threshold: int
) -> tuple[Message, MessageTracker | None]:
    """Return the message of ``send_multipart(parts)``, and what it returns: one tracker for all.

    Raises:
        ValueError, TypeError, BufferError: as :func:`make_part`.
    """
    if copy and (plain := plain_message(parts)) is not None:
        return plain, None
    made = [
        make_part(part, copy=copy, track=track, copy_threshold=copy_threshold) for part in parts
    ]
    message = to_message([part for part, _ in made])
    trackers = {tracker for _, tracker in made if tracker is not None}
    if len(trackers) > 1:
        return message, MessageTracker(*trackers)
    return message, trackers.pop() if trackers else None


def to_message(parts: list[Part]) -> Message:
    """Return the message of these parts: the part itself where there is one."""
    return parts if len(parts) > 1 else parts[0]


def copy_into(part: Part, buffer: Any, nbytes: int = 0) -> int:
    """Copy a received part into the caller's buffer (``recv_into``).

    Args:
        part: what was received.
        buffer: writable, without gaps.
        nbytes: octets to copy at most; 0: as many as fit. The rest of the part is thrown away.

    Returns:
        The size of the part, which may be more than was copied.
    """
    view = check_buffer(buffer, nbytes)
    size = min(len(part), nbytes or len(view))
    view[:size] = memoryview(part)[:size]
    return len(part)


def check_buffer(buffer: Any, nbytes: int = 0) -> memoryview:
    """Return a writable view of octets of a buffer for ``recv_into``, before anything is received.

    Raises:
        TypeError: no buffer.
        BufferError: it is read-only, or has gaps.
        ValueError: ``nbytes`` is negative or more than the buffer has.
    """
    view = memoryview(buffer)
    if not view.contiguous:
        raise BufferError("memoryview: underlying buffer is not contiguous")
    if view.readonly:
        raise BufferError("memoryview: underlying buffer is not writable")
    if not 0 <= nbytes <= view.nbytes:
        raise ValueError(f"{nbytes=} too big for memoryview of {view.nbytes}B")
    return view.cast("B")


def refuse_draft_arguments(routing_id: int | None, group: str | None) -> None:
    """Refuse what only libzmq's draft socket types can do.

    Raises:
        RuntimeError: an argument was given; pyzmq's text, who built it without drafts.
    """
    if routing_id is not None:
        raise RuntimeError("libzmq and pyzmq must be built with draft support for CLIENT-SERVER")
    if group is not None:
        raise RuntimeError("libzmq and pyzmq must be built with draft support for RADIO-DISH")
